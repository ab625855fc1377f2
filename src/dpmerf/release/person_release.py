"""Person release: the artefact of persons with histories. One release a part, bound together by one guarantee."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import dpmerf
from dpmerf.accounting.gaussian import at_most
from dpmerf.errors import ArtefactError, DpmerfError
from dpmerf.features.algebra import BITS
from dpmerf.folders import read_bytes, read_json, write_folder
from dpmerf.plan import digest
from dpmerf.plan.person_plan import PersonPlan
from dpmerf.release import signature
from dpmerf.release.card import NOT_PRIVATE
from dpmerf.release.release import CARD, NO_LEDGER, Charge, Release
from dpmerf.release.signature import Key
from dpmerf.release.verify import verify
from dpmerf.schema.extended_schema import count_of

FORMAT = 1
DOCUMENT = "persons.json"
_FIELDS = {"format", "kind", "made_with", "plan", "plan_hash", "guarantee", "ledger", "parts", "hash"}


@final
@dataclass(frozen=True)
class PersonRelease:
    """What may leave the building of persons with histories."""

    plan: PersonPlan
    parts: dict[str, Release]
    charge: Charge | None = None

    @property
    def private(self) -> bool:
        """Does all noise come from the source that the guarantee is about?"""
        return all(part.private for part in self.parts.values())

    @property
    def persons_estimate(self) -> float:
        """The number of persons, from noisy tables: of the table of persons, or of the one table there is."""
        return next(iter(self.parts.values())).rows_estimate

    def guarantee(self) -> dict[str, Any]:
        """What is promised, as recomputed from the plan."""
        plan = self.plan
        return {
            **({} if self.private else {"NOT PRIVATE": NOT_PRIVATE}),
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "mu": plan.mu,
            "discrete_delta": plan.discrete_delta,
            "unit": plan.unit.describe(),
            "attacker_accuracy": plan.odds.accuracy,
            "attacker_posterior": plan.odds.posterior,
            "attacker_posterior_passed": plan.odds.passed,
        }

    def card(self) -> str:
        """CARD.md."""
        plan, odds = self.plan, self.plan.odds
        test = "" if self.private else f"\n> {NOT_PRIVATE}.\n"
        rows = "\n".join(
            f"| {name} | {part.unit.max_rows} | {price.stage} | {price.mu:.4f} | {price.sensitivity:.6f} | "
            f"{price.sigma / 2**BITS:.4f} | {price.coordinates:,} |"
            for name, part in plan.parts.items()
            for price in part.prices
        )
        return f"""# Guarantee
{test}
This release is ({plan.epsilon:g}, {plan.delta:g})-differentially private for a person with all of their rows.

- **Who is protected.** {plan.unit.describe()}
- **What it means.** Someone who knows everybody else's rows, and every detail of this software, and who guesses whether
  one given person's data was used, is right at most {odds.accuracy:.1%} of the time (a coin: 50 %). From even odds
  their belief cannot pass {odds.posterior:.1%}, except with a probability of at most {at_most(odds.passed)}.
- **How much a person counts.** By the mean of their rows in each table: as much as one row, whatever the number of
  rows. The number of rows is itself a column, and as noisy as any other.
- **What is not protected.** Facts about the whole group; the schema and the plan; a person under two values of
  '{plan.persons.key}', or a family that is much alike, together; other releases of the same data that are not in the
  same ledger.
- **How it was accounted.** Gaussian mechanism, exact composition over all parts: mu = {plan.mu:.6f}; the discrete
  sampler adds {plan.discrete_delta:.1e} to delta, which is included.
- **Ledger.** {self.charge or NO_LEDGER}
- **Persons.** About {self.persons_estimate:,.0f} (noisy). Everything made from this release costs nothing more.

