"""Declared notations: cells of four countries are read as what they mean, each by itself."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.encoding import cells, notations
from dpmerf.encoding.codec import Codec
from dpmerf.encoding.reading import read
from dpmerf.errors import DataError, SchemaError
from dpmerf.schema import Schema
from dpmerf.schema.notation import Notation
from dpmerf.schema.toml import write_schema
from dpmerf.sources.rows import open_rows
from dpmerf.sources.stored import check_types
from locales import COUNTRIES, GERMANY, Country

NAN = float("nan")


def _numbers(texts: list[str | None], **told: object) -> list[float]:
    found = notations.numbers_as_declared(pa.array(texts, pa.large_string()), Notation.model_validate(told))
    return list(cells.numbers(found))


def test_numbers_of_four_countries() -> None:
    german = _numbers(
        ["€ 2.022,01", "-1.234,5", "1.5", "12.34", "− 3,5 €", "31.12.2023", "1.234.567", ",5", "1e3", "abc", None],
        decimal=",", thousands=".", unit="€",
    )  # fmt: skip
    assert np.array_equal(german, [2022.01, -1234.5, NAN, NAN, -3.5, NAN, 1234567, 0.5, 1000, NAN, NAN], equal_nan=True)
    assert _numbers(["1\u202f234,56 €", "1 234", "1\u00a0234"], decimal=",", thousands=" ", unit="€") == [
        1234.56,
        1234,
        1234,
    ]
    assert _numbers(["$1,234.56", "-$5", "$-5", "12,34,567"], thousands=",", unit="$") == [1234.56, -5, -5, 1234567]
    assert _numbers(["¥１，２３４", "￥12", "5円"], thousands=",", unit=["¥", "円"]) == [1234, 12, 5]


def test_words_for_missing_by_text_or_reading() -> None:
    notation = Notation.model_validate({"missing": ["NA", "999"]})
    for cells_of in (["NA", "999", "1"], [None, 999, 1], [None, 999.0, 1.0]):
        found = cells.numbers(notations.numbers_as_declared(pa.array(cells_of), notation))
        assert np.array_equal(found, [NAN, NAN, 1], equal_nan=True)


def test_moments_by_pattern_number_and_zone() -> None:
    def days(array: pa.Array, **told: object) -> list[float]:
        return list(cells.days(notations.moments_as_declared(array, Notation.model_validate(told))))

    assert days(pa.array(["31.12.2023", "2023-12-31", "31.02.2023x"]), date="%d.%m.%Y")[:2] == [19722, 19722]
    assert np.isnan(days(pa.array(["31.02.2023"]), date="%d.%m.%Y")[0])
    assert days(pa.array([20231231]), date="%Y%m%d") == days(pa.array(["20231231"]), date="%Y%m%d") == [19722]
    assert days(pa.array(["3. März 2024", "3. mar 2024"]), date="%d. %B %Y") == [19785, 19785]
    zoned = pa.array(["2023-07-01T23:30:00+00:00", "01.07.2023 23:30"])
    found = cells.seconds(
        notations.moments_as_declared(zoned, Notation(date=("%d.%m.%Y %H:%M",), zone="Europe/Berlin"))
    )
    assert found[0] - found[1] == 2 * 3600  # the offset's moment is local time now, the other was
    typed = pa.array([1688254200], pa.timestamp("s", tz="UTC"))
    assert cells.seconds(notations.moments_as_declared(typed, Notation(zone="Europe/Berlin")))[0] == found[0]


@pytest.mark.parametrize(
    "line",
    [
        'date = ["%d/%m/%Y", "%m/%d/%Y"]',  # two that read one text differently
        'date = "%Y-%d-%m"',  # against ISO
        'date = "%d.%q.%Y"',
        'date = "%d.%m"',
        'date = "%d.%m.%Y %I:%M"',
        'encoding = "klingon"',
        'encoding = "base64"',
        'zone = "Mars/Olympus"',
        'decimal = ";"',
        'decimal = ","\nthousands = ","',
        'unit = "m2"',
        'delimiter = "ab"',
        'delimeter = ";"',
    ],
)
def test_a_wrong_declaration_is_one_clear_error(line: str) -> None:
    with pytest.raises(SchemaError) as error:
        Schema.parse(f'[reading]\n{line}\n[columns.a]\nkind = "flag"\n')
    assert "[type=" not in str(error.value) and len(str(error.value)) < 300


def test_synonyms_are_values() -> None:
    schema = Schema.parse(
        '[columns.sex]\nkind = "category"\nvalues = ["f", "m"]\nsynonyms = { W = "f", weiblich = "f" }\n'
        '[columns.n]\nkind = "category"\nvalues = [1, 2]\nother = 9\nsynonyms = { eins = 1 }\n'
        '[columns.ok]\nkind = "flag"\nnullable = true\nsynonyms = { ja = true, nein = false }\n'
    )
    table = pa.table({"sex": ["W", "m", "weiblich", "f"], "n": ["eins", "2", "1", "x"], "ok": ["ja", "nein", "t", "?"]})
    found = read(table, schema)
    assert found["sex"].tolist() == [0, 1, 0, 0]
    assert found["n"].tolist() == [0, 1, 0, 2]
    assert found["ok"].tolist() == [1, 0, 1, 2]
    with pytest.raises(SchemaError, match="not among the values"):
        Schema.parse('[columns.a]\nkind = "category"\nvalues = ["f"]\nsynonyms = { W = "x" }\n')


def test_a_schema_with_readings_reads_back_and_old_hashes_stay() -> None:
    schema = Schema.parse(GERMANY.schema())
    assert Schema.parse(write_schema(schema)).to_json() == schema.to_json()
    assert Schema.from_json(schema.to_json()).to_json() == schema.to_json()
    bare = Schema.parse('[columns.a]\nkind = "flag"\n')
    assert set(bare.to_json()) == {"format", "label", "columns"}
    assert set(bare.to_json()["columns"]["a"]) == {"kind", "nullable", "dtype"}


def test_a_columns_own_reading_stands_first() -> None:
    schema = Schema.parse(
        '[reading]\ndecimal = ","\n[columns.a]\nkind = "number"\nmin = 0\nmax = 9\n'
        '[columns.b]\nkind = "number"\nmin = 0\nmax = 9\nreading = { decimal = "." }\n'
    )
    again = Schema.from_json(schema.to_json())
    assert (again.notation("a").decimal, again.notation("b").decimal) == (",", ".")
    assert Schema.parse(write_schema(schema)).notation("b").decimal == "."


@pytest.mark.parametrize("country", COUNTRIES, ids=lambda c: c.name)
def test_a_countrys_file_is_read_as_what_it_means(country: Country, tmp_path: Path) -> None:
    schema = Schema.parse(country.schema())
    rows = open_rows(country.write(tmp_path / "visits.csv", 500), schema.reading)
    found = read(pa.Table.from_batches(rows.batches(list(schema.columns))), schema)
    assert 0.03 < np.isnan(found["charges"]).mean() < 0.2
    assert 1000 < np.nanmean(found["charges"]) < 2500 and 60 < found["weight"].mean() < 90
    assert 0.4 < found["sex"].mean() < 0.5 or 0.3 < found["sex"].mean() < 0.5
    assert 0.2 < found["smoker"].mean() < 0.4
    assert not np.isnan(found["admitted"]).any() and not np.isnan(found["seen"]).any()
    apart = found["seen"] - found["admitted"] * 86_400
    assert (apart >= 0).all() and (apart < 86_400).all()  # the same day


def test_the_place_of_a_cell_does_not_depend_on_the_others() -> None:
    schema = Schema.parse(GERMANY.schema())
    texts = {"charges": ["€ 2.022,01", "abc", "k. A.", "1,5"], "admitted": ["31.12.2023", "x", "1.1.2023", ""]}
    names = list(schema.columns)
    whole = Codec(schema).encode(pa.table({n: texts.get(n, ["1"] * 4) for n in names}))
    for i in range(4):
        one = Codec(schema).encode(pa.table({n: [texts.get(n, ["1"] * 4)[i]] for n in names}))
        assert np.array_equal(one.numbers.numpy()[0], whole.numbers.numpy()[i])


def test_frames_that_guess_types_refuse_a_decimal_comma() -> None:
    import pandas as pd

    schema = Schema.parse('[reading]\ndecimal = ","\n[columns.a]\nkind = "number"\nmin = 0\nmax = 9\n')
    with pytest.raises(DataError, match="path of the file"):
        check_types(open_rows(pd.DataFrame({"a": ["1,5"]})), schema)
    check_types(open_rows(pa.table({"a": ["1,5"]})), schema)
