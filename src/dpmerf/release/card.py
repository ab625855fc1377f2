"""The card: what a release promises, on one page of plain words. Every figure follows from the plan."""

from __future__ import annotations

from dpmerf.accounting.gaussian import at_most
from dpmerf.features.algebra import BITS
from dpmerf.plan import Plan
from dpmerf.schema.bought_facts import bought_words

FORMAT = 4  # of the words: a card of another one is not compared word by word
NOT_PRIVATE = "NOT PRIVATE: the noise came from a source for tests and protects nobody"


def card(plan: Plan, noise: str, private: bool, rows: str, column: str | None, charged: str) -> str:
    """Markdown. `column` is the one that was chosen, if there is a selection; `charged` says which ledger was."""
    odds = plan.odds
    test = "" if private else f"\n> {NOT_PRIVATE}.\n"
    stages = "\n".join(
        f"| {p.stage} | {p.share:.0%} | {p.noise_multiplier:.4f} | {p.sensitivity:.6f} | {p.sigma / 2**BITS:.4f} | "
        f"{p.coordinates:,} |"
        for p in plan.prices
    )
    chosen = "".join(f"the selection of '{column}' (range {r:.6f}) composed with it; " for r in plan.selections)
    return f"""# Guarantee
{test}
This release is ({plan.epsilon:g}, {plan.delta:g})-differentially private.

- **Who is protected.** {plan.unit.describe()}
- **What it means.** Someone who knows every other row, and every detail of this software, and who guesses whether one
  given individual's data was used, is right at most {odds.accuracy:.1%} of the time (a coin: 50 %). From even
  odds their belief cannot pass {odds.posterior:.1%}, except with a probability of at most {at_most(odds.passed)}.
- **What is not protected.** Facts about the whole group (they are what synthetic data is for); the schema and the
  plan; {_open(plan)}; other releases of the same data that are not in the same ledger.
- **How it was accounted.** Gaussian mechanism, exact composition: mu = {plan.mu:.6f}; {chosen}the discrete sampler adds
  {plan.discrete_delta:.1e} to delta, which is included. Noise: {noise}.
{_bought(plan)}- **Ledger.** {charged}
- **Rows.** {rows}. Everything made from this release (models, synthetic rows, tuning) costs nothing more.

| stage | share of mu² | noise multiplier | sensitivity | sigma | coordinates |
|---|---|---|---|---|---|
{stages}
"""


def _open(plan: Plan) -> str:
    """What the unit of privacy leaves open."""
    if plan.unit.person is not None:
        return (
            f"a person under two values of '{plan.unit.person}', or a family that is much alike, together "
            "(the number of rows is noisy)"
        )
    count = (
        "the number of rows"
        if plan.unit.rows_public
        else "the number of rows that was expected (the real one is noisy)"
    )
    return f"{count}; several rows of one person together"


def _bought(plan: Plan) -> str:
    """A line about facts of the schema that have a price of their own."""
    words = bought_words(plan.schema)
    return f"- **Bought facts.** {words}\n" if words else ""
