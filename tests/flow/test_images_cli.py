"""Pictures from the command line: one line, or verb by verb; bad input in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pil

from command import dpmerf as run


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120).astype(np.uint8)
    x = rng.integers(0, 40, (120, 8, 8)).astype(np.uint8)
    x[y == 1, :4] = 230
    folder = tmp_path_factory.mktemp("pictures")
    np.savez(folder / "p.npz", x_train=x, y_train=y, x_test=np.array("never read"))
    for i in range(6):
        (folder / "classes" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Pil.fromarray(x[i]).resize((9 + i, 8)).save(folder / "classes" / "ab"[i % 2] / f"{i}.png")
    (folder / "classes" / "a" / "0.png").write_bytes(b"unreadable")
    return folder


def test_one_line(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(
        "synth", pictures / "p.npz", "--images", "--classes", 3, "--epsilon", 1, "--delta", 1e-5, "--steps", 3,
        "-n", 50, "--ledger", tmp_path / "l.ledger", "-o", out, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert {"release", "model", "synthetic", "sheet", "report"} <= set(made)
    with np.load(made["synthetic"]) as found:
        assert found["x"].shape == (50, 8, 8) and found["x"].dtype == np.uint8
        assert found["y"].shape == (50,) and found["y"].max() < 3
    assert Pil.open(made["sheet"]).format == "PNG"
    assert "data:image/png" in Path(made["report"]).read_text()
    assert run("verify", out / "release", "-q").returncode == 0
    again = run("synth", pictures / "p.npz", "--images", "--epsilon", 1, "--delta", 1e-5, "--ledger",
                tmp_path / "l.ledger", "-o", tmp_path / "again")  # fmt: skip
    assert again.returncode == 5 and not (tmp_path / "again").exists()


def test_verb_by_verb_with_a_folder_of_class_folders(pictures: Path, tmp_path: Path) -> None:
    toml, plan = tmp_path / "images.toml", tmp_path / "plan.json"
    steps = [
        ("schema", "draft", pictures / "classes", "--images", "--size", "8x8", "-o", toml),
        ("schema", "check", toml),
        ("plan", toml, "--epsilon", 1, "--rows", 6, "--preset", "paper", "-o", plan),
        ("release", pictures / "classes", "--plan", plan, "-o", tmp_path / "release"),
        ("train", tmp_path / "release", "-o", tmp_path / "model", "--steps", 2, "--seed", 7),
        ("sample", tmp_path / "model", "-n", 12, "--given", "label=b", "-o", tmp_path / "s.npz"),
        ("sample", tmp_path / "model", "-n", 12, "-o", tmp_path / "s.parquet"),
    ]
    for step in steps:
        done = run(*step)
        assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "s.npz") as found:
        assert found["x"].shape == (12, 8, 8) and set(found["y"]) == {"b"}


def test_bad_input_is_one_sentence(pictures: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "flat.npz", x=np.zeros((3, 64)), y=np.zeros(3))
    cases = {
        ("synth", pictures / "p.npz", "--epsilon", 1): "--images",
        ("synth", pictures / "classes", "--images", "--epsilon", 1): "--size",
        ("synth", pictures / "classes", "--images", "--size", "8", "--epsilon", 1): "HEIGHTxWIDTH",
        ("synth", tmp_path / "flat.npz", "--images", "--epsilon", 1): "shape (n, 64)",
        ("synth", pictures / "p.npz", "--images", "--size", "9x9", "--epsilon", 1): "declared are 9x9",
        ("synth", pictures / "p.npz", "--images", "--pixel-range", "x", "--epsilon", 1): "LOW,HIGH",
        ("synth", pictures / "p.npz", "--images", "--preset", "no", "--epsilon", 1): "no method",
    }
    for command, words in cases.items():
        done = run(*command, "-o", tmp_path / "out")
        assert done.returncode in (2, 4) and words in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) <= 2
