"""Views: what each address of the page answers. A view reads the form, changes the session and shows it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.templating import Jinja2Templates

import dpmerf
from dpmerf.accounting.unit import Unit
from dpmerf.app import forms
from dpmerf.app.jobs import Job
from dpmerf.app.sentences import Verdict, told, verdict
from dpmerf.app.session import LEAST_EPSILON, MOST_EPSILON, Session, attempt
from dpmerf.app.work import release_work
from dpmerf.errors import DpmerfError
from dpmerf.metadata import read as read_metadata
from dpmerf.private.ledger import Ledger

TEMPLATES = Jinja2Templates(directory=Path(__file__).parent / "templates")
STEPS = (
    ("", "Table"),
    ("columns", "Columns"),
    ("protect", "Protect"),
    ("plan", "Plan"),
    ("release", "Release"),
    ("result", "Result"),
)
DOWNLOADS = {"synthetic": "Synthetic rows", "report": "Report", "card": "Guarantee (card)", "dossier": "Dossier"}


@final
@dataclass(frozen=True)
class Views:
    """The addresses below the token."""

    session: Session
    token: str

    def show(self, request: Request, page: str, status: int = 200, **more: Any) -> Response:
        """A page with what all pages need."""
        name = {"": "table"}.get(page, page)
        shared = {
            "root": f"/{self.token}",
            "page": page,
            "steps": STEPS,
            "s": self.session,
            "version": dpmerf.__version__,
            "problem": "",
            "kinds": forms.WORDS,
            "readings": forms.READING,
            "asked": forms.BOXES,
            "asking": forms.ASKING,
            "examples": forms.EXAMPLES,
        }
        return TEMPLATES.TemplateResponse(request, f"{name}.html", {**shared, **more}, status_code=status)

    def go(self, page: str) -> Response:
        return RedirectResponse(f"/{self.token}/{page}", status_code=303)

    async def table(self, request: Request) -> Response:
        return self.show(request, "")

    async def open(self, request: Request) -> Response:
        """Open a table by its path, or by a file that the browser sends."""
        form = await request.form(max_files=1, max_fields=4 + len(forms.READING))
        written = {key: str(form.get(f"reading.{key}") or "")[:200] for key in forms.READING}
        path = str(form.get("path") or "").strip()
        sent = form.get("file")
        if isinstance(sent, UploadFile) and sent.filename:
            path = str(await run_in_threadpool(self._keep, sent))
        if not path:
            return self.show(request, "", 422, problem="Name a table: a path on this machine, or a file to send.")
        _, problem = await run_in_threadpool(attempt, lambda: self.session.open(path, written))
        return self.show(request, "", 422, problem=problem) if problem else self.go("columns")

    def _keep(self, sent: UploadFile) -> Path:
        """A copy beside what is made, for this session; `serve` removes it in the end."""
        folder = self.session.folder / ".sent"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = Path(str(sent.filename).replace("\\", "/")).name[-100:].lstrip(".") or "table.csv"
        path = folder / secrets.token_hex(4) / name
        path.parent.mkdir(mode=0o700)
        with open(path, "xb") as file:
            while part := sent.file.read(1 << 20):
                file.write(part)
        return path

    async def columns(self, request: Request) -> Response:
        if not self.session.ready:
            return self.go("")
        if self.session.buying is not None and self.session.buying.made is not None:
            self.session.buying = None  # what it bought stands in the boxes
        return self.show(request, "columns", found=self._found())

    async def check(self, request: Request) -> Response:
        """All problems of what is typed at the moment, for the page to show at once."""
        self._take(await request.form(max_fields=200_000))
        return JSONResponse(await run_in_threadpool(self._found))

    async def save_columns(self, request: Request) -> Response:
        self._take(await request.form(max_fields=200_000))
        found = await run_in_threadpool(self._found)
        if found["count"]:
            return self.show(request, "columns", 422, found=found, problem=found["words"])
        path = self.session.folder / f"{self.session.stem}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.session.schema_text, encoding="utf-8")
        return self.go("protect")

    def _take(self, form: FormData) -> None:
        """The boxes of the columns; only columns that the table has."""
        for number, name in enumerate(self.session.fields):
            prefix = f"c{number}."
            typed = {k.removeprefix(prefix): str(v) for k, v in form.items() if k.startswith(prefix)}
            if typed:
                self.session.declare(name, typed)
        label = str(form.get("label") or "")
        self.session.label = label if label in self.session.fields else ""
        self.session.rules = str(form.get("rules") or "")[:100_000]

    def _found(self) -> dict[str, Any]:
        """Every problem by column, in words."""
        problems = self.session.problems()
        by_column: dict[str, list[str]] = {}
        for one in problems:
            by_column.setdefault(one.column or "", []).append(told(one))
        numbers = {name: i for i, name in enumerate(self.session.fields)}
        count = len(problems)
        words = (
            "Everything is declared." if not count else f"{count} to do: {', '.join(c for c in by_column if c)[:300]}"
        )
        return {
            "count": count,
            "words": words,
            "general": by_column.pop("", []),
            "columns": {str(numbers[name]): said for name, said in by_column.items() if name in numbers},
            "schema": self.session.schema_text,
        }

    async def describe(self, request: Request) -> Response:
        """Take over what a metadata file says: SDV, Frictionless, a codebook and so on."""
        form = await request.form(max_files=1, max_fields=4)
        sent = form.get("file")
        if not isinstance(sent, UploadFile) or not sent.filename:
            return self.show(
                request,
                "columns",
                422,
                found=self._found(),
                problem="Choose a file that describes the table.",
            )
        path = await run_in_threadpool(self._keep, sent)
        table = str(form.get("table") or "") or None
        found, problem = await run_in_threadpool(attempt, lambda: read_metadata(path, None, table))
        path.unlink()
        problem = problem.replace(str(path), path.name)
        taken = 0 if found is None else self.session.describe(found)
        if not problem and not taken:
            problem = f"{path.name} describes no column of this table."
        if problem:
            return self.show(request, "columns", 422, found=self._found(), problem=problem)
        return self.go("columns")

    async def protect(self, request: Request) -> Response:
        if not self.session.ready:
            return self.go("")
        return self.show(request, "protect", ids=self._ids())

    async def save_protect(self, request: Request) -> Response:
        form = await request.form(max_fields=10)
        person = str(form.get("person") or "")
        most = str(form.get("most_rows") or "1")
        if form.get("unit") == "person" and (
            person not in self.session.fields or not most.isdecimal() or int(most) < 1
        ):
            return self.show(
                request,
                "protect",
                422,
                ids=self._ids(),
                problem="Name the person's column and the most rows, 1 or more.",
            )
        self.session.person = person if form.get("unit") == "person" else ""
        self.session.most_rows = int(most) if most.isdecimal() and int(most) > 0 else 1
        self.session.add_remove = form.get("neighbours") == "add-remove"
        return self.go("plan")

    def _ids(self) -> list[str]:
        return [name for name, boxes in self.session.boxes.items() if boxes.get("kind") == "id"]

    async def plan(self, request: Request) -> Response:
        if not self.session.ready or self.session.problems():
            return self.go("columns")
        verdicts, problem = await run_in_threadpool(attempt, self._verdicts)
        limits = {"least": LEAST_EPSILON, "most": MOST_EPSILON}
        return self.show(request, "plan", verdicts=verdicts or [], problem=problem, limits=limits)

    async def price(self, request: Request) -> Response:
        """The price of what the sliders say at the moment."""
        self._take_budget(await request.form(max_fields=10))
        verdicts, problem = await run_in_threadpool(attempt, self._verdicts)
        return self.show(request, "price", verdicts=verdicts or [], problem=problem)

    async def save_plan(self, request: Request) -> Response:
        self._take_budget(await request.form(max_fields=10))
        verdicts, problem = await run_in_threadpool(attempt, self._verdicts)
        if problem:
            limits = {"least": LEAST_EPSILON, "most": MOST_EPSILON}
            return self.show(request, "plan", 422, verdicts=verdicts or [], problem=problem, limits=limits)
        return self.go("release")

    def _take_budget(self, form: FormData) -> None:
        try:
            epsilon = float(str(form.get("epsilon") or "1"))
        except ValueError:
            epsilon = self.session.epsilon
        self.session.epsilon = min(max(epsilon, LEAST_EPSILON), MOST_EPSILON) if epsilon == epsilon else 1.0
        self.session.delta = str(form.get("delta") or "")[:30]
        self.session.rows = str(form.get("rows") or "")[:30]

    def _verdicts(self) -> list[Verdict]:
        """This plan, half and twice its ε, and the other unit, side by side."""
        s = self.session
        chosen = s.plan()
        rows = chosen.rows
        others = [("half of ε", s.epsilon / 2, s.unit), ("twice ε", s.epsilon * 2, s.unit)]
        if s.person:
            others.append(("protecting a row instead", s.epsilon, Unit.parse("row", s.neighbours)))
        else:
            ids = [name for name in self._ids()][:1]
            others += [
                (f"protecting a person ({i}, 3 rows)", s.epsilon, Unit.parse(f"person:{i},3", s.neighbours))
                for i in ids
            ]
        found = [verdict("your plan", chosen)]
        for name, epsilon, unit in others:
            made, problem = attempt(lambda e=epsilon, u=unit: s.plan(e, u, rows))
            found += [] if problem else [verdict(name, made)]
        return found

    async def release(self, request: Request) -> Response:
        if not self.session.ready or self.session.problems():
            return self.go("columns")
        return self.show(request, "release", state=self._state(), **self.ledger())

    async def start(self, request: Request) -> Response:
        """Spend and release. Only here are rows read, behind the locked door."""
        form = await request.form(max_fields=10)
        if self.session.job is not None and self.session.job.running:
            return self.go("release")
        try:
            self.session.limit = float(str(form.get("limit") or self.session.epsilon))
            plan = await run_in_threadpool(self.session.plan)
            ledger = await run_in_threadpool(self._open_ledger, plan.delta)
        except (DpmerfError, ValueError) as problem:
            words = str(problem) if isinstance(problem, DpmerfError) else "Write the ledger's limit as a number."
            return self.show(request, "release", 422, state=self._state(), problem=words, **self.ledger())
        work = release_work(
            self.session.source,
            plan,
            ledger,
            self.session.output(),
            self.session.seed,
            self.session.stem,
            go_on=bool(form.get("go_on")),
        )
        self.session.job = Job(work)
        return self.go("release")

    def _open_ledger(self, delta: float) -> Ledger:
        path = self.session.ledger
        path.parent.mkdir(parents=True, exist_ok=True)
        return Ledger.load(path) if path.exists() else Ledger.open(path, self.session.limit, delta, self.session.stem)

    def ledger(self) -> dict[str, Any]:
        """What was spent on this table so far."""
        path = self.session.ledger
        found, problem = attempt(lambda: Ledger.load(path).summary()) if path.exists() else (None, "")
        return {"ledger": found, "ledger_problem": problem}

    def _state(self) -> dict[str, Any]:
        return self.session.job.state() if self.session.job is not None else {}

    async def state(self, request: Request) -> Response:
        return JSONResponse(self._state())

    async def result(self, request: Request) -> Response:
        job = self.session.job
        if job is None or job.made is None:
            return self.go("release")
        return self.show(request, "result", made=job.made, downloads=DOWNLOADS)

    async def file(self, request: Request) -> Response:
        """One of the files that were made, by its role; nothing else of the disk."""
        job, what = self.session.job, request.path_params["what"]
        path = (job.made or {}).get(what) if job is not None else None
        if path is None or not path.is_file():
            return PlainTextResponse("there is no such file\n", status_code=404)
        inline = request.query_params.get("show") is not None and path.suffix in (".html", ".pdf", ".md")
        kind = {".html": "text/html", ".md": "text/plain; charset=utf-8"}.get(path.suffix)
        return FileResponse(
            path, filename=path.name, media_type=kind, content_disposition_type="inline" if inline else "attachment"
        )

    async def schema_file(self, request: Request) -> Response:
        if not self.session.ready:
            return self.go("")
        named = {"Content-Disposition": 'attachment; filename="schema.toml"'}
        return PlainTextResponse(self.session.schema_text, headers=named)
