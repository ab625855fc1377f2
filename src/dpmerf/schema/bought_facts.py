"""Bought facts: what a reader of a guarantee must know where facts of the schema have a price of their own."""

from dpmerf.schema.schema import Schema


def bought_columns(schema: Schema) -> tuple[str, ...]:
    """Columns some facts of which were bought from rows."""
    return tuple(name for name, column in schema.columns.items() if column.bought)


def bought_words(schema: Schema) -> str:
    """One sentence; "" where nothing was bought.

    >>> bought_words(Schema.parse('[columns.x]\\nkind = "integer"\\nmin = 0\\nmax = 9\\nbought = ["max"]'))[:42]
    'Facts of 1 column were bought from rows: i'
    """
    count = len(bought_columns(schema))
    if not count:
        return ""
    return (
        f"Facts of {count} column{'s' * (count > 1)} were bought from rows: if from the same data, what they cost "
        "(CARD.md of the discovery) comes on top of this."
    )
