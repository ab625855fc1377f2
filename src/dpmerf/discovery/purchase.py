"""Purchase: what is asked about which columns, at which price, complete before any row is read. Public and hashable."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, final

import pyarrow as pa

from dpmerf.accounting.curve import upper_tail
from dpmerf.accounting.gaussian import check_delta, check_epsilon, discrete_delta, epsilon_of, mu_of
from dpmerf.accounting.unit import Unit
from dpmerf.discovery.looks import DIGITS, PARTS, SCALES
from dpmerf.encoding.codec import Variable
from dpmerf.errors import ArtefactError, DpmerfError, PlanError
from dpmerf.features.algebra import BITS, FeatureMap, onehot, total
from dpmerf.schema.notation import Reading

FORMAT = 3  # 2 drew ends in by other rules, 1 had no tails and one round of values
OPEN, NUMBER, MOMENT, FLAG, TEXT, LEFT_OUT = "open", "number", "moment", "flag", "text", "left out"
_LOOKED_AT = (OPEN, NUMBER, MOMENT)
LOOKS = ("scales", "tails", "ends", "digits")
SLACK = 1e-3  # of δ, left for the discrete sampler of the release that follows
MOST_KEYS = 2**36  # values of a column that can be counted, where the number of rows is not public


@final
@dataclass(frozen=True)
class Settings:
    """How a budget is divided, and how sure a fact must be. ADR 13 says why."""

    scales: float = 0.09  # of μ²: kinds, nulls and powers of two; all five divided by their sum where one is left out
    tails: float = 0.50  # powers of two of the rows that lie outside of what was seen
    ends: float = 0.06  # the last powers of two, in parts
    digits: float = 0.03
    values: float = 0.32  # frequent texts:
    rounds: tuple[float, ...] = (0.15, 0.25, 0.5)  # of `values`; a row counts by what is not yet named alone,
    one_round: float = 0.9  # or all in one, where so few columns hold texts that rounds do not pay,
    few: int = 2
    left: float = 0.1  # and what has no name in the end
    threshold_delta: float = 0.25  # of δ: how likely, at most, a value held by one unit shows
    least: float = 0.1  # times σ: a value held by fewer rows is never shown
    sure: float = 4.75  # times σ: a place that is occupied by itself,
    near: float = 2.5  # and beside one that is
    beyond: float = 2.2  # times σ, at least: one of the three powers of two beyond the last seen,
    enough: float = 0.001  # or this share of the rows, if that is more, and at most
    beyond_most: float = 3.5  # times σ
    reach: int = 3
    part: float = 2.5  # and a part of the last one
    null: float = 1.5  # and nulls
    other: float = 2.0  # and rows without a named value
    more: float = 0.1  # share of the rows in the last power of two from which one more is looked at,
    blind: float = 0.002  # if σ of the tails is more than a third of this share of the rows
    narrow: int = 2  # powers of two, at most, of numbers that lie far from zero: their lower end is looked at too
    margin: float = 0.3  # of such a range, added on both sides; half of it where noise is small,
    tail: float = 0.0075  # that is, where a part shows less than half of this share of the rows
    rest: float = 0.0002  # share of the rows that may lie beyond a tail that goes on as it was seen to fall
    lost: float = 0.001  # share of the rows that may lie outside of bounds: if noise of a part hides more, an end is
    wider: float = 1.9  # times as far as the last part that was seen starts, and at most
    widest: float = 2.5  # times the last power of two (or the last part); ranges that grow by less than `wider` reach 0
    logarithmic: int = 7  # powers of two from which a scale is logarithmic
    key_share: float = 0.05  # share of the rows with a frequent value, below which a text is an id


@final
@dataclass(frozen=True)
class Purchase:
    """Columns with what their stored type says, a budget and a unit of privacy."""

    columns: dict[str, str]  # name -> OPEN, NUMBER, MOMENT, FLAG, TEXT or LEFT_OUT
    dtypes: dict[str, str]  # name -> Arrow type, where the container states one
    epsilon: float
    delta: float
    unit: Unit
    rows: int  # public, or a person's guess
    reading: Reading = field(default_factory=Reading)
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if self.rows < 1:
            raise PlanError(f"rows is {self.rows}: write the expected number of rows, 1 or more")
        if not any(kind != LEFT_OUT for kind in self.columns.values()):
            raise PlanError("there is no column to find anything out about")

    @staticmethod
    def of(
        fields: dict[str, pa.DataType | None],  # types that were chosen by looking at cells count as None
        wanted: list[str] | None,
        epsilon: float,
        delta: float | None,
        unit: Unit,
        rows: int,
        reading: Reading,
    ) -> Purchase:
        """From names and stored types. A person's column names persons and is an id without a purchase."""
        names = list(fields) if wanted is None else wanted
        if unknown := [name for name in names if name not in fields]:
            raise PlanError(f"the table has no column '{unknown[0]}'. Its columns: {', '.join(list(fields)[:12])}")
        kinds = {name: LEFT_OUT if name == unit.person else _stored_kind(fields[name]) for name in names}
        dtypes = {name: str(fields[name]) for name in names if fields[name] is not None}
        delta = min(1e-5, 0.1 / rows) if delta is None else delta
        return Purchase(kinds, dtypes, float(epsilon), float(delta), unit, rows, reading)

    def at_most(self, share: float) -> Purchase:
        """The same questions for at most this share of the budget (of μ²), so that `rest` leaves what remains."""
        delta = self.delta / 2
        mu = math.sqrt(share) * mu_of(self.epsilon, delta)
        found = replace(self, delta=delta)
        return replace(found, epsilon=epsilon_of(mu, delta - found.threshold_delta) * (1 - 1e-9))

    @property
    def looked_at(self) -> tuple[str, ...]:
        """Columns whose cells are looked at in the first stage."""
        return tuple(name for name, kind in self.columns.items() if kind in _LOOKED_AT)

    @property
    def may_be_text(self) -> tuple[str, ...]:
        return tuple(name for name, kind in self.columns.items() if kind in (OPEN, TEXT))

    # --- the price ---------------------------------------------------------------------------------------------------

    @cached_property
    def shares(self) -> dict[str, float]:
        """Of μ², by stage: those that this table needs."""
        told = self.settings
        found = {stage: getattr(told, stage) for stage in LOOKS} if self.looked_at else {}
        if self.may_be_text:
            found["values"] = told.values
        whole = math.fsum(found.values())
        return {stage: share / whole for stage, share in found.items()}

    @cached_property
    def threshold_delta(self) -> float:
        """What rare values add to δ: (1 + e^ε) times how likely one of them shows. See docs/proof.md."""
        return self.settings.threshold_delta * self.delta if self.may_be_text else 0.0

    @cached_property
    def discrete_delta(self) -> float:
        return self.discrete_delta_at(self.epsilon)

    def discrete_delta_at(self, epsilon: float) -> float:
        """Of the discrete sampler, with all coordinates at the least noise that any stage can have."""
        mu = mu_of(self.epsilon, self.delta)
        least = self.unit.sensitivity(1.0, 1.0) * 2**BITS / mu
        fixed = len(self.looked_at) * (2 * SCALES + PARTS + DIGITS) + 2 * len(self.may_be_text)
        keys = (self.rows if self.unit.rows_public else MOST_KEYS) * len(self.may_be_text) * len(self.settings.rounds)
        return discrete_delta(epsilon, fixed + keys, least)

    @cached_property
    def mu(self) -> float:
        """All stages together."""
        if self.discrete_delta > self.delta / 10:
            raise PlanError(f"epsilon = {self.epsilon:g} is too much for a discovery: a tenth of it shows as much")
        return mu_of(self.epsilon, self.delta - self.threshold_delta - self.discrete_delta)

    def threshold_delta_at(self, epsilon: float) -> float:
        """The same at another ε: a ledger's limit, or a budget that this purchase is a part of."""
        grown = math.log1p(math.exp(min(epsilon, 700.0))) - math.log1p(math.exp(min(self.epsilon, 700.0)))
        return min(0.999, self.threshold_delta * math.exp(max(grown, 0.0)))

    def within(self, limit: float) -> Purchase:
        """At a δ so small that rare values add no more at a ledger's ε than was set aside for them at this one's own.

        A value that only one unit holds shows as rarely, but costs (1 + e^ε) times that, at the ε of the whole budget.
        """
        if not self.threshold_delta:
            return self
        grown = math.log1p(math.exp(min(limit, 700.0))) - math.log1p(math.exp(min(self.epsilon, 700.0)))
        return self if grown <= 0 else replace(self, delta=self.delta * math.exp(-grown))

    def rest(self, epsilon: float, delta: float) -> float:
        """The ε, at the same δ, of a release that together with this purchase is (epsilon, delta)-DP."""
        left = delta * (1 - SLACK) - self.threshold_delta_at(epsilon) - self.discrete_delta_at(epsilon)
        whole = mu_of(epsilon, left) if left > 0 else 0.0
        if whole <= self.mu:
            raise PlanError("the discovery uses up the whole budget: give it less, or raise epsilon")
        return epsilon_of(math.sqrt((whole - self.mu) * (whole + self.mu)), delta) * (1 - 1e-9)

    def mu_of_stage(self, stage: str) -> float:
        return self.mu * math.sqrt(self.shares[stage])

    def sigma(self, stage: str, phi: FeatureMap) -> float:
        """The noise of a stage whose map is `phi`, in units of the integer grid."""
        return self.unit.sensitivity(*phi.integer_bounds) / self.mu_of_stage(stage)

    def shared_sigma(self, stage: str, share: float = 1.0) -> float:
        """The noise, in rows, of a part of a stage whose rows have norm 1 at most and no negative entry."""
        return self.unit.sensitivity(1.0, math.sqrt(2)) / (self.mu_of_stage(stage) * math.sqrt(share))

    def rounds(self, columns: int) -> tuple[float, ...]:
        """Shares of `values`, a round each, for so many columns."""
        return self.settings.rounds if columns > self.settings.few else (self.settings.one_round,)

    def threshold(self, columns: int, turn: int = 0) -> tuple[float, int, float]:
        """(σ in rows, least weight, threshold) of the values of so many columns in one round.

        Of two neighbouring tables, at most k values a column (k rows of a unit) pass `least` in the first alone. Each
        weighs less than least + k there, and shows with a probability of at most Q((threshold − least − k) ÷ σ).
        """
        k, rounds = self.unit.max_rows, self.rounds(columns)
        sigma = self.shared_sigma("values", rounds[turn])
        least = max(1, math.ceil(self.settings.least * sigma))
        allowed = self.threshold_delta / ((1 + math.exp(min(self.epsilon, 700.0))) * columns * k * len(rounds))
        return sigma, least, least + k + _far_out(allowed) * sigma

    # --- as data -----------------------------------------------------------------------------------------------------

    @cached_property
    def hash(self) -> str:
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "columns": [[name, kind, self.dtypes.get(name, "")] for name, kind in self.columns.items()],
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": self.unit.to_dict(),
            "rows": self.rows,
            "reading": self.reading.model_dump(mode="json", exclude_unset=True),
            "settings": asdict(self.settings),
        }

    @staticmethod
    def from_json(data: Any) -> Purchase:
        try:
            if data["format"] != FORMAT or set(data) != _FIELDS:
                raise ArtefactError(f"the purchase has another format than {FORMAT}: take the version that made it")
            names = {str(name): (str(kind), str(dtype)) for name, kind, dtype in data["columns"]}
            kinds = (OPEN, NUMBER, MOMENT, FLAG, TEXT, LEFT_OUT)
            if len(names) < len(data["columns"]) or any(kind not in kinds for kind, _ in names.values()):
                raise ValueError
            return Purchase(
                {name: kind for name, (kind, _) in names.items()},
                {name: dtype for name, (_, dtype) in names.items() if dtype},
                float(data["epsilon"]),
                float(data["delta"]),
                Unit.from_dict(data["unit"]),
                int(data["rows"]),
                Reading.model_validate(data["reading"]),
                Settings(**{**data["settings"], "rounds": tuple(map(float, data["settings"]["rounds"]))}),
            )
        except DpmerfError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise ArtefactError("the purchase is damaged. Do not use it; take the original again") from None


