"""For whoever runs the service: is it alive, is it ready, what does it count."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from server.access import Served, Tenant
from server.metrics import CONTENT_TYPE, exposition
from server.routes.answers import problems
from server.schemas import Readiness
from server.service import Service

router = APIRouter(tags=["operations"])


@router.get("/livez", summary="The process answers", response_class=Response)
def livez() -> Response:
    return Response("ok\n", media_type="text/plain")


@router.get(
    "/readyz",
    response_model=Readiness,
    summary="Jobs can be taken and done",
    responses={503: {"model": Readiness, "description": "Something is missing"}},
)
def readyz(served: Served) -> Response:
    checks = {"database": _database(served), "store": _store(served)}
    if checks["database"] == "ok":
        checks |= _workers(served)
    found = Readiness(ready=all(c == "ok" for c in checks.values()), checks=checks)
    return JSONResponse(found.model_dump(), 200 if found.ready else 503, {"Cache-Control": "no-store"})


@router.get("/metrics", summary="For Prometheus", response_class=Response, responses=problems())
def metrics(served: Served, _: Tenant) -> Response:
    return Response(exposition(served.database, served.fleet), media_type=CONTENT_TYPE)


def _database(served: Service) -> str:
    try:
        with served.database.read() as connection:
            connection.execute(text("select 1"))
    except SQLAlchemyError as error:
        return type(error).__name__
    return "ok"


def _store(served: Service) -> str:
    try:
        served.blobs.store.probe()
    except OSError as error:
        return error.strerror or type(error).__name__
    return "ok"


def _workers(served: Service) -> dict[str, str]:
    with served.database.read() as connection:
        live = served.fleet.live(connection)
    rules = max((int(w.facts.get("rules", 0)) for w in live), default=0)
    return {"device": "ok" if live else "no worker is at work", "rules": "ok" if rules else "no worker has rules"}
