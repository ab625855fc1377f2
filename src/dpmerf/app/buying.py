"""Buying: facts that nobody knows, bought from the rows with noise, and filled into the boxes of the columns."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dpmerf.app.jobs import Job
from dpmerf.app.pages import Views
from dpmerf.app.session import Session, attempt
from dpmerf.app.work import discovery_work
from dpmerf.discovery import Discovery, Purchase
from dpmerf.errors import DpmerfError
from dpmerf.private.ledger import Ledger

USUAL = 0.1  # ε of a purchase


@final
@dataclass(frozen=True)
class Buying:
    """The page behind "buy what nobody knows"."""

    views: Views

    @property
    def _session(self) -> Session:
        return self.views.session

    async def page(self, request: Request) -> Response:
        if not self._session.ready:
            return self.views.go("")
        if self._session.buying is not None and self._session.buying.made is not None:
            return self.views.go("columns")  # it was over before this page was asked for
        return self._shown(request, 200)

    async def start(self, request: Request) -> Response:
        """Spend and look. Rows are read behind the locked door; what comes back are noisy facts."""
        s = self._session
        form = await request.form(max_fields=200_000)
        if not s.ready or (s.buying is not None and s.buying.running):
            return self.views.go("buy")
        wanted = [name for i, name in enumerate(s.fields) if form.get(f"c{i}")]
        s.rows = str(form.get("rows") or "")[:30]
        _, problem = await run_in_threadpool(attempt, lambda: self._begin(form, wanted))
        if problem:
            return self._shown(request, 422, problem, str(form.get("epsilon") or "")[:30])
        return self.views.go("buy")

    async def state(self, request: Request) -> Response:
        return JSONResponse(self._session.buying.state() if self._session.buying is not None else {})

    def _begin(self, form: FormData, wanted: list[str]) -> None:
        s = self._session
        try:
            epsilon, s.limit = float(str(form.get("epsilon") or USUAL)), float(str(form.get("limit") or s.limit))
        except ValueError:
            raise DpmerfError("write ε, and the ledger's budget, as numbers") from None
        if not wanted:
            raise DpmerfError("choose the columns to ask about")
        purchase = s.purchase(wanted, epsilon)
        s.ledger.parent.mkdir(parents=True, exist_ok=True)
        known = s.ledger.exists()
        ledger = Ledger.load(s.ledger) if known else Ledger.open(s.ledger, s.limit, purchase.delta, s.stem)
        purchase = purchase if s.delta.strip() else purchase.within(ledger.epsilon)
        place = _free(s.folder / f"{s.stem}-bought")

        def taken(found: Discovery) -> None:
            s.describe(found.facts)
            s.bought = _command(s, purchase, place)
            left = float(Ledger.load(s.ledger).summary()["remaining_epsilon"])
            s.epsilon = min(s.epsilon, max(float(f"{left * 0.999:.2g}"), 0.01))

        s.buying = Job(discovery_work(s.source, purchase, ledger, place, taken))

    def _shown(self, request: Request, status: int, problem: str = "", asked: str = "") -> Response:
        s = self._session
        gaps = {one.column for one in s.problems()}
        columns = [(i, name, name in gaps) for i, name in enumerate(s.fields) if name != s.person]
        state = s.buying.state() if s.buying is not None else {}
        found: dict[str, Any] = {"columns": columns, "state": state, "usual": asked or f"{USUAL:g}", "problem": problem}
        return self.views.show(request, "buy", status, **found, **self.views.ledger())


def _command(s: Session, purchase: Purchase, place: Path) -> str:
    unit = f" --unit {shlex.quote(s.unit_text)}" if s.person else ""
    return (
        f"dpmerf discover {shlex.quote(s.source)} --epsilon {purchase.epsilon:g} --columns "
        f"{shlex.quote(','.join(purchase.columns))}{unit} --ledger {shlex.quote(str(s.ledger))} "
        f"-o {shlex.quote(str(place.with_suffix('.toml')))}"
    )


def _free(place: Path) -> Path:
    """A folder that is not there yet."""
    number = 1
    while (found := place.with_name(f"{place.name}-{number}")).exists():
        number += 1
    return found
