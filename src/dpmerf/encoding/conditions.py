"""Conditions: what a person fixes when rows are drawn: what the generator can hold, and what relations decide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dpmerf.encoding.broken import broken
from dpmerf.encoding.codec import Batch, Codec, placed
from dpmerf.encoding.projection import member
from dpmerf.encoding.reading import read
from dpmerf.errors import SchemaError
from dpmerf.schema import Schema
from dpmerf.schema.expressions import columns, parse
from dpmerf.schema.relations import AnyRelation, Combination, Learn, Lookup, Rule

Given = Mapping[str, object]


def held(codec: Codec, given: Given) -> tuple[dict[str, object], Batch | None]:
    """The given columns that are measured as they are, and a row that holds them; refuses what breaks a relation."""
    if codec.relations is None:
        return dict(given), codec.row(dict(given))
    for step in codec.declared.program.steps:
        for name in set(step.measured) & set(given):
            raise SchemaError(
                f"'{name}' is learned in place of '{step.target}' and is no column of the rows: give '{step.target}', "
                f"and the columns that it is counted from"
            )
    declared = Codec(codec.declared.without_relations())
    declared.row(dict(given))  # refuses what the schema does not declare
    _refuse_broken(codec, given)
    own = {n: v for n, v in given.items() if n in codec.schema.learned and n in codec.declared.columns}
    return own, codec.row(own) if own else None


def met(codec: Codec, table: pa.Table, given: Given) -> np.ndarray:
    """(n,) which rows hold all given values."""
    schema = codec.declared.without_relations()
    wanted, have = _row(schema, given), placed(read(table, schema), schema)
    found = np.ones(table.num_rows, dtype=bool)
    for name in given:
        same = have[name] == wanted[name]
        found &= same | (np.isnan(have[name]) & np.isnan(wanted[name])) if have[name].dtype == np.float64 else same
    return found


def _row(schema: Schema, given: Given) -> dict[str, np.ndarray]:
    return placed(read(pa.table({n: pa.array([given.get(n)]) for n in schema.learned}), schema), schema)


def _refuse_broken(codec: Codec, given: Given) -> None:
    """Values that no row can hold together, by relations about these columns alone."""
    program = codec.declared.program
    values = _row(codec.declared.without_relations(), given)
    for i, hit in broken(values, program).items():
        if hit.any() and set(_names(program.relations[i])) <= set(given):
            raise SchemaError(f"no row can be so: {program.title(i)} forbids it. Give values that keep it")
    for box in program.boxes:
        if set(box.names) <= set(given) and all(
            member(s, values[name], program.measured_facts[name]).all() for name, s in box.sets
        ):
            words = " and ".join(program.title(i) for i in sorted(box.rules))
            raise SchemaError(f"no row can be so: {words} forbid it. Give values that keep them")


def _names(relation: AnyRelation) -> tuple[str, ...]:
    match relation:
        case Rule():
            return columns(parse(relation.rule))
        case Learn():
            return columns(parse(relation.learn))
        case Lookup():
            return (relation.lookup, *relation.by)
        case Combination():
            return relation.columns
