"""Exit with 0 if the index knows vulnerabilities, else say so and exit with 1: `make check` then goes on without them.

A mirror often serves packages alone; pip-audit would then find nothing and call it well.
"""

import json
import sys
import urllib.request

INDEX = "https://pypi.org/pypi/pip/24.0/json"  # a version with a known one


def answers(address: str = INDEX) -> bool:
    """Whether vulnerabilities are told."""
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(json.load(answer).get("vulnerabilities"))
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    if not answers():
        print("note: pypi.org tells no vulnerabilities here: they were not looked up", file=sys.stderr)
        sys.exit(1)
