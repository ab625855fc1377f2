"""A number and the same number in the row before: one correlation, and one set of bins."""

import numpy as np
import pytest
import torch

from dpmerf.encoding.binning import Binning, FineGrid
from dpmerf.encoding.codec import Codec
from dpmerf.generators.maxent.following import copula_table, correlation_of
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.methods.person_method import make_person_plan
from dpmerf.plan.queries import Histograms
from dpmerf.schema import Schema
from dpmerf.schema.person_schema import Persons
from unit.test_person_odd_data import ALONE

S = Settings()
WEIGHT = '[columns.weight]\nkind = "number"\nmin = 0\nmax = 200\nnullable = true\n'


def counts(correlation: float, n: int = 30_000) -> torch.Tensor:
    """(4, 3) of a normal copula, by chance."""
    z = torch.randn(n, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    z[:, 1] = correlation * z[:, 0] + (1 - correlation**2) ** 0.5 * z[:, 1]
    cuts = [torch.special.ndtri(torch.tensor(c).double()) for c in ([0.4, 0.6, 0.85], [0.3, 0.7])]
    a, b = (torch.searchsorted(c, z[:, j].contiguous()) for j, c in enumerate(cuts))
    return torch.zeros(4, 3).double().index_put_((a, b), torch.ones(n).double(), accumulate=True)


@pytest.mark.parametrize("true", [-0.8, 0.0, 0.5, 0.97])
def test_a_correlation_is_found_also_under_noise(true: float) -> None:
    table = counts(true)
    assert correlation_of(table, 0.0, S) == pytest.approx(true, abs=0.02)
    noise = 40 * torch.randn(4, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert correlation_of(table / 10 + noise, 40.0, S) == pytest.approx(true, abs=0.12)
    near = copula_table(table, true, S)
    assert float(near.sum()) == pytest.approx(1) and float((near - table / table.sum()).abs().max()) < 0.02


def test_a_table_that_says_nothing_has_no_correlation() -> None:
    assert abs(correlation_of(torch.tensor([[0.0, 5_000.0], [0.0, 9.0]]).double(), 40.0, S)) < 0.1
    assert abs(correlation_of(torch.zeros(3, 3).double(), 40.0, S)) < 0.1


def test_the_row_before_is_cut_as_rows_are() -> None:
    persons = Persons.parse(ALONE + WEIGHT)
    plan = make_person_plan(persons, 1.0, 1e-5, rows=1_000).parts["rows"]
    histograms = plan.query(Histograms)
    assert histograms.alike == (("weight before", "weight"),) and "weight before" not in histograms.columns


def test_bins_of_another_column_also_where_a_rule_cuts_one_of_them() -> None:
    schema = Schema.parse(
        WEIGHT.replace("weight", "a")
        + WEIGHT.replace("weight", "b")
        + '[[relations]]\nrule = "if a > 150.3 then b < 9"'
    )
    grid = FineGrid(Codec(schema), 64)
    mass = np.random.default_rng(0).exponential(size=grid.variables["a"].size) * 100
    found = Binning.cut(grid, {"a": mass}, {"a": 5.0}, float(mass.sum()), 6, frozenset(), alike={"b": "a"})
    fine = grid.numeric["b"]
    assert len(found.bin_of["b"]) == fine.size + 1 and found.part_of["b"].equal(found.bin_of["b"])
    assert int(found.bin_of["b"][-1]) == int(found.bin_of["b"][:-1].max()) + 1  # null
    assert bool((found.bin_of["b"].diff() >= 0).all())
    at = {name: grid.numeric[name].edges[:-1] for name in "ab"}
    cuts = {name: set(at[name][1:][found.bin_of[name][: len(at[name])].diff().numpy() > 0]) for name in "ab"}
    assert cuts["a"] & set(at["b"]) <= cuts["b"]
