"""Server: the page on 127.0.0.1, its addresses and its end."""

from __future__ import annotations

import secrets
import shutil
import socket
import traceback
import webbrowser
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dpmerf.app.buying import Buying
from dpmerf.app.guard import Guard
from dpmerf.app.pages import Views
from dpmerf.app.session import Session
from dpmerf.errors import DataError

HOST = "127.0.0.1"


def build(session: Session, token: str, port: int) -> Starlette:
    """The application: everything lives below the token."""
    views = Views(session, token)
    buying = Buying(views)
    routes = [
        Route("/", views.table),
        Route("/open", views.open, methods=["POST"]),
        Route("/columns", views.columns),
        Route("/columns", views.save_columns, methods=["POST"]),
        Route("/columns/check", views.check, methods=["POST"]),
        Route("/buy", buying.page),
        Route("/buy", buying.start, methods=["POST"]),
        Route("/buy/state", buying.state),
        Route("/describe", views.describe, methods=["POST"]),
        Route("/protect", views.protect),
        Route("/protect", views.save_protect, methods=["POST"]),
        Route("/plan", views.plan),
        Route("/plan", views.save_plan, methods=["POST"]),
        Route("/plan/price", views.price, methods=["POST"]),
        Route("/release", views.release),
        Route("/release", views.start, methods=["POST"]),
        Route("/release/state", views.state),
        Route("/result", views.result),
        Route("/file/{what}", views.file),
        Route("/schema.toml", views.schema_file),
        Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
    ]
    guard = Middleware(Guard, token=token, port=port)
    faults: dict[Any, Any] = {Exception: _fault}
    return Starlette(routes=[Mount(f"/{token}", routes=routes)], middleware=[guard], exception_handlers=faults)


async def _fault(request: Request, problem: Exception) -> Response:
    """A fault of ours: say where, never what (a message may quote a cell)."""
    place = traceback.extract_tb(problem.__traceback__)[-1]
    where = f"{type(problem).__name__} at {Path(place.filename).name}:{place.lineno}"
    return PlainTextResponse(f"internal fault ({where}). Please report it\n", status_code=500)


def serve(session: Session, port: int = 0, browser: bool = True) -> None:
    """Serve until Ctrl-C. Files that were sent to the page are removed in the end; what was made stays."""
    token = secrets.token_urlsafe(24)
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((HOST, port))
        except OSError as problem:
            raise DataError(f"port {port} cannot be used: {problem.strerror}. Choose another with --port") from None
        address = f"http://{HOST}:{door.getsockname()[1]}/{token}/"
        print(f"Open {address}\nOnly this machine can, and only with this address. Ctrl-C ends it.", flush=True)
        if browser:
            webbrowser.open(address)
        app = build(session, token, door.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off"))
        try:
            server.run(sockets=[door])
        finally:
            shutil.rmtree(session.folder / ".sent", ignore_errors=True)
