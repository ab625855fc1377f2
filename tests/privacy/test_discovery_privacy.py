"""Bought facts keep their promise, and three planted bugs are caught: a threshold without noise, a key below it, and
bounds from the exact smallest and largest value."""

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
import torch

import dpmerf.private.discover as room
from dpmerf.accounting.unit import Unit
from dpmerf.discovery import Discovery, Purchase
from dpmerf.encoding.codec import Batch
from dpmerf.features.algebra import BITS
from dpmerf.private.contribute import Sums
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.schema.notation import Reading
from dpmerf.sources.rows import open_rows

EPSILON, DELTA = 1.0, 1e-3
RUNS = 150
SURE = 4.5  # standard errors beyond the promise that count as broken


def _purchase(columns: dict[str, str], rows: int) -> Purchase:
    return Purchase(columns, {}, EPSILON, DELTA, Unit(), rows, Reading())


def _broken(event: Callable[[Discovery], bool], purchase: Purchase, here: pa.Table, there: pa.Table) -> bool:
    """Is the event likelier here than (ε, δ) allows, given how likely it is there?"""
    shares = []
    for table in (here, there):
        rows = open_rows(table)
        shares.append(sum(event(room.discover(rows, purchase)) for _ in range(RUNS)) / RUNS)
    return any(
        a - math.exp(EPSILON) * b - DELTA
        > SURE * (math.sqrt(a * (1 - a) / RUNS) + math.exp(EPSILON) * math.sqrt(b * (1 - b) / RUNS) + 0.5 / RUNS)
        for a, b in (shares, shares[::-1])
    )


def _values() -> tuple[Purchase, pa.Table, pa.Table, Callable[[Discovery], bool]]:
    """Two tables in which one row decides whether a value reaches the threshold."""
    rows = 2000
    purchase = _purchase({"word": "text"}, rows)
    count = math.ceil(purchase.threshold(1)[2])
    words = ["often"] * (rows - count) + ["sometimes"] * count
    less = ["often", *words[:-1]]
    return purchase, pa.table({"word": words}), pa.table({"word": less}), lambda d: _named(d, "sometimes")


def _secret() -> tuple[Purchase, pa.Table, pa.Table, Callable[[Discovery], bool]]:
    """A value that one row holds."""
    purchase = _purchase({"word": "text"}, 400)
    words = ["often"] * 399
    return (
        purchase,
        pa.table({"word": [*words, "secret"]}),
        pa.table({"word": [*words, "often"]}),
        lambda d: _named(d, "secret"),
    )


def _largest() -> tuple[Purchase, pa.Table, pa.Table, Callable[[Discovery], bool]]:
    """A number far above all others."""
    purchase = _purchase({"n": "number"}, 400)
    numbers = [float(i % 50) for i in range(399)]
    here, there = pa.table({"n": [*numbers, 1e6]}), pa.table({"n": [*numbers, 1.0]})
    return purchase, here, there, lambda d: d.facts.columns["n"].known["max"] > 1e5


def _named(found: Discovery, value: str) -> bool:
    return any(v == value for v, _ in found.values["word"])


@pytest.mark.parametrize("case", [_values, _secret, _largest], ids=lambda c: c.__name__)
def test_the_promise_holds(case: Callable[[], tuple]) -> None:
    purchase, here, there, event = case()
    assert not _broken(event, purchase, here, there)


def test_a_threshold_without_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    purchase, here, there, event = _values()
    monkeypatch.setattr(OpenDPGaussian, "add", lambda self, sums, sigma, advance=None: sums)
    assert _broken(event, purchase, here, there)


def test_a_value_shown_below_the_threshold_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    purchase, here, there, event = _secret()
    monkeypatch.setattr(Purchase, "threshold", lambda self, columns, turn=0: (self.mu and 5.0, 1, 1.0))
    assert _broken(event, purchase, here, there)


