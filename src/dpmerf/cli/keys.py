"""`dpmerf keys new` and `dpmerf keys show`: who signs releases, and whose signature to expect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmerf.cli.options import Json, Quiet, say

keys_app = typer.Typer(help="Keys that sign releases (Ed25519).", no_args_is_help=True)


@keys_app.command("new", epilog="Example: dpmerf keys new institute.key")
def keys_new(
    file: Annotated[Path, typer.Argument(help="File for the private key; the public one gets .pub added.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a pair of keys. Keep the private one secret; hand the public one to those who verify."""
    from dpmerf.release.signature import fingerprint, load_public, make_keys

    private, public = make_keys(file)
    found = {"private": str(private), "public": str(public), "fingerprint": fingerprint(load_public(public))}
    say(quiet, as_json, found, f"Keep {private} secret. Hand out {public}, {found['fingerprint']}")


@keys_app.command("show", epilog="Example: dpmerf keys show institute.key.pub")
def keys_show(
    file: Annotated[Path, typer.Argument(help="Public key.")], quiet: Quiet = False, as_json: Json = False
) -> None:
    """Show a public key's fingerprint, to compare it with the one you were told."""
    from dpmerf.release.signature import fingerprint, load_public

    found = fingerprint(load_public(file))
    say(quiet, as_json, {"fingerprint": found}, found)
