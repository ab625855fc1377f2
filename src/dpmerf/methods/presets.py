"""Presets: a plan from public facts alone (schema, rows, ε, δ, unit), so that nobody tunes anything."""

from __future__ import annotations

import math

from dpmerf import plugins
from dpmerf.accounting.gaussian import check_delta, check_epsilon, mu_of
from dpmerf.accounting.unit import Unit
from dpmerf.errors import BudgetError, PlanError
from dpmerf.methods import by_tables, few_rows, paper_kernels, picture_kernels, wide_tables
from dpmerf.methods.method import Method, Request
from dpmerf.methods.settings import MethodSettings
from dpmerf.plan import Plan
from dpmerf.schema import Schema

_LIMIT_EPSILON = 1e6  # any promise has ended long before
_LIMIT_ROWS = 2**53  # whole numbers are exact so far
_ASSUMED_ROWS = 10_000  # when nobody says how many rows to expect
METHODS = {
    method.name: method
    for method in (
        Method("tables", "contingency tables and a maximum-entropy model", by_tables.stages, "maxent"),
        Method("few-rows", "tables, and one column selected by noisy scores", few_rows.stages, "maxent"),
        Method("wide", "means and products of groups of columns", wide_tables.stages, "elliptic"),
        Method("paper", "DP-MERF as published, for tables and pictures", paper_kernels.stages, "network"),
        Method("images", "several views of pictures, and their tones", picture_kernels.stages, "pictures", True),
    )
}
_PAPER_IMAGES = Method("paper", METHODS["paper"].words, picture_kernels.paper_stages, "pictures", True)
_OLD_NAMES = {"default": "auto"}


def make_plan(
    schema: Schema,
    epsilon: float,
    delta: float | None = None,
    *,
    rows: int | None = None,
    unit: Unit | None = None,
    method: str = "auto",
    preset: str | None = None,
    balanced: bool = False,
    seed: int = 0,
    settings: MethodSettings | None = None,
) -> Plan:
    """Price a release before any row is read. The schema says which column is the label.

    Parameters
    ----------
    schema : Schema
        The public facts about the table.
    epsilon : float
        The privacy budget, above 0.
    delta : float, optional
        The smaller of 1e-5 and 1/(10 rows) if left out.
    rows : int, optional
        The expected number of rows: a public fact or a guess. What is measured is cut to it.
    unit : Unit, optional
        What is protected; one row, replaced by any other, if left out.
    method : {"auto", "tables", "few-rows", "wide", "paper", "images"}, or a plugin's
        What is measured, and which generator reads it. By default the one that suits the schema and the budget.
    preset : {"default", "paper"}, optional
        The old name of `method`; "default" is "auto".
    balanced : bool
        Classes are known to be equally frequent: their counts are not measured.
    seed : int
        Of random features. Has nothing to do with the noise.
    settings : MethodSettings, optional
        Other tuned numbers than the default ones, for ablations.

    Returns
    -------
    Plan
        With its price, its noise and its size.

    Examples
    --------
    >>> schema = Schema.from_dict({"columns": {"age": {"kind": "integer", "min": 0, "max": 99}}})
    >>> made = make_plan(schema, epsilon=1.0, rows=5_000)
    >>> made.delta, made.method
    (1e-05, 'tables')
    """
    rows = _ASSUMED_ROWS if rows is None else rows
    if not 1 <= rows <= _LIMIT_ROWS:
        said = rows if abs(rows) <= _LIMIT_ROWS else "too large"
        raise PlanError(f"rows is {said}: write the expected number of rows, 1 or more")
    schema.check_ids(rows)
    epsilon = check_epsilon(epsilon)
    if epsilon > _LIMIT_EPSILON:
        raise BudgetError(f"epsilon is {epsilon:g}: that promises nothing. Write a small number, for example 1")
    delta = check_delta(min(1e-5, 0.1 / rows) if delta is None else delta)
    unit = unit or Unit()
    if balanced and schema.measured.label is None:
        raise PlanError("balanced classes need a label: name one with --label or in the schema")
    noise = unit.sensitivity(1.0, math.sqrt(2)) / mu_of(epsilon, delta)  # of a unit-norm table, in counts
    asked = Request(schema.measured, rows, noise, unit, balanced, seed, settings or MethodSettings())
    chosen = choose_method(asked, preset or method)
    return Plan(schema, epsilon, delta, unit, rows, chosen.name, balanced, chosen.stages(asked))


def choose_method(asked: Request, name: str) -> Method:
    """The method of that name, or the one that suits; PlanError if there is none or it is for other data."""
    name, pictures = _OLD_NAMES.get(name, name), asked.schema.image is not None
    if name == "paper" and pictures:
        return _PAPER_IMAGES
    if name == "auto":
        return _suited(asked, pictures)
    found = METHODS.get(name) or plugins.load("methods", name)
    if not isinstance(found, Method):
        known = ", ".join([*METHODS, *plugins.offered("methods")])
        raise PlanError(f"there is no method '{name}'. Choose one of auto, {known}")
    if found.pictures != pictures:
        raise PlanError(f"the method '{name}' is for {'tables' if pictures else 'pictures'}: choose --method auto")
    return found


def _suited(asked: Request, pictures: bool) -> Method:
    if pictures:
        return METHODS["images"]
    if wide_tables.suits(asked):
        return METHODS["wide"]
    return METHODS["few-rows" if few_rows.suits(asked) else "tables"]
