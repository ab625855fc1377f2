"""Content: what the dossier says. Everything follows from the release, its ledger and what people declare."""

from __future__ import annotations

import datetime as dt
import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Any, final

import dpmerf
from dpmerf.accounting.gaussian import at_most
from dpmerf.dossier.parts import Blank, Grid, Items, Part, Section, Signatures, Text
from dpmerf.plan import Plan
from dpmerf.release import Release
from dpmerf.report.phrases import percent, small
from dpmerf.schema import AnyColumn
from dpmerf.schema.bought_facts import bought_columns

MOST_COLUMNS = 60  # listed one by one; a wider table is told by its number and the hash of its plan
MOST_VALUES = 6
MOST_RELATIONS, MOST_LETTERS = 12, 160
LIBRARIES = ("torch", "opendp", "numpy", "pyarrow")


@final
@dataclass(frozen=True)
class LedgerFacts:
    """What the ledger says: its limit, what is left, and the entries of this plan."""

    name: str
    epsilon: float
    delta: float
    remaining: float
    entries: tuple[dict[str, Any], ...]

    @staticmethod
    def of(summary: dict[str, Any], plan: Plan) -> LedgerFacts:
        """From a ledger's summary; only entries of this plan are kept."""
        own = tuple(entry for entry in summary["entries"] if entry["plan"] == plan.hash)
        return LedgerFacts(
            str(summary["path"]), summary["epsilon"], summary["delta"], summary["remaining_epsilon"], own
        )


@final
@dataclass(frozen=True)
class Dossier:
    """A title, key facts and numbered sections."""

    title: str
    subtitle: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str


def make_dossier(
    release: Release,
    *,
    name: str,
    hashes: dict[str, str],
    ledger: LedgerFacts | None = None,
    date: dt.date | None = None,
) -> Dossier:
    """The dossier of a verified release. `hashes` are those of its files, by name."""
    plan = release.plan
    day = (date or dt.date.today()).isoformat()
    rows = f"{release.rows:,} (public)" if release.rows is not None else f"about {release.rows_estimate:,.0f} (noisy)"
    facts = (
        ("Data set", name),
        ("Date of this document", day),
        ("Guarantee", f"ε = {plan.epsilon:g}, δ = {small(plan.delta)}"),
        ("Protected", "one row" if plan.unit.person is None else f"one person, by '{plan.unit.person}'"),
        ("Rows", rows),
        ("Plan", plan.hash),
    )
    sections = (
        Section("What is promised", _promise(release)),
        Section("What is not protected", _limits(plan)),
        Section("What was measured, and its price", _measured(release)),
        Section("Ledger", _ledger(plan, ledger)),
        Section("What was declared public", _declared(plan)),
        Section("Origin and integrity", _origin(hashes)),
        Section("Permitted uses (to fill in)", _uses()),
        Section("Draft for a data-protection impact assessment", _assessment(release, name, ledger)),
        Section("Signatures", (Signatures(("Prepared by", "Owner of the data", "Data protection officer")),)),
    )
    footer = f"{name} · {day} · dpmerf {dpmerf.__version__} · plan {plan.hash[:16]}"
    return Dossier("Dossier of a differentially private release", name, facts, sections, footer)


def _promise(release: Release) -> tuple[Part, ...]:
    plan = release.plan
    odds = plan.odds
    who = "row" if plan.unit.person is None else "person"
    selection = " and the selection of a column by noisy scores" if plan.selections else ""
    return (
        Text(plan.unit.describe(), "The unit."),
        Text(
            f"Whether or not one given {who} was in the data, almost the same release would have come out. Someone "
            f"who knows every other row, the software and its settings, and who guesses whether that {who}'s data was "
            f"used, is right at most {percent(odds.accuracy)} of the time; a coin is right 50 %. From even odds their "
            f"belief cannot pass {percent(odds.posterior)}, except with a probability of at most "
            f"{at_most(odds.passed)}.",
            "What it means.",
        ),
        Text(
            "It holds whatever else they know, whatever they compute and for ever; also for every model, every "
            "synthetic row and every report made from the release, in any number.",
            "How far it reaches.",
        ),
        Text(
            f"Discrete Gaussian noise on whole numbers from the operating system's entropy{selection}; "
            f"exact composition, μ = {plan.mu:.6f}; the discrete sampler's part of δ, {plan.discrete_delta:.1e}, is "
            "included. The guarantee was recomputed from the plan for this document.",
            "How it was made.",
        ),
    )


def _limits(plan: Plan) -> tuple[Part, ...]:
    public = "the number of rows" if plan.unit.rows_public else "how many rows are expected"
    several = (
        "A person with several rows: each row is protected, not all of them together."
        if plan.unit.person is None
        else f"A person behind two values of '{plan.unit.person}' counts as two persons; a family or another group "
        "that shares much of its data is not one person."
    )
    return (
        Items(
            (
                "Facts about the population: if smokers fall ill more often, the release says so, of any smoker.",
                f"What was declared public: the schema with its bounds and categories, the plan, and {public}.",
                several,
                "Other releases, charts or copies of the same data that are not in the same ledger.",
                "Scores computed against real rows. They are marked NOT COVERED and must not be published.",
                "The machine on which the release was made, its memory and its files.",
            )
        ),
    )


def _measured(release: Release) -> tuple[Part, ...]:
    rows = tuple(
        (p.stage, f"{p.share:.0%}", f"{p.noise_multiplier:.3f}", f"{p.sensitivity:.4f}", f"{p.coordinates:,}")
        for p in release.plan.prices
    )
    header = ("stage", "share of μ²", "noise ÷ sensitivity", "sensitivity", "numbers released")
    return (Grid(header, rows, (2, 1, 1.4, 1.2, 1.4)),)


