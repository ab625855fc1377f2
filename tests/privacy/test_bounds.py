"""No row is longer, and no two rows are farther apart, than the price assumed: hunted for in integers."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmerf.accounting.unit import Unit
from dpmerf.encoding.codec import Batch
from dpmerf.features.algebra import FeatureMap, constant, of, onehot, squared_diameter
from dpmerf.features.moments import Moments
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan, Stage, View
from dpmerf.plan.embedding import as_it_is
from dpmerf.private.contribute import Sums
from dpmerf.private.measure import measure
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.schema import Schema
from privacy.hunt import check, climb, illegal, integers, longest_block, rows_of
from privacy.variants import ADD, FULL, PERSON, ROW, VARIANTS, preset, worst

from privacy.variants import CATEGORIES, LABEL, NUMBERS, ODD, WHO  # isort: skip

pytestmark = pytest.mark.privacy
CHUNK = 1024

PRESETS = {
    f"{name}, {kind}, {'person' if unit.person else unit.neighbours}{', balanced' if balanced else ''}": (
        columns + (WHO if unit.person else ""),
        label,
        unit,
        name,
        balanced,
    )
    for name in ("default", "paper")
    for kind, columns, label in (
        ("mixed", NUMBERS + ODD + CATEGORIES + LABEL, "y"),
        ("all numbers", NUMBERS + ODD, None),
        ("all categories, labelled", CATEGORIES + LABEL, "y"),
        ("all categories", CATEGORIES, None),
        ("numeric label", NUMBERS + LABEL, "x"),
    )
    for unit in (ROW, ADD, PERSON)
    for balanced in ((False, True) if label else (False,))
}
CELLS: list[object] = [
    None, "", "NaN", "inf", "-inf", "1e999", "-1e308", "0", "-0.0", "1e-320", "true", "☃", "a", "2020-02-30",
    "2020-02-01", "9" * 70, "x" * 100_000, "'; drop table", "\x00", "1,5", "0x1f", "9999-12-31T23:59:60",
]  # fmt: skip


def stages(plan: Plan) -> list[tuple[Stage, FeatureMap, View]]:
    """Every stage as it is really measured: maps after the bins were cut from a real release."""
    release = measure(worst(plan).out, plan)
    return [(stage, release.embedding(stage).phi, release.embedding(stage).view) for stage in plan.stages]


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants(variant: str) -> None:
    plan = VARIANTS[variant](1.0)
    batch = rows_of(plan, 400 if FULL else 60, seed=1)
    bad = illegal(plan, CELLS)
    for _, phi, view in stages(plan):
        check(phi, view(bad))
        check(phi, view(batch))
        norm, distance = check(phi, climb(phi, view, view(batch)))
        assert norm > 0.999 and distance > 0.7  # the hunt gets close: the bounds are not slack


@pytest.mark.parametrize("name", list(PRESETS)[:: 1 if FULL else 3])
def test_presets(name: str) -> None:
    columns, label, unit, which, balanced = PRESETS[name]
    plan = preset(columns, label, unit, which, 1.0, balanced=balanced)
    batch = rows_of(plan, 60 if FULL else 12, seed=2)
    prices = {p.stage: p for p in plan.prices}
    assert math.fsum(p.mu**2 for p in plan.prices) <= plan.mu**2 * (1 + 1e-12)  # shares compose to the claim
    for stage, phi, view in stages(plan):
        assert phi.dim <= prices[stage.name].coordinates  # what the discrete sampler's δ was counted for
        nominal = stage.query.nominal(plan)
        assert phi.integer_bounds == nominal.integer_bounds  # the price holds for the real map
        assert prices[stage.name].sigma == plan.unit.sensitivity(*nominal.integer_bounds) / prices[stage.name].mu
        check(phi, view(batch))


@settings(
    max_examples=400 if FULL else 40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not FULL
)
@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(max_size=40),
            st.floats(),
            st.integers(),
            st.dates(),
            st.booleans(),
            st.sampled_from(CELLS),
        ),
        min_size=2,
        max_size=6,
    )
)
def test_any_cells(cells: list[object]) -> None:
    for variant in ("heterogeneous", "discover + tables", "discover + directions"):
        plan, parts = _prepared(variant)
        batch = illegal(plan, cells)
        assert bool((batch.numbers >= 0).all()) and bool((batch.numbers <= 1).all())
        for _, phi, view in parts:
            check(phi, view(batch))


_PREPARED: dict[str, tuple[Plan, list[tuple[Stage, FeatureMap, View]]]] = {}


def _prepared(variant: str) -> tuple[Plan, list[tuple[Stage, FeatureMap, View]]]:
    if variant not in _PREPARED:
        plan = VARIANTS[variant](1.0)
        _PREPARED[variant] = (plan, stages(plan))
    return _PREPARED[variant]


def test_pictures() -> None:
    """Maps of pictures, over random, blank, extreme and striped ones."""
    text = 'label = "y"\n[columns.p]\nkind = "image"\nheight = 8\nwidth = 8\n' + LABEL
    try:
        plan = make_plan(Schema.parse(text), 1.0, 1e-5, rows=100)
    except Exception as problem:  # the kind may be declared otherwise in another version
        pytest.skip(f"no pictures here ({type(problem).__name__})")
    phi = plan.stages[0].query.nominal(plan)
    rng = torch.Generator().manual_seed(0)
    numbers = torch.rand(8, 64, generator=rng, dtype=torch.float64)
    numbers[0], numbers[1], numbers[2, ::2] = 0.0, 1.0, 1.0
    codes = torch.randint(0, 2, (8,), generator=rng)
    norm, distance = check(phi, Batch(numbers, {"y": codes}))
    assert norm > 0.999 and distance > 0.9
    limit = {b: b.integer_norm**2 for b in phi.blocks if b.dense}
    assert all(longest_block(b, numbers) <= most for b, most in limit.items())


# --- one row at a time -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variant", ["heterogeneous", "discover + tables", "discover + directions", "relations", "relations, counted"]
)
def test_a_row_counts_the_same_whatever_surrounds_it(variant: str) -> None:
    """Alone, in a crowd, shuffled, in odd batch sizes: sums are the sums of the rows' own integers."""
    plan, parts = _prepared(variant)
    batch = rows_of(plan, CHUNK + 77, seed=5)
    few = torch.tensor([0, 1, 5, 77, CHUNK - 1, CHUNK, CHUNK + 76])
    for _, phi, view in parts:
        whole = Sums(phi)
        whole.add(view(batch))
        parts_added, order = Sums(phi), torch.randperm(len(batch), generator=torch.Generator().manual_seed(0))
        for chosen in order.split([1, 7, 500, len(batch) - 508]):
            parts_added.add(view(batch.rows(chosen)))
        assert torch.equal(whole.total(), parts_added.total())
        without = Sums(phi)
        mask = torch.ones(len(batch), dtype=torch.bool)
        mask[few] = False
        without.add(view(batch.rows(torch.nonzero(mask).flatten())))
        own = torch.tensor(integers(phi, view(batch.rows(few))))
        assert torch.equal(without.total() + own.sum(dim=0), whole.total())


