"""Files: tables, pictures, schemas, plans and artefacts, broken by bytes and by meaning. A maker returns the words."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import gzip
import hashlib
import io
import json
import os
import shutil
import uuid
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import safetensors.numpy
from PIL import Image

from dpmerf.plan import digest
from fuzz.ground import IMAGES, LEDGER, MARKER, SCHEMA, Ground, rows
from privacy.fuzz import HOSTILE_TEXTS, bytes_of, dumped, json_of

NAMES = ["key", "age", "dose", "ward", "seen", "at", "ill"]
RELEASE = ["--ledger", LEDGER, "-o", "out", "-q"]
CELLS = ["", "NULL", "NaN", "1e999", "-0", "2020-13-45", "2020-01-01", "true", "=cmd()", '"', "'", "a\nb", "\x00", "٣"]


def table_words(ground: Ground, place: Path, name: str, rng: Random) -> list[str]:
    (place / "plan.json").write_bytes(ground.read(rng.choice(["plan.json", "plan.json", "paper.json"])))
    return ["release", name, "--plan", "plan.json", *RELEASE]


def csv(ground: Ground, rng: Random, place: Path) -> list[str]:
    names, mark = list(NAMES), rng.choice([",", ",", ",", ";", "\t", "|"])
    if rng.random() < 0.2:
        names = rng.choice([names[::-1], names[:-1], [*names, names[0]], [*names, ""], [f" {n}" for n in names], []])
    lines = [mark.join(names)]
    for i in range(rng.choice([0, 1, 5, 30])):
        cells = [str(i), str(rng.randrange(-5, 130)), "1.5", MARKER, "2020-02-03", "2020-02-03T04:05:06", "yes"]
        for _ in range(rng.choice([0, 1, 3])):
            cells[rng.randrange(7)] = rng.choice([*CELLS, *HOSTILE_TEXTS]).replace("\ud7ff", "?")
        if rng.random() < 0.1:
            cells = rng.choice([cells[:2], cells * 2, []])
        quoted = [f'"{c}"' if rng.random() < 0.1 else c for c in cells]
        lines.append(mark.join(quoted))
    data = (
        rng.choice(["\n", "\n", "\r\n", "\r"])
        .join(lines)
        .encode(rng.choice(["utf-8"] * 4 + ["utf-16", "cp1252"]), "replace")
    )
    if rng.random() < 0.5:
        data = bytes_of(data, rng)
    ending = rng.choice(["csv", "csv", "csv", "csv.gz", "tsv", "txt", "jsonl"])
    if ending == "csv.gz":
        data = gzip.compress(data, 1)
        data = bytes_of(data, rng) if rng.random() < 0.4 else data
    (place / f"t.{ending}").write_bytes(data)
    return table_words(ground, place, f"t.{ending}", rng)


def _arrays(n: int) -> dict[str, Any]:
    """One array of each of many types."""
    when = dt.datetime(2020, 2, 3, 4, 5, 6)
    texts = [MARKER, None, "1"] * n
    whole = [1, None, 3] * n
    found: dict[str, Any] = {
        **{
            str(t): pa.array(whole, t)
            for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
        },
        **{str(t): pa.array([0.5, None, float("nan")] * n, t) for t in (pa.float32(), pa.float64())},
        "half": pa.array(np.array([0.5, np.inf, np.nan] * n, np.float16)),
        "bool": pa.array([True, None, False] * n),
        "null": pa.nulls(3 * n),
        "string": pa.array(texts),
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array(texts).cast(pa.string_view()),
        "binary": pa.array([b"\xff\x00", None, MARKER.encode()] * n),
        "large binary": pa.array([b"\xff", None, b"1"] * n, pa.large_binary()),
        "fixed": pa.array([b"1234", None, b"\x00" * 4] * n, pa.binary(4)),
        "dictionary": pa.array(texts).dictionary_encode(),
        "dictionary of numbers": pa.array(whole).dictionary_encode(),
        "date32": pa.array([when.date(), None, dt.date(1, 1, 1)] * n, pa.date32()),
        "date64": pa.array([when.date(), None, when.date()] * n, pa.date64()),
        **{f"timestamp {u}": pa.array([when, None, when] * n, pa.timestamp(u)) for u in ("s", "ms", "us", "ns")},
        "zoned": pa.array([when, None, when] * n, pa.timestamp("us", "Asia/Tokyo")),
        "time32": pa.array([dt.time(1), None, dt.time(2)] * n, pa.time32("s")),
        "time64": pa.array([dt.time(1), None, dt.time(2)] * n, pa.time64("ns")),
        "milliseconds of a day": pa.array([dt.time(1), None, dt.time(2)] * n, pa.time32("ms")),
        "microseconds of a day": pa.array([dt.time(1), None, dt.time(2)] * n, pa.time64("us")),
        "binary view": pa.array([b"\xff", None, MARKER.encode()] * n, pa.binary_view()),
        "duration": pa.array([dt.timedelta(1), None, dt.timedelta(2)] * n),
        "interval": pa.array([(1, 2, 3), None, (4, 5, 6)] * n, pa.month_day_nano_interval()),
        "decimal": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("99.9")] * n, pa.decimal128(10, 2)),
        "wide decimal": pa.array([decimal.Decimal("1e40"), None, decimal.Decimal(1)] * n, pa.decimal256(60, 2)),
        "list": pa.array([[1], None, []] * n),
        "large list": pa.array([[1], None, []] * n, pa.large_list(pa.int8())),
        "fixed list": pa.array([[1, 2], None, [3, 4]] * n, pa.list_(pa.int8(), 2)),
        "struct": pa.array([{"a": MARKER}, None, {"a": ""}] * n),
        "map": pa.array([[("k", 1)], None, []] * n, pa.map_(pa.string(), pa.int8())),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([3 * n], pa.int32()), pa.array([MARKER])),
        "uuid": pa.array([uuid.UUID(int=1).bytes, None, b"\x00" * 16] * n, pa.uuid().storage_type).cast(pa.uuid()),
        "union": pa.UnionArray.from_sparse(
            pa.array([0, 1, 0] * n, pa.int8()), [pa.array([1, 2, 3] * n), pa.array([MARKER, "b", "c"] * n)]
        ),
    }
    return found


ARRAYS = {0: _arrays(1), 1: _arrays(4)}


def columnar(ground: Ground, rng: Random, place: Path) -> list[str]:
    found = ARRAYS[rng.randrange(2)]
    size = len(next(iter(found.values())))
    names = list(NAMES) + rng.choice([[], [], ["age"], ["", MARKER]])
    arrays = [found[rng.choice(list(found))] for _ in names]
    if rng.random() < 0.4:
        whole = rows(size)
        arrays = [
            whole[n].combine_chunks() if n in NAMES and rng.random() < 0.8 else a
            for n, a in zip(names, arrays, strict=True)
        ]
    if rng.random() < 0.1:
        arrays = [a.slice(0, 0) for a in arrays]
    table = pa.Table.from_arrays(arrays, names=names)
    ending, data = rng.choice(["parquet", "arrow", "feather"]), io.BytesIO()
    with contextlib.suppress(pa.ArrowException):  # not every format has every type
        if ending == "parquet":
            pq.write_table(table, data, row_group_size=rng.choice([1, 5, 1000]))
        else:
            feather.write_feather(table, data, compression=rng.choice(["uncompressed", "zstd", "lz4"]))
    raw = data.getvalue()
    (place / f"t.{ending}").write_bytes(bytes_of(raw, rng) if rng.random() < 0.5 else raw)
    if rng.random() < 0.1:
        os.mkdir(place / "parts")
        shutil.move(place / f"t.{ending}", place / "parts" / f"1.{ending}")
        (place / "parts" / f"2.{ending}").write_bytes(raw)
        return table_words(ground, place, "parts", rng)
    return table_words(ground, place, f"t.{ending}", rng)


def schema(ground: Ground, rng: Random, place: Path) -> list[str]:
    text = rng.choice([SCHEMA, SCHEMA, IMAGES])
    extra = [
        '[[relations]]\nrule = "age > 3"\n',
        '[reading]\ndelimiter = ";"\n',
        "[columns.age]\n",
        "x = 1\n",
        'dtype = "int8"\n',
    ]
    if rng.random() < 0.3:
        lines = text.splitlines()
        lines.insert(rng.randrange(len(lines)), rng.choice(extra))
        text = "\n".join(lines)
    (place / "s.toml").write_bytes(bytes_of(text.encode(), rng) if rng.random() < 0.8 else text.encode())
    return rng.choice(
        [
            ["schema", "check", "s.toml"],
            ["schema", "export", "s.toml", "--format", rng.choice(["frictionless", "sdv", "jsonschema", "nonsense"])],
            ["plan", "s.toml", "--epsilon", "1", "--rows", "100", "-o", "p.json", "-q"],
        ]
    )


def metadata(ground: Ground, rng: Random, place: Path) -> list[str]:
    sql = f"CREATE TABLE t (a INT NOT NULL, b VARCHAR(10) CHECK (b IN ('{MARKER}', 'y')), c DATE, PRIMARY KEY (a));"
    frictionless = {"fields": [{"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}]}
    kinds: list[tuple[str, bytes]] = [
        ("m.sql", sql.encode()),
        ("m.json", dumped(json_of(frictionless, rng))),
        ("m.json", dumped(json_of({"METADATA_SPEC_VERSION": "V1", "columns": {"a": {"sdtype": "numerical"}}}, rng))),
        ("m.json", dumped(json_of({"$schema": "x", "properties": {"a": {"type": "integer", "minimum": 0}}}, rng))),
        ("m.csv", b"table_name,column_name,data_type\nt,a,integer\n"),
    ]
    name, data = rng.choice(kinds)
    (place / name).write_bytes(bytes_of(data, rng) if rng.random() < 0.7 else data)
    return ["schema", "import", name, "-o", "s.toml", "-q"]


def plan(ground: Ground, rng: Random, place: Path) -> list[str]:
    raw = ground.read(rng.choice(["plan.json", "paper.json"]))
    if rng.random() < 0.3:
        data = bytes_of(raw, rng)
    else:
        document = json.loads(raw)
        document["plan"] = json_of(document["plan"], rng)
        with contextlib.suppress(ValueError, TypeError):
            document["hash"] = digest(document["plan"])
        data = dumped(document)
    (place / "p.json").write_bytes(data)
    pq.write_table(rows(), place / "t.parquet")
    return ["release", "t.parquet", "--plan", "p.json", *RELEASE]


def _artefact(ground: Ground, rng: Random, place: Path, kind: str, tensors: str) -> None:
    source = ground.folder / kind
    (place / kind).mkdir()
    for file in source.iterdir():
        (place / kind / file.name).write_bytes(ground.read(f"{kind}/{file.name}"))
    documents = ["release.json"] + (["model.json"] if kind == "model" else [])
    name = rng.choice([*documents, *documents, tensors, "sums.safetensors", "CARD.md"])
    raw = ground.read(f"{kind}/{name}")
    if name.endswith(".json") and rng.random() < 0.7:
        found = json_of(json.loads(raw), rng)
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            if "plan" in found:
                found["plan_hash"] = digest(found["plan"])
            found["hash"] = digest({k: v for k, v in found.items() if k != "hash"})
        (place / kind / name).write_bytes(dumped(found))
        return
    if name.endswith(".safetensors") and rng.random() < 0.5:
        arrays = safetensors.numpy.load(raw)
        key = rng.choice(list(arrays))
        arrays[key] = rng.choice(
            [arrays[key][:0], arrays[key].astype(np.float32), arrays[key] * 0, arrays[key].ravel()[:1]]
        )
        made = safetensors.numpy.save({k: np.ascontiguousarray(a) for k, a in arrays.items()})
        (place / kind / name).write_bytes(made)
        home = "model.json" if name == tensors and kind == "model" else "release.json"
        field = "weights_sha256" if home == "model.json" else "sums_sha256"
        document = json.loads(ground.read(f"{kind}/{home}"))
        document[field] = hashlib.sha256(made).hexdigest()
        document["hash"] = digest({k: v for k, v in document.items() if k != "hash"})
        (place / kind / home).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        return
    if rng.random() < 0.1:
        os.remove(place / kind / name)
    else:
        (place / kind / name).write_bytes(bytes_of(raw, rng))


def release(ground: Ground, rng: Random, place: Path) -> list[str]:
    _artefact(ground, rng, place, "release", "sums.safetensors")
    return rng.choice(
        [["verify", "release", "-q"], ["verify", "release", "--json"], ["answer", "release", "share of ill by ward"]]
    )


def model(ground: Ground, rng: Random, place: Path) -> list[str]:
    _artefact(ground, rng, place, "model", "weights.safetensors")
    given = rng.choice([[], [], ["--given", "ward=a"], ["--given", "age=1000"], ["--given", f"{MARKER}=1"]])
    return ["sample", "model", "-n", "5", "-o", rng.choice(["s.csv", "s.parquet"]), "-q", *given]


def ledger(ground: Ground, rng: Random, place: Path) -> list[str]:
    (place / LEDGER).write_bytes(bytes_of(ground.read(LEDGER), rng))
    (place / "old").mkdir()
    if rng.random() < 0.7:
        return ["ledger", "show", LEDGER, *rng.choice([[], ["--json"]])]
    pq.write_table(rows(), place / "t.parquet")
    return table_words(ground, place, "t.parquet", rng)


def npz(ground: Ground, rng: Random, place: Path) -> list[str]:
    x = np.arange(12 * 64, dtype=np.uint8).reshape(12, 8, 8)
    odd = [
        x.astype(np.float32),
        x.astype(np.int64),
        x[:, :4],
        x.reshape(12, 64),
        x[:0],
        x.astype("U3"),
        np.asfortranarray(x),
    ]
    arrays = {
        "x": rng.choice([x, x, x, *odd]),
        "y": rng.choice([np.arange(12) % 2, np.array(["a", MARKER] * 6), np.arange(3)]),
    }
    data = io.BytesIO()
    rng.choice([np.savez, np.savez_compressed])(data, **arrays)
    (place / "x.npz").write_bytes(bytes_of(data.getvalue(), rng) if rng.random() < 0.6 else data.getvalue())
    if rng.random() < 0.4:
        return ["schema", "draft", "x.npz", "--images", "-o", "s.toml", "-q"]
    (place / "plan.json").write_bytes(ground.read("images.json"))
    return ["release", "x.npz", "--plan", "plan.json", *RELEASE]


def pictures(ground: Ground, rng: Random, place: Path) -> list[str]:
    for label in rng.choice([["a", "b"], ["a"], ["a", "b", "undeclared"], []]):
        folder = place / "set" / label
        folder.mkdir(parents=True)
        for i in range(rng.choice([0, 1, 3])):
            data = io.BytesIO()
            size = rng.choice([(8, 8), (8, 8), (1, 1), (300, 2)])
            Image.new(rng.choice(["L", "RGB", "RGBA", "1", "LA", "P"]), size, 1).save(data, "PNG")
            raw = data.getvalue()
            raw = bytes_of(raw, rng) if rng.random() < 0.5 else raw
            (folder / f"{i}.{rng.choice(['png', 'jpg', 'gif', 'txt', 'PNG'])}").write_bytes(raw)
        if rng.random() < 0.1:
            os.mkfifo(folder / "p.png")
        if rng.random() < 0.1:
            os.symlink("/dev/zero", folder / "z.png")
    (place / "set").mkdir(exist_ok=True)
    (place / "plan.json").write_bytes(ground.read("images.json"))
    return ["release", "set", "--plan", "plan.json", *RELEASE]
