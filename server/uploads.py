"""A request's body to files on disk, checked before anything is made of it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect, Request

from server.forms import OPTION_BYTES, Form, Upload
from server.names import refuse_overlap, safe_name
from server.problems import Problem
from server.records import MODEL
from server.scan import GivenUp, scan
from server.settings import Settings
from server.spool import Allowance, Sink
from server.threads import for_upload

RAW = ("application/octet-stream", "application/onnx", "application/x-onnx")
FORM = "multipart/form-data"
BATCH = 1 << 18
"""Bytes that are written in one go."""
SENDING = ("POST", "PUT", "PATCH")
LEAST_BYTES = 1 << 14
"""That must come in the time that an upload is waited for."""
REST_BYTES, REST_SECONDS = 64 << 20, 1.0
"""What is still taken of an upload that was refused."""


class _Body(Protocol):
    def write(self, data: bytes) -> None: ...

    def finish(self) -> Upload: ...

    def discard(self) -> None: ...


async def receive(request: Request, settings: Settings, spool: Path) -> Upload:
    """Read the body as it comes; whatever is wrong with it is a `Problem`, and leaves no file behind."""
    kind, boundary = _content_type(request)
    _refuse_length(request, settings)
    allowance = Allowance.of(settings.upload_bytes)
    body: _Body = _Raw(spool, allowance) if kind in RAW else Form(spool, allowance, boundary)
    try:
        async for batch in _batches(request, settings.upload_patience):
            await for_upload(request, body.write, batch)
        upload = await for_upload(request, body.finish)
    except ClientDisconnect:
        await for_upload(request, body.discard)
        raise Problem(400, "the upload was cut off") from None
    except BaseException:
        with contextlib.suppress(OSError):
            body.discard()
        raise
    try:
        await _checked(request, upload, settings)
    except BaseException:
        upload.discard()
        raise
    return upload


def _content_type(request: Request) -> tuple[str, bytes]:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Problem(415, f"Content-Encoding {encoding[:40]!r} is not taken; send the model as it is")
    kind, parameters = parse_options_header(request.headers.get("content-type"))
    name = kind.decode("latin-1")
    if name not in (*RAW, FORM):
        found = f"found {name[:100]}" if name else "found none"
        raise Problem(
            415, f"expected Content-Type {RAW[0]} or {FORM}, {found}", headers={"Accept-Post": f"{RAW[0]}, {FORM}"}
        )
    boundary = parameters.get(b"boundary", b"")
    if name == FORM and not 0 < len(boundary) <= 200:
        raise Problem(400, "the form's Content-Type names no usable boundary")
    return name, boundary


def _refuse_length(request: Request, settings: Settings) -> None:
    """Before a byte is read, where the client says how many there are."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > settings.upload_bytes + OPTION_BYTES:
        limit = settings.upload_bytes
        raise Problem(413, f"the upload is larger than {limit >> 20} MiB", limit_bytes=limit)


async def is_read(request: Request) -> bool:
    """Whether nothing more of the body will come; a short rest is read and thrown away.

    An answer that comes while the client is still sending is easily lost, and who sends for ever must be hung up on.
    """
    told = request.headers.get("content-length", "0")
    if "expect" in request.headers or not told.isdecimal() or int(told) > REST_BYTES:
        return request.method not in SENDING
    rest = 0
    try:
        async with asyncio.timeout(REST_SECONDS):
            async for chunk in request.stream():
                rest += len(chunk)
                if rest > REST_BYTES:
                    return False
    except TimeoutError:
        return False
    except (ClientDisconnect, RuntimeError):  # gone; or read before
        return True
    return True


async def _batches(request: Request, patience: float) -> AsyncIterator[bytes]:
    """Pieces large enough to be worth a write; a client that sends next to nothing for too long is given up."""
    stream = request.stream().__aiter__()
    held, clock = bytearray(), asyncio.get_running_loop().time
    until, came = clock() + patience, 0
    while True:
        try:
            piece = await asyncio.wait_for(anext(stream), max(0.0, until - clock()))
        except StopAsyncIteration:
            break
        except TimeoutError:
            raise Problem(408, f"only {came} bytes came in {patience:g} s") from None
        held += piece
        came += len(piece)
        if came >= LEAST_BYTES:
            until, came = clock() + patience, 0
        if len(held) >= BATCH:
            yield bytes(held)
            held.clear()
            until = clock() + patience  # it was we who were slow
    yield bytes(held)


class _Raw:
    def __init__(self, spool: Path, allowance: Allowance) -> None:
        self._sink = Sink(spool, allowance)

    def write(self, data: bytes) -> None:
        self._sink.write(data)

    def finish(self) -> Upload:
        return Upload({MODEL: self._sink.finish()})

    def discard(self) -> None:
        self._sink.discard()


async def _checked(request: Request, upload: Upload, settings: Settings) -> None:
    """A client that goes away ends it."""
    gone = threading.Event()

    async def listen() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    listening = asyncio.create_task(listen())
    try:
        await for_upload(request, _check, upload, settings, gone.is_set)
    except GivenUp:
        raise Problem(400, "the client went away") from None
    finally:
        listening.cancel()


def _check(upload: Upload, settings: Settings, is_given_up: Callable[[], bool]) -> None:
    """The model must be one, and its data files must be those that came with it."""
    seen = scan(upload.files[MODEL].path, settings.node_limit, is_given_up)
    needed = {safe_name(location) for location in seen.locations}
    given = set(upload.files) - {MODEL}
    refuse_overlap(needed | given)
    missing, unknown = sorted(needed - given), sorted(given - needed)
    if missing:
        shown = ", ".join(missing[:5])
        raise Problem(422, f"external data is missing from the upload: {shown}", missing=missing[:100])
    if unknown:
        raise Problem(422, f"no tensor of the model names {unknown[0]!r}", unknown=unknown[:100])
