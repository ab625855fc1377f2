"""The steps one by one: plan, release, train, sample, verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from dpmerf import gallery, tables
from dpmerf.api import open_ledger
from dpmerf.budget import Unit
from dpmerf.cli.options import (
    Balanced,
    Delta,
    Device,
    Epsilon,
    Fast,
    Json,
    Label,
    LedgerFile,
    Neighbours,
    Preset,
    Quiet,
    RowsHint,
    Seed,
    Steps,
    UnitText,
    guard,
    labelled,
    say,
)
from dpmerf.errors import PlanError, SchemaError
from dpmerf.folders import check_writable
from dpmerf.model import Model
from dpmerf.plan import Plan
from dpmerf.presets import make_plan
from dpmerf.private.images import open_data
from dpmerf.private.measure import measure
from dpmerf.private.spark import open_spark
from dpmerf.progress import Bars
from dpmerf.release import Release
from dpmerf.schema import Schema
from dpmerf.train import train as train_model


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
        labelled(Schema.load(schema), label),
        epsilon,
        delta,
        rows=rows,
        unit=Unit.parse(unit, neighbours),
        preset=preset,
        balanced=balanced,
    )
    if output is not None:
        guard(output, lambda: made.save(output))
    if as_json:
        print(json.dumps(made.summary(), ensure_ascii=False))
    elif not quiet:
        _print_plan(made, output)


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
    """The only private step: spend the budget, read the rows, publish noisy sums."""
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
    for loss_range in made.choices:
        print(f"A column is chosen by noisy scores, loss range {loss_range:.4f}; composed with μ it makes up (ε, δ).")
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
