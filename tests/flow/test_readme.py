"""README's commands and code run as they stand, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
def test_the_tour_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(bash|python)\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    assert any(kind == "bash" for kind, _ in blocks) and any(kind == "python" for kind, _ in blocks)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shell = "\n".join(text for kind, text in blocks if kind == "bash")
    python = "\n".join(text for kind, text in blocks if kind == "python")
    for text, command in ((shell, ["bash", "-euo", "pipefail", "-c"]), (python, [sys.executable, "-c"])):
        done = subprocess.run([*command, text], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{text}\n{done.stderr}"
