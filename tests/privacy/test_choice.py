"""A choice by noisy scores: how far a unit moves a score, what the loss can be, and the sampler's law."""

import inspect
import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy import stats

from dpmerf.accounting.unit import Unit
from dpmerf.errors import BudgetError
from dpmerf.plan.noisy_tables import class_shares
from dpmerf.plan.queries import Tables
from dpmerf.plan.queries.column_selection import selected_column
from dpmerf.private import measure as measuring
from dpmerf.private.measure import measure
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.private.select import SHARE_BITS, choose, integer_shares, moved, score
from dpmerf.release import Release
from fixed_noise import FixedNoise
from privacy.variants import ADD, ALARM, CATEGORIES, FULL, LABEL, NUMBERS, PERSON, ROW, VARIANTS, choice, worst

pytestmark = pytest.mark.privacy


def tables(rng: np.random.Generator, rows: int, classes: int, columns: int, values: int) -> np.ndarray:
    """(rows, 1 + columns) codes, label first; labels and values of all degrees of imbalance."""
    label = rng.choice(classes, rows, p=rng.dirichlet(np.full(classes, 0.3)))
    others = [rng.choice(values, rows, p=rng.dirichlet(np.full(values, 0.3))) for _ in range(columns)]
    return np.column_stack([label, *others])


def scores(codes: np.ndarray, classes: int, values: int, parts: torch.Tensor) -> list[int]:
    found = []
    for column in codes.T[1:]:
        counts = np.zeros((classes, values), np.int64)
        np.add.at(counts, (codes[:, 0], column), 1)
        found.append(score(torch.from_numpy(counts), parts))
    return found


@pytest.mark.parametrize("unit", [ROW, ADD, PERSON])
def test_no_unit_moves_a_score_farther_than_said(unit: Unit) -> None:
    rng = np.random.default_rng(0)
    reached = 0.0
    for _ in range(2_000 if FULL else 300):
        classes, values = int(rng.integers(2, 5)), int(rng.integers(2, 6))
        codes = tables(rng, int(rng.integers(unit.max_rows + 1, 40)), classes, 8, values)
        parts = integer_shares(torch.from_numpy(rng.dirichlet(np.full(classes, 0.5))))
        other = codes.copy()
        other[: unit.max_rows] = tables(rng, unit.max_rows, classes, 8, values)
        if unit.neighbours == "add-remove":
            other = codes[unit.max_rows :]
        gap = np.array(scores(codes, classes, values, parts)) - np.array(scores(other, classes, values, parts))
        most = moved(parts, unit)
        assert np.abs(gap).max() <= most
        reached = max(reached, float(np.abs(gap).max()) / most)
    assert reached > 0.9  # the hunt gets close: the bound is not slack


def losses(one: list[int], other: list[int], scale: float) -> np.ndarray:
    """log P(c) − log Q(c) of every candidate: exactly what an attacker learns from a selection."""
    logs = [np.array(u) / scale - np.logaddexp.reduce(np.array(u) / scale) for u in (one, other)]
    return logs[0] - logs[1]


class Asked(FixedNoise):
    """Notes the scores and the scale of the choice; the noise of vectors is fixed, so that both tables get the same."""

    asked: tuple[list[int], float]

    def choose(self, scores: list[int], scale: float) -> int:
        self.asked = (scores, scale)
        return 0


def test_the_loss_of_a_choice_stays_within_its_range_and_nearly_fills_it() -> None:
    """The whole mechanism on two tables where one column loses a row of the rare class and another one wins it."""
    plan = choice(CATEGORIES + LABEL, ROW, 1.0)
    common = {"c": ["a"] * 40, "f": [False] * 40, "y": [False] * 30 + [True] * 10}
    mostly = {"c": ["a"] * 30 + ["b"] * 10, "f": [False] * 30 + [True] * 10}
    pairs = [common | mostly | {"c": [*mostly["c"][:-1], "a"]}, common | mostly | {"f": [*mostly["f"][:-1], False]}]
    seen = []
    for columns in pairs:
        source = Asked(3)
        measure(pa.table(columns), plan, noise=source)
        seen.append(source.asked)
    found = losses(seen[0][0], seen[1][0], seen[0][1])
    (claimed,) = plan.selections
    width = float(found.max() - found.min())
    assert width <= claimed * (1 + 1e-9)
    assert width > 0.9 * claimed * (seen[0][1] / seen[1][1])


