"""The one order: release, train, sample, report, into one folder. Each part is on disk before the next begins.

What was asked for is kept beside the release, so that a run that was stopped after it was paid for can be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa

from dpmerf.errors import ArtefactError, PlanError
from dpmerf.evaluate.files import first_rows
from dpmerf.folders import check_writable, keep, read_json
from dpmerf.model import Model
from dpmerf.output import gallery
from dpmerf.output import table_files as tables
from dpmerf.output.whole_files import appearing
from dpmerf.plan import Plan
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release
from dpmerf.release.signature import Key
from dpmerf.release.verify import verify
from dpmerf.report import make_report
from dpmerf.report.make import MOST_ROWS
from dpmerf.sources.rows import Csv, Rows
from dpmerf.train import check_settings, train

FORMAT = 1
ASKED = "run.json"


@final
@dataclass(frozen=True)
class Asked:
    """What a run is asked for beside its plan. No field has to do with rows."""

    n: int | None = None  # synthetic rows; as many as the data has if None
    seed: int = 0
    steps: int | None = None
    device: str = "cpu"
    fast: bool = False
    csv: bool = False  # whether the synthetic table is CSV, as the real one was; else Parquet

    def __post_init__(self) -> None:
        if self.n is not None and self.n < 1:
            raise PlanError(f"n is {self.n}: ask for 1 row or more")

    def save(self, folder: Path) -> None:
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"
        try:
            with appearing(folder / ASKED) as place:
                place.write_text(text, encoding="utf-8")
        except OSError as problem:
            raise ArtefactError(f"cannot write {folder / ASKED}: {problem.strerror}") from None

    @staticmethod
    def load(folder: Path) -> Asked:
        """What was asked for; the defaults where the run was stopped before it was written."""
        if not (folder / ASKED).exists():
            return Asked()
        found = read_json(folder / ASKED, "run")
        known: dict[str, Any] = {k: v for k, v in found.items() if k != "format"}
        if found.get("format") != FORMAT or not _is_asked(known):
            raise ArtefactError(f"{folder / ASKED} is damaged or of another version: remove it to resume with defaults")
        return Asked(**known)


def _is_asked(found: dict[str, Any]) -> bool:
    count, flag = (int, type(None)), bool
    types: dict[str, Any] = {"n": count, "seed": int, "steps": count, "device": str, "fast": flag, "csv": flag}
    return found.keys() == types.keys() and all(
        isinstance(value, types[key]) and (types[key] is flag or not isinstance(value, bool))
        for key, value in found.items()
    )


def run(
    source: Rows,
    plan: Plan,
    output: Path,
    asked: Asked,
    *,
    ledger: Ledger | None = None,
    key: Key | None = None,
    bars: Bars = SILENT,
    begun: bool = False,
    go_on: bool = False,
) -> dict[str, Path]:
    """Release (signed if there is a key), train, sample and report into a new folder; what was made, by its role.

    `begun`: the folder holds what was bought before (`discovery`), and the rest goes beside it. `go_on`: also where
    columns cannot be read as declared.
    """
    check_writable(output / "release" if begun else output)
    check_settings(asked.seed, asked.steps, asked.device)
    noisy = measure(source, plan, ledger=ledger, bars=bars, go_on=go_on)
    keep(lambda place: noisy.save(place, key), output / "release")
    kept = Asked(**{**asdict(asked), "csv": isinstance(source, Csv)})
    kept.save(output)
    return _finish(noisy, None, output, kept, bars)


def resume(output: Path, bars: Bars = SILENT) -> dict[str, Path]:
    """Finish a run whose release is paid for and on disk. No row is read and nothing is spent."""
    if not (output / "release").is_dir():
        raise ArtefactError(
            f"{output} holds no release: nothing there was paid for and kept. Start again with dpmerf synth"
        )
    noisy = verify(output / "release").release
    model = Model.load(output / "model") if (output / "model").is_dir() else None
    return _finish(noisy, model, output, Asked.load(output), bars)


def _finish(noisy: Release, model: Model | None, output: Path, asked: Asked, bars: Bars) -> dict[str, Path]:
    paths = {"release": output / "release", "model": output / "model"}
    if model is None:
        model = train(noisy, seed=asked.seed, steps=asked.steps, device=asked.device, fast=asked.fast, bars=bars)
        model.save(paths["model"])
    rows = asked.n or round(noisy.rows_estimate)
    shown: list[pa.Table] = []  # the first of the rows that are written: the report draws no others
    if noisy.plan.schema.image is not None:
        paths |= {"synthetic": output / "synthetic.npz", "sheet": output / "contact_sheet.png"}
        gallery.write_npz(model.stream(rows), paths["synthetic"], noisy.plan.schema, rows, noisy.guarantee(), bars)
        _write(paths["sheet"], gallery.contact_sheet(model))
    else:
        paths["synthetic"] = output / ("synthetic.csv" if asked.csv else "synthetic.parquet")
        tables.write(_kept(model.stream(rows), shown), paths["synthetic"], noisy.guarantee(), rows, bars)
    paths["report"] = output / "report.html"
    make_report(noisy, model, synthetic=pa.concat_tables(shown) if shown else None).write(paths["report"])
    return paths


def _kept(parts: Iterator[pa.Table], shown: list[pa.Table]) -> Iterator[pa.Table]:
    """The same parts; the rows that a report shows are kept on their way."""
    left = MOST_ROWS
    for part in parts:
        if left > 0:
            shown.append(part.slice(0, left))
            left -= part.num_rows
        yield part


def written_rows(model: Path) -> pa.Table | None:
    """The first of the rows that a run wrote beside its model, as its report shows them; None if there are none."""
    folder = model.resolve().parent
    found = [folder / name for name in ("synthetic.parquet", "synthetic.csv") if (folder / name).is_file()]
    if model.name != "model" or not (folder / ASKED).is_file() or len(found) != 1:
        return None
    return first_rows(found[0], MOST_ROWS)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as problem:
        raise ArtefactError(f"cannot write {path}: {problem.strerror}") from None
