"""Simulated tables, one for each thing that real tables do and 20 bins do not show. Tests use them, too.

Each function takes the number of rows and a seed and returns a schema, with bounds as a person who has not seen the
rows would write them, and the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa

from dpmerf.schema import Schema

Maker = Callable[[int, int], tuple[Schema, pa.Table]]


def heavy_tails(rows: int, seed: int) -> tuple[Schema, pa.Table]:
    """Log-normal, Pareto and zero-inflated numbers, and two that are heavy together; bounds 100 times too generous."""
    rng = np.random.default_rng(seed)
    flag = rng.random(rows) < 0.3
    z = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], rows)
    zeros = np.where(rng.random(rows) < 0.6, 0, rng.lognormal(4, 1, rows).round(2))
    return _table(
        "flag",
        {
            "lognormal": (_number(0, 1e7), np.exp(6 + 1.2 * rng.normal(size=rows) + 0.3 * flag)),
            "pareto": (_number(0, 5e6), 100 * (1 + rng.pareto(2.5, rows))),
            "zeros": (_number(0, 2e6, decimals=2), zeros),
            "billed": (_number(0, 1e7), np.exp(7 + z[:, 0])),
            "paid": (_number(0, 1e7), np.exp(6.5 + z[:, 1])),
            "flag": (_FLAG, flag),
        },
    )


def spikes(rows: int, seed: int) -> tuple[Schema, pa.Table]:
    """Numbers of which a fifth, a quarter or a twentieth are one value that is neither a bound nor zero."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["new", "old", "other"], rows, p=[0.5, 0.3, 0.2])

    def with_spike(values: np.ndarray, share: float, at: float) -> np.ndarray:
        return np.where(rng.random(rows) < share, at, values)

    fee = with_spike(rng.gamma(4, 12, rows).round(2), 0.20, 37.25)
    return _table(
        "late",
        {
            "fee": (_number(0, 1_000, decimals=2), fee),
            "price": (_number(0, 100_000, decimals=2), with_spike(rng.lognormal(7, 0.8, rows).round(2), 0.25, 499.99)),
            "weight": (_number(0, 500), with_spike(rng.normal(80, 15, rows), 0.05, 70.0)),
            "kind": (_categories(["new", "old", "other"]), kind),
            "late": (_FLAG, rng.random(rows) < np.where(fee == 37.25, 0.6, 0.2)),
        },
    )


def round_numbers(rows: int, seed: int) -> tuple[Schema, pa.Table]:
    """Whole numbers that people round: to 100 in two fifths of rows, to 1,000 in most, to 5 in a third."""
    rng = np.random.default_rng(seed)

    def rounded(values: np.ndarray, to: int, share: float) -> np.ndarray:
        return np.where(rng.random(rows) < share, np.rint(values / to) * to, np.rint(values)).astype(np.int64)

    age = rounded(rng.normal(45, 16, rows).clip(0, 99), 5, 0.33).clip(0, 100)
    return _table(
        "owner",
        {
            "rent": (_integer(0, 20_000), rounded(rng.lognormal(6.8, 0.5, rows), 100, 0.4)),
            "income": (_integer(0, 1_000_000), rounded(rng.lognormal(10.4, 0.7, rows), 1_000, 0.85)),
            "age": (_integer(0, 120), age),
            "owner": (_FLAG, rng.random(rows) < 1 / (1 + np.exp(-(age - 45) / 10))),
        },
    )


def exclusive_or(rows: int, seed: int, order: int = 3, columns: int = 6) -> tuple[Schema, pa.Table]:
    """A label that is the exclusive or of some of the binary columns, flipped in one row of 20."""
    rng = np.random.default_rng(seed)
    bits = rng.random((rows, columns)) < 0.5
    label = (bits[:, :order].sum(1) % 2 == 1) ^ (rng.random(rows) < 0.05)
    return _table("y", {f"b{j}": (_FLAG, bits[:, j]) for j in range(columns)} | {"y": (_FLAG, label)})


CODES, GROUPS = 500, 20


def codes(rows: int, seed: int) -> tuple[Schema, pa.Table]:
    """A code with 500 values that belong to 20 groups, some codes far more common than others."""
    rng = np.random.default_rng(seed)
    share = 1 / (np.arange(CODES) + 20.0)
    code = rng.choice(np.random.default_rng(0).permutation(CODES), rows, p=share / share.sum())
    group = code % GROUPS
    cost = np.exp(4 + 0.1 * group + 0.4 * rng.normal(size=rows)).clip(0, 5_000).round(1)
    return _table(
        "ward",
        {
            "code": (_categories([f"C{i:03}" for i in range(CODES)]), np.char.mod("C%03d", code)),
            "group": (_categories([f"G{i:02}" for i in range(GROUPS)]), np.char.mod("G%02d", group)),
            "cost": (_number(0, 10_000, decimals=1), cost),
            "ward": (_FLAG, rng.random(rows) < 0.1 + 0.8 * (group % 3 == 0)),
        },
    )


