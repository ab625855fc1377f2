"""Discovery: the artefact. Noisy looks, the schema that follows from them, and the guarantee. Holds no row."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

import dpmerf
from dpmerf.accounting.gaussian import at_most, attacker_odds
from dpmerf.discovery.bought import Values, facts, rows_of
from dpmerf.discovery.looks import DIGITS, PARTS, SCALES
from dpmerf.discovery.purchase import MOMENT, NUMBER, TEXT, Purchase, map_of_digits, map_of_scales
from dpmerf.discovery.ranges import Coarse, Noisy, coarse, widened
from dpmerf.errors import ArtefactError, DpmerfError
from dpmerf.features.algebra import BITS, FeatureMap
from dpmerf.folders import read_bytes, read_json, write_folder
from dpmerf.plan import digest
from dpmerf.release.card import NOT_PRIVATE
from dpmerf.release.release import NO_LEDGER, TRUSTED_NOISE, Charge
from dpmerf.schema import Schema
from dpmerf.schema.facts import TableFacts
from dpmerf.schema.toml import write

FORMAT = 3  # 2 drew ends in by other rules, 1 had no tails and one round of values
DOCUMENT, CARD, SCHEMA = "discovery.json", "CARD.md", "schema.toml"
_LONGEST = 256  # characters of a value


@final
@dataclass(frozen=True)
class Discovery:
    """What was bought: noisy sums by stage in units of the integer grid, and frequent values with noisy weights."""

    purchase: Purchase
    noise: str
    scales: tuple[int, ...] = ()
    tails: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    digits: tuple[int, ...] = ()
    values: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)  # the most frequent round first
    left: tuple[int, ...] = ()  # nulls and rows without a named value, of each column of texts
    charge: Charge | None = None

    # --- what follows from it ----------------------------------------------------------------------------------------

    @cached_property
    def coarse(self) -> dict[str, Coarse]:
        """Each looked-at column after two stages."""
        return second_look(self.purchase, first_look(self.purchase, self.scales), self.tails, self.rows)

    @cached_property
    def rows(self) -> float:
        return rows_of(self.purchase, noisy_scales(self.purchase, self.scales))

    @cached_property
    def facts(self) -> TableFacts:
        purchase = self.purchase
        numeric = measured(self.coarse)
        ends = _shared(numeric, self.ends, PARTS, purchase.shared_sigma("ends")) if numeric else {}
        phi = map_of_digits(numeric)
        digits = _split(phi, self.digits, purchase.sigma("digits", phi)) if numeric else {}
        columns = {
            name: facts(
                purchase,
                name,
                self.coarse.get(name),
                ends.get(name),
                digits.get(f"{name}#digits"),
                self._values(name),
                self.rows,
            )
            for name in purchase.columns
        }
        reading = purchase.reading.model_dump(mode="json", exclude_unset=True)
        return TableFacts(columns, reading=reading)

    def _values(self, name: str) -> Values | None:
        if name not in self.values:
            return None
        sigma = self.purchase.shared_sigma("values", self.purchase.settings.left)
        threshold = self.purchase.threshold(len(self.values), len(self.purchase.rounds(len(self.values))) - 1)[2]
        null, left = _shared(tuple(self.values), self.left, 2, sigma)[name].counts.tolist()
        return Values(tuple(value for value, _ in self.values[name]), null, left, sigma, threshold)

    def schema_text(self) -> str:
        """TOML, with what was bought marked."""
        unit = self.purchase.unit
        head = (
            f"Bought at epsilon = {self.purchase.epsilon:g}, delta = {self.purchase.delta:g}: the facts under `bought` "
            "come from noisy looks at the rows\nand are covered by that guarantee. Check them, and write better ones "
            f"where you know them. {unit.describe()}"
        )
        return write(self.facts, head)

    def schema(self) -> Schema:
        return Schema.parse(self.schema_text(), "the bought schema")

    # --- the promise -------------------------------------------------------------------------------------------------

    @property
    def private(self) -> bool:
        return self.noise == TRUSTED_NOISE

    def guarantee(self) -> dict[str, Any]:
        p = self.purchase
        odds = attacker_odds(p.epsilon, p.delta, p.mu, adaptive=True)
        return {
            **({} if self.private else {"NOT PRIVATE": NOT_PRIVATE}),
            "epsilon": p.epsilon,
            "delta": p.delta,
            "mu": p.mu,
            "threshold_delta": p.threshold_delta,
            "discrete_delta": p.discrete_delta,
            "unit": p.unit.describe(),
            "attacker_accuracy": odds.accuracy,
            "attacker_posterior": odds.posterior,
            "attacker_posterior_passed": odds.passed,
        }

    def card(self) -> str:
        """CARD.md."""
        p, g = self.purchase, self.guarantee()
        test = "" if self.private else f"\n> {NOT_PRIVATE}.\n"
        stages = "\n".join(f"| {name} | {share:.0%} | {p.mu_of_stage(name):.6f} |" for name, share in p.shares.items())
        rare = ""
        if p.may_be_text:
            rare = (
                f"- **Rare values.** A value held by one unit alone is named with a probability that adds at most "
                f"{at_most(p.threshold_delta)} to delta, which is included.\n"
            )
        return f"""# Guarantee of bought facts
{test}
This discovery is ({p.epsilon:g}, {p.delta:g})-differentially private. It adds to every other release of the same data.

