"""Integer sums: the same bits for the same rows, however they are ordered, cut, stored, threaded or capped."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmerf.accounting.unit import Unit
from dpmerf.encoding.codec import Variable
from dpmerf.errors import DataError
from dpmerf.features.algebra import constant, of, onehot
from dpmerf.features.circle import cos_sin
from dpmerf.features.fourier import Fourier
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan, View
from dpmerf.private import contribute
from dpmerf.private.contribute import Sums
from dpmerf.private.local import spread, sum_locally
from dpmerf.private.measure import measure
from dpmerf.private.persons import PersonCap, Tags
from dpmerf.progress import SILENT
from dpmerf.schema import Schema
from dpmerf.sources.rows import Rows, open_rows
from fixed_noise import FixedNoise

SCHEMA = Schema.parse(
    """
label = "ward"
[columns.who]
kind = "id"
[columns.x]
kind = "number"
min = -3
max = 3
nullable = true
[columns.y]
kind = "number"
min = 0
max = 1
[columns.k]
kind = "integer"
min = 0
max = 9
[columns.ward]
kind = "category"
values = ["a", "b", "c"]
[columns.ok]
kind = "flag"
"""
)
N = 5_000


def _table(n: int = N, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "who": rng.integers(0, n // 5, n),
            "x": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.1),
            "y": rng.random(n),
            "k": rng.integers(0, 10, n),
            "ward": pa.array(["a", "b", "c"]).take(pa.array(rng.integers(0, 3, n))),
            "ok": rng.random(n) < 0.3,
        }
    )


TABLE = _table()


class Cut(Rows):
    """A table in batches of a given size."""

    def __init__(self, table: pa.Table, size: int) -> None:
        self.table, self.size = table, size

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return {f.name: f.type for f in self.table.schema}

    @property
    def stored_count(self) -> int | None:
        return self.table.num_rows

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(columns).combine_chunks().to_batches(max_chunksize=self.size)


def _stages(preset: str, unit: Unit | None = None) -> list[tuple[Plan, object, View]]:
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=N, preset=preset, unit=unit)
    release = measure(TABLE, plan, noise=FixedNoise())
    return [(plan, release.embedding(stage).phi, release.embedding(stage).view) for stage in plan.stages]


STAGES = {preset: _stages(preset) for preset in ("default", "paper")}


def _sums(data: object, preset: str) -> list[torch.Tensor]:
    found = []
    for plan, phi, view in STAGES[preset]:
        total, n = sum_locally(open_rows(data), plan, phi, view, SILENT, "")  # type: ignore[arg-type]
        assert n == N
        found.append(total)
    return found


EXPECTED = {preset: _sums(TABLE, preset) for preset in STAGES}


def _same(data: object, preset: str) -> bool:
    return all(torch.equal(a, b) for a, b in zip(_sums(data, preset), EXPECTED[preset], strict=True))


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("size", [7, 4096])
def test_batches_of_any_size(preset: str, size: int) -> None:
    assert _same(Cut(TABLE, size), preset)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_rows_one_by_one_and_shuffled(preset: str) -> None:
    few = TABLE.slice(0, 300)
    shuffled = few.take(pa.array(np.random.default_rng(1).permutation(300)))
    for plan, phi, view in STAGES[preset]:
        whole, _ = sum_locally(Cut(few, 300), plan, phi, view, SILENT, "")  # type: ignore[arg-type]
        single, _ = sum_locally(Cut(shuffled, 1), plan, phi, view, SILENT, "")  # type: ignore[arg-type]
        assert torch.equal(whole, single)


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(preset: str, threads: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert _same(Cut(TABLE, 640), preset)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_files_folders_and_frames(preset: str, tmp_path: Path) -> None:
    shuffled = TABLE.take(pa.array(np.random.default_rng(2).permutation(N)))
    for name, table in (("whole", TABLE), ("shuffled", shuffled)):
        (tmp_path / name).mkdir()
        for i, start in enumerate(range(0, N, 1300)):
            pq.write_table(table.slice(start, 1300), tmp_path / name / f"{i}.parquet")
    pq.write_table(TABLE, tmp_path / "one.parquet", row_group_size=999)
    with pa.OSFile(str(tmp_path / "one.arrow"), "wb") as file, pa.ipc.new_file(file, TABLE.schema) as writer:
        writer.write_table(shuffled, max_chunksize=777)
    pc.write_csv(shuffled, tmp_path / "one.csv")
    raw = (tmp_path / "one.csv").read_bytes()
    (tmp_path / "two.csv.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "three.csv.zst").write_bytes(pa.compress(raw, codec="zstd", asbytes=True))
    for path in sorted(tmp_path.iterdir()):
        assert _same(path, preset), path.name
    assert _same(shuffled.to_pandas(), preset)
    polars = pytest.importorskip("polars")
    assert _same(polars.from_arrow(shuffled), preset)
    assert _same(polars.from_arrow(shuffled).lazy(), preset)


def test_duckdb_relations() -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = TABLE
    assert frame.num_rows == N
    assert _same(duckdb.sql("select * from frame"), "default")


@given(st.permutations(range(40)), st.integers(1, 40), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_order_and_cuts_never_matter(order: list[int], size: int, seed: int) -> None:
    table = _table(40, seed)
    for preset in STAGES:
        for plan, phi, view in STAGES[preset]:
            one, two = Sums(phi), Sums(phi)  # type: ignore[arg-type]
            one.add(view(plan.codec.encode(table)))
            for batch in table.take(pa.array(order)).combine_chunks().to_batches(max_chunksize=size):
                two.add(view(plan.codec.encode(batch)))
            assert torch.equal(one.total(), two.total())


@pytest.mark.parametrize(("columns", "dim"), [(1, 2), (3, 14), (5, 1002), (784, 200)])
def test_a_row_gives_the_same_bits_at_any_place_of_a_chunk(columns: int, dim: int) -> None:
    fourier = Fourier.draw(columns, dim, (0.05, 1.0), seed=3)
    rng = torch.Generator().manual_seed(4)
    row = torch.rand(1, columns, generator=rng, dtype=torch.float64)
    alone = fourier(row)
    for n, place in ((1, 0), (2, 1), (3, 0), (5, 4), (64, 63), (257, 100), (1000, 999)):
        company = torch.rand(n, columns, generator=rng, dtype=torch.float64)
        company[place] = row[0]
        assert torch.equal(fourier(company)[place], alone[0])
        strided = torch.rand(n, 2 * columns, generator=rng, dtype=torch.float64)[:, ::2]
        strided[place] = row[0]
        assert torch.equal(fourier(strided)[place], alone[0])


def test_cosines_are_close_and_never_too_long() -> None:
    angles = torch.linspace(-5e4, 5e4, 100_001, dtype=torch.float64)[:, None]
    values = cos_sin(angles)
    assert (values - torch.cat([angles.cos(), angles.sin()], dim=1)).abs().max() < math.pi / 2**15
    assert values.square().sum(dim=1).max() <= 1.0


def test_margins_equal_counted_tables() -> None:
    a, b, c = Variable("a", 2), Variable("b", 3), Variable("c", 4)
    phi = 0.5 * onehot(a, b, c) + onehot(c, a) + 2.0 * onehot(b) + constant() + onehot(c)
    rng = torch.Generator().manual_seed(0)
    codes = {v.name: torch.randint(v.size, (100,), generator=rng) for v in (a, b, c)}
    batch = contribute.Batch(torch.zeros(100, 0, dtype=torch.float64), codes)
    sums = Sums(phi)
    sums.add(batch)
    assert torch.equal(sums.total(), (phi(batch).sum(dim=0) * 2**24).long())


@pytest.mark.parametrize("cells", [2, 500])
def test_runs_and_scattered_adds_agree(cells: int) -> None:
    label = Variable("label", cells)
    phi = of(Fourier.draw(3, 20, (1.0,), seed=0)) * onehot(label)
    rng = torch.Generator().manual_seed(0)
    batch = contribute.Batch(
        torch.rand(900, 3, generator=rng, dtype=torch.float64), {"label": torch.randint(cells, (900,), generator=rng)}
    )
    sums = Sums(phi)
    sums.add(batch)
    dense = phi.blocks[0].dense
    assert dense is not None
    whole = contribute.bounded(dense(batch.numbers), phi.blocks[0]).long()
    assert torch.equal(sums.total(), torch.zeros(cells, 20).long().index_add_(0, batch.codes["label"], whole).flatten())


def test_sums_refuse_to_overflow() -> None:
    sums = Sums(constant())
    sums.merge(torch.tensor([2**60]), contribute.MOST_ROWS)
    with pytest.raises(DataError, match="at most"):
        sums.merge(torch.tensor([1]), 1)
    assert contribute.MOST_ROWS * 2**26 < 2**63


@pytest.mark.parametrize("most", [1, 3])
def test_person_caps_choose_the_same_rows_in_any_order(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmerf.private.persons.os.urandom", lambda n: b"k" * n)
    monkeypatch.setattr("dpmerf.private.persons._HELD", 100)
    doubled = pa.concat_tables([TABLE.slice(0, 800), TABLE.slice(0, 300), TABLE.slice(0, 300)])
    expected = None
    for seed, size in ((0, 10_000), (1, 7), (2, 333)):
        order = np.random.default_rng(seed).permutation(doubled.num_rows)
        for plan, phi, view in _stages("paper", Unit("who", most)):
            found = sum_locally(Cut(doubled.take(pa.array(order)), size), plan, phi, view, SILENT, "")  # type: ignore[arg-type]
            expected = expected or found
            assert torch.equal(found[0], expected[0]) and found[1] == expected[1]
    counts = np.unique(doubled["who"].to_numpy(), return_counts=True)[1]
    assert expected is not None and expected[1] == int(np.minimum(counts, most).sum())


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(1, 20),
)
@settings(max_examples=200, deadline=None)
def test_the_cap_takes_the_smallest_ranks(entries: list[tuple[int, int, int]], most: int, size: int) -> None:
    """Against a plain implementation, with names that share their first half and ranks that repeat."""
    wanted: list[tuple[int, int, int]] = []
    for person in {e[:2] for e in entries}:
        wanted += sorted(e for e in entries if e[:2] == person)[:most]
    parts = [Tags(*np.array(entries[i : i + size], np.uint64).T) for i in range(0, len(entries), size)]
    cap = PersonCap(most)
    for part in parts:
        cap.see(part)
    chosen = cap.chosen()
    taken = []
    for i, part in enumerate(parts):
        taken += [entries[i * size + j] for j in chosen.take(part).tolist()]
    assert sorted(taken) == sorted(wanted)


def test_nameless_rows_are_one_person() -> None:
    table = TABLE.slice(0, 50).set_column(0, "who", pa.array([None, ""] * 25))
    ((plan, phi, view),) = _stages("paper", Unit("who", 2))
    assert sum_locally(Cut(table, 9), plan, phi, view, SILENT, "")[1] == 2  # type: ignore[arg-type]


def test_an_error_in_any_thread_stops_all() -> None:
    def broken() -> Iterator[int]:
        yield from range(100)
        raise DataError("the file is gone")

    with pytest.raises(DataError, match="gone"):
        spread(broken(), [lambda item: None] * 2, lambda item: None)

    def fail(item: int) -> None:
        if item == 5:
            raise DataError("no")

    with pytest.raises(DataError, match="no"):
        spread(iter(range(10**9)), [fail] * 3, lambda item: None)
