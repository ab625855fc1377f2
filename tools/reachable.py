"""Exit with 0 if the index of known vulnerabilities answers, else say so and exit with 1: `make check` then goes on."""

import sys
import urllib.request

try:
    urllib.request.urlopen("https://pypi.org/pypi/pip/json", timeout=5).close()
except OSError:
    print("note: pypi.org does not answer: known vulnerabilities were not looked up", file=sys.stderr)
    sys.exit(1)