_FIELDS = {"format", "columns", "epsilon", "delta", "unit", "rows", "reading", "settings"}


def map_of_scales(columns: tuple[str, ...]) -> FeatureMap:
    """One place of each column: B² = columns, d² = 2 · columns."""
    return total([onehot(Variable(f"{name}#scale", SCALES)) for name in columns])


def map_of_digits(columns: tuple[str, ...]) -> FeatureMap:
    """The same for digits."""
    return total([onehot(Variable(f"{name}#digits", DIGITS)) for name in columns])


def _stored_kind(stored: pa.DataType | None) -> str:
    if stored is None or pa.types.is_null(stored):
        return OPEN
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_boolean(stored):
        return FLAG
    if pa.types.is_integer(stored) or pa.types.is_floating(stored) or pa.types.is_decimal(stored):
        return NUMBER
    if pa.types.is_date(stored) or pa.types.is_timestamp(stored):
        return MOMENT
    text = pa.types.is_string(stored) or pa.types.is_large_string(stored) or pa.types.is_string_view(stored)
    return TEXT if text else LEFT_OUT


def _far_out(probability: float) -> float:
    """How many standard deviations a normal exceeds with at most this probability, rounded up.

    >>> upper_tail(_far_out(1e-9)) <= 1e-9 < upper_tail(_far_out(1e-9) - 1e-6)
    True
    """
    low, high = 0.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle) > probability else (low, middle)
    return high
