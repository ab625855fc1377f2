"""The command `dpmerf` from its first moment: importing the package takes seconds, in which Ctrl-C has to be heard."""

import os
import signal


def main() -> None:
    """Answer signals in one line, then import and run the command line, which answers them itself."""

    def stop(number: int, frame: object) -> None:
        os.write(2, b"error: stopped. Nothing was begun\n")
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    from dpmerf.cli import main as run

    run()
