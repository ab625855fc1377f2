"""Nothing of a row gets out by a side door: not by logs, errors, exit codes, names, sizes, warnings or seeds."""

from __future__ import annotations

import ast
import inspect
import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import dpmerf
from dpmerf import cli
from dpmerf.api import release as release_call
from dpmerf.encoding.codec import Codec
from dpmerf.private.measure import measure
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.release.verify import verify
from privacy.harness import Script
from privacy.variants import CATEGORIES, FULL, LABEL, NUMBERS, ODD, VARIANTS, worst

pytestmark = pytest.mark.privacy
TEXT = 'label = "y"\n' + NUMBERS + ODD + CATEGORIES + LABEL
COLUMNS = ["x", "t", "d", "l", "c", "f", "y"]
SECRETS = ("Zq7PlantedCell", "8675309.1234567", "1907-03-14", "plantedperson@example")
SOURCE = Path(dpmerf.__file__).parent


def cells(words: tuple[str, ...], rows: int = 40) -> pa.Table:
    """Text cells; the planted ones stand in every column."""
    return pa.table(
        {name: pa.array([words[(i + j) % len(words)] for i in range(rows)]) for j, name in enumerate(COLUMNS)}
    )


CONTENTS: dict[str, tuple[str, ...]] = {
    "planted": SECRETS,
    "plain": ("0.5", "3", "2020-02-02", "a", "true"),
    "empty": ("", ""),
    "odd": ("NaN", "inf", "-inf", "1e999", "☃", "\x00", "'", "\\", "%s", "{x}", "a" * 10_000),
}
LEGAL = ("0.5", "3", "2020-02-02", "5.0", "a", "true", "true")  # a row that can be read in every column


