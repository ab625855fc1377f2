"""The one order for persons: release, train, sample, report, into one folder. Each part is on disk before the next."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpmerf.api import UNCOUNTED, AnyLedger, dataset_name, open_ledger
from dpmerf.folders import check_writable, keep
from dpmerf.methods.person_method import make_person_plan
from dpmerf.output import table_files
from dpmerf.person_model import PersonModel, train_persons
from dpmerf.pipeline import Asked
from dpmerf.plan.person_plan import PersonPlan
from dpmerf.private.ledger import Ledger
from dpmerf.private.person_measure import measure_persons, open_tables
from dpmerf.progress import SILENT, Bars
from dpmerf.release.person_release import PersonRelease, verify_persons
from dpmerf.release.signature import Key
from dpmerf.report.history_page import history_page
from dpmerf.schema.person_schema import ONLY, Persons
from dpmerf.sources.rows import Csv
from dpmerf.train import check_settings


def run_persons(
    data: Any,
    plan: PersonPlan,
    output: Path,
    asked: Asked,
    *,
    ledger: Ledger | None = None,
    key: Key | None = None,
    bars: Bars = SILENT,
) -> dict[str, Path]:
    """Release (signed if there is a key), train, sample and report into a new folder; what was made, by its role."""
    check_writable(output)
    check_settings(asked.seed, asked.steps, asked.device)
    tables = open_tables(data, plan.persons)
    release = measure_persons(tables, plan, ledger=ledger, bars=bars)
    keep(lambda place: release.save(place, key), output / "release")
    kept = Asked(**{**asdict(asked), "csv": any(isinstance(rows, Csv) for rows in tables.values())})
    kept.save(output)
    return _finish(release, None, output, kept, bars)


def fit_persons(
    data: Any,
    persons: Persons,
    epsilon: float,
    delta: float | None,
    rows: int | None,
    neighbours: str,
    seed: int,
    ledger: AnyLedger,
    bars: Bars,
) -> PersonModel:
    """Plan, release and train in one call; the ledger is charged before a row is read."""
    check_settings(seed, None, "cpu")
    plan = make_person_plan(persons, epsilon, delta, rows=rows, neighbours=neighbours)
    release = measure_persons(data, plan, ledger=open_ledger(ledger, plan, dataset_name(data)), bars=bars)
    if release.charge is None:
        warnings.warn(f"{UNCOUNTED}. Name a file with `ledger`", stacklevel=3)
    return train_persons(release, seed=seed, bars=bars)


def resume_persons(output: Path, bars: Bars = SILENT) -> dict[str, Path]:
    """Finish a run whose release is paid for and on disk. No row is read and nothing is spent."""
    release, _ = verify_persons(output / "release")
    model = PersonModel.load(output / "model") if (output / "model").is_dir() else None
    return _finish(release, model, output, Asked.load(output), bars)


def _finish(
    release: PersonRelease, model: PersonModel | None, output: Path, asked: Asked, bars: Bars
) -> dict[str, Path]:
    paths = {"release": output / "release", "model": output / "model"}
    if model is None:
        model = train_persons(release, seed=asked.seed, steps=asked.steps, bars=bars)
        model.save(paths["model"])
    with bars.task("drawing persons"):
        made = model.sample(asked.n)
    ending = ".csv" if asked.csv else ".parquet"
    for name, table in made.items():
        path = output / (f"synthetic{ending}" if name == ONLY else f"{name}{ending}")
        table_files.write(iter([table]), path, release.guarantee(), table.num_rows, bars)
        paths["synthetic" if name == ONLY else name] = path
    paths["report"] = output / "report.html"
    history_page(release, made).write(paths["report"])
    return paths
