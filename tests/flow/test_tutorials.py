"""The blocks of code in README and in every tutorial run as they stand, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.M | re.S)


def program(text: str) -> str:
    """One program of all blocks: Python as it is, commands by a shell that stops at the first that fails."""
    parts = ["import subprocess as _shell"]
    for kind, block in BLOCK.findall(text):
        run = f"_shell.run(['bash', '-euo', 'pipefail', '-c', {block!r}], check=True)"
        parts.append(block if kind == "python" else run)
    return "\n".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(p, id=p.stem) for p in PAGES if BLOCK.search(p.read_text())])
def test_the_page_runs(page: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-c", program(page.read_text(encoding="utf-8"))]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{page.name}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
