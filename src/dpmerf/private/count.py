"""Count: the number of rows, where it is public. Nothing else of a row is looked at."""

from __future__ import annotations

from dpmerf.accounting.unit import Unit
from dpmerf.private.ledger import Ledger
from dpmerf.sources.rows import Rows


def public_rows(rows: Rows, unit: Unit, ledger: Ledger | None) -> int | None:
    """The number of rows, only where the unit of privacy makes it public; None otherwise.

    Parquet and Arrow state it. The records of a CSV file have to be counted, which a plan needs before it can be
    priced and charged: that costs nothing, the number being public, and is done only if the ledger has budget left for
    this unit.
    """
    if not unit.rows_public:
        return None
    if rows.stored_count is not None:
        return max(rows.stored_count, 1)
    if ledger is not None:
        ledger.check_open(unit)
    first = [next(iter(rows.fields))]
    return max(sum(batch.num_rows for batch in rows.batches(first)), 1)
