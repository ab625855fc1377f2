import datetime as dt
import tomllib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dpmerf.demo import hospital as demo_data

ROWS = 20_000
DECLARED = tomllib.loads(demo_data.SCHEMA.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return demo_data.hospital()


def rate(table: pa.Table, chosen: pa.ChunkedArray) -> float:
    return pc.mean(table.filter(chosen)["readmitted"].cast(pa.int8())).as_py()


def test_same_seed_same_table_other_seed_another(table):
    assert table.num_rows == ROWS
    assert table.equals(demo_data.hospital(ROWS, seed=0))
    assert not table.equals(demo_data.hospital(ROWS, seed=1))


@pytest.mark.parametrize("rows", [1, 2, 37, 1000])
def test_any_number_of_rows(rows):
    assert demo_data.hospital(rows=rows, seed=3).num_rows == rows


def test_no_rows_is_an_error():
    with pytest.raises(ValueError, match="rows must be 1 or more"):
        demo_data.hospital(rows=0)


def test_columns_are_those_of_the_schema(table):
    assert table.column_names == list(DECLARED["columns"])
    assert DECLARED["label"] == "readmitted"


@pytest.mark.parametrize("name", DECLARED["columns"])
def test_every_value_is_inside_its_declaration(table, name):
    column, declared = table[name], DECLARED["columns"][name]
    kind = declared["kind"]
    assert column.null_count == 0 or declared.get("nullable", False)
    known = column.drop_null()
    if kind == "category":
        assert set(known.unique().to_pylist()) == {*declared["values"], *filter(None, [declared.get("other")])}
    elif kind == "flag":
        assert pa.types.is_boolean(column.type) and len(known.unique()) == 2
    elif kind in ("integer", "number"):
        bounds = pc.min_max(known).as_py()
        assert declared["min"] <= bounds["min"] < bounds["max"] <= declared["max"]
        assert pa.types.is_integer(column.type) == (kind == "integer")
        if kind == "number":
            assert known.equals(pc.round(known, declared["decimals"]))
    elif kind in ("date", "timestamp"):
        bounds = pc.min_max(known).as_py()
        assert declared["first"] <= bounds["min"] < bounds["max"] <= declared["last"]
        if kind == "timestamp":
            step = dt.timedelta(seconds=declared["step"])
            assert all((value - declared["first"]) % step == dt.timedelta(0) for value in known.to_pylist())
    else:
        assert kind == "id"


def test_the_outcome_is_rare_and_depends_on_the_columns(table):
    assert 0.05 < rate(table, pc.is_valid(table["readmitted"])) < 0.07
    diabetes, inflamed = table["diabetes"], pc.greater(table["lab_crp"], 40.0)
    assert rate(table, pc.greater(table["age"], 75)) > 2 * rate(table, pc.less(table["age"], 50))
    assert rate(table, pc.equal(table["ward"], "oncology")) > 2 * rate(table, pc.equal(table["ward"], "maternity"))
    # An interaction: inflammation matters much more with diabetes than without.
    with_it = rate(table, pc.and_(diabetes, inflamed)) - rate(table, pc.and_(diabetes, pc.invert(inflamed)))
    without = pc.invert(diabetes)
    alone = rate(table, pc.and_(without, inflamed)) - rate(table, pc.and_(without, pc.invert(inflamed)))
    assert with_it > 2 * alone > 0


def test_nulls_are_where_they_are_declared(table):
    share = {name: table[name].null_count / ROWS for name in table.column_names}
    assert 0.06 < share["weight_kg"] < 0.11
    for name in ("discharged_at", "systolic", "smoker"):
        assert 0.01 < share[name] < 0.25
    assert sum(value > 0 for value in share.values()) == 4


def test_patients_come_several_times_and_stay_themselves(table):
    visits = pc.value_counts(table["patient_id"].combine_chunks()).field("counts")
    assert 5_000 < len(visits) < 15_000
    assert pc.max(visits).as_py() > 10
    persons = table.group_by("patient_id").aggregate([("sex", "count_distinct"), ("insurance", "count_distinct")])
    assert set(persons["sex_count_distinct"].to_pylist()) == {1}
    assert set(persons["insurance_count_distinct"].to_pylist()) == {1}
    assert len(table["visit_id"].unique()) == ROWS
    firsts = pc.equal(table["visits_before"], 0)
    assert 0.4 < pc.mean(firsts.cast(pa.int8())).as_py() < 0.7  # the heavy atom


def test_dates_are_in_order(table):
    known = table.filter(pc.is_valid(table["discharged_at"]))
    assert pc.all(pc.greater_equal(known["discharged_at"].cast(pa.date32()), known["admitted"])).as_py()
    days = table["admitted"].to_pylist()
    assert days == sorted(days)


def test_write_puts_table_and_schema_side_by_side(tmp_path, table):
    data, schema = demo_data.write(tmp_path / "hospital.parquet")
    assert pq.read_table(data).equals(table)
    assert schema == tmp_path / "hospital.toml"
    assert tomllib.loads(schema.read_text(encoding="utf-8")) == DECLARED
