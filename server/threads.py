"""Threads for what blocks. Who changes something waits for others who do; whoever only looks at a job never waits for
them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar, TypeVarTuple

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.requests import Request

UPLOADING = 8
"""Threads for uploads, and for what else writes: they wait, for the disk and for the one who writes to the database."""
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def uploading() -> CapacityLimiter:
    """Of an application, for as long as it runs."""
    return CapacityLimiter(UPLOADING)


async def for_upload(request: Request, call: Callable[[*Ts], T], *arguments: *Ts) -> T:
    limiter: CapacityLimiter = request.app.state.uploading
    return await anyio.to_thread.run_sync(partial(call, *arguments), limiter=limiter)