def _ledger(plan: Plan, ledger: LedgerFacts | None) -> tuple[Part, ...]:
    if ledger is None:
        return (
            Text(
                "No ledger was given to this document. Without one nobody can say what else was released from these "
                "data, and the guarantee above is that of this release alone."
            ),
            Blank("Other releases of the same data, and their ε", 2),
        )
    limit = (
        f"Limit of the data set: ε = {ledger.epsilon:g} at δ = {small(ledger.delta)}. "
        f"Left: ε = {ledger.remaining:.4g}. File: {ledger.name}."
    )
    if not ledger.entries:
        return (Text(limit), Text("This ledger has no entry of this plan: the release was charged elsewhere, or not."))
    header = ("time (UTC)", "who", "purpose", "μ", "plan")
    rows = tuple((e["time"], e["who"] or "–", e["purpose"], f"{e['mu']:.6f}", e["plan"][:16]) for e in ledger.entries)
    return (Text(limit), Grid(header, rows, (1.6, 1.0, 1.6, 0.8, 1.2)))


def _declared(plan: Plan) -> tuple[Part, ...]:
    columns = plan.schema.columns
    rows = tuple((name, c.kind, _facts(c), "yes" if c.nullable else "no") for name, c in columns.items())
    more = len(rows) - MOST_COLUMNS
    parts: list[Part] = [
        Text(
            "Bounds and categories were declared by people, not looked up in the rows. They are published as they are."
        )
    ]
    parts.append(Grid(("column", "kind", "declared", "may be null"), rows[:MOST_COLUMNS], (1.6, 0.9, 3.2, 0.8)))
    if more > 0:
        parts.append(Text(f"… and {more:,} more columns: see the schema inside release.json."))
    if relations := plan.schema.relations:
        parts.append(Text("Every synthetic row keeps what was declared between columns:"))
        parts.append(Items(tuple(_short(relation.words) for relation in relations[:MOST_RELATIONS])))
        if (rest := len(relations) - MOST_RELATIONS) > 0:
            parts.append(Text(f"… and {rest:,} more relations."))
    if bought := bought_columns(plan.schema):
        names = ", ".join(bought[:MOST_VALUES]) + (", …" if len(bought) > MOST_VALUES else "")
        parts.append(Text(f"Not declared but bought with a budget of their own: facts of {names}."))
    return tuple(parts)


def _short(words: str) -> str:
    return words if len(words) <= MOST_LETTERS else words[:MOST_LETTERS] + "…"


def _facts(column: AnyColumn) -> str:
    """The public facts of one column, short."""
    said = column.model_dump(mode="json", exclude_defaults=True)
    values = said.pop("values", None)
    if values is not None:
        shown = ", ".join(map(str, values[:MOST_VALUES]))
        told = shown + (f", … ({len(values):,} values)" if len(values) > MOST_VALUES else "")
        return told + (f"; else {said['other']}" if "other" in said else "")
    low, high = said.get("min", said.get("first")), said.get("max", said.get("last"))
    rest = "".join(f", {key} {said[key]}" for key in ("step", "decimals") if key in said)
    return f"{low} to {high}{rest}" if low is not None else "never learned, made up" if column.kind == "id" else ""


def _origin(hashes: dict[str, str]) -> tuple[Part, ...]:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    return (
        Text(f"dpmerf {dpmerf.__version__}, Python {platform.python_version()}, {versions}.", "This document."),
        Grid(("file", "SHA-256"), tuple(hashes.items()), (1, 3.4)),
        Text(
            "The command dpmerf verify recomputes the guarantee from the plan and refuses changed files.", "To check."
        ),
    )


def _uses() -> tuple[Part, ...]:
    return (
        Items(
            (
                "Teaching and training",
                "Development and testing of software",
                "Exploratory analysis; conclusions are checked on the real data",
                "Statistical results with the error that the report states",
                "Publication of the synthetic rows",
            ),
            tick=True,
        ),
        Blank("Recipients"),
        Blank("Not permitted"),
        Blank("Valid until, and who reviews it"),
    )


def _assessment(release: Release, name: str, ledger: LedgerFacts | None) -> tuple[Part, ...]:
    plan = release.plan
    odds = plan.odds
    label = f" and the label '{plan.schema.label}'" if plan.schema.label else ""
    recorded = " and is recorded in the ledger" if ledger is not None and ledger.entries else ""
    left = "Individuals cannot be singled out, linked or inferred beyond the bound of section 1."
    return (
        Text(
            f"The data set {name} ({len(plan.schema.columns)} columns{label}) was read for one release, on "
            "the controller's own machine. Noisy sums were released; synthetic rows are drawn from them and belong "
            "to nobody.",
            "Processing.",
        ),
        Blank("Purpose and legal basis of the processing", 2),
        Text(
            "Synthetic rows are used in place of personal data, so fewer people see the latter. The budget was fixed "
            f"before a row was read{recorded}.",
            "Necessity and proportionality.",
        ),
        Text(
            f"{left} An attacker who knows all other rows gains at most {percent(odds.accuracy - 0.5)} over a coin. "
            "What remains: facts about groups, wrong conclusions from noisy small groups, releases outside the ledger.",
            "Risks.",
        ),
        Text(
            "Differential privacy with exact accounting; a ledger that refuses overspending; no row in logs, messages "
            "or reports; hashes on every file; this dossier.",
            "Measures.",
        ),
        Blank("Groups that may be affected, and consultation of those concerned", 2),
        Blank("Residual risk and decision", 2),
    )
