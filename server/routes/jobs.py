"""Jobs: hand one in, look at it, wait for it, follow it, take it back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from server import choices, events
from server.access import Served, Tenant
from server.problems import Problem
from server.records import Job
from server.routes.answers import IdempotencyKey, Prefer, ended, find, hand_in, problems, told, upload_body, wanted_wait
from server.schemas import JobDocument, JobList, job_document
from server.service import Service
from server.threads import for_upload
from server.waiting import Waiting

KEEP_ALIVE_SECONDS = 15.0
AWAY_SECONDS = 1.0
"""Between two looks whether the database is back."""
router = APIRouter(tags=["jobs"])
EVENT: dict[str, Any] = {
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "event": {"enum": ["state", "stage"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
"""One server-sent event, as OpenAPI describes those."""


@router.post(
    "/v1/jobs",
    status_code=202,
    response_model=JobDocument,
    summary="Hand in a model",
    responses={
        200: {"model": JobDocument, "description": "The job has ended already: known, or waited for"},
        **problems(400, 408, 410, 413, 415, 422, 429, 507),
    },
    openapi_extra={"requestBody": upload_body(choices.schema()), "parameters": choices.parameters()},
)
async def create(
    request: Request, served: Served, tenant: Tenant, prefer: Prefer = None, idempotency_key: IdempotencyKey = None
) -> Response:
    """Takes the model as the body, or a form with the model, its external data files and options.

    Options go into the query or, as JSON, into the form. Equal model, options, device and rules: the answer is known.
    """
    job = await hand_in(request, served, tenant, idempotency_key)
    return await _answer(request, served, job, prefer, {"Location": f"/v1/jobs/{job.id}"})


@router.get(
    "/v1/jobs", response_model=JobList, summary="Your jobs, the newest first", responses=problems(404, 410, 422)
)
def listing(
    served: Served,
    tenant: Tenant,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[str | None, Query(description="id of the last job of the page before")] = None,
) -> JobList:
    after = None if before is None else find(served, tenant, before).id
    found = served.jobs.latest(tenant, limit, after)
    following = f"/v1/jobs?limit={limit}&before={found[-1].id}" if len(found) == limit else None
    return JobList(jobs=[job_document(job, served.settings.retention) for job in found], next=following)


@router.get("/v1/jobs/{id}", response_model=JobDocument, summary="How it stands", responses=problems(404, 410, 422))
async def show(request: Request, served: Served, tenant: Tenant, id: str, prefer: Prefer = None) -> Response:
    job = await run_in_threadpool(find, served, tenant, id)
    return await _answer(request, served, job, prefer, {}, 200)


@router.delete(
    "/v1/jobs/{id}",
    response_model=JobDocument,
    summary="Cancel it, or give up the files of one that has ended",
    responses={204: {"description": "It had ended; its files are given up"}, **problems(404, 410, 422, 507)},
)
async def cancel(request: Request, served: Served, tenant: Tenant, id: str) -> Response:
    known = await run_in_threadpool(find, served, tenant, id)
    job = await for_upload(request, served.jobs.cancel, tenant, known.id)
    if job is None:
        return Response(status_code=204)
    document = await run_in_threadpool(told, served, job)
    return JSONResponse(document.model_dump(mode="json"))


@router.get(
    "/v1/jobs/{id}/events",
    summary="What happens to it, as it happens",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events `state` and `stage`, numbered; Last-Event-ID goes on after one",
            "content": {"text/event-stream": {"itemSchema": EVENT}},
        },
        **problems(400, 404, 410, 422),
    },
)
async def follow(
    request: Request,
    served: Served,
    tenant: Tenant,
    id: str,
    last_event_id: Annotated[str | None, Header(description="go on after this one")] = None,
) -> Response:
    job = await run_in_threadpool(find, served, tenant, id)
    seen = last_event_id or "0"
    if not seen.isdecimal() or len(seen) > 9:
        raise Problem(400, "Last-Event-ID: expected the number of an event")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    # One that the job has not come to is not one of its events: all of them are told.
    number = int(seen) if int(seen) <= job.last_event else 0
    stream = _stream(served, request.app.state.waiting, job, number)
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


async def _answer(
    request: Request, served: Service, job: Job, prefer: str | None, headers: dict[str, str], unfinished: int = 202
) -> Response:
    seconds = wanted_wait(prefer, served.settings.wait_limit, 0.0)
    if seconds > 0:
        headers["Preference-Applied"] = f"wait={seconds:.0f}"
        job = await ended(served, request.app.state.waiting, job, seconds)
    if not job.has_ended:
        headers["Retry-After"] = "1"
    document = await run_in_threadpool(told, served, job)
    status = 200 if job.has_ended else unfinished
    return JSONResponse(document.model_dump(mode="json"), status, headers)


async def _stream(served: Service, waiting: Waiting, job: Job, seen: int) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"

    def later() -> list[events.Event]:
        with served.database.read() as connection:
            return events.after(connection, job.id, seen)

    while not waiting.closing.is_set():
        over = False
        try:
            found = await run_in_threadpool(later)
            goes_on = bool(found) or await _goes_on(served, job, seen)
        except SQLAlchemyError:  # it may be back soon, and whoever listens need not ask again
            await asyncio.sleep(AWAY_SECONDS)
            yield ": the database does not answer\n\n"
            continue
        for event in found:
            seen = event.number
            over = event.kind == "state" and event.data["state"] in ("done", "failed", "canceled")
            yield f"id: {event.number}\nevent: {event.kind}\ndata: {_line(event)}\n\n"
        if over or not goes_on:
            return
        if not await waiting.moved(job.id, seen, KEEP_ALIVE_SECONDS):
            yield ": still here\n\n"


def _line(event: events.Event) -> str:
    data: dict[str, Any] = {"time": event.time, **event.data}
    return json.dumps(data)


async def _goes_on(served: Service, job: Job, seen: int) -> bool:
    """False for a job that ended before the events asked for, or that is no longer kept."""
    try:
        now = await run_in_threadpool(served.jobs.find, job.tenant, job.id)
    except Problem:
        return False
    return not (now.has_ended and now.last_event <= seen)
