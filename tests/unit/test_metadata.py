"""Other people's metadata: each format's own published example, made small, is read."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import polars as pl
import pyarrow as pa
import pydantic
import pytest

from dpmerf import metadata
from dpmerf.errors import SchemaError
from dpmerf.schema import Schema
from dpmerf.schema.facts import TableFacts
from metadata_examples import DDL, FIELDS, HOTEL, PLACE, REDCAP, TITANIC, TREES


class Colour(pydantic.BaseModel):
    """A model as in pydantic's documentation."""

    name: Literal["red", "green"]
    share: Annotated[float, pydantic.Field(ge=0, le=1)]
    seen: dt.datetime | None = None
    count: int = pydantic.Field(gt=0, lt=256)
    bright: bool


def kinds(table: TableFacts) -> dict[str, str | None]:
    return {name: facts.kind for name, facts in table.columns.items()}


def test_sdv() -> None:
    guests = metadata.read(HOTEL, table="guests")
    assert kinds(guests) == {
        "guest_email": "id",
        "has_rewards": "flag",
        "checkin_date": "date",
        "left": "timestamp",
        "nights": "integer",
        "billing_address": "id",
    }
    assert guests.columns["checkin_date"].known["reading"] == {"date": ["%d %b %Y"]}
    assert set(guests.gaps) == {(c, k) for c in ("checkin_date", "left") for k in ("first", "last")} | {
        ("nights", "min"),
        ("nights", "max"),
    }
    with pytest.raises(SchemaError, match=r"choose one with --table. There are: hotels, guests"):
        metadata.read(HOTEL)
    with pytest.raises(SchemaError, match="no table 'rooms'"):
        metadata.read(HOTEL, table="rooms")


def test_sdv_before_1_0_and_patterns_of_ids(tmp_path: Path) -> None:
    fields = {
        "user_id": {"type": "id", "subtype": "integer"},
        "age": {"type": "numerical", "subtype": "integer"},
        "joined": {"type": "datetime", "format": "%Y-%m-%d"},
        "approved": {"type": "boolean"},
    }
    (tmp_path / "old.json").write_text(json.dumps({"tables": {"users": {"fields": fields, "primary_key": "user_id"}}}))
    assert kinds(metadata.read(tmp_path / "old.json")) == {
        "user_id": "id",
        "age": "integer",
        "joined": "date",
        "approved": "flag",
    }
    assert metadata.read(HOTEL, table="hotels").columns["hotel_id"].known == {"pattern": "HID_[0-9]{3}"}
    odd = {"METADATA_SPEC_VERSION": "V1", "tables": {"t": {"columns": {"k": {"sdtype": "id", "regex_format": "a+"}}}}}
    assert metadata.read(odd).columns["k"].known == {}


def test_sdv_of_55_columns_leaves_only_bounds_open(tmp_path: Path) -> None:
    types = ["numerical", "categorical", "boolean", "datetime", "id"]
    columns = {f"c{i}": {"sdtype": types[i % 5]} for i in range(55)}
    path = tmp_path / "metadata.json"
    path.write_text(json.dumps({"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": columns, "primary_key": "c4"}))
    text = metadata.imported(path)
    found = metadata.read(path)
    assert len(found.columns) == 55 and {key for _, key in found.gaps} == {"min", "max", "values", "first", "last"}
    filled = text.replace('min = "?"', "min = 0").replace('max = "?"', "max = 9").replace('["?"]', '["a", "b"]')
    filled = filled.replace('first = "?"', "first = 2020-01-01T00:00:00").replace(
        'last = "?"', "last = 2021-01-01T00:00:00"
    )
    assert len(Schema.parse(filled).columns) == 55


def test_frictionless() -> None:
    found = metadata.read({"resources": [{"name": "people", "schema": FIELDS}]})
    written = {name: facts.written() for name, facts in found.columns.items()}
    assert written["id"] == {"kind": "id"} == written["mail"] == written["place"]
    assert written["fruit"] == {"kind": "category", "values": ["apple", "kiwi"], "nullable": True}
    assert written["age"] == {"kind": "integer", "min": 0, "max": 120}
    assert written["height"] == {"kind": "number", "min": 0.5, "max": 3, "nullable": True}
    assert written["born"] == {
        "kind": "date", "first": dt.date(1900, 1, 1), "last": "?", "nullable": True, "reading": {"date": ["%d.%m.%Y"]}
    }  # fmt: skip
    assert metadata.read(FIELDS, "frictionless") == metadata.read({"schema": FIELDS})


