"""Uploads are streams: whatever their size, the API holds a little of them at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.serving import resident_mib
from tests.server.processes import Running
from tests.server.shop import OCTETS, settings_for, until
from tests.server.world import external, tiny, varint

pytestmark = [pytest.mark.unit, pytest.mark.slow]

SERVE = [sys.executable, "-m", "superopt", "serve"]
LARGE = 128 << 20
SPARE_MIB = 16.0
"""What the heap may grow by on the way; an eighth of the upload."""


def zeros(head: bytes, tail: bytes = b"") -> Iterator[bytes]:
    yield head
    for _ in range(LARGE >> 16):
        yield bytes(1 << 16)
    yield tail


def heavy() -> Iterator[bytes]:
    """A model whose one weight is large: a second graph, merged with the first, has a tensor with raw data."""
    data = b"\x4a" + varint(LARGE)
    tensor = b"\x2a" + varint(len(data) + LARGE) + data
    return zeros(tiny() + b"\x3a" + varint(len(tensor) + LARGE) + tensor)


def form() -> Iterator[bytes]:
    """The same bytes as external data."""
    part = b'--B\r\nContent-Disposition: form-data; name="%b"; filename="%b"\r\n\r\n'
    head = part % (b"model", b"m.onnx") + external("w") + b"\r\n" + part % (b"data", b"w")
    return zeros(head, b"\r\n--B--\r\n")


def test_memory_does_not_grow_with_an_upload(tmp_path: Path) -> None:
    with Running(settings_for(tmp_path, port=0, role="api"), SERVE) as running:
        until(lambda: running.is_up("api"))
        pid = running.pid("api") or 0
        httpx.post(f"{running.url}/v1/jobs", content=tiny(), headers=OCTETS, timeout=600.0)
        most, before = 0.0, resident_mib(pid)

        def watched(pieces: Iterator[bytes]) -> Iterator[bytes]:
            nonlocal most
            for piece in pieces:
                most = max(most, resident_mib(pid))
                yield piece

        form_type = {"Content-Type": "multipart/form-data; boundary=B"}
        for headers, pieces in ((OCTETS, heavy()), (form_type, form())):
            answer = httpx.post(f"{running.url}/v1/jobs", content=watched(pieces), headers=headers, timeout=600.0)
            assert answer.status_code == 202, answer.text
            assert sum(file["bytes"] for file in answer.json()["files"]) > LARGE
        assert max(most, resident_mib(pid)) - before < SPARE_MIB
