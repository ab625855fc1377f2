"""What a library for pages would add to an installation: megabytes, packages and the time of its import.

    python -m benchmarks.app_libraries

Each is installed into an environment of its own, which takes a few minutes and half a gigabyte for a while.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

CANDIDATES = {
    "streamlit": ["streamlit"],
    "panel": ["panel"],
    "nicegui": ["nicegui"],
    "shiny": ["shiny"],
    "starlette": ["starlette", "uvicorn", "jinja2", "python-multipart"],
}


def size(folder: Path) -> float:
    """Megabytes of a folder."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def weigh(name: str, packages: list[str], place: Path) -> tuple[float, int, float]:
    """Megabytes and packages beyond an empty environment, and seconds to import."""
    home = place / name
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    library, python = home / "lib", home / "bin" / "python"
    empty = size(library)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q"]
    before = len(subprocess.run([*pip, "freeze", "--all"], check=True, capture_output=True).stdout.splitlines())
    subprocess.run([*pip, "install", *packages], check=True, stderr=subprocess.DEVNULL)
    after = len(subprocess.run([*pip, "freeze", "--all"], check=True, capture_output=True).stdout.splitlines())
    subprocess.run([str(python), "-c", f"import {name}"], check=True)  # compiled once
    start = time.perf_counter()
    subprocess.run([str(python), "-c", f"import {name}"], check=True)
    return size(library) - empty, after - before, time.perf_counter() - start


def main() -> None:
    print("| library | MB | packages | import, s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for name, packages in CANDIDATES.items():
            megabytes, count, seconds = weigh(name, packages, Path(place))
            print(f"| {name} | {megabytes:.0f} | {count} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
