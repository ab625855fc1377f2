"""Guard: who may talk to the page. This machine, with the token, from the page itself; everybody else is refused."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'self'; "
    "base-uri 'none'",
    "Referrer-Policy": "same-origin",  # the address holds the token
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Refuses a request without the token, for another host (DNS rebinding) or sent by another site's page."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        why = self._refused(scope)
        if why:
            await PlainTextResponse(f"refused: {why}\n", status_code=403, headers=HEADERS)(scope, receive, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {k.lower().encode(): v.encode() for k, v in HEADERS.items()}
                kept = [(k, v) for k, v in message["headers"] if k.lower() not in own]
                message["headers"] = [*kept, *own.items()]
            await send(message)

        await self._app(scope, receive, guarded)

    def _refused(self, scope: Scope) -> str:
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        client = scope.get("client")
        if client is not None and client[0] not in ("127.0.0.1", "testclient"):
            return "only this machine may use the page"
        host = headers.get("host", "")
        if host not in self._hosts:
            return "open the page by the address that `dpmerf app` printed"
        given = scope["path"].split("/")[1] if scope["path"].count("/") > 1 else ""
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return "the address lacks its token: open the one that `dpmerf app` printed"
        if scope["method"] not in ("GET", "HEAD"):
            origin = headers.get("origin", f"http://{host}")
            if origin != f"http://{host}" or headers.get("sec-fetch-site", "same-origin") not in (
                "same-origin",
                "none",
            ):
                return "the request came from another page"
        return ""
