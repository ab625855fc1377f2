"""Print a software bill of materials, CycloneDX 1.5 as JSON: what the demo's lock file installs, each with its hashes.

    python tools/sbom.py > sbom.json

The same lock file gives the same bytes: no time stamp, and a serial number that follows from the content.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?P<hashes>(?:\s*\\\n\s+--hash=sha256:\w+)+)", re.M)


def components(lock: str) -> list[dict[str, Any]]:
    """One per package of the lock file; its licence where the package is installed here."""
    found = []
    for one in LINE.finditer(lock):
        name, version = one["name"], one["version"]
        part: dict[str, Any] = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "hashes": [{"alg": "SHA-256", "content": h} for h in re.findall(r"sha256:(\w+)", one["hashes"])],
        }
        if licence := _licence(name):
            part["licenses"] = [{"license": {"name": licence}}]
        found.append(part)
    return found


def _licence(name: str) -> str:
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    words = said.get("License-Expression") or said.get("License") or ""
    return words.strip().splitlines()[0][:80] if words.strip() else ""


def bill() -> dict[str, Any]:
    lock = (ROOT / "requirements" / "demo.lock").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/dpmerf/__init__.py").read_text(encoding="utf-8"))
    assert version is not None
    own = {"type": "application", "bom-ref": "dpmerf", "name": "dpmerf", "version": version[1]}
    parts = components(lock)
    serial = uuid.UUID(bytes=hashlib.sha256(lock.encode()).digest()[:16], version=4)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": "dpmerf", "dependsOn": [p["bom-ref"] for p in parts]}],
    }


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1)
    print()
