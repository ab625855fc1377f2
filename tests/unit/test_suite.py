"""The suite: every simulated table fits its schema and does what it is named for; scores see what they are for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import suite, suite_scores, suite_tables, suite_targets
from benchmarks.protocols import Split
from benchmarks.store import Store
from benchmarks.suite_simulated import SIMULATED

from dpmerf.evaluate.views import Rows


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_rows_survive_the_schema(name: str) -> None:
    schema, rows = SIMULATED[name].make(400, 1)
    read = Rows.read(rows, schema)
    back = read.codec.decode(read.batch)
    for column in schema.learned:
        a, b = rows[column].to_pylist(), back[column].to_pylist()
        if isinstance(a[0], float):
            np.testing.assert_allclose(a, b, rtol=1e-6)
        else:
            assert a == b, column


def test_rows_learned_from_never_judge() -> None:
    real = suite_tables.rows_of("heavy tails", 1, None, quick=True)
    learned, judged = (set(t["lognormal"].to_pylist()) for t in (real.train, real.test))
    assert len(learned) + len(judged) == suite_tables.QUICK_ROWS and not learned & judged


def test_scores_tell_independent_columns_from_real_ones() -> None:
    schema, rows = SIMULATED["near functions"].make(4_000, 1)
    real = Split(schema, rows.slice(0, 3_000), rows.slice(3_000), 3_000)
    good, bad = (suite_scores.scores(made, real, 1) for made in (real.train, suite_scores.independent(real, 1)))
    assert bad["tv1"] == pytest.approx(good["tv1"], abs=1e-4)
    assert bad["tv2"] > good["tv2"] + 0.05 and bad["novelty"] > good["novelty"] + 0.3
    assert bad["told_apart"] > 0.9 and abs(bad["utility"] - 0.5) < 0.1 < good["utility"] - 0.5


def test_errors_of_moments_are_relative() -> None:
    schema, rows = SIMULATED["heavy tails"].make(2_000, 1)
    real = Rows.read(rows, schema)
    twice = rows.set_column(0, "lognormal", pa.array(2 * rows["lognormal"].to_numpy()))
    found = suite_scores.moments(Rows.read(twice, schema), real)
    assert found["sd_error"] == pytest.approx(1 / 5, rel=1e-3)  # one of five columns
    assert found["q0.99"] == pytest.approx(1 / 5, rel=1e-3)


def test_the_page_has_a_line_a_table(tmp_path) -> None:  # type: ignore[no-untyped-def]
    store = Store(tmp_path)
    score = dict.fromkeys(suite.COLUMNS, 0.1)
    store.write("suite/spikes/real/1", {**score, "utility": 0.9, "independent": 0.5})
    store.write("suite/spikes/default/1", {**score, "utility": 0.7})
    store.write("suite_before/spikes/default/1", {**score, "utility": 0.6})
    assert "| spikes | 0.25 → 0.50 |" in suite.page(store)


def test_targets_see_what_they_name(tmp_path: Path) -> None:
    real = np.random.default_rng(0).lognormal(0, 1, 10_000)
    assert suite_targets.tails(real, real) == {"mean": 0, "sd": 0, "q99": 0, "q99.9": 0, "beyond": 0}
    assert suite_targets.tails(real, np.append(real, 100 * real.max()))["mean"] > 0.05
    for name, (make, _, check) in suite_targets.SIMULATED.items():
        found = check(*[make(4_000, 1)[1]] * 2, 1)
        wanted = [t for t in suite_targets.targets() if t.table == name]
        assert wanted and all(
            found[t.figure] <= t.value if t.side == "<=" else found[t.figure] >= t.value for t in wanted
        )
    store = Store(tmp_path)
    store.write("suite_targets/codes/1", {"consistent": 0.8, "one-way": 0.05})
    store.write(
        "suite_targets/adult 1,000/1",
        {f"{m} {k}": 0.1 for m in ("default", "alone") for k in ("1-way", "2-way", "utility")},
    )
    shown = suite_targets.page(store)
    assert "| 0.8000 | 0.8000 | 0 of 1 |" in shown and "0.1000 against 0.1000" in shown
