"""Broken and hostile artefacts, schemas, plans, tables and ledgers: a clear refusal, never a crash, a hang or a leak.

100,000 cases in the full run; a part of them otherwise. Every case is a number: it can be run again alone.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch

from dpmerf.accounting.events import Gaussian
from dpmerf.accounting.unit import Unit
from dpmerf.encoding.codec import Codec
from dpmerf.errors import DpmerfError, LedgerError
from dpmerf.model import Model
from dpmerf.plan import Plan, digest
from dpmerf.plan.known import Known
from dpmerf.private.contribute import Sums
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.release.verify import verify
from dpmerf.schema import Schema
from dpmerf.sources.npz import Npz
from dpmerf.sources.rows import open_rows
from dpmerf.train import train
from privacy.fuzz import bytes_of, dumped, json_of, nested
from privacy.variants import CATEGORIES, FULL, LABEL, NUMBERS, ODD, ROW, VARIANTS, preset, schema, worst

pytestmark = pytest.mark.privacy
SHARE = 1.0 if FULL else 0.02  # of 100,000
SLOW = 20.0  # seconds that no single case may take, on a busy machine
SECRET = "Zq7-planted-cell"


def cases(count: int) -> range:
    return range(max(20, int(count * SHARE)))


def attempt(number: int, action: Callable[[], object]) -> str:
    """Run one case: it may succeed or be refused, quickly and without quoting the planted cell."""
    start = time.monotonic()
    try:
        action()
        outcome = "accepted"
    except DpmerfError as problem:
        assert SECRET not in str(problem), f"case {number} quotes a cell"
        outcome = "refused"
    except Exception as problem:
        raise AssertionError(f"case {number}: {type(problem).__name__}") from problem
    assert time.monotonic() - start < SLOW, f"case {number} hangs"
    return outcome


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A release and a model of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    found = {}
    for name in ("heterogeneous", "discover + tables"):
        plan = VARIANTS[name](1.0)
        release = measure(worst(plan).out, plan)
        place = folder / name.replace(" ", "-")
        release.save(place / "release")
        train(release, seed=0, steps=2).save(place / "model")
        plan.save(place / "plan.json")
        found[name] = place
    return found


def copied(source: Path, target: Path, files: dict[str, bytes]) -> Path:
    """A copy with some files replaced; only what differs from the copy before is written."""
    target.mkdir(exist_ok=True)
    for file in source.iterdir():
        content, place = files.get(file.name), target / file.name
        if content is not None or not place.exists() or place.stat().st_mtime_ns != file.stat().st_mtime_ns:
            place.write_bytes(file.read_bytes() if content is None else content)
            stamp = file.stat().st_mtime_ns if content is None else 0
            os.utime(place, ns=(stamp, stamp))
    return target


@pytest.mark.parametrize("kind", ["heterogeneous", "discover + tables"])
def test_damaged_artefacts(kind: str, artefacts: dict[str, Path], tmp_path: Path) -> None:
    """Bytes changed anywhere: always refused, unless the change is undone by itself."""
    for number in cases(6_000):
        rng = random.Random(number)
        part = rng.choice(["release", "model"])
        source = artefacts[kind] / part
        name = rng.choice([f.name for f in sorted(source.iterdir()) if f.name != "CARD.md"])
        raw = (source / name).read_bytes()
        broken = bytes_of(raw, rng)
        place = copied(source, tmp_path / part, {name: broken})
        load = verify if part == "release" else Model.load
        outcome = attempt(number, lambda load=load, place=place: load(place))
        if outcome == "accepted":
            meaning = json.loads if name.endswith(".json") else bytes
            assert meaning(broken) == meaning(raw), f"case {number}: a changed {name} was accepted"


@pytest.mark.parametrize("kind", ["heterogeneous", "discover + tables"])
def test_hostile_releases_with_hashes_made_to_fit(kind: str, artefacts: dict[str, Path], tmp_path: Path) -> None:
    """Someone who can compute hashes too: accepted only if the guarantee follows from the plan all the same."""
    source = artefacts[kind] / "release"
    document = json.loads((source / "release.json").read_bytes())
    tensors = safetensors.torch.load((source / "sums.safetensors").read_bytes())
    for number in cases(4_000):
        rng = random.Random(number)
        hostile = json_of(document, rng)
        files = {}
        if rng.random() < 0.2:
            odd = {k: t.to(rng.choice([torch.int64, torch.float32, torch.int32])) for k, t in tensors.items()}
            odd = {rng.choice([k, "../" + k, "", k + "x"]): t[: rng.choice([None, 0, 1])] for k, t in odd.items()}
            files["sums.safetensors"] = safetensors.torch.save({k: t.clone() for k, t in odd.items()})
            hostile["sums_sha256"] = hashlib.sha256(files["sums.safetensors"]).hexdigest()
        if rng.random() < 0.9:
            with contextlib.suppress(ValueError, TypeError):
                hostile["plan_hash"] = digest(hostile.get("plan"))
                hostile["hash"] = digest({k: v for k, v in hostile.items() if k != "hash"})
        place = copied(source, tmp_path / "release", {**files, "release.json": dumped(hostile)})
        outcome = attempt(number, lambda place=place: verify(place))
        if outcome == "accepted":
            release = verify(place).release
            assert release.guarantee()["mu"] == pytest.approx(release.plan.mu)
            attempt(number, release.card)
    assert not Path("/tmp/dpmerf-pwned").exists()


def test_hostile_plans(artefacts: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for number in cases(10_000):
        rng = random.Random(number)
        source = artefacts[rng.choice(sorted(artefacts))] / "plan.json"
        document = json.loads(source.read_bytes())
        if rng.random() < 0.4:
            path.write_bytes(bytes_of(source.read_bytes(), rng))
        else:
            document["plan"] = json_of(document["plan"], rng)
            with contextlib.suppress(ValueError, TypeError):
                document["hash"] = digest(document["plan"])
            path.write_bytes(dumped(document))

        def price() -> None:
            plan = Plan.load(path)
            if max((getattr(s.query, "dim", 0) for s in plan.stages), default=0) < 10_000:  # else merely large
                plan.summary()

        attempt(number, price)


def test_deep_and_swollen_documents(artefacts: dict[str, Path], tmp_path: Path) -> None:
    source = artefacts["heterogeneous"] / "release"
    huge = (2**40).to_bytes(8, "little") + b"{" * 1000
    for name, content in (
        ("release.json", nested(100_000).encode()),
        ("release.json", ('{"a":' * 50_000 + "1" + "}" * 50_000).encode()),
        ("release.json", b'{"format": NaN}'),
        ("release.json", b'{"format": 1, "kind": "release", "plan": Infinity}'),
        ("release.json", b"\xff\xfe\x00"),
        ("release.json", b""),
        ("sums.safetensors", huge),
        ("sums.safetensors", b"\xff" * 16),
        ("sums.safetensors", b""),
        ("sums.safetensors", b"PK\x03\x04" + b"\x00" * 1000),
        ("sums.safetensors", b"\x80\x04cos\nsystem\n(S'touch /tmp/dpmerf-pwned'\ntR."),
    ):
        place = copied(source, tmp_path / "release", {name: content})
        assert attempt(0, lambda place=place: verify(place)) == "refused"
    (tmp_path / "plan.json").write_text(nested(100_000))
    assert attempt(0, lambda: Plan.load(tmp_path / "plan.json")) == "refused"
    assert attempt(0, lambda: Schema.parse("a = " + nested(50_000))) == "refused"
    with open(tmp_path / "release" / "release.json", "wb") as sparse:  # a terabyte that takes no room
        sparse.truncate(2**40)
    assert attempt(0, lambda: verify(tmp_path / "release")) == "refused"
    assert not Path("/tmp/dpmerf-pwned").exists()


def test_hostile_schemas() -> None:
    text = 'label = "y"\n' + NUMBERS + ODD + CATEGORIES + LABEL
    document = schema(NUMBERS + ODD + CATEGORIES + LABEL, "y").to_json()
    for number in cases(35_000):
        rng = random.Random(number)
        if rng.random() < 0.6:
            broken = bytes_of(text.encode(), rng).decode("utf-8", "replace")
            attempt(number, lambda broken=broken: Codec(Schema.parse(broken)))
        else:
            hostile = json_of(document, rng)
            attempt(number, lambda hostile=hostile: Codec(Schema.from_json(hostile)))


PLAN = preset(NUMBERS + ODD + CATEGORIES + LABEL, "y", ROW, "default", 1.0)


def read_all(path: Path) -> None:
    rows, phi = open_rows(path), PLAN.stages[0].query.nominal(PLAN)
    rows.require(list(PLAN.schema.learned))
    sums, view = Sums(phi), Known(PLAN, {}, None, "", {}).embedding(PLAN.stages[0]).view
    for table in rows.batches(list(PLAN.schema.learned)):
        sums.add(view(PLAN.codec.encode(table)))


def test_hostile_tables(tmp_path: Path) -> None:
    """CSV, gzip and Parquet, broken anywhere; the planted cell never shows in an error."""
    names = list(PLAN.schema.learned)
    lines = [",".join(names)] + [f'{i / 9},{i},2020-01-0{i + 1},{i}.5,"{SECRET}",true,{SECRET}' for i in range(9)]
    plain = ("\n".join(lines) + "\n").encode()
    table = pa.table({name: pa.array([SECRET, "1", None] * 3) for name in names})
    pq.write_table(table, tmp_path / "whole.parquet")
    pa.ipc.new_file(tmp_path / "whole.arrow", table.schema).close()
    with pa.ipc.new_file(tmp_path / "whole.arrow", table.schema) as file:
        file.write_table(table)
    kinds = {
        "csv": plain,
        "csv.gz": gzip.compress(plain),
        "parquet": (tmp_path / "whole.parquet").read_bytes(),
        "arrow": (tmp_path / "whole.arrow").read_bytes(),
    }
    for number in cases(25_000):
        rng = random.Random(number)
        kind = rng.choice(["csv", "csv", "csv", "csv.gz", "parquet", "arrow"])
        path = tmp_path / f"broken.{kind}"
        path.write_bytes(bytes_of(kinds[kind], rng))
        attempt(number, lambda path=path: read_all(path))


def test_hostile_pictures(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "whole.npz", x=np.zeros((4, 8, 8), np.uint8), y=np.arange(4))
    raw = (tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "broken.npz"

    def read() -> None:
        file = Npz(path)
        header = file.header("x")
        if header is not None and int(np.prod(header.shape, dtype=object)) < 10**6:
            for _ in file.parts(header, 2):
                pass

    for number in cases(2_500):
        path.write_bytes(bytes_of(raw, random.Random(number)))
        attempt(number, read)
    np.savez(tmp_path / "objects.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DpmerfError, match="never read"):
        Npz(tmp_path / "objects.npz").header("x")


# --- the ledger ------------------------------------------------------------------------------------------------------


def test_a_ledger_never_counts_too_little_after_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes that stop anywhere, or say that they failed, between spends that are acknowledged."""
    real = os.write
    for number in cases(1_500):
        rng = random.Random(number)
        path = tmp_path / f"{number}.ledger"
        ledger = Ledger.open(path, 10.0, 1e-5)
        acknowledged = 0
        for step in range(rng.randrange(1, 6)):
            crash = rng.random() < 0.5

            def broken(file: int, data: bytes, crash: bool = crash, rng: random.Random = rng) -> int:
                if not crash:
                    return real(file, data)
                real(file, data[: rng.randrange(len(data) + 1)])
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(os, "write", broken)
            try:
                ledger.spend(f"plan{step}", "fuzz", [Gaussian(0.01 + step * 0.001)], Unit())
                acknowledged += 1
            except LedgerError:
                pass
            monkeypatch.setattr(os, "write", real)
            found = Ledger.load(path).entries()
            assert len(found) >= acknowledged, f"case {number}: a spend is not counted"
        path.unlink()


def test_a_damaged_ledger_is_refused_or_counts_everything(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    ledger = Ledger.open(path, 10.0, 1e-5)
    spends = [ledger.spend(f"plan{i}", "fuzz", [Gaussian(0.01 * (i + 1))], Unit()) for i in range(4)]
    raw = path.read_bytes()
    for number in cases(6_000):
        rng = random.Random(number)
        place = rng.randrange(len(raw))
        data = bytearray(raw)
        match rng.randrange(3):
            case 0:
                data[place] ^= 1 << rng.randrange(8)
            case 1:
                data[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 5])))
            case _:
                del data[place : min(place + rng.choice([1, 3]), len(raw) - 1)]
        path.write_bytes(data)
        try:
            counted = Ledger.load(path).entries()
        except LedgerError:
            continue
        assert {e.hash for e in counted} == {e.hash for e in spends}, f"case {number}: spends are lost"
