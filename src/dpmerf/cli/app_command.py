"""`dpmerf app`: the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmerf.errors import DataError


def app_command(
    data: Annotated[str | None, typer.Argument(help="Table to begin with; it can also be chosen on the page.")] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the schema, the ledger and everything that is made.")
    ] = Path("dpmerf-out"),
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; a free one if 0.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")] = True,
) -> None:
    """Walk from a table to synthetic rows on a page in the browser. It is served to this machine alone."""
    try:
        from dpmerf.app.server import serve
    except ModuleNotFoundError as missing:
        raise DataError(f"the page needs '{missing.name}': install dpmerf with the extra app, dpmerf[app]") from None
    from dpmerf.app.session import Session

    session = Session(output)
    if data is not None:
        session.open(data)
    serve(session, port, browser)
