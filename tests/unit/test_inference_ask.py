"""Answers: right numbers, honest errors, and one clear sentence for questions that cannot be answered."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpmerf
from conftest import mixed_rows
from dpmerf.demo import hospital
from dpmerf.errors import AnswerError
from dpmerf.inference.evidence import Evidence, evidence
from dpmerf.inference.questions import Condition, NoColumn, question
from dpmerf.inference.units import explained, unit_of, writing
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from fixed_noise import SeededNoise

ROWS, RELEASES = 20_000, 300


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return mixed_rows(ROWS, seed=5)


@pytest.fixture(scope="module")
def known(mixed_schema: Schema, rows: pa.Table) -> Evidence:
    return evidence(measure(rows, make_plan(mixed_schema, 3.0, 1e-5, rows=ROWS), noise=SeededNoise(1)))


def near(line, truth: float, errors: float = 5.0) -> None:
    assert line.estimate is not None and line.low <= line.high
    assert abs(line.estimate - truth) <= errors * line.error + 1e-9, (line, truth)


def test_shares_counts_and_crosstabs(known: Evidence, rows: pa.Table) -> None:
    frame = rows.to_pandas()
    for line in dpmerf.answer(known, "share", "ill", by="ward").lines:
        if line.group["ward"] != "else":
            near(line, frame[frame.ward == line.group["ward"]].ill.mean())
    table = dpmerf.answer(known, "crosstab", by=("ward", "ill"))
    assert sum(x.estimate for x in table.lines) == pytest.approx(ROWS)
    for line in table.lines:
        near(line, ((frame.ward == line.group["ward"]) & (frame.ill == line.group["ill"])).sum())
    near(
        dpmerf.answer(known, "count", where={"age": (61, 100), "ill": True}).lines[0],
        ((frame.age > 60) & frame.ill).sum(),
    )
    shares = dpmerf.answer(known, "share", "ward").lines
    assert sum(x.estimate for x in shares) == pytest.approx(1)
    whole = dpmerf.answer(known, "count").lines[0]
    assert whole.low == pytest.approx(ROWS) and whole.high == pytest.approx(ROWS)


def test_numbers(known: Evidence, rows: pa.Table) -> None:
    frame = rows.to_pandas()
    near(dpmerf.answer(known, "mean", "age").lines[0], frame.age.mean())
    near(dpmerf.answer(known, "mean", "dose").lines[0], frame.dose.mean())  # nulls do not count
    near(dpmerf.answer(known, "sum", "dose").lines[0], frame.dose.sum())
    near(dpmerf.answer(known, "variance", "age").lines[0], frame.age.var())
    near(dpmerf.answer(known, "quantile", "age", q=0.9).lines[0], frame.age.quantile(0.9))
    for line in dpmerf.answer(known, "mean", "dose", by="ward").lines[:3]:
        near(line, frame[frame.ward == line.group["ward"]].dose.mean())
    near(dpmerf.answer(known, "mean", "age", where={"ill": True}).lines[0], frame[frame.ill].age.mean())
    days = (np.asarray(pc.cast(rows["seen"], pa.date32())).astype("datetime64[D]").astype(int)).mean()
    near(dpmerf.answer(known, "mean", "seen").lines[0], days)


def test_a_difference_uses_the_covariance(known: Evidence, rows: pa.Table) -> None:
    frame = rows.to_pandas()
    found = dpmerf.answer(known, "mean", "dose", by="ward")
    gap = found.difference({"ward": "c"}, {"ward": "a"})
    near(gap, frame[frame.ward == "c"].dose.mean() - frame[frame.ward == "a"].dose.mean())
    i, j = (next(k for k, x in enumerate(found.lines) if x.group["ward"] == w) for w in "ca")
    c = found.covariance
    assert (gap.high - gap.low) / 2 / 1.959964 == pytest.approx(math.sqrt(c[i, i] + c[j, j] - 2 * c[i, j]), rel=1e-4)


def test_the_population_adds_sampling(known: Evidence) -> None:
    here, there = (dpmerf.answer(known, "share", "ill", population=p).lines[0] for p in (False, True))
    assert here.sampling_error is None and there.privacy_error == here.privacy_error
    assert there.sampling_error == pytest.approx(math.sqrt(here.estimate * (1 - here.estimate) / ROWS), rel=0.05)
    assert there.high - there.low > here.high - here.low


def test_intervals_stay_in_range_and_an_empty_group_has_none(known: Evidence) -> None:
    rare = next(x for x in dpmerf.answer(known, "share", "ward").lines if x.group["ward"] == "else")
    assert rare.low >= 0
    found = next(x for x in dpmerf.answer(known, "mean", "age", by="ward").lines if x.group["ward"] == "else")
    assert found.estimate is None and "too few rows" in found.note
    quantile = next(x for x in dpmerf.answer(known, "quantile", "age", by="ward").lines if x.group["ward"] == "else")
    assert quantile.estimate is None


def test_a_cut_through_a_cell_widens_the_interval(known: Evidence, rows: pa.Table) -> None:
    frame = rows.to_pandas()
    found = dpmerf.answer(known, "count", where={"age": (33, 34), "ward": "a"})
    near(found.lines[0], ((frame.age.between(33, 34)) & (frame.ward == "a")).sum())
    assert found.lines[0].inside_error > 0 and any("cuts through" in note for note in found.notes)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"what": "mode", "column": "age"}, "cannot be asked for"),
        ({"what": "mean", "column": "weight"}, "no column 'weight'"),
        ({"what": "mean", "column": "key"}, "is an id"),
        ({"what": "mean", "column": "ward"}, "needs numbers"),
        ({"what": "quantile", "column": "ward"}, "needs numbers"),
        ({"what": "quantile", "column": "age", "q": 1.5}, "between 0 and 1"),
        ({"what": "share", "column": "ward", "value": "nowhere"}, "does not declare"),
        ({"what": "count", "where": {"ward": "nowhere"}}, "does not declare"),
        ({"what": "count", "where": {"age": (50, 20)}}, "none"),
        ({"what": "count", "where": {"ward": []}}, "lists no value"),
        ({"what": "count", "by": ("age", "ward", "dose", "ill")}, "rests on the model"),
        ({"what": "crosstab"}, "needs columns"),
        ({"what": "mean"}, "name the column"),
        ({"what": "count", "by": ("ward", "ward")}, "once"),
        ({"what": "mean", "column": "age", "value": 3}, "belongs to a share"),
        ({"what": "count", "confidence": 0.5}, "choose one of"),
    ],
)
def test_bad_questions_get_one_clear_sentence(known: Evidence, asked: dict, says: str) -> None:
    with pytest.raises(AnswerError, match=says):
        dpmerf.answer(known, **asked)


@pytest.mark.slow
def test_coverage_over_many_releases(mixed_schema: Schema) -> None:
    """95 % intervals, this table and the population. Rows and noise are from seeds: it cannot fail by chance.

    Over 1,800 releases with real noise, each kind was covered in 94 to 96 of 100. Errors a quarter too small show.
    """
    names = ("share", "mean", "ill")
    outcomes: dict[tuple[str, bool], list[float]] = {(name, about): [] for name in names for about in (False, True)}
    everybody = mixed_rows(200_000, seed=9).to_pandas()
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=4_000)
    for run in range(RELEASES):
        drawn = everybody.sample(4_000, random_state=run)
        known = evidence(measure(pa.Table.from_pandas(drawn, preserve_index=False), plan, noise=SeededNoise(run)))
        for population, truth in ((False, drawn), (True, everybody)):
            share = dpmerf.answer(known, "share", "ward", value="b", population=population)
            mean = dpmerf.answer(known, "mean", "age", population=population)
            ill = dpmerf.answer(known, "mean", "age", where={"ill": True}, population=population)
            right = (truth.ward == "b").mean(), truth.age.mean(), truth[truth.ill].age.mean()
            for name, answer, exact in zip(names, (share, mean, ill), right, strict=True):
                line = answer.lines[0]
                end = line.high if exact > line.estimate else line.low
                outcomes[name, population].append((exact - line.estimate) / (end - line.estimate))
    covered = {key: np.mean(np.array(found) <= 1) for key, found in outcomes.items()}
    everything = np.concatenate([*outcomes.values()])
    assert 0.93 < np.mean(everything <= 1) < 0.97, covered
    assert min(covered.values()) > 0.89, covered
    assert np.mean(everything <= 0.75) < 0.9, "errors a quarter too small would not be seen"


def test_a_table_with_relations_answers_too() -> None:
    """A value that a relation would mend, were the other columns empty, keeps its own place."""
    schema, rows = Schema.load(hospital.SCHEMA), hospital.hospital(5_000, 1)
    found = evidence(measure(rows, make_plan(schema, 10.0, 1e-5, rows=5_000), noise=SeededNoise(1)))
    frame = rows.to_pandas()
    for ward in ("maternity", "surgery"):
        near(dpmerf.answer(found, "count", where={"ward": ward}).lines[0], (frame.ward == ward).sum())
    for line in dpmerf.answer(found, "share", "readmitted", by="ward").lines:
        near(line, frame[frame.ward == line.group["ward"]].readmitted.mean())
    assert dpmerf.answer(found, "mean", "stay").lines[0].estimate
    with pytest.raises(AnswerError, match=r"'discharged_at' is not measured by itself: 'stay' is learned instead"):
        dpmerf.answer(found, "mean", "discharged_at")
    stay = dpmerf.answer(found, "quantile", "stay")
    assert stay.unit == "seconds" and stay.to_json()["unit"] == "seconds"
    real = ((frame.discharged_at - pd.to_datetime(frame.admitted)).dt.total_seconds()).quantile(0.5)
    assert writing(stay.unit, "quantile", None, real).value(real) == f"{real / 86_400:.4g}"
    assert writing(stay.unit, "quantile", None, real).unit == "days"
    long = dpmerf.answer(found, "count", where=[Condition("stay", None, "5d")]).lines[0]
    near(long, ((frame.discharged_at - pd.to_datetime(frame.admitted)) >= pd.Timedelta(days=5)).sum())
    with pytest.raises(AnswerError, match="write its unit, for example 5d"):
        dpmerf.answer(found, "count", where={"stay": (5, 9)})
    assert str(dpmerf.answer(found, "count", by="stay").lines[0].group["stay"]).startswith("2h")


def test_computed_and_joined_columns_say_what_to_ask() -> None:
    text = '[columns.a]\nkind = "flag"\n[columns.b]\nkind = "flag"\n[[relations]]\nrule = "b = (a = false)"\n'
    declared = Schema.parse(text)
    assert "follows from other columns by relation 1" in str(explained(declared, NoColumn("b", "")))
    day = Schema.parse('[columns.d]\nkind = "date"\nfirst = 2020-01-01\nlast = 2020-12-31\n')
    asked = question(day, "mean", "d")
    told = writing(unit_of(day, asked), "mean", day.columns["d"], 0.0)
    assert told.value(18_262.0) == "2020-01-01" and told.error_unit == "days"
