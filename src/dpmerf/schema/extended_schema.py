"""Extended rows: the schema of a row beside the row before it and the person. An ordinary table, measured as one.

`step` says whether a row is the person's first; in a first row everything about the row before is null. When a row was
is, in a first row, the order column; in a later one it is `gap`, the distance to the row before, and the order column
is null: when the row before was is a column of its own. Nothing here depends on rows.
"""

from __future__ import annotations

from dpmerf.errors import SchemaError
from dpmerf.schema.columns import AnyColumn, Category, Integer
from dpmerf.schema.person_schema import ONLY, History, Persons
from dpmerf.schema.relations import AnyRelation, Rule
from dpmerf.schema.schema import Schema

STEP, FIRST, LATER = "step", "first", "later"
GAP = "gap"


def before(name: str) -> str:
    """The column of the row before."""
    return f"{name} before"


def count_of(history: History) -> str:
    """The column that says how many rows a person has."""
    return "number of rows" if history.name == ONLY else f"number of {history.name}"


def count_column(history: History, least: int) -> Integer:
    """How many rows a person has, as a column."""
    return Integer(min=least, max=max(history.largest, least + 1), log=True)


def extended(history: History) -> Schema:
    """The schema of a history's extended rows; its label, if rows have an order, is `step`."""
    measured, order = history.schema.measured.columns, history.facts.order
    columns: dict[str, AnyColumn] = {history.key: history.schema.columns[history.key]}
    columns |= {name: measured[name] for name in history.measured_persons}
    added: dict[str, AnyColumn] = {count_of(history): count_column(history, 1)}
    if order is not None:
        sometimes = measured[order].model_copy(update={"nullable": True})
        added |= {STEP: Category(values=(FIRST, LATER)), order: sometimes, before(order): sometimes}
        added[GAP] = _gap(measured[order])
    if history.facts.counter is not None:
        added[history.facts.counter] = measured[history.facts.counter]
    added |= {name: measured[name] for name in history.measured_rows}
    if order is not None:
        added |= {before(n): measured[n].model_copy(update={"nullable": True}) for n in history.measured_rows}
    known = set(columns) | set(history.measured_rows)
    own = {count_of(history), STEP, GAP, before(order or ""), *map(before, history.measured_rows)}
    for name in sorted(own & (known | {history.facts.counter, order})):
        raise SchemaError(f"a column is called '{name}', which is kept for histories: rename it, in the table and here")
    found = Schema(label=STEP if order is not None else None, columns=columns | added)
    kept = tuple(relation for relation in history.schema.relations if _is_rule(relation, found))
    return Schema(label=found.label, columns=found.columns, relations=(*kept, *_steps(history, found)))


def _steps(history: History, extended: Schema) -> list[AnyRelation]:
    """What is null in first rows and what in later ones: true of every extended row."""
    order = history.facts.order
    if order is None:
        return []
    own = history.schema.measured.columns
    first = [GAP, before(order), *map(before, history.measured_rows)]
    later = [GAP, before(order), *(before(name) for name in history.measured_rows if not own[name].nullable)]
    rules = [(FIRST, name, "null") for name in first] + [(LATER, name, "not null") for name in later]
    rules += [(FIRST, order, "not null"), (LATER, order, "null")]
    return [Rule(rule=f'if {STEP} = "{step}" then `{name}` is {what}') for step, name, what in rules if "`" not in name]


def person_table(persons: Persons) -> Schema:
    """The schema of one row a person: the person's columns and the numbers of rows in every other table."""
    assert persons.parent is not None
    own = persons.parent[1].measured
    counts = {count_of(h): count_column(h, 0) for h in persons.histories}
    if clash := sorted(counts.keys() & own.columns.keys()):
        raise SchemaError(f"a column is called '{clash[0]}', which is kept for histories: rename it")
    columns: dict[str, AnyColumn] = {persons.key: persons.parent[1].columns[persons.key], **own.learned, **counts}
    found = Schema(columns=columns)
    kept = tuple(relation for relation in persons.parent[1].relations if _is_rule(relation, found))
    return Schema(columns=columns, relations=kept)


def _gap(order: AnyColumn) -> AnyColumn:
    if (found := order.gap()) is None:
        raise SchemaError("a date, a timestamp or a number orders rows")
    return found


def _is_rule(relation: AnyRelation, extended: Schema) -> bool:
    """Does a relation only forbid cells of columns that are measured as they are? Then the model keeps it, too."""
    try:
        alone = Schema(columns=extended.columns, relations=(relation,))
    except ValueError:  # it speaks of a column that is computed
        return False
    program = alone.program
    return not program.steps and not program.joined and bool(program.boxes)