| table | rows used | stage | mu | sensitivity | sigma | coordinates |
|---|---|---|---|---|---|---|
{rows}
"""

    def files(self) -> dict[str, bytes]:
        """The artefact as named files; those of a part under its name."""
        inside = {f"{name}/{file}": data for name, part in self.parts.items() for file, data in part.files().items()}
        document: dict[str, Any] = {
            "format": FORMAT,
            "kind": "release of persons",
            "made_with": f"dpmerf {dpmerf.__version__}",
            "plan": self.plan.to_json(),
            "plan_hash": self.plan.hash,
            "guarantee": self.guarantee(),
            "ledger": None if self.charge is None else asdict(self.charge),
            "parts": {name: digest(json.loads(part.files()["release.json"])) for name, part in self.parts.items()},
        }
        document["hash"] = digest(document)
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        return {DOCUMENT: text.encode(), CARD: self.card().encode(), **inside}

    def save(self, path: str | Path, key: Key | None = None) -> None:
        """Write the folder in one step. A key signs it."""
        files = self.files()
        if key is not None:
            ledger = None if self.charge is None else asdict(self.charge)
            files[signature.FILE] = key.sign(files, self.plan.hash, ledger)
        write_folder(path, files)

    @staticmethod
    def load(path: str | Path, *, test_noise: bool = False) -> PersonRelease:
        """Read a release and recompute its guarantee; `verify_persons` looks closer."""
        folder = Path(path)
        document = read_json(folder / DOCUMENT, "release of persons")

        def refuse(what: str) -> ArtefactError:
            return ArtefactError(f"{folder}: {what}. Do not use it; take the original again")

        try:
            if set(document) != _FIELDS or document["format"] != FORMAT:
                raise refuse(f"not a release of persons of format {FORMAT}")
            if digest({k: v for k, v in document.items() if k != "hash"}) != document["hash"]:
                raise refuse("its description was changed (hash differs)")
            plan = PersonPlan.from_json(document["plan"], f"{folder}: the plan")
            if plan.hash != document["plan_hash"]:
                raise refuse("its plan was changed")
            parts = {name: Release.load(folder / name, test_noise=test_noise) for name in plan.parts}
            for name, part in parts.items():
                if part.plan != plan.parts[name] or part.charge is not None:
                    raise refuse(f"its part '{name}' has another plan")
                if digest(read_json(folder / name / "release.json", "release")) != document["parts"][name]:
                    raise refuse(f"its part '{name}' was changed")
            charge = document["ledger"]
            release = PersonRelease(plan, parts, None if charge is None else Charge(**charge))
            if json.loads(json.dumps(release.guarantee())) != document["guarantee"]:
                raise refuse("its guarantee does not follow from its plan")
            return release
        except DpmerfError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise refuse("it is damaged") from None


def is_person_release(path: str | Path) -> bool:
    """Does a folder hold a release of persons?"""
    return (Path(path) / DOCUMENT).exists()


def verify_persons(path: str | Path, signed_by: str | Path | None = None) -> tuple[PersonRelease, str | None]:
    """Check a release of persons and every part of it, or say what is wrong; who signed it, if somebody did."""
    folder = Path(path)
    release = PersonRelease.load(folder)
    allowed = {DOCUMENT, CARD, signature.FILE, "model.json", *release.parts}
    if extra := {p.name for p in folder.iterdir()} - allowed:
        raise ArtefactError(f"{folder}: '{min(extra)}' is no part of a release: remove it")
    for name in release.parts:
        verify(folder / name)
    if read_bytes(folder / CARD, "release") != release.card().encode():
        raise ArtefactError(f"{folder}: its {CARD} does not say what follows from its plan. Take the original again")
    if signed_by is None and not (folder / signature.FILE).exists():
        return release, None
    files = {name: read_bytes(folder / name, "release") for name in release.files()}
    text = read_bytes(folder / signature.FILE, "signed release")
    key = None if signed_by is None else signature.load_public(signed_by)
    ledger = None if release.charge is None else asdict(release.charge)
    return release, signature.check_signature(text, files, release.plan.hash, ledger, key)


def persons_with_rows(release: PersonRelease) -> dict[str, str]:
    """Table -> the column that says how many of its rows a person has."""
    return {history.name: count_of(history) for history in release.plan.persons.histories}
