"""What is written for `other`: values of a public list or a pattern, never a listed one, the same for the same rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmerf.encoding.codec import Batch, Codec
from dpmerf.errors import SchemaError
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

HEAD = '[columns.code]\nkind = "category"\nvalues = ["A00", "B01"]\nnullable = true\n'
PLAIN = HEAD + 'other = "other"\n'
LISTED = PLAIN + 'other_from = ["A00", "C02", "D03", "E04"]\n'
PATTERN = PLAIN + 'other_from = "pattern:[A-Z][0-9]{2}"\n'


def _written(text: str, first: int, n: int) -> list[str | None]:
    codes = torch.arange(first, first + n) % 4  # both values, other, null
    batch = Batch(torch.zeros(n, 0), {"code": codes})
    return Codec(Schema.parse(text)).decode(batch, first_id=first).column("code").to_pylist()


def test_other_is_drawn_evenly_from_the_rest_of_a_list() -> None:
    found = _written(LISTED, 0, 12_000)
    assert found[0::4] == ["A00"] * 3_000 and found[1::4] == ["B01"] * 3_000 and set(found[3::4]) == {None}
    values, counts = np.unique(np.array(found[2::4]), return_counts=True)
    assert values.tolist() == ["C02", "D03", "E04"] and (abs(counts - 1_000) < 150).all()


def test_other_follows_a_pattern_and_is_never_a_listed_value() -> None:
    found = _written(PATTERN, 0, 40_000)[2::4]
    assert len(set(found)) > 2_000 and not {"A00", "B01"} & set(found)
    assert all(v == "other" or (len(v) == 3 and v[0].isupper() and v[1:].isdigit()) for v in found)


@pytest.mark.parametrize("text", [LISTED, PATTERN])
def test_rows_are_written_the_same_in_any_pieces(text: str) -> None:
    assert _written(text, 0, 800) == _written(text, 0, 400) + _written(text, 400, 400)


def test_what_is_written_is_read_as_other_and_nothing_else_changes() -> None:
    bare, full = Schema.parse(PLAIN), Schema.parse(LISTED)
    rows = pa.table({"code": ["A00", "D03", "zzz", None] * 500})
    codes = [Codec(s).encode(rows).codes["code"].tolist() for s in (bare, full)]
    assert codes[0] == codes[1] and codes[0][:4] == [0, 2, 2, 3]
    assert "other_from" not in str(bare.to_json()) and Schema.from_json(full.to_json()) == full
    prices = [make_plan(s, 1.0, 1e-5, rows=2_000).prices for s in (bare, full)]
    assert prices[0] == prices[1]


def test_a_model_writes_it_and_can_be_asked_for_it() -> None:
    schema = Schema.parse(LISTED)
    rows = pa.table({"code": ["A00", "D03", "zzz", None] * 500})
    model = train(measure(rows, make_plan(schema, 5.0, 1e-5, rows=2_000)), seed=1)
    drawn = model.sample(400, seed=1).column("code").to_pylist()
    assert 100 < sum(v in ("C02", "D03", "E04") for v in drawn) < 300 and "other" not in drawn
    assert set(model.sample(50, given={"code": "other"}, seed=1).column("code").to_pylist()) <= {"C02", "D03", "E04"}


def test_lists_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("code\nA00\nF05\n")
    (tmp_path / "s.toml").write_text(PLAIN + 'other_from = "codes.csv"\n')
    assert Schema.load(tmp_path / "s.toml").columns["code"].other_from == ("A00", "F05")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + 'other_from = ["C02"]\n', "declare other"),
        (PLAIN + 'other_from = ["A00"]\n', "no value beside"),
        (PLAIN + "other_from = [1, 2]\n", "same type"),
        (PLAIN + 'other_from = "pattern:(a|b)"\n', "pattern"),
        (PLAIN + 'other_from = "no-such.csv"\n', "cannot read"),
    ],
)
def test_mistakes_are_told(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(SchemaError, match=words):
        Schema.load(tmp_path / "s.toml")
