"""Write requirements/demo.lock: what `make demo` installs, every file by its hash, PyTorch for the CPU alone.

    python tools/lock.py > requirements/demo.lock

pip resolves what pyproject.toml asks for; the hashes of all files of each version (any platform) come from the package
index. The wheels of PyTorch on the usual index bring gigabytes of CUDA along on Linux: of those only macOS and Windows
are taken, and for Linux the ones of PyTorch's own index of CPU builds.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
WANTED = (".[evaluate]", "hatchling", "editables")  # the last two build the package itself
INDEX, CPU = "https://pypi.org/pypi/{}/json", "https://download.pytorch.org/whl/cpu/torch/"
PYTHONS = ("cp311", "cp312", "cp313")


def resolved() -> dict[str, tuple[str, str]]:
    """Name -> version, and the hash of the file that pip would take here."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "-q"]
        command += ["--report", report.name]
        subprocess.run([*command, *WANTED], cwd=ROOT, check=True, stdout=sys.stderr)
        found = json.loads(Path(report.name).read_text())
    made = {}
    for one in found["install"]:
        name = re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower()
        if name != "dpmerf":
            digest = one["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", "")
            made[name] = (one["metadata"]["version"].partition("+")[0], digest)
    return made


def hashes(name: str, version: str) -> set[str]:
    """Of every file of a version; none where the index does not answer."""
    files = json.loads(fetched(INDEX.format(name)) or "{}").get("releases", {}).get(version, [])
    if name != "torch":
        return {f["digests"]["sha256"] for f in files}
    return {f["digests"]["sha256"] for f in files if re.search("macosx|win_", f["filename"])} | cpu_hashes(version)


def cpu_hashes(version: str) -> set[str]:
    tags = "|".join(PYTHONS)
    wheel = re.compile(rf"torch-{re.escape(version)}(?:%2B|\+)cpu-(?:{tags})-[^#\"]*linux[^#\"]*#sha256=(\w{{64}})")
    return set(wheel.findall(fetched(CPU)))


def fetched(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return str(answer.read().decode())
    except OSError:
        print(f"note: no answer from {address}: only the file that pip found is locked", file=sys.stderr)
        return ""


def main() -> None:
    print("# Made by tools/lock.py. Install: pip install --require-hashes -r requirements/demo.lock \\")
    print("#   --extra-index-url https://download.pytorch.org/whl/cpu")
    for name, (version, here) in sorted(resolved().items()):
        known = hashes(name, version) | ({here} if here else set())
        print(f"{name}=={version} \\\n    " + " \\\n    ".join(f"--hash=sha256:{h}" for h in sorted(known)))


if __name__ == "__main__":
    main()
