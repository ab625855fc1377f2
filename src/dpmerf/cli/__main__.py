"""`python -m dpmerf.cli`."""

from dpmerf.cli import main

main()
