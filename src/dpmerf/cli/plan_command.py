"""`dpmerf plan`: what a budget buys and what will be visible, before any row is read. Plans side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmerf.cli.options import (
    Balanced,
    CountBroken,
    Delta,
    Json,
    Label,
    MethodName,
    Neighbours,
    Quiet,
    Read,
    RowsHint,
    UnitText,
    guard,
    labelled,
    told_reading,
)
from dpmerf.cli.person_commands import persons_of, plan_persons
from dpmerf.cli.plain_text import PlainConsole
from dpmerf.errors import PlanError

if TYPE_CHECKING:
    from dpmerf.plan import Plan


def plan(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget ε, above 0.")] = None,
    delta: Delta = None,
    label: Label = None,
    rows: RowsHint = None,
    unit: UnitText = "row",
    neighbours: Neighbours = "replace",
    method: MethodName = "auto",
    balanced: Balanced = False,
    want: Annotated[
        str | None, typer.Option(help="In place of ε: how sharp answers shall be, for example 'share ± 0.5 points'.")
    ] = None,
    read: Read = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(help="Beside it: 'epsilon=2' or 'unit=person:ID,5'. May be repeated."),
    ] = None,
    readable: Annotated[
        bool, typer.Option(help="First ask, for 2 % of the budget, whether columns can be read as declared.")
    ] = True,
    count_broken: CountBroken = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write the plan; '-': standard output.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Price a release before any row is read: shares, noise, bytes, expected error, how sharp answers will be."""
    from dpmerf.accounting.unit import Unit
    from dpmerf.evaluate import verdict
    from dpmerf.inference.predict import in_words, sharpness
    from dpmerf.inference.want import Want, least_epsilon
    from dpmerf.methods import broken_counted
    from dpmerf.methods.presets import make_plan
    from dpmerf.methods.readable_first import in_doubt, readable_first
    from dpmerf.schema import Schema

    if (persons := persons_of(schema)) is not None:
        plan_persons(persons, epsilon, delta, rows, neighbours, output, quiet, as_json)
        return
    declared, protected = (
        labelled(Schema.load(schema), label).with_reading(told_reading(read)),
        Unit.parse(unit, neighbours),
    )

    def make(at: float, protected: Unit = protected) -> Plan:
        made = make_plan(declared, at, delta, rows=rows, unit=protected, method=method, balanced=balanced)
        made = broken_counted.count_broken(made, count_broken or ())
        return readable_first(made, in_doubt(declared, None, False)) if readable else made

    if (epsilon is None) == (want is None):
        raise PlanError("name the budget with --epsilon, or how sharp answers shall be with --want")
    made = make(epsilon) if epsilon is not None else least_epsilon(Want.parse(want or ""), make)
    if str(output) == "-":
        print(made.document(), end="")
        return
    lines = verdict.compared({"this plan": made, **_others(compare, made, make, neighbours)}) if compare else []
    if output is not None:
        guard(output, lambda: made.save(output))
    if as_json:
        more = {"half_widths": sharpness(made).to_json(), "visible": verdict.foreseen(made).to_json()}
        beside = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]] if lines else []
        print(json.dumps({**made.summary(), **more, **({"compared": beside} if lines else {})}, ensure_ascii=False))
    elif not quiet:
        sharp = sharpness(made)
        words = [*in_words(sharp), *verdict.in_words(verdict.foreseen(made), sharp)]
        _print_plan(made, words, output)
        _print_compared(lines)


def _others(told: list[str] | None, made: Plan, make: Any, neighbours: str) -> dict[str, Plan]:
    """The plans that stand beside one, by what differs."""
    from dpmerf.accounting.unit import Unit

    found = {}
    for one in told or ():
        key, _, value = one.partition("=")
        try:
            if key == "epsilon":
                found[one] = make(float(value), made.unit)
            elif key == "unit":
                found[one] = make(made.epsilon, Unit.parse(value, neighbours))
            else:
                raise ValueError
        except ValueError:
            raise PlanError(f"--compare {one}: write epsilon=2, or unit=row, or unit=person:COLUMN,ROWS") from None
    return found


def _print_compared(lines: list[tuple[str, ...]]) -> None:
    if lines:
        from rich.table import Table

        table = Table(*lines[0], title="Side by side")
        for line in lines[1:]:
            table.add_row(*line)
        PlainConsole().print(table)


def _print_plan(made: Plan, sharp: list[str], output: Path | None) -> None:
    from rich.table import Table

    found = made.summary()
    console = PlainConsole()
    table = Table("stage", "share", "what is measured", "coordinates", "noise per count", title="What the budget buys")
    for stage in found["stages"]:
        for i, block in enumerate(stage["blocks"]):
            first = (stage["name"], f"{stage['share']:.0%}") if i == 0 else ("", "")
            table.add_row(*first, block["name"], f"{block['coordinates']:,}", f"±{block['noise']:.1f}")
    console.print(table)
    error = found["expected_error"]
    print(f"(ε, δ) = ({made.epsilon:g}, {made.delta:g}), μ = {made.mu:.4f}, noise multiplier σ/Δ = {1 / made.mu:.4f}")
    for loss_range in made.selections:
        print(f"A column is chosen by noisy scores, loss range {loss_range:.4f}; composed with μ it makes up (ε, δ).")
    print(f"δ added by the discrete sampler, included: {made.discrete_delta:.1e}")
    print(f"{made.unit.describe()} Planned for {made.rows:,} rows.")
    print(f"Size: {found['coordinates']:,} coordinates, {found['bytes']:,} bytes.")
    if error is not None:
        print(
            f"Proposition 1 for {error['dim']:,} Fourier features: error at most {error['tight_bound']:.3g} "
            f"(the paper's bound: {error['paper_bound']:.3g}); recommended D = {error['recommended_dim']:,}."
        )
    for line in sharp:
        print(line)
    for warning in found["warnings"]:
        print(f"Note: {warning}.")
    if output is not None:
        print(f"Plan written to {output}.")
