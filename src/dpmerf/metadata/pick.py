"""Pick: one table out of a description of several."""

from __future__ import annotations

from typing import Any

from dpmerf.errors import SchemaError


def pick_table(tables: dict[str, Any], wanted: str | None) -> Any:
    """The wanted table, or the only one. Anything else is an error that lists what there is."""
    if not tables:
        raise SchemaError("there is no table in this description")
    names = ", ".join(list(tables)[:12])
    if wanted is None:
        if len(tables) > 1:
            raise SchemaError(f"this describes several tables: choose one with --table. There are: {names}")
        return next(iter(tables.values()))
    if wanted not in tables:
        raise SchemaError(f"there is no table '{wanted}' in this description. There are: {names}")
    return tables[wanted]