@pytest.mark.parametrize("variant", ["discover + tables", "relations, tables", "relations, counted"])
def test_codes_and_numbers_of_a_cell_ignore_their_neighbours(variant: str) -> None:
    plan = VARIANTS[variant](1.0)
    rng = np.random.default_rng(0)
    cells = [CELLS[i] for i in rng.integers(0, len(CELLS), 300)] + [str(x) for x in rng.random(300) * 1000]
    together = illegal(plan, cells)
    for i in range(0, 600, 7):
        alone = illegal(plan, [cells[i]])
        assert torch.equal(alone.numbers[0], together.numbers[i])
        assert all(alone.codes[name][0] == code[i] for name, code in together.codes.items())


# --- the algebra -----------------------------------------------------------------------------------------------------


def test_the_diameter_by_brute_force() -> None:
    """Random sums and products over tiny variables: no pair of rows beats the formula, and some pair meets it."""
    from dpmerf.encoding.codec import Variable
    from dpmerf.features.fourier import Fourier

    rng = np.random.default_rng(0)
    variables = [Variable(name, 2) for name in "abc"]
    waves = Fourier.draw(1, 2, (1.0,), 0)
    vars(waves)["frequencies"] = torch.tensor([[math.pi]], dtype=torch.float64)  # x = 0 and x = 1 are opposite
    fourier = of(waves)
    for _ in range(200 if FULL else 40):
        phi = FeatureMap(())
        for _ in range(rng.integers(1, 5)):
            term = [constant(), fourier][rng.integers(2)]
            for v in rng.permutation(3)[: rng.integers(0, 3)]:
                term = term * onehot(variables[v])
            phi = phi + float(rng.choice([0.5, 1.0, 2.0])) * term
        grid = torch.cartesian_prod(*[torch.arange(2)] * 4)
        batch = Batch(grid[:, :1].double(), {v.name: grid[:, i + 1] for i, v in enumerate(variables)})
        values = phi(batch)
        found = float(torch.cdist(values, values).max())
        assert found <= phi.diameter + 1e-9
        assert found >= phi.diameter - 1e-6  # tight: opposite points exist
        squares = [b.integer_norm**2 for b in phi.blocks]
        assert isinstance(squared_diameter(squares, phi.blocks), int)  # exact in integers


