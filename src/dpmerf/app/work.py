"""Work: what the button of the page sets going. The one place of the page that hands rows to the locked room."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from dpmerf import dossier
from dpmerf.app.jobs import Work
from dpmerf.discovery import Discovery, Purchase
from dpmerf.folders import keep
from dpmerf.pipeline import Asked, run
from dpmerf.plan import Plan
from dpmerf.private.discover import discover
from dpmerf.private.ledger import Ledger
from dpmerf.progress import Bars
from dpmerf.release.verify import verify
from dpmerf.sources.rows import open_rows


def discovery_work(
    source: str, purchase: Purchase, ledger: Ledger, output: Path, taken: Callable[[Discovery], None]
) -> Work:
    """Buy facts, keep them, and hand them on, as one job."""

    def work(bars: Bars) -> dict[str, Path]:
        found = discover(open_rows(source, purchase.reading), purchase, ledger=ledger, bars=bars)
        keep(found.save, output)
        taken(found)
        return {"discovery": output}

    return work


def release_work(
    source: str, plan: Plan, ledger: Ledger, output: Path, seed: int, name: str, go_on: bool = False
) -> Work:
    """Release, train, sample, report and dossier, as one job; what was made, by its role."""

    def work(bars: Bars) -> dict[str, Path]:
        rows = open_rows(source, plan.schema.reading)
        rows.require(list(plan.schema.learned))
        made = run(rows, plan, output, Asked(seed=seed), ledger=ledger, bars=bars, go_on=go_on)
        made |= {"card": made["release"] / "CARD.md", "folder": output, "dossier": output / "dossier.html"}
        made["dossier"].write_text(_dossier(made["release"], ledger, name), encoding="utf-8")
        return made

    return work


def _dossier(release: Path, ledger: Ledger, name: str) -> str:
    checked = verify(release).release
    hashes = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(release.iterdir())}
    entry = dossier.LedgerFacts.of(ledger.summary(), checked.plan)
    return dossier.html(dossier.make_dossier(checked, name=name, hashes=hashes, ledger=entry))
