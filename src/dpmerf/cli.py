"""The command line. Every command prints one clear line on failure and exits with 2; `--json` is for machines."""

from __future__ import annotations

import json
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from dpmerf import demo_data, gallery, tables
from dpmerf.api import open_ledger, public_rows
from dpmerf.audit.cli import audit_command
from dpmerf.budget import Unit
from dpmerf.codec import Codec
from dpmerf.draft import draft, draft_images
from dpmerf.errors import DataError, DpmerfError, PlanError, SchemaError
from dpmerf.evaluate.cli import evaluate_command
from dpmerf.model import Model
from dpmerf.plan import Plan
from dpmerf.presets import make_plan
from dpmerf.private.image_facts import declare
from dpmerf.private.images import open_data
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.private.rows import Csv, Rows, open_rows
from dpmerf.private.spark import open_spark
from dpmerf.progress import Bars
from dpmerf.release import Release, check_writable
from dpmerf.report import make_report
from dpmerf.report.cli import report_command
from dpmerf.schema import Schema
from dpmerf.train import train as train_model

app = typer.Typer(
    name="dpmerf",
    help="Differentially private synthetic data: touch the data once, release one noisy vector, the rest is free.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
schema_app = typer.Typer(help="Draft and check schemas.", no_args_is_help=True)
ledger_app = typer.Typer(help="Open and read ledgers of what was spent.", no_args_is_help=True)
app.add_typer(schema_app, name="schema")
app.add_typer(ledger_app, name="ledger")
app.command("evaluate")(evaluate_command)
app.command("report")(report_command)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget ε, above 0.")]
Delta = Annotated[float | None, typer.Option(help="δ; the smaller of 1e-5 and 1/(10 rows) if left out.")]
Label = Annotated[str | None, typer.Option(help="Label column; the schema's own if left out, 'none' for unlabelled.")]
RowsHint = Annotated[int | None, typer.Option(help="Expected number of rows: a public fact or a guess.")]
UnitText = Annotated[str, typer.Option(help="What is protected: 'row' or 'person:COLUMN,ROWS'.")]
Neighbours = Annotated[str, typer.Option(help="'replace' (rows public) or 'add-remove'.")]
Preset = Annotated[str, typer.Option(help="'default', or 'paper' for the paper's kernels and generator.")]
Balanced = Annotated[bool, typer.Option(help="Classes are known to be equally frequent: do not measure them.")]
Seed = Annotated[int, typer.Option(help="Seed for everything but the noise.")]
Steps = Annotated[int | None, typer.Option(help="Training steps; a good number if left out.")]
Device = Annotated[str, typer.Option(help="PyTorch device for the paper preset's network.")]
Images = Annotated[bool, typer.Option("--images", help="The data are pictures: .npz, or a folder of class folders.")]
Size = Annotated[str | None, typer.Option(help="Pictures: HEIGHTxWIDTH, where the container does not state it.")]
Channels = Annotated[int | None, typer.Option(help="Pictures: 1 (grey) or 3 (colour).")]
Classes = Annotated[str | None, typer.Option(help="Pictures: how many classes (0, 1, …), or their names: cat,dog.")]
PixelRange = Annotated[str | None, typer.Option(help="Pictures: LOW,HIGH; by the stored type if left out.")]
Fast = Annotated[bool, typer.Option("--fast", help="Pictures: train for a third of the steps.")]
LedgerFile = Annotated[Path | None, typer.Option("--ledger", help="Ledger to charge before any row is read.")]


@schema_app.command("draft", epilog="Example: dpmerf schema draft patients.csv -o schema.toml")
def schema_draft(
    data: Annotated[str, typer.Argument(help="Table: its header and stored types are read, no value.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File; standard output if left out.")] = None,
    images: Images = False,
    size: Size = None,
    channels: Channels = None,
    classes: Classes = None,
    pixel_range: PixelRange = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a schema to fill in, from column names and stored types alone."""
    if images:
        text = draft_images(_pictures(data, None, size, channels, classes, pixel_range, quiet or as_json))
    else:
        text = draft(open_rows(data).fields)
    if output is not None:
        _write_text(output, text)
        say(
            quiet,
            as_json,
            {"schema": str(output)},
            f'Wrote {output}. Replace every "?", then: dpmerf schema check {output}',
        )
    else:
        print(json.dumps({"toml": text}) if as_json else text, end="\n" if as_json else "")


@schema_app.command("check", epilog="Example: dpmerf schema check schema.toml --data patients.csv")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    data: Annotated[str | None, typer.Option(help="Also check that this table has the columns.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a schema, and that a table has its columns (no value is read)."""
    declared = Schema.load(schema)
    Codec(declared)
    extra: list[str] = []
    if data is not None:
        rows = open_rows(data)
        rows.require(list(declared.learned))
        extra = [name for name in rows.fields if name not in declared.columns]
    found = {"columns": len(declared.columns), "label": declared.label, "undeclared": extra}
    note = f" Not declared, and so left out: {', '.join(extra)}." if extra else ""
    say(quiet, as_json, found, f"{schema} is complete: {len(declared.columns)} columns, label {declared.label}.{note}")


@app.command(epilog="Example: dpmerf plan schema.toml --epsilon 1 --rows 30000 -o plan.json")
def plan(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    epsilon: Epsilon,
    delta: Delta = None,
    label: Label = None,
    rows: RowsHint = None,
    unit: UnitText = "row",
    neighbours: Neighbours = "replace",
    preset: Preset = "default",
    balanced: Balanced = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where to write the plan.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Price a release before any row is read: shares, noise, bytes, expected error."""
    made = make_plan(
        _labelled(Schema.load(schema), label),
        epsilon,
        delta,
        rows=rows,
        unit=Unit.parse(unit, neighbours),
        preset=preset,
        balanced=balanced,
    )
    if output is not None:
        _guard(output, lambda: made.save(output))
    if as_json:
        print(json.dumps(made.summary(), ensure_ascii=False))
    elif not quiet:
        _print_plan(made, output)


@app.command(epilog="Example: dpmerf release patients.parquet --plan plan.json --ledger study.ledger -o release/")
def release(
    data: Annotated[str, typer.Argument(help="Table: CSV, Parquet, Arrow, or a folder of them.")],
    plan: Annotated[Path, typer.Option(help="Plan from `dpmerf plan`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the release.")],
    ledger: LedgerFile = None,
    engine: Annotated[str, typer.Option(help="'local', or 'spark' for a Parquet path or a table that Spark reads.")] = (
        "local"
    ),
    master: Annotated[str | None, typer.Option(help="Spark master, for example 'local[2]'.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The only private step: spend the budget, read the rows once, publish noisy sums."""
    priced = Plan.load(plan)
    if engine not in ("local", "spark"):
        raise PlanError(f"there is no engine '{engine}'. Choose local or spark")
    source = open_spark(data, master) if engine == "spark" else open_data(data, priced.schema)
    source.require(list(priced.schema.learned))
    check_writable(output)
    made = measure(source, priced, ledger=open_ledger(ledger, priced), bars=Bars(not quiet and not as_json))
    made.save(output)
    say(
        quiet,
        as_json,
        {"release": str(output), **made.guarantee()},
        f"Release written to {output}. Read {output}/CARD.md",
    )


@app.command(epilog="Example: dpmerf train release/ -o model/ --seed 7")
def train(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    seed: Seed = 0,
    steps: Steps = None,
    fast: Fast = False,
    device: Device = "cpu",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit a generator to a release. No rows, no cost, as often as you like."""
    source = Release.load(release)
    check_writable(output)
    model = train_model(source, seed=seed, steps=steps, device=device, fast=fast, bars=Bars(not quiet and not as_json))
    model.save(output)
    h = model.history
    found = {"model": str(output), "loss": h.loss[-1:] and h.loss[-1], "noise_floor": h.floor}
    say(quiet, as_json, found, f"Model written to {output}.{_fit_words(model)}")


@app.command(epilog="Example: dpmerf sample model/ -n 10000 --given outcome=yes -o synthetic.parquet")
def sample(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    n: Annotated[int, typer.Option("-n", help="Number of rows.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File: .csv or .parquet; .npz for pictures.")],
    given: Annotated[list[str] | None, typer.Option(help="Hold a column fixed: COLUMN=VALUE. May be repeated.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed; the model's own if left out.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw synthetic rows."""
    source = Model.load(model)
    parts = source.stream(n, _pairs(given or []), seed)
    bars = Bars(not quiet and not as_json)
    if output.suffix.lower() == ".npz":
        count = gallery.write_npz(parts, output, source.release.plan.schema, n, bars)
    else:
        count = tables.write(parts, output, source.release.guarantee(), n, bars)
    say(quiet, as_json, {"synthetic": str(output), "rows": count}, f"{count:,} synthetic rows written to {output}")


@app.command(epilog="Example: dpmerf verify release/")
def verify(
    release: Annotated[Path, typer.Argument(help="Release folder.")], quiet: Quiet = False, as_json: Json = False
) -> None:
    """Recompute the guarantee of a release from its plan and check that nothing was changed."""
    checked = Release.verify(release)
    if as_json:
        print(json.dumps({"valid": True, **checked.guarantee()}, ensure_ascii=False))
    elif not quiet:
        Console().print(Markdown(checked.card()))
        print(f"{release} is whole, and its guarantee follows from its plan.")


@ledger_app.command("show", epilog="Example: dpmerf ledger show study.ledger")
def ledger_show(
    file: Annotated[Path, typer.Argument(help="Ledger file.")], quiet: Quiet = False, as_json: Json = False
) -> None:
    """Show what was spent and what is left."""
    found = Ledger.load(file).summary()
    if as_json:
        print(json.dumps(found))
    elif not quiet:
        table = Table(
            "time", "purpose", "mu", "plan", title=f"{file}: limit ({found['epsilon']:g}, {found['delta']:g})"
        )
        for entry in found["entries"]:
            table.add_row(entry["time"], entry["purpose"], f"{entry['mu']:.4f}", entry["plan"][:12])
        Console().print(table)
        print(f"Left: epsilon {found['remaining_epsilon']:.4g} at delta {found['delta']:g}.")


@ledger_app.command("init", epilog="Example: dpmerf ledger init study.ledger --epsilon 3 --delta 1e-5")
def ledger_init(
    file: Annotated[Path, typer.Argument(help="Ledger file to open.")],
    epsilon: Epsilon,
    delta: Annotated[float, typer.Option(help="δ of the whole ledger.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Open a ledger with a total budget, which releases then share."""
    Ledger.open(file, epsilon, delta)
    say(quiet, as_json, {"ledger": str(file)}, f"{file} allows ({epsilon:g}, {delta:g}) in total.")


@app.command(
    epilog="Examples: dpmerf synth patients.csv --schema schema.toml --label outcome --epsilon 1 -o out/ · "
    "dpmerf synth mnist.npz --images --epsilon 1 --delta 1e-5 -o out/"
)
def synth(
    data: Annotated[str, typer.Argument(help="Table (CSV, Parquet, Arrow, a folder of them), or pictures.")],
    epsilon: Epsilon,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for everything that is made.")],
    schema: Annotated[Path | None, typer.Option(help="Schema file; may be left out with --images.")] = None,
    delta: Delta = None,
    label: Label = None,
    rows: RowsHint = None,
    unit: UnitText = "row",
    neighbours: Neighbours = "replace",
    preset: Preset = "default",
    balanced: Balanced = False,
    n: Annotated[int | None, typer.Option("-n", help="Synthetic rows; as many as the data has if left out.")] = None,
    seed: Seed = 0,
    steps: Steps = None,
    fast: Fast = False,
    device: Device = "cpu",
    ledger: LedgerFile = None,
    images: Images = False,
    size: Size = None,
    channels: Channels = None,
    classes: Classes = None,
    pixel_range: PixelRange = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """All of it in one line: plan, release, train, sample and report."""
    if schema is not None:
        declared = _labelled(Schema.load(schema), label)
    elif images:
        declared = _pictures(data, label, size, channels, classes, pixel_range, quiet or as_json)
    else:
        raise SchemaError("name the schema with --schema FILE (`dpmerf schema draft` begins one); pictures: --images")
    source = open_data(data, declared)
    source.require(list(declared.learned))
    protected = Unit.parse(unit, neighbours)
    count = rows if rows is not None else public_rows(source, protected)
    priced = make_plan(declared, epsilon, delta, rows=count, unit=protected, preset=preset, balanced=balanced)
    made = run(source, priced, output, n, seed, steps, device, open_ledger(ledger, priced), quiet or as_json, fast)
    words = "\n".join(f"  {what:<10} {path}" for what, path in made.items())
    say(quiet, as_json, made, f"Done, ({priced.epsilon:g}, {priced.delta:g})-differentially private:\n{words}")


@app.command(epilog="Example: dpmerf demo -o demo-out")
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for everything that is made.")] = Path(
        "demo-out"
    ),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run the main job end to end on a simulated hospital table that ships with the program."""
    check_writable(output)
    declared = Schema.load(demo_data.SCHEMA)
    source = open_rows(demo_data.hospital())
    priced = make_plan(declared, 1.0, 1e-5, rows=source.stored_count)
    if not (quiet or as_json):
        print(
            f"A simulated hospital table: {source.stored_count:,} visits, {len(declared.columns)} columns. "
            "Budget: (1, 1e-5)."
        )
    made = run(source, priced, output, None, seed, None, "cpu", None, quiet or as_json)
    words = "\n".join(f"  {what:<10} {path}" for what, path in made.items())
    say(quiet, as_json, made, f"Done. What was made:\n{words}")


@app.command("demo-data", epilog="Example: dpmerf demo-data hospital.parquet")
def demo_data_command(
    output: Annotated[Path, typer.Argument(help="Parquet file; the schema goes beside it as .toml.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the simulated hospital table and its schema, for trying things out."""
    table, schema = _guard(output, lambda: demo_data.write(output))
    say(quiet, as_json, {"table": str(table), "schema": str(schema)}, f"Wrote {table} and {schema}.")


def run(
    source: Rows,
    priced: Plan,
    output: Path,
    n: int | None,
    seed: int,
    steps: int | None,
    device: str,
    ledger: Ledger | None,
    silent: bool,
    fast: bool = False,
) -> dict[str, str]:
    """Release, train, sample into one folder. Each part is on disk before the next begins."""
    check_writable(output)
    if n is not None and n < 1:
        raise PlanError(f"n is {n}: ask for 1 row or more")
    bars = Bars(not silent)
    paths = {"release": output / "release", "model": output / "model"}
    noisy = measure(source, priced, ledger=ledger, bars=bars)
    noisy.save(paths["release"])
    model = train_model(noisy, seed=seed, steps=steps, device=device, fast=fast, bars=bars)
    model.save(paths["model"])
    rows = n or round(noisy.rows_estimate)
    if priced.schema.image is not None:
        paths |= _write_pictures(model, rows, output, bars)
        return {what: str(path) for what, path in paths.items()}
    paths["synthetic"] = output / ("synthetic.csv" if isinstance(source, Csv) else "synthetic.parquet")
    tables.write(model.stream(rows), paths["synthetic"], noisy.guarantee(), rows, bars)
    paths["report"] = output / "report.html"
    make_report(noisy, model).write(paths["report"])
    return {what: str(path) for what, path in paths.items()}


def _write_pictures(model: Model, n: int, output: Path, bars: Bars) -> dict[str, Path]:
    """synthetic.npz, contact_sheet.png and report.html."""
    paths = {"synthetic": output / "synthetic.npz", "sheet": output / "contact_sheet.png"}
    gallery.write_npz(model.stream(n), paths["synthetic"], model.release.plan.schema, n, bars)
    _guard(paths["sheet"], lambda: paths["sheet"].write_bytes(gallery.contact_sheet(model)))
    paths["report"] = output / "report.html"
    make_report(model.release, model).write(paths["report"])
    return paths


def say(quiet: bool, as_json: bool, found: dict[str, Any], words: str) -> None:
    """The result: JSON for machines, words for people, nothing when quiet."""
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    elif not quiet:
        print(words)


def _labelled(schema: Schema, label: str | None) -> Schema:
    if label is None:
        return schema
    return schema.with_label(None if label == "none" and "none" not in schema.columns else label)


def _pictures(
    data: str,
    label: str | None,
    size: str | None,
    channels: int | None,
    classes: str | None,
    pixel_range: str | None,
    silent: bool,
) -> Schema:
    """The schema of pictures from flags and the container's structure; what is assumed is said."""
    try:
        low, high = map(float, pixel_range.split(",")) if pixel_range else (None, None)
    except ValueError:
        raise SchemaError(f"--pixel-range is '{pixel_range}': write LOW,HIGH, for example 0,1") from None
    named = None if classes is None else int(classes) if classes.isdecimal() else classes.split(",")
    found = declare(
        data,
        size=size,
        channels=channels,
        classes=named,
        pixel_range=None if low is None or high is None else (low, high),
        labelled=label != "none",
    )
    for note in () if silent else found.notes:
        print(f"note: {note}", file=sys.stderr)
    return found.schema


def _pairs(given: list[str]) -> dict[str, str]:
    found = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            raise SchemaError(f"--given is '{item}': write it as COLUMN=VALUE")
        found[name] = value
    return found


def _fit_words(model: Model) -> str:
    if not model.history.loss:
        return ""
    ratio = model.history.loss[-1] / model.history.floor if model.history.floor else 0.0
    return f" Its loss is {ratio:.2f} times the noise floor (1 is as good as the release allows)."


def _write_text(path: Path, text: str) -> None:
    _guard(path, lambda: path.write_text(text, encoding="utf-8"))


def _guard(path: Path, action: Any) -> Any:
    try:
        return action()
    except OSError as problem:
        raise DataError(f"cannot write {path}: {problem.strerror}") from None


def _print_plan(made: Plan, output: Path | None) -> None:
    found = made.summary()
    console = Console()
    table = Table("stage", "share", "what is measured", "coordinates", "noise per count", title="What the budget buys")
    for stage in found["stages"]:
        for i, block in enumerate(stage["blocks"]):
            first = (stage["name"], f"{stage['share']:.0%}") if i == 0 else ("", "")
            table.add_row(*first, block["name"], f"{block['coordinates']:,}", f"±{block['noise']:.1f}")
    console.print(table)
    error = found["expected_error"]
    print(f"(ε, δ) = ({made.epsilon:g}, {made.delta:g}), μ = {made.mu:.4f}, noise multiplier σ/Δ = {1 / made.mu:.4f}")
    print(f"δ added by the discrete sampler, included: {made.discrete_delta:.1e}")
    print(f"{made.unit.describe()} Planned for {made.rows:,} rows.")
    print(f"Size: {found['coordinates']:,} coordinates, {found['bytes']:,} bytes.")
    print(
        f"Proposition 1 for {error['dim']:,} Fourier features: error at most {error['tight_bound']:.3g} "
        f"(the paper's bound: {error['paper_bound']:.3g}); recommended D = {error['recommended_dim']:,}."
    )
    for warning in found["warnings"]:
        print(f"Note: {warning}.")
    if output is not None:
        print(f"Plan written to {output}.")


app.command("audit", epilog="Example: dpmerf audit --plan plan.json --minutes 5")(audit_command)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C and a polite kill end the program in order: open files are taken back, and it says what holds."""

    def stop(number: int, frame: object) -> None:
        print("error: stopped. A budget that was spent stays spent; nothing half-made was left", file=sys.stderr)
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main() -> None:
    """Entry point: one line per failure, never a traceback, never a cell."""
    warnings.simplefilter("ignore")
    warnings.showwarning = lambda message, *rest, **named: print(f"note: {message}", file=sys.stderr)
    warnings.filterwarnings("always", category=UserWarning, module="dpmerf")
    try:
        with _stoppable():
            app()
    except DpmerfError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)
    except MemoryError:
        print("error: out of memory. Ask for fewer columns, bins or rows at a time", file=sys.stderr)
        sys.exit(2)
    except Exception as problem:  # a fault of ours: say where, never what (a message may quote a cell)
        place = traceback.extract_tb(problem.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        print(f"error: internal fault ({type(problem).__name__} at {where}). Please report it", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
