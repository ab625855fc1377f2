"""Pages: what the campaign found, stored kind by kind (a later run of a kind replaces it), and the page made of it."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from fuzz.campaign import Tally, table

HEAD = """---
orphan: true
---
# The campaign

Written by `make fuzz` (`python -m fuzz --cases 20000 --page docs/campaign.md`). Hostile files, words and surroundings
go through the command itself, each with a planted cell. Then every write, sync, rename, folder, lock and opening of
`release` and `synth` fails, once and for good, as a full disk, an I/O error, an interruption and a read-only disk; then
limits of memory, of files and of their sizes, signals at every moment, and two or five processes with one ledger.
Bombs are files below 100 MB that unfold to gigabytes, or claim to; each has a process of its own.

Broken would be: an internal error, a traceback, a planted cell that is said, more than 60 CPU seconds, a file that
nobody asked for, a bomb that takes more than 2 GB, a ledger that counts too little, a release that is paid for and
lost. Refused when paid: the damage showed when rows were read.

"""


def keep(page: Path, tally: Tally) -> None:
    """Store one kind, and write the page again."""
    store = page.with_suffix(".json")
    found = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    found[tally.kind] = {**asdict(tally), "broken": dict(tally.broken), "commit": _commit()}
    store.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(text(found), encoding="utf-8")


def text(found: dict[str, dict[str, object]]) -> str:
    """Markdown."""
    tallies = []
    for one in found.values():
        fields = {**one, "broken": Counter(one["broken"])}  # type: ignore[call-overload]
        del fields["commit"]
        tallies.append(Tally(**fields))  # type: ignore[arg-type]
    commits = ", ".join(sorted({str(one["commit"]) for one in found.values()}))
    return f"{HEAD}{table(tallies)}\n\nRun at {commits}.\n"


def _commit() -> str:
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"
