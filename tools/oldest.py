"""Print the oldest versions that pyproject.toml allows, as constraints for pip: what `make oldest` tests with.

    python tools/oldest.py > oldest.txt
    pip install -c oldest.txt '.[evaluate]'

Tools of the tests and of development are left to pip: nobody who uses the package has them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_USED = ("test", "dev", "docs")  # groups of tools


def oldest() -> dict[str, str]:
    """Name -> the lower bound, for this system."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["optional-dependencies"]
    named = [
        *project["dependencies"],
        *(one for name, group in groups.items() if name not in NOT_USED for one in group),
    ]
    found = {}
    for one in named:
        wanted, _, where = one.partition(";")
        if "darwin" in where and ("==" in where) != (sys.platform == "darwin"):
            continue
        name, bound = re.fullmatch(r"([A-Za-z0-9_-]+)>=([0-9.]+).*", wanted.strip()).groups()  # type: ignore[union-attr]
        found[name] = bound
    return found


if __name__ == "__main__":
    print("\n".join(f"{name}=={bound}" for name, bound in oldest().items()))
