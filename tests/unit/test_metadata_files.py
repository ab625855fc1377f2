"""Other people's metadata: round trips keep the facts, and wrong files get one clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import MIXED
from dpmerf import metadata
from dpmerf.errors import SchemaError
from dpmerf.schema import Schema
from dpmerf.schema.facts import Facts
from metadata_examples import FIELDS, HOTEL, PLACE, TITANIC, TREES

FULL = MIXED + '[columns.at]\nkind = "timestamp"\nfirst = 2020-01-01T00:00:00\nlast = 2021-01-01T12:00:00\nstep = 60\n'
FULL += '[columns.clock]\nkind = "time"\nfirst = 06:00:00\nlast = 22:00:00\nstep = 60\n'
FULL += '[columns.whole_day]\nkind = "time"\nnullable = true\n'
FULL += '[columns.night]\nkind = "time"\nfirst = 22:00:00\nlast = 06:00:00\n'


def test_frictionless_round_trip_keeps_every_fact(tmp_path: Path) -> None:
    schema = Schema.parse(FULL + '[columns.n]\nkind = "integer"\nmin = 0\nmax = 90\nstep = 5\nlog = true\nbins = 4\n')
    (tmp_path / "s.json").write_text(json.dumps(metadata.WRITABLE["frictionless"](schema, "t")))
    assert Schema.parse(metadata.imported(tmp_path / "s.json")) == schema


def test_sdv_round_trip_keeps_kinds(tmp_path: Path) -> None:
    schema = Schema.parse(FULL)
    (tmp_path / "s.json").write_text(json.dumps(metadata.WRITABLE["sdv"](schema, "t")))
    found = metadata.read(tmp_path / "s.json")
    assert {n: f.kind for n, f in found.columns.items()} == {n: c.kind for n, c in schema.columns.items()}


def test_toml_round_trip() -> None:
    schema = Schema.parse(
        FULL + '[columns."odd \\"name\\" ü"]\nkind = "category"\nvalues = ["a\\u007f", "b\\n"]\n'
        '[[relations]]\nrule = "seen <= at"\n[[relations]]\nlookup = "dose"\nby = "ward"\n'
        "table = { a = 1.0, b = 2.0, c = 3.0, else = 4.0 }\n"
    )
    assert Schema.parse(metadata.write_schema(schema)) == schema


WRONG: dict[str, tuple[str, str]] = {
    "empty.json": ("", "not valid JSON"),
    "list.json": ("[]", "the format is not known"),
    "unknown.json": ('{"a": 1}', "Known are: sdv"),
    "broken.json": ('{"a": ', r"not valid JSON \(line 1\)"),
    "sdv.json": ('{"METADATA_SPEC_VERSION": "V1"}', "has no `columns`"),
    "sdv2.json": ('{"METADATA_SPEC_VERSION": "V1", "tables": {}}', "no table"),
    "fields.json": ('{"fields": []}', "has no `fields`"),
    "names.json": ('{"fields": [{"type": "string"}]}', "field 1 .* no `name`"),
    "elsewhere.json": ('{"resources": [{"name": "a", "schema": "x.json"}]}', "import x.json instead"),
    "croissant.json": ('{"conformsTo": "http://mlcommons.org/croissant/1.0"}', "no record set"),
    "csvw.json": ('{"@context": "http://www.w3.org/ns/csvw"}', "no `tableSchema`"),
    "props.json": ('{"properties": {}}', "no `properties`"),
    "ref.json": ('{"type": "array", "items": {"properties": {"a": 1}, "$ref": "http://x/y"}}', "points outside"),
    "loop.json": ('{"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"$ref": "#/$defs/b"}}}', "to itself"),
    "pandera.json": ('{"schema_type": "dataframe", "columns": {}}', "no columns"),
    "twice.csv": ("name,type\na,int\na,int\n", "line 3 .* second time"),
    "noname.csv": ("colour,type\na,int\n", "is no codebook"),
    "data.csv": ("name,type,age\nSECRET,b,4\nSECRET2,c,5\n", "looks like a table"),
    "nothing.csv": ("name,type\n", "describes no column"),
    "select.sql": ("SELECT 1", "no CREATE TABLE"),
    "broken.sql": ("CREATE TABLE t (a int,,, b", "cannot be read"),
    "bad.parquet": ("PAR1", "damaged"),
    "bad.yaml": ("a: [", "not valid YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_get_one_clear_error(name: str, tmp_path: Path) -> None:
    text, words = WRONG[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(SchemaError, match=words) as caught:
        metadata.read(tmp_path / name)
    said = str(caught.value)
    assert said.startswith(str(tmp_path / name)) and "\n" not in said and "SECRET" not in said


def test_wrong_arguments_get_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="No such file"):
        metadata.read(tmp_path / "nowhere.json")
    with pytest.raises(SchemaError, match="no format 'xml'"):
        metadata.read(PLACE, "xml")
    with pytest.raises(SchemaError, match="this is not sdv"):
        metadata.read(PLACE, "sdv")
    with pytest.raises(SchemaError, match="neither"):
        metadata.read(object())
    (tmp_path / "latin.csv").write_bytes("name\nä\n".encode("latin-1"))
    with pytest.raises(SchemaError, match="UTF-8"):
        metadata.read(tmp_path / "latin.csv")


JSONISH: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_document_never_raises_anything_else(data: st.DataObject) -> None:
    """One place of a good document is replaced by anything: it is read, or refused in one clear error."""
    document = json.loads(json.dumps(data.draw(st.sampled_from([HOTEL, FIELDS, TITANIC, TREES, PLACE]))))
    here: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        if isinstance(here[key], dict | list) and here[key] and data.draw(st.booleans()):
            here = here[key]
            continue
        here[key] = data.draw(JSONISH)
        break
    try:
        text = metadata.imported(document)
    except SchemaError:
        return
    try:
        Schema.parse(text)
    except SchemaError as problem:
        assert "not valid TOML" not in str(problem), text


def test_facts_that_make_no_sense_are_gaps() -> None:
    turned = metadata.read({"fields": [{"name": "a", "type": "integer", "constraints": {"minimum": 9, "maximum": 1}}]})
    assert turned.columns["a"].gaps == ("min", "max") and "hold no two values" in turned.columns["a"].notes[0]
    assert Facts(None).gaps == ("kind",)


def test_nothing_of_a_script_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What sqlglot cannot parse it quotes in its log, and a dump of a database holds rows."""
    pytest.importorskip("sqlglot")
    (tmp_path / "dump.sql").write_text("CREATE TAJLE t (a INT CHECK (a IN ('Zq7Planted', 'y')))")
    with pytest.raises(SchemaError, match="no CREATE TABLE"):
        metadata.read(tmp_path / "dump.sql")
    assert "Zq7Planted" not in caplog.text