def clocks(rows: int, seed: int) -> tuple[Schema, pa.Table]:
    """Moments of three years with hours of the day and days of the week that depend on a category."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    centre, spread = np.array([9.0, 18.5, 3.0])[kind], np.array([1.5, 2.5, 4.0])[kind]
    second = ((centre + spread * rng.normal(size=rows)) * 3600).astype(np.int64) % 86_400
    day = rng.integers(0, 1_095, rows)
    weekend = (day + 4) % 7 >= 5
    day = np.where(weekend & (kind == 0) & (rng.random(rows) < 0.9), (day - 2) % 1_095, day)
    at = np.datetime64("2021-01-01T00:00:00") + day.astype("timedelta64[D]") + second.astype("timedelta64[s]")
    return _table(
        "urgent",
        {
            "at": ('kind = "timestamp"\nfirst = 2021-01-01T00:00:00\nlast = 2023-12-31T23:59:59', at),
            "kind": (_categories(["office", "evening", "night"]), np.array(["office", "evening", "night"])[kind]),
            "size": (_integer(0, 50), rng.poisson(3 + kind)),
            "urgent": (_FLAG, rng.random(rows) < np.where((second < 21_600) | (second > 79_200), 0.7, 0.1)),
        },
    )


def few_strong_pairs(rows: int, seed: int, columns: int = 55) -> tuple[Schema, pa.Table]:
    """Many columns, few of which have to do with each other: far more pairs than so few rows can pay for."""
    rng = np.random.default_rng(seed)
    found: dict[str, tuple[str, np.ndarray]] = {}
    for j in range(columns - 1):
        code = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
        if j % 9 == 8:  # copies its neighbour in four rows of five
            code = np.where(rng.random(rows) < 0.8, found[f"c{j - 1}"][1], code)
        found[f"c{j}"] = (f"{_categories([0, 1, 2, 3])}", code)
    risk = -2 + found["c0"][1] + 0.8 * found["c7"][1] - 0.5 * found["c20"][1]
    return _table("y", {**found, "y": (_FLAG, rng.random(rows) < 1 / (1 + np.exp(-risk)))})


def constants(rows: int, seed: int) -> tuple[Schema, pa.Table]:
    """Ten columns that matter among twelve that are (nearly) always the same."""
    rng = np.random.default_rng(seed)
    found: dict[str, tuple[str, np.ndarray]] = {}
    z = rng.normal(size=rows)
    for j in range(10):
        found[f"x{j}"] = (_number(-10, 10), 0.6 * z + 0.8 * rng.normal(size=rows))
    for j in range(12):
        rare = rng.random(rows) < (0.0 if j % 2 else 0.001)
        if j < 6:
            found[f"k{j}"] = (_categories(["a", "b", "c", "d"]), np.where(rare, "b", "a"))
        else:
            found[f"k{j}"] = (_integer(0, 1_000), np.where(rare, 7, 0))
    return _table("y", {**found, "y": (_FLAG, rng.random(rows) < 1 / (1 + np.exp(-2 * z)))})


def near_functions(rows: int, seed: int) -> tuple[Schema, pa.Table]:
    """A town follows from a postcode and a region from the town, in all but one row of 200."""
    rng = np.random.default_rng(seed)
    share = 1 / (np.arange(40) + 3.0)
    postcode = rng.choice(40, rows, p=share / share.sum())
    broken = rng.random((2, rows)) < 0.005
    town = np.where(broken[0], rng.integers(0, 16, rows), postcode * 7 % 16)
    region = np.where(broken[1], rng.integers(0, 5, rows), town % 5)
    rent = np.exp(6.5 + 0.1 * region + 0.3 * rng.normal(size=rows)).round()
    return _table(
        "sold",
        {
            "postcode": (_categories([f"P{i:02}" for i in range(40)]), np.char.mod("P%02d", postcode)),
            "town": (_categories([f"T{i:02}" for i in range(16)]), np.char.mod("T%02d", town)),
            "region": (_categories([f"R{i}" for i in range(5)]), np.char.mod("R%d", region)),
            "rent": (_integer(0, 10_000), rent.clip(0, 10_000).astype(np.int64)),
            "sold": (_FLAG, rng.random(rows) < 0.15 + 0.14 * region),
        },
    )


@final
@dataclass(frozen=True)
class Simulated:
    """A simulated table and the number of rows it is drawn with."""

    make: Maker
    rows: int


SIMULATED = {
    "heavy tails": Simulated(heavy_tails, 40_000),
    "spikes": Simulated(spikes, 27_000),
    "round numbers": Simulated(round_numbers, 27_000),
    "exclusive or": Simulated(exclusive_or, 27_000),
    "codes": Simulated(codes, 66_000),
    "clocks": Simulated(clocks, 40_000),
    "few strong pairs": Simulated(few_strong_pairs, 10_000),
    "constants": Simulated(constants, 20_000),
    "near functions": Simulated(near_functions, 27_000),
}

_FLAG = 'kind = "flag"'


def _number(low: float, high: float, decimals: int | None = None) -> str:
    places = f"\ndecimals = {decimals}" if decimals is not None else ""
    return f'kind = "number"\nmin = {float(low)}\nmax = {float(high)}{places}'


def _integer(low: int, high: int) -> str:
    return f'kind = "integer"\nmin = {low}\nmax = {high}'


def _categories(values: list[str] | list[int]) -> str:
    return f'kind = "category"\nvalues = {values!r}'


def _table(label: str, columns: dict[str, tuple[str, np.ndarray]]) -> tuple[Schema, pa.Table]:
    text = [f'label = "{label}"', *(f"[columns.{name}]\n{facts}" for name, (facts, _) in columns.items())]
    return Schema.parse("\n".join(text)), pa.table({name: pa.array(values) for name, (_, values) in columns.items()})
