"""Relations that a report suggests: of two numbers near each other, never the wrong order."""

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.evaluate.suggestions import _edges, _numbers
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.schema import Schema

ROWS = 4_000
SCHEMA = """
format = 1
[columns.start]
kind = "integer"
min = 0
max = 364
[columns.end]
kind = "integer"
min = 0
max = 454
"""


@pytest.fixture(scope="module")
def days() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(2)
    start = draw.integers(0, 365, ROWS)
    return start, start + 1 + draw.integers(0, 20, ROWS)


@pytest.fixture(scope="module")
def release(days: tuple[np.ndarray, np.ndarray]) -> Release:
    table = pa.table(dict(zip(("start", "end"), days, strict=True)))
    return measure(table, make_plan(Schema.parse(SCHEMA), 3.0, 1e-5, rows=ROWS))


@pytest.mark.parametrize("sigma", [1.0, 10.0, 20.0, 30.0, 40.0, 60.0, 100.0])
@pytest.mark.parametrize("stay", [1, 40, 200])
def test_an_order_is_never_suggested_the_wrong_way_round(
    release: Release, days: tuple[np.ndarray, np.ndarray], sigma: float, stay: int
) -> None:
    assert release.binning is not None
    names, (start, end) = ("start", "end"), days
    bins = [_edges(release.binning, n) for n in names]
    lines = [np.append(b[:, 0], b[-1, 1] + 1) for b in bins]
    counts = np.histogram2d(start, np.minimum(end + stay - 1, 454), lines)[0]
    found = _numbers(release.binning, names, counts, sigma, False)
    assert found is None or "rule" not in found[1].declare or found[1].declare == 'rule = "start <= end"'
    assert stay < 200 or sigma > 1 or (found is not None and found[1].declare == 'rule = "start <= end"')
