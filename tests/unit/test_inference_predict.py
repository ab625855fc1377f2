"""What a plan says about answers comes true, and the budget for a wanted sharpness is found."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest

import dpmerf
from command import dpmerf as command
from conftest import MIXED, mixed_rows
from dpmerf.errors import AnswerError
from dpmerf.inference.evidence import evidence
from dpmerf.inference.predict import in_words, sharpness
from dpmerf.inference.want import Want, least_epsilon
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from fixed_noise import SeededNoise


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_what_was_foretold_is_what_answers_have(mixed_schema: Schema, neighbours: str) -> None:
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=20_000, unit=dpmerf.Unit.parse("row", neighbours))
    foretold = sharpness(plan)
    shares, means, cells = [], [], {}
    for seed in range(7):  # which tables are measured again, and how finely, depends on the noise
        e = evidence(measure(mixed_rows(20_000), plan, noise=SeededNoise(seed)))
        errors = [[x.privacy_error for x in dpmerf.answer(e, "count", by=name).lines] for name in ("ward", "ill")]
        shares.append(1.96 * np.median([np.median(x) for x in errors]) / 20_000)
        means.append(1.96 * dpmerf.answer(e, "mean", "age").lines[0].privacy_error)
        cells = cells or {n: x.numpy() for n, x in e.grid.encode(e.codec.encode(mixed_rows(20_000))).items()}
    told = {n: np.bincount(x, minlength=e.size(n, "fine")).astype(float) for n, x in cells.items()}
    low, high = foretold.spans["age"]
    assert foretold.share == pytest.approx(np.median(shares), rel=0.15)
    assert sharpness(plan, told).means["age"] == pytest.approx(np.median(means), rel=0.15)
    assert 0.85 * low <= np.median(means) <= 1.15 * high and low <= foretold.means["age"] <= high


def test_more_budget_and_more_rows_are_sharper(mixed_schema: Schema) -> None:
    # all with pairs: where too little is left for them (ε = 0.5), single columns get their budget and are sharper
    at = [sharpness(make_plan(mixed_schema, e, 1e-5, rows=n)) for e, n in ((1, 5_000), (2, 5_000), (2, 20_000))]
    assert at[0].share > at[1].share > at[2].share and at[0].means["age"] > at[1].means["age"] > at[2].means["age"]
    assert at[0].coefficient > at[2].coefficient


def test_the_least_budget_is_found(mixed_schema: Schema) -> None:
    for text in ("share ± 0.5 points", "mean of age +- 0.4", "mean ± 1 %", "coefficient ± 0.1"):
        want = Want.parse(text)
        plan = least_epsilon(want, lambda e: make_plan(mixed_schema, e, 1e-5, rows=20_000))
        less = make_plan(mixed_schema, 0.95 * plan.epsilon, 1e-5, rows=20_000)
        assert want.reached(sharpness(plan)) <= want.half * 1.01 and want.reached(sharpness(less)) > want.half, text


def test_what_cannot_be_wanted(mixed_schema: Schema) -> None:
    for text in ("share", "median ± 3", "share of ward ± 1", "mean ± -1", "mean ± x", "share ± 0"):
        with pytest.raises(AnswerError, match="cannot be read"):
            Want.parse(text)
    with pytest.raises(AnswerError, match="no mean of 'ward'"):
        Want.parse("mean of ward ± 1").reached(sharpness(make_plan(mixed_schema, 1.0, 1e-5, rows=1_000)))
    with pytest.raises(AnswerError, match="no ε"):
        least_epsilon(Want.parse("share ± 0.0001 points"), lambda e: make_plan(mixed_schema, e, 1e-5, rows=500))


def test_plan_says_it(tmp_path) -> None:
    (tmp_path / "schema.toml").write_text(MIXED)
    done = command("plan", "schema.toml", "--want", "share ± 0.5 points", "--rows", 20_000, cwd=tmp_path)
    assert done.returncode == 0 and "a share of 10% will be known to ± 0." in done.stdout, done.stderr
    found = json.loads(command("plan", "schema.toml", "--epsilon", 1, "--json", cwd=tmp_path).stdout)
    assert found["half_widths"]["share"] > 0
    assert command("plan", "schema.toml", cwd=tmp_path).returncode == 2


def test_plans_without_tables(mixed_schema: Schema) -> None:
    paper = sharpness(make_plan(mixed_schema, 1.0, 1e-5, rows=5_000, preset="paper"))
    assert paper.share is not None and paper.coefficient is None
    image = Schema.parse('[columns.x]\nkind = "image"\nheight = 8\nwidth = 8')
    assert sharpness(make_plan(image, 1.0, 1e-5, rows=5_000)).share is None


def test_answers_of_the_paper_preset(mixed_schema: Schema, mixed_table: pa.Table) -> None:
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=4_000, preset="paper")
    release = measure(mixed_table, plan, noise=SeededNoise())
    share = dpmerf.answer(release, "share", "ward", value="a").lines[0]
    assert share.low < 0.5 < share.high
    with pytest.raises(AnswerError, match="rests on the model"):
        dpmerf.answer(release, "mean", "age")


def test_half_widths_of_days_are_told_in_days() -> None:
    from dpmerf.demo import hospital

    made = make_plan(Schema.load(hospital.SCHEMA), 1.0, 1e-5, rows=20_000)
    sharp = sharpness(made)
    assert sharp.units["admitted"] == ("days", 1.0) and "age" not in sharp.units
    assert re.search(r"admitted ± \S+ to \S+ days", "; ".join(in_words(sharp)))