@pytest.mark.parametrize("share", [0.05, 0.25, 1 / 3, 0.5, 0.7, 0.95])
def test_no_two_rows_are_far_apart_in_means_and_in_products(share: float) -> None:
    """Opposite rows have equal products. Is the bound that this gives kept in whole numbers, and met?"""
    rng = torch.Generator().manual_seed(1)
    for columns, group in ((2, 1), (7, 2), (40, 1)):
        phi = of(Moments(columns, group, share))
        corner = torch.eye(columns, dtype=torch.float64)
        rows = [corner, -corner, torch.randn(40, columns, generator=rng, dtype=torch.float64)]
        for angle in np.linspace(0.4, 1.0, 61) * math.pi:  # of two rows, both in the span of groups' means
            one, other = torch.zeros(2, columns, dtype=torch.float64)
            one[:group], other[:group], other[group : 2 * group] = 1.0, math.cos(angle), math.sin(angle)
            rows += [one[None], other[None]]
        norm, distance = check(phi, Batch(torch.round(torch.cat(rows) * 1024) / 1024, {}))
        assert norm > 0.99 and distance > 0.998


def test_the_angle_that_is_worst_for_moments() -> None:
    """By trying all cosines: the largest distance is the one that the map states, to its last digit."""
    cosine = np.linspace(-1, 1, 100_001)
    for share in np.linspace(0.02, 0.98, 25):
        most = ((1 - share) * 2 * (1 - cosine) + share * 2 * (1 - cosine**2)).max()
        stated = Moments(9, 2, float(share)).apart
        assert most <= stated < most + 2e-6


def test_sensitivity_of_units() -> None:
    assert Unit().sensitivity(1.0, 2.0) == 2.0
    assert Unit(neighbours="add-remove").sensitivity(1.0, 2.0) == 1.0
    assert Unit("who", 3).sensitivity(1.0, 2.0) == 6.0
    assert Unit("who", 3).sensitivity(2.0, 1.0) == 6.0  # a person may have fewer rows: an absent row is at distance B
    assert Unit("who", 3, "add-remove").sensitivity(1.0, 2.0) == 3.0


@pytest.mark.parametrize("excess", [1, 2, 5, 40])
def test_a_person_never_counts_for_more_than_the_cap(excess: int) -> None:
    """Whole tables, in integers: the person's rows are all different, too many, and spread over the table."""
    plan = VARIANTS["person"](1.0)
    phi, limit = (
        plan.stages[0].query.nominal(plan),
        plan.unit.sensitivity(*plan.stages[0].query.nominal(plan).integer_bounds),
    )
    others = {"x": [0.1, 0.9, 0.4], "t": [1, 5, 9], "y": [True, False, True], "who": ["a", "b", None]}
    rng = np.random.default_rng(excess)

    def total(person: str | None, rows: int) -> torch.Tensor:
        mine = {
            "x": rng.random(rows).tolist(),
            "t": rng.integers(0, 10, rows).tolist(),
            "y": [bool(v) for v in rng.integers(0, 2, rows)],
            "who": [person] * rows,
        }
        data = pa.table({name: mine[name][::2] + others[name] + mine[name][1::2] for name in others})
        from dpmerf.private.measure import sum_locally
        from dpmerf.progress import SILENT
        from dpmerf.sources.rows import Frame

        return sum_locally(Frame(data), plan, phi, as_it_is, SILENT, "")[0]

    for rows in ((excess, 0), (3 * excess, excess), (2, 3 * excess)):
        change = (total("z", rows[0]) - total("w", rows[1])).tolist()
        assert sum(v * v for v in change) <= limit**2


def test_nothing_leaves_without_noise() -> None:
    """Every number of a release carries noise: over many releases of one table no coordinate ever repeats its sum."""
    plan = VARIANTS["heterogeneous"](1.0)
    pair = worst(plan)
    releases = [measure(pair.out, plan) for _ in range(20)]
    exact, _ = pair.exact(releases[0], plan.stages[0])
    noise = torch.stack([r.sums["embedding"] - exact for r in releases])
    assert int((noise == 0).sum()) == 0
    assert len(torch.unique(noise)) == noise.numel()
    assert releases[0].noise == OpenDPGaussian.name
