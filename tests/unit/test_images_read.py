"""Reading pictures: structure may be refused, no picture is; every container gives the same sums."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image as Pil

from dpmerf.encoding import pixels
from dpmerf.errors import DataError, DpmerfError, SchemaError
from dpmerf.features.algebra import FeatureMap
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan
from dpmerf.plan.queries import ImageBlock, ImageEmbedding
from dpmerf.private.contribute import Sums
from dpmerf.private.measure import sum_locally
from dpmerf.progress import SILENT
from dpmerf.schema import Image, Schema
from dpmerf.sources.picture_facts import declare
from dpmerf.sources.pictures import open_data


def shapes(n: int = 60, side: int = 12, channels: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bars that lie (class 0), stand (1) or cross (2), with noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = rng.integers(0, 60, (n, side, side, channels))
    for i, label in enumerate(y):
        at = rng.integers(2, side - 3)
        if label != 1:
            x[i, at : at + 2, 1:-1] = 220
        if label != 0:
            x[i, 1:-1, at : at + 2] = 220
    return x.astype(np.uint8)[..., 0] if channels == 1 else x.astype(np.uint8), y.astype(np.uint8)


def read(data: object, schema: Schema) -> tuple[np.ndarray, list[object]]:
    rows = open_data(data, schema)
    table = pa.Table.from_batches(list(rows.batches(list(schema.learned))))
    assert rows.stored_count == table.num_rows
    return pixels.unpack(table["image"], schema.image[1]), table["label"].to_pylist() if schema.label else []


def small_map(plan: Plan) -> FeatureMap:
    """All views, few features."""
    views = ("pixels", "coarse", "edges", "windows")
    blocks = tuple(ImageBlock(view=v, dim=40, scales=(0.3, 1.0), share=0.25) for v in views)
    return ImageEmbedding(blocks=blocks, seed=0, counts=1.0).feature_map(plan.codec)


def save_folder(folder: Path, x: np.ndarray, y: np.ndarray) -> Path:
    for i, (picture, label) in enumerate(zip(x, y, strict=True)):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Pil.fromarray(picture).save(folder / str(label) / f"{i:04d}.png")
    return folder


@pytest.mark.parametrize("channels", [1, 3])
def test_every_container_gives_the_same_sums(tmp_path: Path, channels: int) -> None:
    x, y = shapes(channels=channels)
    schema = declare((x, y), classes=3).schema
    np.savez(tmp_path / "a.npz", x=x, y=y)
    first = x if channels == 1 else x.transpose(0, 3, 1, 2)
    np.savez_compressed(tmp_path / "b.npz", x_train=first, y_train=y.astype(">i8"), x_test="never read")
    np.savez(tmp_path / "c.npz", x=np.asfortranarray(x), y=y[:, None])
    table = pa.table({"image": pixels.pack(x.reshape(*x.shape[:3], channels)), "label": y})
    pq.write_table(table, tmp_path / "d.parquet")
    data = [
        (x, y),
        tmp_path / "a.npz",
        str(tmp_path / "b.npz"),
        tmp_path / "c.npz",
        tmp_path / "d.parquet",
        save_folder(tmp_path / "folder", x, y),
        torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y)),
        [(Pil.fromarray(p), int(label)) for p, label in zip(x, y, strict=True)],
    ]
    plan = make_plan(schema, 1.0, 1e-5, rows=60)
    phi = small_map(plan)
    sums = [sum_locally(open_data(d, schema), plan, phi, lambda b: b, SILENT, "")[0] for d in data]
    for other in sums[1:]:
        assert torch.equal(sums[0], other)


def test_floats_are_read_in_their_declared_range(tmp_path: Path) -> None:
    x, y = shapes()
    unit = declare((x / np.float32(255), y), classes=3)
    assert unit.schema.image[1].high == 1.0 and "between 0 and 1" in unit.notes[0]
    assert np.array_equal(read((x / np.float32(255), y), unit.schema)[0][..., 0], x)
    wide = declare((x, y), classes=3, pixel_range=(-255, 255)).schema
    assert read((x.astype(float) * 2 - 255, y), wide)[0][..., 0].tolist() == x.tolist()
    wild = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.5]).repeat(4).reshape(1, 4, 6)
    got = read((wild, y[:1]), declare((wild, y[:1])).schema)[0]
    assert sorted(set(got.flatten().tolist())) == [0, 128, 255]


def test_structure_from_headers_alone(tmp_path: Path) -> None:
    x, y = shapes(channels=3)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    found = declare(tmp_path / "a.npz")
    assert (found.schema.image[1].height, found.schema.image[1].channels) == (12, 3)
    assert len(found.schema.columns["label"].values) == 10 and "0 to 9" in found.notes[0]  # never max(y)
    save_folder(tmp_path / "f", x, y)
    (tmp_path / "f" / "empty").mkdir()
    found = declare(tmp_path / "f", size="12x12", channels=3)
    assert found.schema.columns["label"].values == ("0", "1", "2", "empty")
    with pytest.raises(SchemaError, match="--size"):
        declare(tmp_path / "f")


def test_pictures_never_raise(tmp_path: Path) -> None:
    x, _ = shapes(9)
    folder = save_folder(tmp_path / "f", x, np.array([0, 1, 2] * 3))
    (folder / "1" / "0001.png").write_bytes(b"not a picture")
    (folder / "1" / "0004.png").write_bytes((folder / "1" / "0007.png").read_bytes()[:40])
    Pil.fromarray(np.full((30, 20, 3), 200, np.uint8)).save(folder / "2" / "0002.jpg")
    Pil.new("P", (12, 12)).save(folder / "2" / "palette.gif")
    (folder / "2" / "notes.txt").write_text("not an image by its name")
    schema = declare(folder, size=(12, 12)).schema
    got, labels = read(folder, schema)
    assert len(got) == 11 and labels.count("1") == 3
    assert [int(p.max()) for p, label in zip(got, labels, strict=True) if label == "1"][:2] == [0, 0]
    items = [("a string", 0), (None, 1), (np.zeros((2, 2, 2, 2)), 2), (torch.ones(3, 7, 5), "x"), 5]
    got, labels = read(items, declare(items, size="12x12").schema)
    assert len(got) == 5 and labels == ["0", "1", "2", "x", None]


def test_labels_outside_take_the_first_class() -> None:
    x, _ = shapes(6)
    schema = declare((x, x), classes=3).schema
    y = np.array([0.0, 1.0, 2.0, 3.0, -1.0, np.nan])
    table = pa.Table.from_batches(list(open_data((x, y), schema).batches(["image", "label"])))
    plan = make_plan(schema, 1.0, rows=6)
    assert plan.codec.encode(table).codes["label"].tolist() == [0, 1, 2, 0, 0, 0]


def bad(tmp_path: Path) -> dict[str, tuple[object, str]]:
    x, y = shapes()

    def npz(name: str, **arrays: np.ndarray) -> Path:
        np.savez(tmp_path / f"{name}.npz", **arrays)
        return tmp_path / f"{name}.npz"

    whole = npz("whole", x=x, y=y)
    (tmp_path / "cut.npz").write_bytes(whole.read_bytes()[:900])
    (tmp_path / "garbage.npz").write_bytes(b"PK\x03\x04" + bytes(range(256)) * 9)
    mixed = np.empty(2, object)
    mixed[:] = [x[0], x[1, :5]]
    strange = save_folder(tmp_path / "folder", x[:3], np.array(["0", "1", "9"]))
    return {
        "object": (npz("o", x=mixed, y=y[:2]), "Python objects"),
        "dtype": (npz("s", x=np.array([["a"]]), y=y[:1]), "save numbers"),
        "complex": (npz("j", x=x * 1j, y=y), "save numbers"),
        "flat": (npz("f", x=x.reshape(60, -1), y=y), r"shape \(n, 144\)"),
        "rgba": (npz("r", x=np.zeros((2, 9, 9, 4)), y=y[:2]), "shape"),
        "names": (npz("n", images=x, y=y), "'x' or 'x_train'"),
        "no-labels": (npz("l", x=x), "no labels"),
        "short-labels": (npz("m", x=x, y=y[:-1]), "one label for each"),
        "one-hot-labels": (npz("h", x=x, y=np.eye(3)[y]), "one label for each"),
        "other-size": (npz("z", x=x[:, :8], y=y), "declared are 12x12"),
        "cut": (tmp_path / "cut.npz", "damaged"),
        "garbage": (tmp_path / "garbage.npz", "damaged"),
        "missing": (tmp_path / "nowhere.npz", "no file"),
        "folder": (strange, "'9' is none of the declared classes"),
    }


CASES = (
    *("object", "dtype", "complex", "flat", "rgba", "names", "no-labels", "short-labels"),
    *("one-hot-labels", "other-size", "cut", "garbage", "missing", "folder"),
)


@pytest.mark.parametrize("case", CASES)
def test_bad_structure_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    data, words = bad(tmp_path)[case]
    schema = declare(shapes(), classes=3).schema
    with pytest.raises(DataError, match=words):
        list(open_data(data, schema).batches(["image", "label"]))


def test_a_schema_with_a_picture_stands_alone() -> None:
    head = 'label = "y"\n[columns.x]\nkind = "image"\nheight = 8\nwidth = 8\n[columns.y]\nkind = "flag"\n'
    assert Schema.parse(head).image == ("x", Image(height=8, width=8))
    for more in ('[columns.z]\nkind = "flag"\n', '[columns.z]\nkind = "image"\nheight = 8\nwidth = 8\n'):
        with pytest.raises(SchemaError, match="stands alone"):
            Schema.parse(head + more)
    with pytest.raises(DpmerfError, match="stands alone"):
        make_plan(Schema.parse(head).with_label(None), 1.0)
    for wrong in ("width = 500", "width = 8\nchannels = 2", "width = 8\nlow = 300.0", "width = 8\nnullable = true"):
        with pytest.raises(SchemaError):
            Schema.parse(head.replace("width = 8", wrong))


def test_sums_do_not_depend_on_order_or_batches() -> None:
    x, y = shapes(300)
    schema = declare((x, y), classes=3).schema
    plan = make_plan(schema, 1.0, 1e-5, rows=300)
    phi = small_map(plan)
    batch = plan.codec.encode(next(iter(open_data((x, y), schema).batches(["image", "label"]))))
    found = []
    for order, step in ((torch.arange(300), 300), (torch.randperm(300), 7), (torch.randperm(300), 100)):
        sums = Sums(phi)
        for part in order.split(step):
            sums.add(batch.rows(part))
        found.append(sums.total())
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_npz_files_are_read_in_constant_memory(tmp_path: Path) -> None:
    np.savez(tmp_path / "large.npz", x=np.zeros((60_000, 28, 28), np.uint8), y=np.zeros(60_000, np.uint8))  # 47 MB
    rows = open_data(tmp_path / "large.npz", declare(tmp_path / "large.npz").schema)
    tracemalloc.start()
    assert sum(batch.num_rows for batch in rows.batches(["image", "label"])) == 60_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6
