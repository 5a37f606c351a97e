"""Around every request: an id, headers that keep a browser out of trouble, one line in the log."""

from __future__ import annotations

import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.problems import MEDIA_TYPE, Problem

SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_JOB = re.compile(r"/v1/jobs/([0-9a-f]{32})")
_QUIET = ("/livez", "/readyz", "/metrics")
log = logging.getLogger("superopt.api")


class Around:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        id = given if _ID.fullmatch(given) else uuid.uuid4().hex[:16]
        started, answered = time.monotonic(), {"status": 0, "job": ""}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = MutableHeaders(scope=message)
                answered["status"] = message["status"]
                answered["job"] = _job(scope["path"]) or _job(told.get("location", told.get("content-location", "")))
                told["X-Request-ID"] = id
                for name, value in SECURITY.items():
                    told.setdefault(name, value)
                told.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            if "content-length" in headers and "transfer-encoding" in headers:
                await _two_lengths(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        finally:
            # The path without its query: whoever puts a secret there has it in no log of ours.
            fields = {
                "request": id, "method": scope["method"], "path": scope["path"][:200], "status": answered["status"],
                "ms": round((time.monotonic() - started) * 1000, 1),
            }  # fmt: skip
            if answered["job"]:
                fields["job"] = answered["job"]
            log.log(logging.DEBUG if scope["path"] in _QUIET else logging.INFO, "request", extra=fields)


async def _two_lengths(scope: Scope, receive: Receive, send: Send) -> None:
    """Where this request ends, a proxy before us may see otherwise than we do; what follows is not listened to."""
    problem = Problem(400, "the request has a Content-Length and a Transfer-Encoding")
    answer = JSONResponse(problem.document(), problem.status, {"Connection": "close"}, MEDIA_TYPE)
    await answer(scope, receive, send)


def _job(path: str) -> str:
    match = _JOB.match(path)
    return match[1] if match else ""
