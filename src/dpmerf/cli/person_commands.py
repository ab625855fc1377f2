"""What commands do for persons with several rows: schemas with a [person] section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmerf.cli.options import guard, noted, say
from dpmerf.cli.plain_text import PlainConsole, plain
from dpmerf.errors import ArtefactError, DataError, PlanError, SchemaError
from dpmerf.folders import check_writable, keep

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpmerf.pipeline import Asked
    from dpmerf.plan.person_plan import PersonPlan
    from dpmerf.schema.person_schema import Persons


def persons_of(schema: Path | None) -> Persons | None:
    """The schema, if it is one of persons."""
    from dpmerf.schema.person_schema import Persons, load_schema

    found = None if schema is None else load_schema(schema)
    return found if isinstance(found, Persons) else None


def given_tables(data: str | None, tables: list[str] | None, persons: Persons) -> Any:
    """One path, or --table NAME=PATH for each table of the schema."""
    if persons.parent is None:
        if data is None or tables:
            raise DataError("the schema has one table: name its file after the command, without --table")
        return data
    if data is not None or not tables:
        names = " ".join(f"--table {name}=FILE" for name in persons.tables)
        raise DataError(f"the schema has several tables: write {names}")
    found: dict[str, str] = {}
    for item in tables:
        name, equals, path = item.partition("=")
        if not equals or not path or name in found:
            raise DataError(f"--table is '{item}': write NAME=FILE, each table once")
        found[name] = path
    return found


def synth_persons(
    data: Any,
    persons: Persons,
    epsilon: float,
    delta: float | None,
    rows: int | None,
    neighbours: str,
    output: Path,
    asked: Asked,
    ledger: Path | None,
    dataset: str | None,
    sign: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Plan, release, train, sample and report for persons."""
    from dpmerf.api import UNCOUNTED, dataset_name, open_ledger
    from dpmerf.methods.person_method import make_person_plan
    from dpmerf.person_run import run_persons
    from dpmerf.private.person_measure import open_tables
    from dpmerf.progress import Bars
    from dpmerf.release.signature import Key

    plan = make_person_plan(persons, epsilon, delta, rows=rows, neighbours=neighbours)
    opened = open_tables(data, persons)
    check_writable(output, 8 * plan.coordinates)
    key = None if sign is None else Key.load(sign)
    named = dataset if dataset is not None else dataset_name(data)
    charged = open_ledger(ledger, plan, named, noted(quiet))
    paths = run_persons(opened, plan, output, asked, ledger=charged, key=key, bars=Bars(not (quiet or as_json)))
    if charged is None:
        noted(quiet)(f"{UNCOUNTED}. Name a file with --ledger")
    made = {what: str(path) for what, path in paths.items()}
    words = "\n".join(f"  {what:<10} {path}" for what, path in made.items())
    promise = f"({plan.epsilon:g}, {plan.delta:g})-differentially private for a person with all their rows"
    say(quiet, as_json, made, f"Done, {promise}:\n{words}")


