"""One evaluation from tables or from the command line, its JSON and its marks."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from dpmerf.cli.evaluate_command import evaluate_command
from dpmerf.encoding.codec import Codec
from dpmerf.errors import DataError, SchemaError
from dpmerf.evaluate import classifiers, evaluate, json_schema, stored_schema
from dpmerf.evaluate.files import read_table
from dpmerf.evaluate.text import show
from dpmerf.schema import Schema
from dpmerf.sources.rows import open_rows

TEXT = """
label = "ill"
[columns.age]
kind = "integer"
min = 0
max = 100
[columns.code]
kind = "category"
values = ["01", "02"]
[columns.ill]
kind = "flag"
nullable = false
"""
FEW = ("Logistic regression", "XGBoost")


def table(n: int = 700, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, n)
    return pa.table({"age": age, "code": np.where(age + rng.normal(0, 9, n) > 50, "01", "02"), "ill": age > 70})


@pytest.fixture(scope="module")
def result():
    return evaluate(table(), table(seed=1), Schema.parse(TEXT), train=table(seed=2), quick=True, makers=few())


def few():
    return {name: classifiers.table_classifiers()[name] for name in FEW}


def check(value, schema, root):
    """The part of JSON Schema that the file uses."""
    if "$ref" in schema:
        return check(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    if "anyOf" in schema:
        assert any(holds(value, option, root) for option in schema["anyOf"]), (value, schema)
        return None
    if "const" in schema:
        assert value == schema["const"] and type(value) is type(schema["const"])
    if "enum" in schema:
        assert value in schema["enum"]
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    if "type" in schema:
        assert isinstance(value, kinds[schema["type"]]), (value, schema)
        assert schema["type"] == "boolean" or not isinstance(value, bool)
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        assert set(schema.get("required", ())) <= set(value)
        extra = schema.get("additionalProperties", True)
        for key, item in value.items():
            if key in properties:
                check(item, properties[key], root)
            else:
                assert extra is not False, key
                if isinstance(extra, dict):
                    check(item, extra, root)
    if schema.get("type") == "array":
        for i, item in enumerate(value):
            check(item, schema["prefixItems"][i] if "prefixItems" in schema else schema.get("items", {}), root)
    return None


def holds(value, schema, root) -> bool:
    try:
        check(value, schema, root)
    except AssertionError:
        return False
    return True


def test_the_schema_in_the_repository_is_the_one_of_the_types():
    assert stored_schema() == json_schema()


def test_the_json_validates_and_a_changed_one_does_not(result):
    document = json.loads(result.to_json())
    check(document, stored_schema(), stored_schema())
    for spoil in ({"covered": True}, {"seed": "x"}, {"unknown": 1}):
        assert not holds({**document, **spoil}, stored_schema(), stored_schema())
    del document["fidelity"]["marginals"][0]["mean"]
    assert not holds(document, stored_schema(), stored_schema())


def test_every_score_carries_its_mark(result):
    def walk(value):
        if isinstance(value, dict):
            if any(isinstance(v, float) for v in value.values()) and "covered" not in value:
                assert all(isinstance(v, float | None) for v in value.values()), value  # a bag of metrics inside one
            if "covered" in value:
                assert value["covered"] is False
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(json.loads(result.to_json()))
    assert "NOT COVERED" in result.warning


def test_every_block_of_text_carries_the_words(result):
    console = Console(record=True, width=100, file=io.StringIO())
    show(result, console)
    text = console.export_text()
    for title in ("Utility: predicting", "Utility: mean", "total variation", "the whole", "columns", "subgroups"):
        line = next(line for line in text.splitlines() if title in line)
        assert "NOT COVERED" in line, title
    assert "no guarantee" in text


def test_equal_inputs_and_seeds_give_equal_bytes(result):
    again = evaluate(table(), table(seed=1), Schema.parse(TEXT), train=table(seed=2), quick=True, makers=few())
    assert again.to_json() == result.to_json()


def test_without_a_label_there_is_fidelity_alone():
    schema = Schema.parse(TEXT).with_label(None)
    found = evaluate(table(), table(seed=1), schema, quick=True)
    assert found.utility is None and found.rows_train is None
    assert found.fidelity.detection.baseline_auc is None
    check(json.loads(found.to_json()), stored_schema(), stored_schema())


def run(*arguments: str):
    app = typer.Typer()
    app.command()(evaluate_command)
    return CliRunner().invoke(app, list(arguments), catch_exceptions=True)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr("dpmerf.evaluate.compare.table_classifiers", few)
    (tmp_path / "schema.toml").write_text(TEXT)
    pa.parquet.write_table(table(), tmp_path / "synthetic.parquet")
    pa.csv.write_csv(table(seed=1), tmp_path / "real.csv")
    return tmp_path


def test_the_command_prints_json_that_validates(files):
    out = files / "scores.json"
    done = run(
        *(str(files / "synthetic.parquet"), "--real", str(files / "real.csv"), "--schema", str(files / "schema.toml")),
        *("--label", "ill", "--quick", "--json", "-o", str(out)),
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(out.read_text())
    check(json.loads(done.stdout), stored_schema(), stored_schema())


def test_the_command_prints_text(files):
    done = run(
        *(str(files / "synthetic.parquet"), "--real", str(files / "real.csv"), "--schema", str(files / "schema.toml")),
        *("--quick", "--quiet"),
    )
    assert done.exit_code == 0 and "NOT COVERED" in done.stdout


def test_categories_that_look_like_numbers_survive_csv(files):
    read = read_table(files / "real.csv")
    assert set(read["code"].to_pylist()) == {"01", "02"}


def test_bad_files_are_named_and_never_quoted(files):
    (files / "bad.parquet").write_bytes(b"secret-cell")
    (files / "bad.xyz").write_text("secret-cell")
    for name in ("absent.parquet", "bad.parquet", "bad.xyz"):
        with pytest.raises(DataError, match=name) as problem:
            read_table(files / name)
        assert "secret" not in str(problem.value)


def test_an_unknown_label_is_refused():
    with pytest.raises(SchemaError, match="not a column"):
        evaluate(table(), table(), Schema.parse(TEXT), label="nothing")


def test_files_are_read_as_a_release_reads_them(tmp_path) -> None:
    """Packed files, and what the schema says of how they are written."""
    raw = b"age;ill\n31;ja\n47;nein\n"
    (tmp_path / "rows.csv.zst").write_bytes(pa.compress(raw, codec="zstd", asbytes=True))
    text = '[reading]\ndelimiter = ";"\n[columns.age]\nkind = "integer"\nmin = 0\nmax = 100\n[columns.ill]\n'
    schema = Schema.parse(text + 'kind = "flag"\nsynonyms = { ja = true, nein = false }\n')
    read = read_table(tmp_path / "rows.csv.zst", schema)
    encode = Codec(schema).encode
    released = [
        encode(pa.Table.from_batches([b]))
        for b in open_rows(tmp_path / "rows.csv.zst", schema.reading).batches(["age", "ill"])
    ]
    scored = encode(read, as_written=True)
    assert released[0].codes["ill"].tolist() == scored.codes["ill"].tolist() == [1, 0]
    assert released[0].numbers.tolist() == scored.numbers.tolist() == [[0.31], [0.47]]
