"""Facts: what somebody else's metadata says about columns, as far as it goes. What it does not say stays a gap.

A description of a table may have been written by a person or computed from the rows. Nobody can tell from the file, so
an imported schema says where its facts came from and asks a person to make sure that they are public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from dpmerf.schema.columns import KINDS, Column
from dpmerf.schema.explain import GAP
from dpmerf.schema.kinds.numbers import number_of

MOST_DECIMALS = 12


def needs(kind: str) -> tuple[str, ...]:
    """The keys that a kind cannot do without."""
    return KINDS[kind].needs if kind in KINDS else ()


@final
@dataclass(frozen=True)
class Facts:
    """One column: its kind (None: not known), the facts that the kind needs, and words for the person who checks."""

    kind: str | None
    known: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def written(self) -> dict[str, Any]:
        """The keys of the schema in their order, with a gap for each needed fact that is not known."""
        if self.kind is None:
            return {"kind": GAP, **self.known}
        gaps = {key: [GAP] if key == "values" else GAP for key in needs(self.kind) if key not in self.known}
        needed = {key: self.known.get(key, gaps.get(key)) for key in needs(self.kind)}
        return {"kind": self.kind, **needed, **{k: v for k, v in self.known.items() if k not in needed}}

    @property
    def gaps(self) -> tuple[str, ...]:
        """What a person has to fill in."""
        return tuple(key for key, value in self.written().items() if value in (GAP, [GAP]))


@final
@dataclass(frozen=True)
class TableFacts:
    """The columns of one table in order, its label if the metadata names one, relations, and what to say about it."""

    columns: dict[str, Facts]
    label: str | None = None
    notes: tuple[str, ...] = ()
    relations: tuple[dict[str, Any], ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def gaps(self) -> tuple[tuple[str, str], ...]:
        """Every (column, key) that a person has to fill in."""
        return tuple((name, key) for name, facts in self.columns.items() for key in facts.gaps)


def column(
    kind: str | None,
    *,
    values: Sequence[Any] | None = None,
    low: Any = None,
    high: Any = None,
    above: Any = None,
    below: Any = None,
    step: Any = None,
    decimals: Any = None,
    nullable: bool = True,
    notes: Iterable[str] = (),
    **rest: Any,
) -> Facts:
    """Facts from whatever was said. `low` and `high` belong to the range, `above` and `below` do not.

    A list of values makes a category of any kind but flag and id. A fact that makes no sense is left out, and said.

    >>> column("integer", low=0, below=10).written()
    {'kind': 'integer', 'min': 0, 'max': 9, 'nullable': True}
    """
    said = list(notes)
    known: dict[str, Any] = {}
    if values is not None and kind not in ("flag", "id"):
        kind = "category"
        listed = _one_type(values)
        if listed:
            known["values"] = listed
        else:
            said.append("its list of values mixes types or is empty: write it out")
    elif kind in KINDS:
        known |= KINDS[kind].told(low, high, above, below, said)
        known |= _grain(KINDS[kind], step, decimals)
    if nullable and kind != "id":
        known["nullable"] = True
    known |= {key: value for key, value in rest.items() if value not in (None, "")}
    return Facts(kind, known, tuple(said))


def _one_type(values: Sequence[Any]) -> list[Any]:
    """The values once each and of one type; numbers of two types become decimals, anything else text."""
    listed = [v for v in dict.fromkeys(v if isinstance(v, str | int | float) else str(v) for v in values) if v != ""]
    if len({type(v) for v in listed}) <= 1 and not any(isinstance(v, bool) for v in listed):
        return listed
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in listed):
        return list(dict.fromkeys(float(v) for v in listed))
    return list(dict.fromkeys(str(v).lower() if isinstance(v, bool) else str(v) for v in listed))


def _grain(kind: type[Column], step: Any, decimals: Any) -> dict[str, Any]:
    number, places = number_of(step), number_of(decimals)
    if "decimals" not in kind.model_fields:
        return {"step": number} if "step" in kind.model_fields and isinstance(number, int) and number > 1 else {}
    if places is None and number is not None and number > 0:
        exponent = -math.log10(number)
        places = round(exponent) if abs(exponent - round(exponent)) < 1e-9 else None
    return {"decimals": places} if isinstance(places, int) and 0 <= places <= MOST_DECIMALS else {}
