"""Translation: what a rule says of declared columns, said of measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dpmerf.schema.boxes import Box, Subset, domain, of_codes
from dpmerf.schema.derivations import Bound, Derived, Fixed, Joined, Step
from dpmerf.schema.expressions import Call, ExpressionError, walk
from dpmerf.schema.quantities import Facts, infer

Sets = dict[str, Subset]


@final
@dataclass(frozen=True)
class Translation:
    """From declared columns to measured ones."""

    steps: Sequence[Step]
    joined: Sequence[Joined]
    declared: Facts
    measured: Facts

    def names(self, name: str) -> set[str]:
        """The measured columns that a declared one is about."""
        return (
            {n for sets in self._column(name, domain(self.declared[name])) for n in sets}
            if name in self.declared
            else {name}
        )

    def boxes(self, box: Box) -> list[Box]:
        """The same box over measured columns; several where one does not do."""
        found: list[Sets] = [{}]
        for name, subset in box.sets:
            parts = self._column(name, subset)
            found = [joined for a in found for b in parts if (joined := _both(a, b)) is not None]
        return [Box(tuple(sorted(sets.items())), box.rules) for sets in found]

    def _column(self, name: str, subset: Subset) -> list[Sets]:
        """Alternatives, each a set per measured column."""
        step = next((s for s in self.steps if s.target == name), None)
        joined = next((j for j in self.joined if name in j.columns), None)
        if joined is not None:
            at = joined.columns.index(name)
            codes = [k for k, row in enumerate(joined.combinations) if _holds(subset, row[at])]
            return [{joined.name: of_codes(codes)}]
        if step is None:
            return [{name: subset}]
        if isinstance(step, Fixed) and len(step.sources) == 1 and self.declared[name].levels:
            return self._looked_up(step, subset)
        whole = domain(self.declared[name])
        if not subset.spans:
            return self._null(step) if subset.null else []
        if not subset.null and not whole.without(subset).spans:
            return self._present(step)
        if subset == whole:
            return [{n: domain(self.measured[n]) for n in step.measured}]
        raise ExpressionError(
            f"it speaks of values of '{name}', which follows from other columns. Say it of those, or of what is learned"
        )

    def _looked_up(self, step: Fixed, subset: Subset) -> list[Sets]:
        (key,) = step.sources
        fact = self.declared[key]
        codes = [k for k, v in enumerate(step.values) if (subset.null if v != v else _holds(subset, int(v)))]
        null = fact.nullable and fact.size in codes
        return self._column(key, of_codes([k for k in codes if k < fact.size], null))

    def _null(self, step: Step) -> list[Sets]:
        """The target is null where a part of it is."""
        own = [{n: Subset((), True)} for n in step.measured if self.measured[n].nullable]
        if isinstance(step, Bound):
            return own
        sources = [s for s in self._plain_sources(step) if self.declared[s].nullable]
        return own + [sets for s in sources for sets in self._column(s, Subset((), True))]

    def _present(self, step: Step) -> list[Sets]:
        found: list[Sets] = [{n: Subset(domain(self.measured[n]).spans) for n in step.measured}]
        for source in () if isinstance(step, Bound) else self._plain_sources(step):
            parts = self._column(source, Subset(domain(self.declared[source]).spans))
            found = [joined for a in found for b in parts if (joined := _both(a, b)) is not None]
        return found

    def _plain_sources(self, step: Step) -> tuple[str, ...]:
        if isinstance(step, Derived):
            odd = any(isinstance(n, Call) and n.op in ("when", "null") for n in walk(step.value))
            if odd or infer(step.value, self.declared).undefined:
                raise ExpressionError(
                    f"'{step.target}' is computed, and not only nulls make it null: say it of its columns"
                )
        if isinstance(step, Fixed):
            raise ExpressionError(f"'{step.target}' is looked up: say it of its keys")
        return step.sources


def _holds(subset: Subset, code: int) -> bool:
    return any(start <= (float(code), 0) < stop for start, stop in subset.spans)


def _both(a: Sets, b: Sets) -> Sets | None:
    found = dict(a)
    for name, s in b.items():
        found[name] = found[name] & s if name in found else s
        if not found[name]:
            return None
    return found