- **Who is protected.** {p.unit.describe()}
- **What it means.** Someone who knows every other row guesses whether one given individual's data was used; they are
  right at most {g["attacker_accuracy"]:.1%} of the time (a coin: 50 %). From even odds their belief cannot pass
  {g["attacker_posterior"]:.1%}, except with a probability of at most {at_most(g["attacker_posterior_passed"])}.
- **What was bought.** Kinds, bounds, digits, nulls and frequent values of {len(p.columns)} columns: see {SCHEMA}.
- **How it was accounted.** Gaussian mechanism, exact composition: mu = {p.mu:.6f}; the discrete sampler adds
  {p.discrete_delta:.1e} to delta, which is included. Noise: {self.noise}.
{rare}- **Ledger.** {self.charge or NO_LEDGER}

| stage | share of mu² | mu |
|---|---|---|
{stages}
"""

    # --- on disk -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        write_folder(path, self.files())

    def files(self) -> dict[str, bytes]:
        document: dict[str, Any] = {
            "format": FORMAT,
            "kind": "discovery",
            "made_with": f"dpmerf {dpmerf.__version__}",
            "purchase": self.purchase.to_json(),
            "purchase_hash": self.purchase.hash,
            "guarantee": self.guarantee(),
            "noise": self.noise,
            "ledger": None if self.charge is None else asdict(self.charge),
            "scales": list(self.scales),
            "tails": list(self.tails),
            "ends": list(self.ends),
            "digits": list(self.digits),
            "values": {name: [list(pair) for pair in found] for name, found in self.values.items()},
            "left": list(self.left),
        }
        document["hash"] = digest(document)
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        return {DOCUMENT: text.encode(), SCHEMA: self.schema_text().encode(), CARD: self.card().encode()}

    @staticmethod
    def load(path: str | Path, *, test_noise: bool = False) -> Discovery:
        """Read a discovery and check all of it: the guarantee, the schema and the card once more from the rest."""
        folder = Path(path)

        def refuse(what: str) -> ArtefactError:
            return ArtefactError(f"{folder}: {what}. Do not use it; take the original again")

        document = read_json(folder / DOCUMENT, "discovery")
        try:
            if document["format"] != FORMAT or document["kind"] != "discovery" or set(document) != _FIELDS:
                raise refuse(f"not a discovery of format {FORMAT}")
            if digest({k: v for k, v in document.items() if k != "hash"}) != document["hash"]:
                raise refuse("it was changed after it was made (its hash differs)")
            found = _read(document)
            if not re.fullmatch(r"dpmerf [0-9][0-9a-z.+]{0,30}", document["made_with"]):
                raise refuse("it does not say which version made it")
            for name, data in found.files().items():
                if read_bytes(folder / name, "discovery") != data:
                    raise refuse(f"{name} does not follow from what was bought")
        except DpmerfError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError):
            raise refuse("it is damaged") from None
        if extra := {p.name for p in folder.iterdir()} - {DOCUMENT, SCHEMA, CARD}:
            raise refuse(f"'{min(extra)}' is no part of a discovery: remove it")
        if not (found.private or test_noise):
            raise ArtefactError(
                f"{folder}: its noise came from '{found.noise}', a source for tests: it protects nobody"
            )
        return found


_FIELDS = {
    "format", "kind", "made_with", "purchase", "purchase_hash", "guarantee", "noise", "ledger", "scales", "tails",
    "ends", "digits", "values", "left", "hash",
}  # fmt: skip


def _read(document: dict[str, Any]) -> Discovery:
    purchase = Purchase.from_json(document["purchase"])
    charge = document["ledger"]
    values = {}
    for name, pairs in document["values"].items():
        if any(type(v) is not str or len(v) > _LONGEST for v, _ in pairs):
            raise ValueError
        values[name] = tuple((value, _whole(count)) for value, count in pairs)
    found = Discovery(
        purchase,
        str(document["noise"]),
        tuple(map(_whole, document["scales"])),
        tuple(map(_whole, document["tails"])),
        tuple(map(_whole, document["ends"])),
        tuple(map(_whole, document["digits"])),
        values,
        tuple(map(_whole, document["left"])),
        None if charge is None else Charge(**charge),
    )
    numeric, texts = measured(found.coarse), text_columns(purchase, found.coarse)
    sizes = (len(found.scales), len(found.ends), len(found.digits), len(found.left))
    expected = (len(purchase.looked_at) * SCALES, len(numeric) * PARTS, len(numeric) * DIGITS, len(texts) * 2)
    if sizes != expected or tuple(values) != texts:
        raise ValueError
    return found


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError
    return value


# --- the stages, as the locked room and the reader of an artefact both see them ---------------------------------------


def noisy_scales(purchase: Purchase, sums: tuple[int, ...]) -> dict[str, Noisy]:
    """The noisy counts of the first look, by column."""
    if not purchase.looked_at:
        return {}
    phi = map_of_scales(purchase.looked_at)
    found = _split(phi, sums, purchase.sigma("scales", phi))
    return {name.removesuffix("#scale"): noisy for name, noisy in found.items()}


def first_look(purchase: Purchase, sums: tuple[int, ...]) -> dict[str, Coarse]:
    """What the first stage says about each column that it looked at."""
    seen = noisy_scales(purchase, sums)
    rows = rows_of(purchase, seen)
    return {name: coarse(purchase, name, noisy, rows) for name, noisy in seen.items()}


def second_look(purchase: Purchase, found: dict[str, Coarse], sums: tuple[int, ...], rows: float) -> dict[str, Coarse]:
    """The same with what lies outside of what the first stage saw."""
    numeric = measured(found)
    if not numeric:
        return found
    tails = _shared(numeric, sums, SCALES, purchase.shared_sigma("tails"))
    return {**found, **{name: widened(purchase, found[name], tails[name], rows) for name in numeric}}


def measured(found: dict[str, Coarse]) -> tuple[str, ...]:
    """Columns of numbers and moments."""
    return tuple(name for name, c in found.items() if c.kind in (NUMBER, MOMENT))


def text_columns(purchase: Purchase, found: dict[str, Coarse]) -> tuple[str, ...]:
    """Columns whose frequent values are bought."""
    return tuple(
        name
        for name in purchase.may_be_text
        if purchase.columns[name] == TEXT or (name in found and found[name].kind == TEXT)
    )


def _split(phi: FeatureMap, sums: tuple[int, ...], sigma: float) -> dict[str, Noisy]:
    """Each block in rows, by its variable."""
    if len(sums) != phi.dim:
        raise ArtefactError("the discovery has another number of coordinates than its purchase asks for")
    found, start = {}, 0
    for block in phi.blocks:
        part = np.array(sums[start : start + block.dim], dtype=np.float64)
        unit = block.weight * 2**BITS
        found[block.cells[0].name] = Noisy(part / unit, sigma / unit)
        start += block.dim
    return found


def _shared(names: tuple[str, ...], sums: tuple[int, ...], size: int, sigma: float) -> dict[str, Noisy]:
    """Weights of a look that a row's columns share, in rows: at most the number of rows."""
    if len(sums) != len(names) * size:
        raise ArtefactError("the discovery has another number of coordinates than its purchase asks for")
    whole = np.array(sums, dtype=np.float64).reshape(len(names), size) / 2**BITS
    return {name: Noisy(part, sigma) for name, part in zip(names, whole, strict=True)}