class Runner:
    """The command line in this process: exit code, output and errors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["dpmerf", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = self._capsys.readouterr()
        return code, out, err


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


def no_secret(*texts: str | bytes) -> None:
    for text in texts:
        raw = text.encode() if isinstance(text, str) else text
        for secret in SECRETS:
            assert secret.encode() not in raw, "a planted cell got out"
            assert secret.encode("utf-16-le") not in raw


def everything_under(folder: Path) -> list[bytes]:
    return [str(p).encode() for p in folder.rglob("*")] + [p.read_bytes() for p in folder.rglob("*") if p.is_file()]


def flow(run: Runner, folder: Path, content: str, preset: str, ending: str) -> tuple[list[int], str]:
    """The whole path on one content; exit codes, and all that was said with the folder's name taken out."""
    folder.mkdir()
    data = folder / f"data.{ending}"
    table = cells(CONTENTS[content])
    if ending == "parquet":
        pq.write_table(table, data)
    else:
        import csv

        with open(data, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(COLUMNS)
            writer.writerows(zip(*[table[c].to_pylist() for c in COLUMNS], strict=True))
    (folder / "schema.toml").write_text(TEXT)
    said, codes = [], []
    out = folder / "out"
    for arguments in (
        (
            "plan",
            folder / "schema.toml",
            "--epsilon",
            "1",
            "--rows",
            "40",
            "--preset",
            preset,
            "-o",
            folder / "plan.json",
        ),
        ("release", data, "--plan", folder / "plan.json", "--ledger", folder / "study.ledger", "-o", out / "release"),
        ("verify", out / "release", "--quiet"),
        ("train", out / "release", "-o", out / "model", "--steps", "2", "--quiet"),
        ("sample", out / "model", "-n", "20", "-o", out / "rows.csv", "--quiet"),
        ("release", data, "--plan", folder / "plan.json", "--ledger", folder / "study.ledger", "-o", out / "again"),
    ):
        code, words, errors = run(*arguments)
        codes.append(code)
        said.append((words + errors).replace(str(folder), "FOLDER"))
    no_secret(*said, *everything_under(out), (folder / "study.ledger").read_bytes())
    return codes, "\n".join(said)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_exit_codes_and_words_do_not_depend_on_cells(run: Runner, tmp_path: Path, preset: str) -> None:
    """Equal shapes, very different cells: the same codes and the same words, at every step."""
    ending = "csv" if preset == "default" else "parquet"
    found = {c: flow(run, tmp_path / c, c, preset, ending) for c in (CONTENTS if FULL else ("planted", "plain"))}
    first = found["plain"]
    assert first[0] == [0, 0, 0, 0, 0, 5]  # the ledger refuses the second release
    for content, result in found.items():
        assert result == first, f"'{content}' behaves otherwise"


def test_file_names_and_sizes_follow_from_the_plan(tmp_path: Path) -> None:
    plan = VARIANTS["heterogeneous"](1.0)
    pair = worst(plan)
    sizes = []
    for i, table in enumerate((pair.out, pair.inside)):
        measure(table, plan).save(tmp_path / str(i))
        sizes.append({p.name: p.stat().st_size for p in (tmp_path / str(i)).iterdir()})
    assert sizes[0].keys() == sizes[1].keys() == {"release.json", "sums.safetensors", "CARD.md"}
    assert sizes[0] == sizes[1]


def test_a_private_number_of_rows_is_nowhere_in_the_release(tmp_path: Path) -> None:
    plan = VARIANTS["add/remove"](1.0)
    table = pa.concat_tables([worst(plan).out] * 999).slice(0, 7_919)
    measure(table, plan).save(tmp_path / "release")
    document = json.loads((tmp_path / "release" / "release.json").read_text())
    assert document["rows"] is None and "7919" not in json.dumps(document)
    assert "7,919" not in (tmp_path / "release" / "CARD.md").read_text()


def test_a_private_number_of_rows_is_never_shown(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(TEXT)
    legal = pa.table({name: [cell] * 7_919 for name, cell in zip(COLUMNS, LEGAL, strict=True)})
    said = []
    for name, table in (("few", legal.slice(0, 0)), ("many", legal)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        plan = tmp_path / f"{name}.json"
        run("plan", tmp_path / "schema.toml", "--epsilon", "1", "--neighbours", "add-remove", "-o", plan)
        code, out, err = run("release", tmp_path / f"{name}.parquet", "--plan", plan, "-o", tmp_path / name)
        assert code == 0 and "7919" not in out + err and "7,919" not in out + err
        said.append((out + err).replace(name, "NAME"))
    assert said[0] == said[1]  # an empty table is nothing special where the number of rows is private


def test_a_stop_at_unread_cells_follows_from_noisy_counts_alone(run: Runner, tmp_path: Path) -> None:
    """With the same noisy counts an empty table stops as one of unread cells does, in the same words."""
    (tmp_path / "schema.toml").write_text(TEXT)
    plan = tmp_path / "plan.json"
    run("plan", tmp_path / "schema.toml", "--epsilon", "1", "--neighbours", "add-remove", "-o", plan)
    script, said = Script(), []
    for name, rows in (("many", 7_919), ("few", 0)):
        pq.write_table(cells(CONTENTS["plain"], rows), tmp_path / f"{name}.parquet")
        with script.playing():
            code, out, err = run("release", tmp_path / f"{name}.parquet", "--plan", plan, "-o", tmp_path / name)
        assert code == 4 and "7919" not in out + err and "7,919" not in out + err
        said.append((out + err).replace(name, "NAME"))
        script = script.replayed()
    assert said[0] == said[1]


# --- errors ----------------------------------------------------------------------------------------------------------


def test_broken_files_are_named_and_never_quoted(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(TEXT)
    run("plan", tmp_path / "schema.toml", "--epsilon", "1", "-o", tmp_path / "plan.json")
    pq.write_table(cells(SECRETS), tmp_path / "whole.parquet")
    raw = (tmp_path / "whole.parquet").read_bytes()
    broken = {
        "cut.parquet": raw[: len(raw) // 2],
        "flipped.parquet": raw[:4] + bytes(b ^ 0x55 for b in raw[4:200]) + raw[200:],
        "headless.csv": "\n".join(",".join(SECRETS) for _ in range(5)).encode(),
        "binary.csv": os.urandom(2_000) + SECRETS[0].encode(),
        "empty.csv": b"",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        code, out, err = run(
            "release", tmp_path / name, "--plan", tmp_path / "plan.json", "-o", tmp_path / f"{name}-out"
        )
        notes, error = err.strip().split("\n")[:-1], err.strip().split("\n")[-1]
        assert code == 4 and error.startswith("error: ") and all(n.startswith("note: ") for n in notes), (name, err)
        no_secret(out, err)


@pytest.mark.parametrize(
    "fault", [ValueError, RuntimeError, pa.ArrowInvalid, UnicodeDecodeError, MemoryError, KeyError]
)
def test_faults_of_ours_are_not_quoted_either(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    """Should a bug raise in the locked room with a cell in its message, the command line still keeps it."""
    (tmp_path / "schema.toml").write_text(TEXT)
    pq.write_table(cells(SECRETS), tmp_path / "data.parquet")
    run("plan", tmp_path / "schema.toml", "--epsilon", "1", "-o", tmp_path / "plan.json")

    def broken(self: Codec, table: Any) -> Any:
        word = SECRETS[0]
        raise fault("utf-8", word.encode(), 0, 1, word) if fault is UnicodeDecodeError else fault(word)

    monkeypatch.setattr(Codec, "encode", broken)
    code, out, err = run("release", tmp_path / "data.parquet", "--plan", tmp_path / "plan.json", "-o", tmp_path / "out")
    assert code in (3, 4, 7) and "Traceback" not in err
    no_secret(out, err)


def test_no_warning_and_no_log_line_tells_of_cells(caplog: pytest.LogCaptureFixture) -> None:
    plan = dpmerf.make_plan(dpmerf.Schema.parse(TEXT), 1.0, 1e-5, rows=40)
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="no ledger was charged")
        for words in CONTENTS.values():
            release_call(cells(words), plan)
    assert not caplog.records


def test_the_locked_room_prints_and_logs_nothing() -> None:
    for file in (SOURCE / "private").glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {
            a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names
        }
        assert not names & {"print", "logging", "pprint", "breakpoint", "logger"}, file.name


# --- no seed ---------------------------------------------------------------------------------------------------------

DRAW = (
    "import torch; from dpmerf.private.noise import OpenDPGaussian; "
    "print(OpenDPGaussian().add(torch.zeros(40, dtype=torch.int64), 2.0**50).tolist())"
)


@pytest.mark.skipif(not FULL, reason="starts two fresh interpreters: part of the full run")
def test_no_environment_variable_fixes_the_noise() -> None:
    names = ["SEED", "DPMERF_SEED", "RANDOM_SEED", "OPENDP_SEED", "PYTHONHASHSEED", "PL_GLOBAL_SEED", "RUST_SEED",
             "TORCH_SEED", "NUMPY_SEED", "DPMERF_TEST", "DPMERF_NOISE", "OPENDP_TEST", "CI", "RNG_SEED"]  # fmt: skip
    environment = {**os.environ, **dict.fromkeys(names, "7"), "OPENSSL_CONF": "/dev/null", "RANDFILE": "/dev/null"}
    draws = [
        set(
            json.loads(
                subprocess.run([sys.executable, "-c", DRAW], env=environment, capture_output=True, check=True).stdout
            )
        )
        for _ in range(2)
    ]
    assert not draws[0] & draws[1]


def test_no_public_call_takes_a_noise_source_or_a_seed_for_it() -> None:
    public: list[Callable[..., Any]] = [dpmerf.release, dpmerf.synthesize, dpmerf.Synthesizer, dpmerf.Synthesizer.fit]
    for call in public:
        assert "noise" not in inspect.signature(call).parameters
    assert not {"seed", "noise"} & set(inspect.signature(dpmerf.release).parameters)
    for command in ("release", "synth"):
        parameters = inspect.signature(getattr(cli, command)).parameters
        assert not {"noise", "noise_seed", "deterministic"} & set(parameters)


def test_the_seed_of_a_one_call_run_does_not_reach_the_noise() -> None:
    plan = VARIANTS["vanilla"](1.0)
    table = worst(plan).out
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        tool = dpmerf.Synthesizer(epsilon=1.0, delta=1e-5, schema=plan.schema, rows=10, random_state=0)
        found.append(tool.fit(table).release_.sums["discover"])
    assert not bool((found[0] == found[1]).any())


def test_no_production_file_draws_noise_from_anything_else() -> None:
    """Only noise.py samples, and only by OpenDP; the locked room imports no other generator."""
    for file in (SOURCE / "private").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        for banned in (
            "import random",
            "from random",
            "np.random",
            "torch.rand",
            "manual_seed",
            "default_rng",
        ):
            assert banned not in text, f"{file.name}: {banned}"
    assert "environ" not in inspect.getsource(sys.modules[OpenDPGaussian.__module__])
    assert "opendp" in inspect.getsource(sys.modules[OpenDPGaussian.__module__])


def test_a_test_source_is_stamped_and_refused(tmp_path: Path) -> None:
    from fixed_noise import FixedNoise

    plan = VARIANTS["vanilla"](1.0)
    measure(worst(plan).out, plan, noise=FixedNoise(1)).save(tmp_path / "release")
    assert "NOT PRIVATE" in (tmp_path / "release" / "CARD.md").read_text()
    with pytest.raises(dpmerf.DpmerfError, match="source for tests"):
        verify(tmp_path / "release")


def test_whole_releases_never_share_noise() -> None:
    plan = VARIANTS["heterogeneous"](1.0)
    pair = worst(plan)
    exact, _ = pair.exact(measure(pair.out, plan), plan.stages[0])
    noises = torch.stack([measure(pair.out, plan).sums["embedding"] - exact for _ in range(30)])
    assert len(torch.unique(noises)) == noises.numel()
