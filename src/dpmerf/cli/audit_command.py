"""The command `dpmerf audit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dpmerf.audit.run import Audit


def audit_command(
    plan: Annotated[Path, typer.Option("--plan", help="Plan from `dpmerf plan`.")],
    minutes: Annotated[float, typer.Option("--minutes", help="How long to try. More time, sharper bounds.")] = 2.0,
    seed: Annotated[int, typer.Option("--seed", help="Seed for the made-up rows; the noise takes none.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Attack a plan with canaries: release, train and sample made-up rows, and set what leaks beside the claim.

    Exits with 1 if something contradicts the claim. No data is read and no budget is spent.
    """
    from dpmerf.audit.person_audit import audit_persons
    from dpmerf.audit.run import audit
    from dpmerf.plan.person_plan import PersonPlan, load_plan
    from dpmerf.progress import Bars

    priced, bars = load_plan(plan), Bars(not quiet and not as_json)
    of_persons = isinstance(priced, PersonPlan)
    found = (
        audit_persons(priced, minutes, seed, bars)
        if isinstance(priced, PersonPlan)
        else audit(priced, minutes, seed, bars)
    )
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    elif not quiet:
        typer.echo(words(found, of_persons))
    if not found.holds:
        raise typer.Exit(1)


def words(a: Audit, of_persons: bool = False) -> str:
    """The audit in plain words."""
    lines = [
        f"Claim: ({a.epsilon:g}, {a.delta:g})-DP, mu = {a.mu:.4f}. No attack may guess right more than "
        f"{a.best_accuracy:.1%} of the time.",
        *(["One column is chosen by noisy scores: only the attack on synthetic rows sees it."] if a.choices else []),
        f"Canary: two neighbouring tables that use {a.reached:.1%} of the claimed mu.",
        f"Attack on {2 * a.attack.trials:,} noisy vectors (likelihood ratio, all but one unit known): epsilon is at "
        f"least {a.attack_epsilon:.3f} with {a.attack.confidence:.0%} confidence (mu {a.attack.lower:.4f} to "
        f"{a.attack.upper:.4f}).",
        f"Noise: {a.noise_ratio:.4f} times what was claimed, so epsilon is at least {a.noise_epsilon:.3f}.",
    ]
    if of_persons:
        lines.append("Synthetic histories are made from these vectors alone: they are not attacked by themselves.")
    elif a.rows is None or a.attribute is None:
        lines.append("Attack on synthetic rows: no time for it. Give more minutes.")
    else:
        lines.append(
            f"Attack on synthetic rows of {2 * a.rows.trials:,} models: members were flagged "
            f"{a.rows.true_positive_rate:.1%} of the time, non-members {a.rows.false_positive_rate:.1%}; "
            f"epsilon is at least {a.rows.epsilon_lower:.3f}."
        )
        lines.append(
            f"Guessing the canary's secret value from synthetic rows: right {a.attribute[0]:.1%} of the time with it "
            f"in the data, {a.attribute[1]:.1%} without it (the honest baseline: what anyone could guess)."
        )
    lines.append(
        "Nothing contradicts the claim. An audit can refute a claim, never prove it: the proof is in docs/proof.md."
        if a.holds
        else "THE CLAIM IS CONTRADICTED. Do not use this version; report it (SECURITY.md)."
    )
    return "\n".join(lines)
