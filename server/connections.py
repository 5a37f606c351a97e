"""Connections: who opens one must ask for something soon. uvicorn waits for the head of a request for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def patient_for(seconds: float) -> type[asyncio.Protocol]:
    """What `uvicorn.Config` wants as `http`; a head may take so many seconds, however it comes."""

    class Connection(H11Protocol):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            self._hanging_up: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _watch(self) -> None:
            """While a head is awaited the clock runs; it is not wound up again by every byte of it."""
            if self.conn.their_state is not h11.IDLE:
                self._forget()
            elif self._hanging_up is None:
                self._hanging_up = self.loop.call_later(seconds, self.transport.close)

        def _forget(self) -> None:
            if self._hanging_up is not None:
                self._hanging_up.cancel()
                self._hanging_up = None

    return Connection
