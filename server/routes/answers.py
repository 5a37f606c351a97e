"""What the routes have in common: jobs as documents, headers that clients send, problems in the OpenAPI document."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

from fastapi import Header, Request
from starlette.concurrency import run_in_threadpool

from server import events, results
from server.choices import chosen, from_query
from server.jobs import Order
from server.problems import MEDIA_TYPE, Problem
from server.records import File, Job, files_of_job, files_of_result
from server.schemas import JobDocument, ProblemDocument, job_document
from server.service import Service
from server.spool import not_stored
from server.threads import for_upload
from server.uploads import FORM, RAW, receive
from server.waiting import Waiting

LOG_LINES = 50
_ID = re.compile(r"[0-9a-f]{32}")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,9})\"?(?=$|[,;\s])")

Prefer = Annotated[
    str | None,
    Header(description="`wait=SECONDS`: answer when the job has ended, or after so long", examples=["wait=30"]),
]
IdempotencyKey = Annotated[
    str | None, Header(description="a name for this request: sent again under it, it is the same job", max_length=255)
]

WHY = {
    400: "The request does not parse",
    401: "A token is needed, or this one is not valid",
    403: "Not from here",
    404: "There is no such thing",
    408: "The upload stalled",
    409: "The job is not in a state for that",
    410: "It was there, and is no longer kept",
    413: "Too large",
    415: "Neither a model nor a form",
    416: "The file has no such bytes",
    422: "The model or an option makes no sense",
    429: "Too many jobs are waiting; come back after Retry-After seconds",
    503: "The database or the store does not answer",
    507: "No room on the disk",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of a route."""
    content = {MEDIA_TYPE: {"schema": ProblemDocument.model_json_schema()}}
    return {status: {"description": WHY[status], "content": content} for status in (*statuses, 401, 403, 503)}


def upload_body(options: dict[str, Any]) -> dict[str, Any]:
    """The request body of a route that takes a model, for the OpenAPI document."""
    binary = {"type": "string", "format": "binary"}
    form = {
        "type": "object",
        "required": ["model"],
        "properties": {
            "model": {**binary, "description": "the .onnx file"},
            "data": {
                "type": "array", "items": binary,
                "description": "external data files, each with the file name that the model's tensors give",
            },
            "options": options,
        },
    }  # fmt: skip
    content = {
        RAW[0]: {"schema": binary},
        FORM: {"schema": form, "encoding": {"options": {"contentType": "application/json"}}},
    }
    return {"required": True, "content": content}


async def hand_in(request: Request, served: Service, tenant: str, key: str | None) -> Job:
    """Receive an upload and make it a job."""
    if key is not None and not _KEY.fullmatch(key):
        raise Problem(400, "Idempotency-Key: expected up to 255 visible ASCII characters")
    given = from_query(request.query_params.multi_items())
    if given:
        chosen(given, served.settings)  # refused before the upload, if at all
    if key is None:
        await for_upload(request, served.jobs.need_room, tenant)
    upload = await receive(request, served.settings, served.spool)
    try:
        twice = sorted(set(given) & set(upload.options))
        if twice:
            raise Problem(422, f"{twice[0]}: is given both in the query and in the form")
        options = chosen({**given, **upload.options}, served.settings)

        def submit() -> Job:
            try:
                for file in upload.files.values():
                    served.blobs.keep(file)
            except OSError as error:
                raise not_stored(error) from None
            files = tuple(File(name, f.digest, f.size) for name, f in upload.files.items())
            return served.jobs.submit(Order(tenant, files, options.as_json(), options.target, key))

        return await for_upload(request, submit)
    finally:
        upload.discard()


def wanted_wait(prefer: str | None, limit: float, otherwise: float) -> float:
    match = None if prefer is None else _WAIT.search(prefer)
    return min(limit, float(match[1]) if match else otherwise)


async def ended(served: Service, waiting: Waiting, job: Job, seconds: float) -> Job:
    """The job when it has ended, or as it is after so many seconds."""
    loop_until = _now() + seconds
    while not job.has_ended and _now() < loop_until and not waiting.closing.is_set():
        await waiting.moved(job.id, job.last_event, loop_until - _now())
        job = await run_in_threadpool(served.jobs.find, job.tenant, job.id)
    return job


def find(served: Service, tenant: str, id: str) -> Job:
    if not _ID.fullmatch(id):
        raise Problem(404, "there is no such job")
    return served.jobs.find(tenant, id)


def told(served: Service, job: Job) -> JobDocument:
    """The job with its files, its result and its log."""
    with served.database.read() as connection:
        return job_document(
            job,
            served.settings.retention,
            files=files_of_job(connection, job.id),
            result=() if job.result is None else files_of_result(connection, job.result),
            summary=None if job.result is None else dict(results.summary(connection, job.result)),
            events=events.latest(connection, job.id, LOG_LINES),
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
