"""`dpmerf pack`: a dossier to print and sign."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from dpmerf.cli.options import Json, Quiet, guard, say
from dpmerf.errors import ArtefactError


def pack(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the dossier; beside the release if left out.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What the data set is called; if left out, as its ledger knows it, else the folder's name."),
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that was charged: its entry goes in.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a dated dossier of a release, HTML and PDF: guarantee, plan, ledger, hashes, uses, signatures."""
    from dpmerf import dossier
    from dpmerf.private.ledger import Ledger
    from dpmerf.release.verify import verify

    checked = verify(release).release
    hashes = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(release.iterdir())}
    charged = None if ledger is None else Ledger.load(ledger)
    entry = None if charged is None else dossier.LedgerFacts.of(charged.summary(), checked.plan)
    known = "" if charged is None else charged.dataset
    called = name or known or release.resolve().parent.name or "data set"
    made = dossier.make_dossier(checked, name=called, hashes=hashes, ledger=entry)
    folder = output or release.resolve().parent
    paths = {"html": folder / "dossier.html", "pdf": folder / "dossier.pdf"}
    guard(folder, lambda: folder.mkdir(parents=True, exist_ok=True))
    guard(paths["html"], lambda: paths["html"].write_text(dossier.html(made), encoding="utf-8"))
    note = ""
    try:
        printed = dossier.pdf(made)
        guard(paths["pdf"], lambda: paths["pdf"].write_bytes(printed))
    except ArtefactError as problem:  # the page can be printed by any browser
        note = f" No PDF: {problem}."
        del paths["pdf"]
    found = {kind: str(path) for kind, path in paths.items()}
    say(quiet, as_json, found, f"Dossier written: {', '.join(found.values())}.{note}")
