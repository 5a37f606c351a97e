"""Stored files as answers: whole or in part, with their digest as entity tag, never half."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import BinaryIO

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from server.problems import Problem
from server.records import File
from server.store import CHUNK, Store

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def file_answer(request: Request, store: Store, file: File, media_type: str, name: str) -> Response:
    """The file; `name` is what a browser would save it as. Opened before the first byte of the answer is sent."""
    tag = f'"{file.digest}"'
    plain = base64.b64encode(bytes.fromhex(file.digest)).decode()
    headers = {
        "ETag": tag,
        "Digest": f"sha-256={plain}",
        "Repr-Digest": f"sha-256=:{plain}:",
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    if has_tag(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=304, headers=headers)
    wanted = _wanted(request, tag, file.size)
    start, stop = (0, file.size) if wanted is None else wanted
    headers["Content-Length"] = str(stop - start)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{file.size}"
    status = 200 if wanted is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=media_type)
    try:
        source = store.open(file.digest)
    except FileNotFoundError:
        raise Problem(410, "the files of this job are no longer kept") from None
    except OSError:
        raise Problem(503, "the store does not answer", headers={"Retry-After": "5"}) from None
    return StreamingResponse(_pieces(source, start, stop), status, headers, media_type)


def has_tag(listed: str, tag: str) -> bool:
    """Whether an If-None-Match names it."""
    return any(entry.strip().removeprefix("W/") in (tag, "*") for entry in listed.split(","))


def _wanted(request: Request, tag: str, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last; None for the whole. Several ranges at once are answered with the whole."""
    condition = request.headers.get("if-range")
    match = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if match is None or match.groups() == ("", "") or (condition is not None and condition.strip() != tag):
        return None
    first, last = match.groups()
    if first == "":  # so many from the end
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None  # no range at all, says RFC 9110
    if start >= size or start >= stop:
        raise Problem(416, f"the file has {size} bytes", headers={"Content-Range": f"bytes */{size}"})
    return start, stop


def _pieces(source: BinaryIO, start: int, stop: int) -> Iterator[bytes]:
    with source:
        source.seek(start)
        while start < stop:
            piece = source.read(min(CHUNK, stop - start))
            if not piece:
                raise OSError("a stored file is shorter than it was")
            start += len(piece)
            yield piece
