"""Bombs: small files that unfold. Each goes through a command in a process of its own, whose memory and time count.

No input is above 100 MB. Broken would be a peak above 2 GB, more than 60 CPU seconds, or an internal error.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from PIL import Image

from dpmerf.plan import digest
from fuzz.campaign import CODES, LONGEST, Tally
from fuzz.files import NAMES, RELEASE
from fuzz.ground import LEDGER, MARKER, SCHEMA, Ground, rows

MOST_MB = 2_000
LARGEST = 100_000_000  # bytes of an input
# A process counts the memory of the one that started it as its own peak: so a small one starts it.
LAUNCHER = """
import json, os, resource, sys
def limits():
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (90, 90))
    os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(1, 2)
pid = os.fork()
if pid == 0:
    limits()
    os.execv(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
HEADER = ",".join(NAMES).encode() + b"\n"
LINE = b"1,20,1.5,a,2020-02-03,2020-02-03T04:05:06,yes\n"
Maker = Callable[[Ground, Path], list[str]]


def _release(ground: Ground, place: Path, name: str, plan: str = "plan.json") -> list[str]:
    (place / "plan.json").write_bytes(ground.read(plan))
    return ["release", name, "--plan", "plan.json", *RELEASE]


def _packed(start: bytes, block: bytes, times: int) -> bytes:
    """A gzip file of members: the block is packed once."""
    return gzip.compress(start) + gzip.compress(block, 9) * times


def _csv(start: bytes, unit: bytes, megabytes: int, packed: bool = True) -> Maker:
    def make(ground: Ground, place: Path) -> list[str]:
        block = unit * (2**23 // len(unit))
        name = "t.csv.gz" if packed else "t.csv"
        times = megabytes // 8
        (place / name).write_bytes(_packed(start, block, times) if packed else start + block * times)
        return _release(ground, place, name)

    return make


def _columnar(array: Callable[[], pa.Array], ending: str, times: int = 1, **said: Any) -> Maker:
    """A table of which one column unfolds; Parquet holds it several times, in one group of rows."""

    def make(ground: Ground, place: Path) -> list[str]:
        large = array()
        whole = rows()
        same = {name: whole[name].drop_null().combine_chunks().slice(0, 1).dictionary_encode() for name in NAMES}
        index = pa.array(np.zeros(len(large), np.int32))
        columns = {n: pa.DictionaryArray.from_arrays(index, same[n].dictionary) for n in NAMES}
        table = pa.table({**columns, "ward": large})
        table = pa.concat_tables([table] * times)
        if ending == "parquet":
            pq.write_table(table, place / "t.parquet", row_group_size=len(table), compression="zstd", **said)
        else:
            feather.write_feather(table, place / "t.arrow", compression="zstd", chunksize=len(table))
        return _release(ground, place, f"t.{ending}")

    return make


def _npz(fortran: bool, pictures: int, claimed: int | None = None, dtype: str = "|u1") -> Maker:
    def make(ground: Ground, place: Path) -> list[str]:
        header = {"descr": dtype, "fortran_order": fortran, "shape": (claimed or pictures, 8, 8)}
        with zipfile.ZipFile(place / "x.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            with archive.open("x.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(file, header)
                left = pictures * 64 * np.dtype(dtype).itemsize
                while left > 0:
                    file.write(bytes(min(left, 2**24)))
                    left -= 2**24
            with archive.open("y.npy", "w") as file:
                np.lib.format.write_array(file, np.arange(claimed or 12) % 2 if not claimed else np.arange(12) % 2)
        return _release(ground, place, "x.npz", "images.json")

    return make


def _picture(mode: str, size: tuple[int, int], kind: str = "PNG", **said: Any) -> Maker:
    def make(ground: Ground, place: Path) -> list[str]:
        for label in ("a", "b"):
            (place / "set" / label).mkdir(parents=True)
            image = Image.new(mode, size)
            image.save(place / "set" / label / f"1.{kind.lower()}", kind, **said)
        return _release(ground, place, "set", "images.json")

    return make


def _chunks(ground: Ground, place: Path) -> list[str]:
    """A PNG with a compressed text of 1 GB."""
    import zlib

    (place / "set" / "a").mkdir(parents=True)
    data = io.BytesIO()
    Image.new("L", (8, 8)).save(data, "PNG")
    packer = zlib.compressobj(9)
    text = b"k\0\0" + b"".join(packer.compress(bytes(2**24)) for _ in range(64)) + packer.flush()
    chunk = len(text).to_bytes(4, "big") + b"zTXt" + text + zlib.crc32(b"zTXt" + text).to_bytes(4, "big")
    raw = data.getvalue()
    (place / "set" / "a" / "1.png").write_bytes(raw[:33] + chunk + raw[33:])
    return _release(ground, place, "set", "images.json")


def _edited(name: str, path: tuple[str | int, ...], value: Any, words: list[str]) -> Maker:
    """A release, a model or a plan that claims something, with its hashes."""

    def make(ground: Ground, place: Path) -> list[str]:
        home = name.rpartition("/")[0]
        if home:
            shutil.copytree(ground.folder / home, place / home)
        document = json.loads(ground.read(name))
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        if "plan_hash" in document:
            document["plan_hash"] = digest(document["plan"])
            document["hash"] = digest({k: v for k, v in document.items() if k != "hash"})
        elif "plan" in document:
            document["hash"] = digest(document["plan"])
        (place / name).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        if words[0] == "release":
            pq.write_table(rows(), place / "t.parquet")
        return words

    return make


def _written(name: str, data: Callable[[], bytes], words: list[str]) -> Maker:
    def make(ground: Ground, place: Path) -> list[str]:
        home = name.rpartition("/")[0]
        if home:
            shutil.copytree(ground.folder / home, place / home)
        (place / name).write_bytes(data())
        if "t.parquet" in words:
            pq.write_table(rows(), place / "t.parquet")
        return words

    return make


def _asked(text: str) -> Maker:
    def make(ground: Ground, place: Path) -> list[str]:
        shutil.copytree(ground.folder / "release", place / "release")
        return ["answer", "release", text]

    return make


def _toml(extra: str, count: int) -> bytes:
    return (SCHEMA + "".join(extra.replace("#", str(i)) for i in range(count))).encode()


def _lie(length: int) -> bytes:
    claim = b'{"x":{"dtype":"I64","shape":[1000000000,1000],"data_offsets":[0,8000000000000]}}'
    return length.to_bytes(8, "little") + claim


PLANNED = ["plan", "s.toml", "--epsilon", "1", "--rows", "100", "-o", "p.json", "-q"]
VERIFY = ["verify", "release", "-q"]
STAGES = ("plan", "stages")
IMAGE = ("plan", "schema", "columns", "image")
BLOCK = (*STAGES, 0, "recipe", "blocks", 0)
PAIRS = [["age", "dose"], ["age", "seen"], ["dose", "seen"], ["seen", "at"], ["age", "at"], ["dose", "at"]]
LARGE_PAIRS = {"kind": "tables", "bins": 4_096, "parts": 64, "by_label": True, "pairs": PAIRS}
LARGE_PAIRS |= {"share_single": 0.2, "share_pair": 0.5, "share_label_pair": 0.3}
RECIPE = {"kind": "embedding", "dim": 10**6, "scales": [1.0], "seed": 0, "by_label": True, "counts": 1.0}
FEATURES = {"name": "embedding", "share": 1.0, "recipe": RECIPE}
PAPER = ["release", "t.parquet", "--plan", "paper.json", *RELEASE]
PICTURED = ["release", "t.parquet", "--plan", "images.json", *RELEASE]
STATED = ["release", "t.parquet", "--plan", "plan.json", *RELEASE]
NUMBER = '[columns.c#]\nkind = "number"\nmin = 0\nmax = 1\n'
PICTURES = 'label = "l"\n[columns.i]\nkind = "image"\nheight = {0}\nwidth = {0}\nchannels = 3\n'
PICTURES += '[columns.l]\nkind = "category"\nvalues = ["a", "b"]\n'
BOMBS: dict[str, Maker] = {
    "csv.gz, a cell of 3 GB": _csv(HEADER + b"1,", b"x", 3_000),
    "csv.gz, a quoted cell of 3 GB": _csv(HEADER + b'1,"', b"x\n", 3_000),
    "csv.gz, a header of 1 GB": _csv(b"", b"abcdefg,", 1_000),
    "csv.gz, one record of a billion cells": _csv(HEADER, b",", 1_000),
    "csv.gz, a GB of quotes": _csv(HEADER, b'"', 1_000),
    "csv.gz, a GB of zero bytes": _csv(HEADER, b"\0", 1_000),
    "csv.gz, 160 MB of rows that end with CR": _csv(HEADER.replace(b"\n", b"\r"), LINE.replace(b"\n", b"\r"), 160),
    "csv.gz, 400 MB of empty lines": _csv(HEADER, b"\n", 400),
    "csv, 88 MB in one cell": _csv(HEADER, b"x", 88, False),
    "csv, 88 MB of commas": _csv(HEADER, b",", 88, False),
    "csv, 88 MB of no alphabet": _csv(HEADER, b"\xff\xfe", 88, False),
    "csv, a header of 88 MB": _csv(b"", b"ab,", 88, False),
    "parquet, 10⁸ equal texts in a group": _columnar(
        lambda: pa.array(["w" * 100]).take(pa.array(np.zeros(10**7, np.int8))), "parquet", 10
    ),
    "parquet, long equal texts": _columnar(
        lambda: pa.array(["w" * 100_000]).take(pa.array(np.zeros(20_000, np.int8))), "parquet", 1
    ),
    "parquet, a cell of 1.5 GB": _columnar(lambda: pa.array(["w" * 1_500_000_000], pa.large_string()), "parquet"),
    "parquet, 2·10⁷ numbers in a plain page": _columnar(
        lambda: pa.array(np.zeros(2 * 10**7)), "parquet", use_dictionary=False, data_page_size=2**30
    ),
    "arrow, 10⁸ numbers in a batch": _columnar(lambda: pa.array(np.zeros(10**8)), "arrow"),
    "arrow, a cell of 1.5 GB": _columnar(lambda: pa.array(["w" * 1_500_000_000], pa.large_string()), "arrow"),
    "npz, 4 GB last axis first": _npz(True, 2**26),
    "npz, 4 GB": _npz(False, 2**26),
    "npz, 4 GB of eight-byte numbers": _npz(False, 2**23, dtype="<f8"),
    "npz that claims 10¹⁵ pictures": _npz(False, 12, claimed=10**15),
    "npz that claims 10¹⁰ pictures": _npz(True, 12, claimed=10**10),
    "png of 12,000 × 12,000": _picture("RGB", (12_000, 12_000)),
    "png of 40,000 × 40,000": _picture("1", (40_000, 40_000)),
    "png of 9,000 × 9,000": _picture("RGB", (9_000, 9_000)),
    "gif of 16,000 × 5,000": _picture("P", (16_000, 5_000), "GIF"),
    "webp of 16,383 × 5,000": _picture("RGB", (16_383, 5_000), "WEBP"),
    "tiff named so": _picture("1", (30_000, 30_000), "TIFF", compression="group4"),
    "png with a text of 1 GB": _chunks,
    **{
        f"{what} that claims {key}": _edited(file, (*STAGES, number, "recipe", *path), value, words)
        for what, file, words in (("release", "release/release.json", VERIFY), ("plan", "plan.json", STATED))
        for number, path, key, value in (
            (0, ("cells",), "65,536 cells", 65_536),
            (0, ("cells",), "a billion cells", 10**9),
            (1, ("bins",), "4,096 bins", 4_096),
            (1, ("parts",), "64 parts", 64),
            (1, (), "large pairs", LARGE_PAIRS),
        )
    },
    "release of 10⁶ features": _edited("release/release.json", STAGES, [FEATURES], VERIFY),
    "plan of 10⁶ features": _edited("paper.json", (*STAGES, 0, "recipe", "dim"), 10**6, PAPER),
    "plan of 10⁹ features": _edited("paper.json", (*STAGES, 0, "recipe", "dim"), 10**9, PAPER),
    "plan of pictures that are huge": _edited("images.json", (*IMAGE, "height"), 10**8, PICTURED),
    "plan of pictures with many features": _edited("images.json", (*BLOCK, "dim"), 10**8, PICTURED),
    "plan with many scales": _edited("images.json", (*BLOCK, "scales"), [1.0] * 10**6, PICTURED),
    "release.json, brackets": _written("release/release.json", lambda: b"[" * 90_000_000, VERIFY),
    "release.json, a list of 90 MB": _written(
        "release/release.json", lambda: b"[" + b"0," * 45_000_000 + b"0]", VERIFY
    ),
    "release.json, an integer of 90 MB": _written("release/release.json", lambda: b"9" * 90_000_000, VERIFY),
    "release.json, a key of 90 MB": _written("release/release.json", lambda: b'{"' + b"a" * 90_000_000, VERIFY),
    "sums that claim 8 TB": _written("release/sums.safetensors", lambda: _lie(80), VERIFY),
    "sums with a header of 2⁶⁰ bytes": _written("release/sums.safetensors", lambda: _lie(2**60), VERIFY),
    "sums with a header of 90 MB": _written(
        "release/sums.safetensors", lambda: (90_000_000).to_bytes(8, "little") + b" " * 90_000_000, VERIFY
    ),
    "schema with a million values": _written(
        "s.toml",
        lambda: (
            _toml('[columns.c]\nkind = "category"\nvalues = [', 1)
            + ",".join(f'"v{i}"' for i in range(10**6)).encode()
            + b"]\n"
        ),
        PLANNED,
    ),
    "schema of 100,000 columns": _written("s.toml", lambda: _toml(NUMBER, 100_000), PLANNED),
    "schema of 90 MB of one word": _written("s.toml", lambda: b"a" * 90_000_000, PLANNED),
    "schema, brackets": _written("s.toml", lambda: b"a = " + b"[" * 10**6, PLANNED),
    "schema, a pattern": _written(
        "s.toml", lambda: _toml('[columns.p]\nkind = "id"\npattern = "[0-9]{1000000000}"\n', 1), PLANNED
    ),
    "schema, decimals": _written(
        "s.toml", lambda: _toml('[columns.p]\nkind = "number"\nmin = 0\nmax = 1\ndecimals = 1000000000\n', 1), PLANNED
    ),
    "pictures of 128 × 128 × 3": _written("s.toml", lambda: PICTURES.format(128).encode(), PLANNED),
    "pictures of 100,000 × 100,000 × 3": _written("s.toml", lambda: PICTURES.format(10**5).encode(), PLANNED),
    "ledger of 90 MB": _written(LEDGER, lambda: b'{"kind": "spend"}\n' * 5_000_000, ["ledger", "show", LEDGER]),
    "ledger, a line of 90 MB": _written(LEDGER, lambda: b"[" * 90_000_000, ["ledger", "show", LEDGER]),
    "metadata, brackets": _written("m.json", lambda: b"[" * 90_000_000, ["schema", "import", "m.json", "-o", "s.toml"]),
    "metadata of 200,000 columns": _written(
        "m.json",
        lambda: json.dumps({"fields": [{"name": f"a{i}", "type": "integer"} for i in range(200_000)]}).encode(),
        ["schema", "import", "m.json", "-o", "s.toml", "-q"],
    ),
    "question of 100 kB": _asked("share of ill where " + "ward = 'a' and " * 7_000 + "ill"),
    "SQL, brackets": _asked("SELECT COUNT(*) FROM t WHERE " + "(" * 50_000 + "ill"),
    "SQL of 100 kB": _asked("SELECT COUNT(*) FROM t WHERE " + "age > 1 AND " * 8_000 + "age > 1"),
}


def run(ground: Ground, place: Path, say: Callable[[str], None], names: list[str] | None = None) -> Tally:
    """Every bomb, or those named."""
    tally = Tally("bombs")
    for name, make in BOMBS.items():
        if names is None or name in names:
            for wrong in one(name, make, ground, place, tally):
                tally.broken[wrong] += 1
                say(f"bombs, {name}: {wrong}")
    shutil.rmtree(place, ignore_errors=True)
    return tally


def one(name: str, make: Maker, ground: Ground, place: Path, tally: Tally) -> list[str]:
    """One of them; what it broke."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    _apart(lambda: (place / "words").write_text(json.dumps(make(ground, place))))
    words = json.loads((place / "words").read_text())
    size = sum(p.stat().st_size for p in place.rglob("*") if p.is_file())
    assert size < LARGEST, f"{name} has {size:,} bytes"
    command = [sys.executable, "-S", "-c", LAUNCHER, sys.executable, "-m", "dpmerf.cli", *words]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    code, seconds, peak = json.loads(done.stdout)
    said = (place / "said").read_text(errors="replace")
    tally.cases += 1
    tally.accepted += code == 0
    tally.refused += code != 0
    tally.paid += code != 0 and (place / LEDGER).exists() and '"spend"' in (place / LEDGER).read_text()[:10_000]
    tally.seconds += seconds
    tally.slowest, tally.peak = max(tally.slowest, seconds), max(tally.peak, peak)
    wrong = []
    if code not in CODES:
        wrong.append(f"exit {code}: {said.strip()[-120:]}")
    if "Traceback" in said or MARKER in said:
        wrong.append("traceback or marker")
    if seconds > LONGEST:
        wrong.append(f"{seconds:.0f} CPU seconds")
    if peak > MOST_MB * 1000:
        wrong.append(f"{peak / 1000:,.0f} MB")
    return wrong


def _apart(action: Callable[[], object]) -> None:
    """In a process of its own, whose memory goes with it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