def test_bounds_from_the_exact_largest_value_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    purchase, here, there, event = _largest()

    def exact(rows, purchase, phi, stage, names, noise, bars):  # type: ignore[no-untyped-def]
        sums = Sums(phi)
        for table in rows.batches(["n"]):
            numbers = np.array(table.column("n"))
            if stage == "scales":
                numbers = np.array([numbers.min(), numbers.max()] * (len(numbers) // 2))
            seen = room.look(pa.array(numbers), purchase.reading.cells)
            codes = {"n#scale": room.scale(seen), "n#digits": room.digits(seen)}
            sums.add(Batch(torch.zeros(len(numbers), 0), {k: torch.from_numpy(v) for k, v in codes.items()}))
        return tuple(noise.add(sums.total(), purchase.sigma(stage, phi)).tolist())

    monkeypatch.setattr(room, "_noisy", exact)
    assert _broken(event, purchase, here, there)


def test_tails_without_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    purchase, here, there, event = _largest()
    monkeypatch.setattr(Purchase, "shared_sigma", lambda self, stage, share=1.0: 2.0**-10)
    assert _broken(event, purchase, here, there)


def test_a_row_that_counts_fully_in_every_column_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound that looks with shared weights rest on, in whole numbers; and a map that breaks it."""
    draw = np.random.default_rng(4)
    codes = [draw.integers(-1, 5, 200) for _ in range(7)]

    def rows() -> np.ndarray:
        return np.array([room.shared_sums([c[i : i + 1] for c in codes], 5).flatten() for i in range(200)], dtype=float)

    one = rows()
    apart = np.linalg.norm(one[:, None] - one[None], axis=2)
    assert np.linalg.norm(one, axis=1).max() <= 2**BITS and apart.max() <= math.sqrt(2) * 2**BITS
    assert np.linalg.norm(one, axis=1).max() > 0.999 * 2**BITS  # the bound is reached
    whole = room.shared_sums(codes, 5).flatten()
    assert (one.sum(axis=0) == whole).all()  # batches change nothing
    monkeypatch.setattr(room, "weights", lambda codes: np.full(len(codes[0]), 2.0**BITS))
    assert np.linalg.norm(rows(), axis=1).max() > 2**BITS


def test_a_row_fills_one_place_of_each_look() -> None:
    """The maps' bounds, as the noise was made for them: hunted for over odd rows."""
    texts = ["3", "", "yes", "-1e300", "2024-01-01T10:00", "x", "007", "0", "0.123456789", None]
    purchase = _purchase({"a": "open", "b": "open"}, len(texts))
    scales = room.map_of_scales(purchase.looked_at)
    table = pa.table({"a": pa.array(texts, pa.string()), "b": pa.array(texts[::-1], pa.string())})
    for stage, phi in (("scales", scales), ("digits", room.map_of_digits(purchase.looked_at))):
        rows = [_exact(table.slice(i, 1), purchase, phi, stage) for i in range(len(texts))]
        norm, diameter = phi.integer_bounds
        assert max(float(np.linalg.norm(r)) for r in rows) <= norm
        assert max(float(np.linalg.norm(r - s)) for r in rows for s in rows) <= diameter
    assert purchase.sigma("scales", scales) == Unit().sensitivity(*scales.integer_bounds) / purchase.mu_of_stage(
        "scales"
    )
    assert scales.diameter == pytest.approx(2.0) and scales.integer_bounds[1] >= 2**BITS * 2


def _exact(table: pa.Table, purchase: Purchase, phi, stage: str) -> np.ndarray:  # type: ignore[no-untyped-def]
    from fixed_noise import FixedNoise

    class Silent(FixedNoise):  # type: ignore[misc]
        def add(self, sums, sigma, advance=None):  # type: ignore[no-untyped-def]
            return sums

    one = Purchase(purchase.columns, {}, EPSILON, DELTA, Unit(), 1, Reading())
    return np.array(room._noisy(open_rows(table), one, phi, stage, one.looked_at, Silent(), room.SILENT), dtype=float)
