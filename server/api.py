"""The API as an application; and as a process: `python -m server.api SOCKET PARENT`."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from server.children import end_with_parent
from server.connections import patient_for
from server.database import is_full
from server.headers import Around
from server.logs import set_up_logs
from server.problems import MEDIA_TYPE, Problem
from server.routes import catalog, health, jobs, optimize, page, results
from server.service import Service, open_service
from server.settings import Settings, read_settings
from server.threads import uploading
from server.uploads import is_read
from server.waiting import Waiting
from superopt.runtime.heap import map_large_blocks, share_one_heap
from superopt.version import __version__

ROUTES = (optimize, jobs, results, catalog, health, page)
GRACE_SECONDS = 5
BACKLOG = 2048
log = logging.getLogger("superopt.api")

DESCRIPTION = """Makes ONNX models faster without changing what they compute.

    curl --data-binary @m.onnx -H 'Content-Type: application/octet-stream' http://localhost:8000/v1/optimize -o out.onnx

Errors are problem documents (RFC 9457). Long work is a job: hand it in, follow it, fetch its result."""


def make_app(service: Service) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        app.state.waiting = Waiting(service.database)
        app.state.uploading = uploading()
        yield
        app.state.waiting.close()
        service.database.close()

    app = FastAPI(
        title="superopt",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # it would fetch its scripts from somebody else
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    for module in ROUTES:
        app.include_router(module.router)
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(SQLAlchemyError, _no_database)
    app.add_exception_handler(Exception, _bug)
    return app


async def _answer(request: Request, problem: Problem) -> JSONResponse:
    if not await is_read(request):
        problem.headers["Connection"] = "close"
    return JSONResponse(problem.document(), problem.status, problem.headers, MEDIA_TYPE)


async def _problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return await _answer(request, error)


async def _http(request: Request, error: Exception) -> JSONResponse:
    """What the framework refuses: no such path, no such method."""
    assert isinstance(error, HTTPException)
    headers: Mapping[str, str] = error.headers or {}
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers = {**headers, "Allow": ", ".join(_methods(request))}
    return await _answer(
        request, Problem(error.status_code, HTTPStatus(error.status_code).description, headers=headers)
    )


def _methods(request: Request) -> list[str]:
    """All that this path knows: the framework names those of one route."""
    routes = [route for module in ROUTES for route in module.router.routes if isinstance(route, Route)]
    fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in fitting for method in route.methods or ()})


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = [{"where": list(map(str, e["loc"])), "what": e["msg"]} for e in error.errors()]
    first = f"{'.'.join(found[0]['where'])}: {found[0]['what']}" if found else "the request makes no sense"
    return await _answer(request, Problem(422, first, errors=found))


async def _no_database(request: Request, error: Exception) -> JSONResponse:
    log.error("the database failed", exc_info=error)
    if isinstance(error, SQLAlchemyError) and is_full(error):
        return await _answer(request, Problem(507, "the database's disk is full"))
    return await _answer(request, Problem(503, "the database does not answer", headers={"Retry-After": "5"}))


async def _bug(_: Request, error: Exception) -> JSONResponse:
    """Who asked may still be sending: the connection is closed. The traceback is logged by who called us."""
    problem = Problem(500, "something went wrong here; it is in the log")
    return JSONResponse(problem.document(), problem.status, {"Connection": "close"}, MEDIA_TYPE)


class Server(uvicorn.Server):
    """Lets go of those who wait before it waits for them."""

    def __init__(self, settings: Settings) -> None:
        self.service = open_service(settings)
        self._application = make_app(self.service)
        quiet: dict[str, Any] = {
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "proxy_headers": False,
            "http": patient_for(settings.upload_patience),
        }
        around = Around(self._application)  # outermost, so that the answer to a bug has its headers too
        super().__init__(uvicorn.Config(around, backlog=BACKLOG, timeout_graceful_shutdown=GRACE_SECONDS, **quiet))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        waiting: Waiting | None = getattr(self._application.state, "waiting", None)
        if waiting is not None:
            waiting.close()
        super().handle_exit(sig, frame)


def main() -> None:
    descriptor, parent = map(int, sys.argv[1:])
    end_with_parent(parent)
    map_large_blocks()
    share_one_heap()
    settings = read_settings()
    set_up_logs(settings.log_level)
    Server(settings).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main()