@pytest.mark.parametrize("variant", [name for name in VARIANTS if "choice" in name])
def test_the_worst_neighbours_stay_within_the_range(variant: str) -> None:
    pair = worst(VARIANTS[variant](1.0))
    seen = []
    for table in (pair.out, pair.inside):
        source = Asked(5)
        measure(table, pair.plan, noise=source)
        seen.append(source.asked)
    scale = min(seen[0][1], seen[1][1])  # shares differ a little: each table's noise is as large as its own asks for
    assert np.ptp(losses(seen[0][0], seen[1][0], scale)) <= pair.plan.selections[0] * 1.2


def law(choices: np.ndarray, u: list[int], scale: float) -> float:
    """The chance of frequencies as odd as these, if choices follow e^(u / scale)."""
    weight = np.exp(np.array(u) / scale)
    expected = weight / weight.sum() * len(choices)
    return float(stats.chisquare(np.bincount(choices, minlength=len(u)), expected).pvalue)


def test_the_sampler_follows_the_exponential_mechanism() -> None:
    u, scale = [0, 2**20, 3 * 2**20, -(2**20), 2**21], 1.5 * 2**20
    count = 200_000 if FULL else 20_000
    drawn = np.array([OpenDPGaussian().choose(u, scale) for _ in range(count)])
    assert law(drawn, u, scale) > ALARM
    assert law(drawn, u, scale / 2) < ALARM  # it can tell half the noise


def test_the_sampler_takes_no_seed_and_refuses_no_noise() -> None:
    assert list(inspect.signature(OpenDPGaussian.choose).parameters) == ["self", "scores", "scale"]
    torch.manual_seed(1)
    first = [OpenDPGaussian().choose([0] * 50, 1.0) for _ in range(40)]
    torch.manual_seed(1)
    assert first != [OpenDPGaussian().choose([0] * 50, 1.0) for _ in range(40)]
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(BudgetError, match="scale is"):
            OpenDPGaussian().choose([1, 2], scale)


def test_only_the_index_of_the_choice_leaves_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the exact tables are: the release is a function of the index and of noisy vectors."""
    plan = choice(NUMBERS + CATEGORIES + LABEL, ROW, 1.0)
    monkeypatch.setattr(measuring, "choose", lambda *_: 2)
    release = measure(worst(plan).out, plan)
    assert release.sums["column selection"].tolist() == [2]
    assert selected_column(release) == plan.query(Tables).columns(plan.codec)[2]
    document = release.files()["release.json"].decode()
    assert '"scores"' not in document


def test_scores_use_released_shares_alone() -> None:
    plan = choice(NUMBERS + CATEGORIES + LABEL, ROW, 1.0)
    release = measure(worst(plan).out, plan)
    before = Release(plan, {k: release.sums[k] for k in ("discover", "tables")}, 7, release.noise, release.derived)
    parts = integer_shares(class_shares(before))
    assert int(parts.sum()) == 2**SHARE_BITS and int(parts.min()) >= 0


def test_a_choice_is_by_the_scores() -> None:
    plan = choice(CATEGORIES + LABEL, ROW, 1.0)
    release = measure(worst(plan).out, plan)
    phi = release.embedding(plan.stages[2]).phi
    tables = [torch.zeros(b.size, dtype=torch.int64) for b in phi.blocks]
    tables[1][0], tables[1][-1] = 500 * 2**24, 500 * 2**24  # the label and the second column are the same
    shares = torch.tensor([0.5, 0.5])
    chosen = [choose(torch.cat(tables), phi, shares, ROW, 0.4, OpenDPGaussian()) for _ in range(20)]
    assert chosen == [1] * 20