def test_croissant() -> None:
    found = metadata.read(TITANIC)
    assert found.columns["sex"].written() == {"kind": "category", "values": ["male", "female"], "nullable": True}
    assert kinds(found) == {
        "sex": "category",
        "age": "number",
        "embarked": "category",
        "survived": "flag",
        "photo": "id",
    }
    assert "ports/key" in found.columns["embarked"].notes[0]


def test_csvw() -> None:
    found = metadata.read(TREES)
    assert kinds(found) == {
        "GID": "id",
        "On Street": "category",
        "Diameter": "integer",
        "inventory_date": "date",
        "comments": "id",
        "protected": "flag",
        "kml": "id",
    }
    assert found.columns["Diameter"].written() == {"kind": "integer", "min": 1, "max": 99, "nullable": True}
    assert found.columns["protected"].known["synonyms"] == {"YES": True, "NO": False}
    group = {"@context": "http://www.w3.org/ns/csvw", "tables": [TREES, {**TREES, "url": "b.csv"}]}
    assert metadata.read(group, table="b.csv") == found


def test_json_schema_and_pydantic() -> None:
    found = metadata.read(PLACE)
    written = {name: facts.written() for name, facts in found.columns.items()}
    assert written["latitude"] == {"kind": "number", "min": -90, "max": 90}
    assert written["floors"] == {"kind": "integer", "min": 1, "max": 100, "step": 2, "nullable": True}
    assert written["use"] == {"kind": "category", "values": ["home", "shop"], "nullable": True}
    assert written["built"] == {"kind": "date", "first": "?", "last": "?", "nullable": True}
    assert (written["owner"]["kind"], written["rooms"]["kind"]) == ("id", "id")
    assert metadata.read({"type": "array", "items": PLACE, "$defs": PLACE["$defs"]}) == found
    model = metadata.read(Colour)
    assert {n: f.written() for n, f in model.columns.items()} == {
        "name": {"kind": "category", "values": ["red", "green"]},
        "share": {"kind": "number", "min": 0, "max": 1},
        "seen": {"kind": "timestamp", "first": "?", "last": "?", "nullable": True},
        "count": {"kind": "integer", "min": 1, "max": 255},
        "bright": {"kind": "flag"},
    }


def test_a_model_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rows_32.py").write_text("import pydantic\nclass Row(pydantic.BaseModel):\n    ok: bool\n")
    monkeypatch.chdir(tmp_path)
    assert kinds(metadata.read("my_rows_32:Row")) == {"ok": "flag"}
    with pytest.raises(SchemaError, match="no such object"):
        metadata.read("my_rows_32:Nothing")


def test_pandera(tmp_path: Path) -> None:
    pandera = pytest.importorskip("pandera.pandas")
    check = pandera.Check
    days = [check.ge(pd.Timestamp("2020-01-01")), check.le(pd.Timestamp("2021-01-01"))]
    schema = pandera.DataFrameSchema(
        {
            "year": pandera.Column(int, check.in_range(2000, 2030, include_max=False)),
            "unit": pandera.Column("string", check.isin(["cm", "in"]), nullable=True),
            "seen": pandera.Column("datetime64[ns]", days),
            "size": pandera.Column(float, [check.ge(0), check.lt(3.5)]),
            "ok": pandera.Column(bool),
            "code": pandera.Column(int, unique=True),
            "group": pandera.Column("category"),
        }
    )  # fmt: skip
    found = metadata.read(schema)
    written = {name: facts.written() for name, facts in found.columns.items()}
    assert written["year"] == {"kind": "integer", "min": 2000, "max": 2029}
    assert written["unit"] == {"kind": "category", "values": ["cm", "in"], "nullable": True}
    assert written["seen"]["last"] == dt.datetime(2021, 1, 1)
    assert written["size"] == {"kind": "number", "min": 0, "max": 3.5}
    assert (written["ok"]["kind"], written["code"]["kind"]) == ("flag", "id")
    assert written["group"] == {"kind": "category", "values": ["?"], "dtype": "dictionary"}
    for name, text in (("s.json", schema.to_json()), ("s.yaml", schema.to_yaml())):
        (tmp_path / name).write_text(text)
        assert metadata.read(tmp_path / name).columns == found.columns


