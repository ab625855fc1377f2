"""The share of rows that break a relation, bought by name: priced, counted row by row, told with its noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

import dpmerf
from command import dpmerf as command
from dpmerf.audit.canary import neighbours
from dpmerf.errors import PlanError
from dpmerf.methods.broken_counted import count_broken
from dpmerf.methods.presets import make_plan
from dpmerf.methods.readable_first import readable_first
from dpmerf.plan import Plan
from dpmerf.plan.embedding import codec_of
from dpmerf.plan.queries import BrokenRelations, Readability
from dpmerf.plan.queries.broken_relations import broken_shares
from dpmerf.private.measure import measure
from dpmerf.private.spark import _from_words, _to_words, binary
from dpmerf.release.verify import verify
from dpmerf.schema import Schema

TEXT = """
[columns.net]
kind = "number"
min = 0
max = 100
decimals = 1
[columns.gross]
kind = "number"
min = 0
max = 200
decimals = 1
[columns.sex]
kind = "category"
values = ["f", "m"]
[columns.ward]
kind = "category"
values = ["births", "others"]
[[relations]]
name = "tax"
rule = "gross = net * 2"
[[relations]]
rule = 'if ward = "births" then sex = "f"'
"""
SCHEMA = Schema.parse(TEXT)
ROWS = 4_000


def rows() -> pa.Table:
    """A tenth breaks the tax, which is computed and so not read otherwise; a fifth the rule."""
    net = np.arange(ROWS) % 90 + 1.0
    wrong, births = np.arange(ROWS) % 10 == 0, np.arange(ROWS) % 5 == 0
    return pa.table(
        {"net": net, "gross": net * 2 + wrong, "sex": np.full(ROWS, "m"), "ward": np.where(births, "births", "others")}
    )


def plan(*names: str, epsilon: float = 5.0) -> Plan:
    return count_broken(make_plan(SCHEMA, epsilon, 1e-5, rows=ROWS), names)


def test_a_named_relation_is_counted_and_no_other() -> None:
    made = dpmerf.release(rows(), plan("tax"))
    (found,) = broken_shares(made)
    assert found.relation == "tax" and abs(found.share - 0.1) < 5 * found.noise < 0.05
    assert "about" in found.words and "break it (±" in found.words


def test_all_of_them_beside_a_look_at_the_columns() -> None:
    both = readable_first(plan("all"), ("net", "sex"))
    assert [type(s.query) for s in both.stages[:2]] == [Readability, BrokenRelations]
    made = dpmerf.release(rows(), both)
    assert [round(b.share, 1) for b in broken_shares(made)] == [0.1, 0.2]
    assert 0.2 < made.distance(dpmerf.train(made, seed=1, steps=20).sample(ROWS)) < 50  # these two are not drawn
    assert {r.relation for r in broken_shares(made)} == {"tax", 'if ward = "births" then sex = "f"'}


def test_canaries_attack_plans_that_look_first() -> None:
    """`dpmerf audit` takes the plans that `dpmerf plan` writes: such a stage has codes of its own."""
    both = readable_first(plan("all"), ("net", "sex"))
    pair = neighbours(both)
    made = measure(pair.out, both, go_on=True)
    assert np.isfinite(pair.score(made)) and 0 < pair.true_mu(made) <= both.mu * (1 + 1e-9)


def test_it_is_paid_for_by_the_other_stages() -> None:
    with_it, without = plan("tax"), plan()
    assert with_it.mu == pytest.approx(without.mu) and not without.has(BrokenRelations)
    assert with_it.prices[0].share == pytest.approx(0.01)
    assert with_it.prices[-1].sigma > without.prices[-1].sigma
    assert Plan.from_json(json.loads(json.dumps(with_it.to_json()))) == with_it


def test_what_is_not_there_cannot_be_bought() -> None:
    with pytest.raises(PlanError, match=r"no relation 'tex'\. It has: 'tax', 'if ward"):
        plan("tex")
    with pytest.raises(PlanError, match="declares no relations"):
        count_broken(make_plan(SCHEMA.without_relations(), 1.0, 1e-5, rows=ROWS), ["tax"])


def test_encoded_rows_on_their_way_through_spark_keep_the_answers() -> None:
    codec = codec_of(priced := plan("all"), priced.query(BrokenRelations).nominal(priced))
    batch = codec.encode(rows())
    back = _from_words(binary(_to_words(batch)), codec)
    assert set(back.codes) == set(batch.codes) >= {"#broken 0", "#broken 1"}
    assert all(torch.equal(back.codes[name], code) for name, code in batch.codes.items())
    assert int(batch.codes["#broken 0"].sum()) == ROWS // 10 and int(batch.codes["#broken 1"].sum()) == ROWS // 5


def test_the_command_says_it_and_the_report_shows_it(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TEXT)
    import pyarrow.csv as pc

    pc.write_csv(rows(), tmp_path / "rows.csv")
    words = "synth rows.csv --schema s.toml --epsilon 5 --steps 10 -o out --count-broken tax"
    done = command(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "relation 'tax': about" in done.stderr
    assert verify(tmp_path / "out" / "release").release.plan.has(BrokenRelations)
    assert "rows of the table, bought" in (tmp_path / "out" / "report.html").read_text()
