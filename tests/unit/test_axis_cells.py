"""Cells of pictures: whole levels by their names, even steps of a logarithm with round ticks, every value in one."""

import numpy as np
import pytest

from dpmerf.encoding.codec import Axis
from dpmerf.evaluate.axis_cells import axis_cells
from dpmerf.report.phrases import block
from dpmerf.schema import Integer, Number, Numeric

COLUMNS = [
    Integer(kind="integer", min=0, max=10),
    Integer(kind="integer", min=-3, max=50),
    Integer(kind="integer", min=0, max=99_999, log=True),
    Integer(kind="integer", min=0, max=3, log=True),
    Integer(kind="integer", min=10_000, max=1_500_000, log=True),
    Integer(kind="integer", min=0, max=1000, step=50),
    Number(kind="number", min=0, max=500, decimals=2, log=True),
    Number(kind="number", min=-1.5, max=2.5),
    Number(kind="number", min=0.1, max=800, log=True),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: f"{c.min}-{c.max}-{c.log}")
@pytest.mark.parametrize("most", [4, 20])
def test_cells_are_told_apart_and_hold_every_value_once(column: Numeric, most: int) -> None:
    cells, axis = axis_cells(column, most), Axis.of(column)
    assert len(cells.names) <= most + 1 and len(set(cells.names)) == len(cells.names) == len(cells.edges) - 1
    assert (np.diff(cells.edges) > 0).all() and cells.edges[0] == 0 and cells.edges[-1] == 1
    values = np.sort(np.r_[np.linspace(axis.low, axis.high, 2_000), axis.value(np.linspace(0, 1, 2_000))])
    codes = cells.codes(axis.unit(values))
    assert (np.diff(codes) >= 0).all() and set(codes.tolist()) == set(range(len(cells.names)))
    for value, code in zip(axis.value(axis.unit(values)), codes, strict=True):
        if axis.step is not None and axis.step >= 1:
            first, _, last = cells.names[code].replace(",", "").partition(" – ")
            assert float(first) <= value <= float(last or first)


def test_a_few_levels_have_a_cell_each() -> None:
    assert axis_cells(COLUMNS[0]).names == tuple(str(v) for v in range(11))
    assert axis_cells(COLUMNS[3]).names == ("0", "1", "2", "3")


def test_ticks_of_a_logarithmic_axis_are_round() -> None:
    assert [words for _, words in axis_cells(COLUMNS[2]).ticks] == ["0", "10", "100", "1,000", "10,000"]
    assert [words for _, words in axis_cells(COLUMNS[6]).ticks] == ["0", "0.1", "1", "10", "100"]


def test_no_internal_name_is_shown() -> None:
    assert block("age#part × #rounds of pay") == "age × rounds of pay" and block("pay#null") == "pay is null"