def release_persons(
    data: str | None,
    tables: list[str] | None,
    plan: PersonPlan,
    output: Path,
    ledger: Path | None,
    dataset: str | None,
    sign: Path | None,
    on_spark: Callable[[str], Any] | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """The private step by itself: spend, read, publish noisy sums of persons."""
    from dpmerf.api import UNCOUNTED, dataset_name, open_ledger
    from dpmerf.private.person_measure import measure_persons, open_tables
    from dpmerf.progress import Bars
    from dpmerf.release.signature import Key

    given = given_tables(data, tables, plan.persons)
    named = dataset if dataset is not None else dataset_name(given)
    if on_spark is not None:
        given = {n: on_spark(p) for n, p in given.items()} if isinstance(given, dict) else on_spark(given)
    opened = open_tables(given, plan.persons)
    check_writable(output, 8 * plan.coordinates)
    key = None if sign is None else Key.load(sign)
    charged = open_ledger(ledger, plan, named, noted(quiet))
    made = measure_persons(opened, plan, ledger=charged, bars=Bars(not (quiet or as_json)))
    keep(lambda place: made.save(place, key), output)
    if made.charge is None:
        noted(quiet)(f"{UNCOUNTED}. Name a file with --ledger")
    document = {"release": str(output), **made.guarantee(), "ledger_entry": made.charge and made.charge.entry}
    say(quiet, as_json, document, f"Release written to {output}. Read {output}/CARD.md")


def train_person_model(
    release: Path, output: Path, seed: int, steps: int | None, fast: bool, device: str, quiet: bool, as_json: bool
) -> None:
    """Fit the generators of a release of persons."""
    from dpmerf.person_model import train_persons
    from dpmerf.progress import Bars
    from dpmerf.release.person_release import PersonRelease
    from dpmerf.train import check_settings

    if fast:
        raise PlanError("models of persons have no fast training: leave out --fast, or give fewer --steps")
    check_settings(seed, steps, device)
    source = PersonRelease.load(release)
    check_writable(output)
    train_persons(source, seed=seed, steps=steps, bars=Bars(not (quiet or as_json))).save(output)
    say(quiet, as_json, {"model": str(output), "parts": list(source.parts)}, f"Model written to {output}.")


def report_persons(release: Path, model: Path, output: Path, seed: int, quiet: bool, as_json: bool) -> None:
    """The page of a release of persons and of histories drawn from its model. No real row is read."""
    from dpmerf.person_model import PersonModel
    from dpmerf.release.person_release import PersonRelease
    from dpmerf.report.history_page import history_page

    noisy, source = PersonRelease.load(release), PersonModel.load(model)
    if source.release.plan.hash != noisy.plan.hash:
        raise ArtefactError(
            f"{model} was trained from another release than {release}: name the two that belong together"
        )
    size = history_page(noisy, source.sample(seed=seed)).write(output)
    found = {"report": str(output), "bytes": size, "covered": True}
    say(quiet, as_json, found, f"{output} ({size / 1e6:.1f} MB): open it in a browser")


def demo_histories(output: Path, seed: int, silent: bool) -> Path:
    """The simulated patients with their visits, end to end."""
    from dpmerf.demo.patients import SCHEMA, patients
    from dpmerf.methods.person_method import make_person_plan
    from dpmerf.person_run import run_persons
    from dpmerf.pipeline import Asked
    from dpmerf.progress import Bars
    from dpmerf.schema.person_schema import Persons

    plan = make_person_plan(Persons.load(SCHEMA), 1.0, 1e-5, rows=10_000)
    run_persons(patients(), plan, output, Asked(seed=seed), bars=Bars(not silent))
    return output


def plan_persons(
    persons: Persons,
    epsilon: float | None,
    delta: float | None,
    rows: int | None,
    neighbours: str,
    output: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Price a release of persons before any row is read."""
    from rich.table import Table

    from dpmerf.methods.person_method import make_person_plan

    if epsilon is None:
        raise PlanError("name the budget with --epsilon")
    made = make_person_plan(persons, epsilon, delta, rows=rows, neighbours=neighbours)
    if output is not None:
        guard(output, lambda: made.save(output))
    if as_json:
        print(json.dumps(made.summary(), ensure_ascii=False))
    elif not quiet:
        table = Table("table", "stage", "share", "coordinates", "noise per count", title="What the budget buys")
        for part, stages in made.summary()["parts"].items():
            for stage in stages:
                for block in stage["blocks"]:
                    noise = f"±{block['noise']:.1f} {block['name']}"
                    table.add_row(part, stage["name"], f"{stage['share']:.0%}", f"{block['coordinates']:,}", noise)
        PlainConsole().print(table)
        print(f"(ε, δ) = ({made.epsilon:g}, {made.delta:g}), μ = {made.mu:.4f}, noise multiplier {1 / made.mu:.4f}")
        print(f"{made.unit.describe()} Planned for {made.rows:,} persons.")


def verify_person_release(
    folder: Path, signed_by: Path | None, ledger: Path | None, quiet: bool, as_json: bool
) -> None:
    """Check a release of persons and every part of it."""
    from rich.markdown import Markdown

    from dpmerf.private.ledger import Ledger
    from dpmerf.release.person_release import verify_persons

    found, signer = verify_persons(folder, signed_by)
    if ledger is not None:
        Ledger.load(ledger).entry(found.charge.entry if found.charge else "", found.plan.hash)
    if as_json:
        entry = found.charge and found.charge.entry
        document = {"valid": True, **found.guarantee(), "ledger_entry": entry, "signed_by": signer}
        print(json.dumps(document, ensure_ascii=False))
    elif not quiet:
        PlainConsole().print(Markdown(plain(found.card())))
        print(f"{folder} is whole: its guarantee, its parts and its card follow from its plan and its noisy sums.")
        if signer is not None:
            print(f"  signed by the key {signer}")


def sample_persons(model: Path, n: int, output: Path, seed: int | None, quiet: bool, as_json: bool) -> None:
    """Draw persons with their rows: one file, or a folder with a file for each table."""
    from dpmerf.output import table_files
    from dpmerf.person_model import PersonModel
    from dpmerf.schema.person_schema import ONLY

    source = PersonModel.load(model)
    made = source.sample(n, seed)
    folder = list(made) != [ONLY]
    if folder:
        check_writable(output)
        output.mkdir(exist_ok=True)
    paths = {}
    for name, table in made.items():
        path = output / f"{name}.parquet" if folder else output
        table_files.write(iter([table]), path, source.release.guarantee(), table.num_rows)
        paths[name] = str(path)
    rows = {name: table.num_rows for name, table in made.items()}
    say(quiet, as_json, {"synthetic": paths, "rows": rows}, f"{n:,} synthetic persons written to {output}")


def evaluate_persons(synthetic: Path, real: Path, test: Path | None, persons: Persons, output: Path | None) -> None:
    """Scores on real rows, as JSON: NOT COVERED by the guarantee."""
    from dpmerf.evaluate.files import read_table
    from dpmerf.evaluate.timelines import compare_histories

    def read(path: Path) -> dict[str, Any]:
        if persons.parent is None:
            return {persons.tables[0]: read_table(path)}
        return {name: read_table(_file(path, name)) for name in persons.tables}

    found = compare_histories(read(real), read(synthetic), persons, None if test is None else read(test))
    text = json.dumps({name: scores.to_json() for name, scores in found.items()}, indent=1)
    if output is not None:
        guard(output, lambda: output.write_text(text + "\n", encoding="utf-8"))
    print(text)


def _file(folder: Path, name: str) -> Path:
    for ending in (".parquet", ".csv"):
        if (folder / f"{name}{ending}").exists():
            return folder / f"{name}{ending}"
    raise SchemaError(f"{folder} has no {name}.parquet and no {name}.csv: name a folder with a file for each table")