def test_codebooks(tmp_path: Path) -> None:
    (tmp_path / "redcap.csv").write_text(REDCAP)
    found = metadata.read(tmp_path / "redcap.csv")
    written = {name: facts.written() for name, facts in found.columns.items()}
    assert written["record_id"] == {"kind": "id"} == written["remarks"]
    assert written["sex"] == {"kind": "category", "values": [1, 2]}
    assert written["height"] == {"kind": "number", "min": 30, "max": 215, "nullable": True}
    assert written["dob"] == {"kind": "date", "first": dt.date(1900, 1, 1), "last": dt.date(2024, 12, 31)}
    assert written["smoker"] == {"kind": "flag", "nullable": True}
    (tmp_path / "own.csv").write_text(
        "name;type;label;values;nullable\nage;int;;;no\nx;;;male|female;yes\nodd;tint;;;\n"
    )
    own = metadata.read(tmp_path / "own.csv")
    assert own.columns["x"].written() == {"kind": "category", "values": ["male", "female"], "nullable": True}
    assert own.columns["age"].written() == {"kind": "integer", "min": "?", "max": "?"}
    assert own.columns["odd"].kind is None


def test_sql(tmp_path: Path) -> None:
    pytest.importorskip("sqlglot")
    (tmp_path / "films.sql").write_text(DDL)
    found = metadata.read(tmp_path / "films.sql", dialect="postgres")
    written = {name: facts.written() for name, facts in found.columns.items()}
    assert written["code"]["kind"] == written["did"]["kind"] == written["poster"]["kind"] == "id"
    assert written["title"] == {"kind": "category", "values": ["?"]}
    assert written["date_prod"]["first"] == dt.date(1890, 1, 1) and written["date_prod"]["last"] == dt.date(2030, 1, 1)
    assert written["kind"] == {"kind": "category", "values": ["drama", "comedy"], "nullable": True}
    assert written["minutes"] == {"kind": "integer", "min": 1, "max": 999}
    assert written["price"] == {"kind": "number", "min": 0, "max": 1000, "decimals": 2, "nullable": True}
    assert written["feeling"]["values"] == ["sad", "ok", "happy"]
    assert written["seen"] == {"kind": "flag", "nullable": True}
    assert found.relations == ({"rule": "date_prod <= released"},)


def test_information_schema(tmp_path: Path) -> None:
    path = tmp_path / "columns.csv"
    path.write_text(
        "TABLE_NAME,COLUMN_NAME,ORDINAL_POSITION,IS_NULLABLE,DATA_TYPE,NUMERIC_SCALE\n"
        "visits,charge,2,YES,numeric,2\nvisits,visit_id,1,NO,bigint,0\nvisits,seen,3,NO,timestamp without time zone,\n"
        "visits,payload,4,YES,jsonb,\n"
    )
    found = metadata.read(path)
    assert list(kinds(found).items()) == [
        ("visit_id", "id"),
        ("charge", "number"),
        ("seen", "timestamp"),
        ("payload", "id"),
    ]
    assert found.columns["charge"].known["decimals"] == 2
    rows = [{"column_name": "n", "data_type": "integer", "is_nullable": "NO"}]
    (tmp_path / "columns.json").write_text(json.dumps(rows))
    assert metadata.read(tmp_path / "columns.json").columns["n"].written() == {
        "kind": "integer",
        "min": "?",
        "max": "?",
    }


def test_arrow_types_and_no_value(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "size": pl.Series(["L"], dtype=pl.Enum(["S", "L"])),
            "group": pl.Series(["SECRET"], dtype=pl.Categorical),
            "user_id": [7],
            "is_new": [True],
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    text = metadata.imported(tmp_path / "t.parquet")
    assert "SECRET" not in text and 'values = ["S", "L"]' in text
    found = metadata.read(tmp_path / "t.parquet")
    assert kinds(found) == {"size": "category", "group": "category", "user_id": "id", "is_new": "flag"}
    plain = pa.schema(
        [pa.field("d", pa.dictionary(pa.int8(), pa.string()), nullable=False), ("x", pa.decimal128(9, 2))]
    )
    assert metadata.read(plain).columns["x"].known["decimals"] == 2
    assert metadata.read(plain).columns["d"].written() == {"kind": "category", "values": ["?"], "dtype": "dictionary"}
