"""An API that listens and a worker, over one folder, in threads of the test; jobs are done by a stand-in."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from server.api import Server
from server.devices import Place
from server.settings import Settings, read_settings
from server.worker import Worker
from tests.server.world import TARGETS

STAND_IN = [sys.executable, "-P", str(Path(__file__).with_name("stand_in.py"))]
OFFERED: dict[str, Any] = {"targets": TARGETS, "facts": {"name": "stand-in", "rules": 3}}
OCTETS = {"Content-Type": "application/octet-stream"}


def settings_for(folder: Path, **more: Any) -> Settings:
    return read_settings({"data": str(folder), "lease": 2.0, "attempts": 2, "grace": 0.0} | more, environment={})


class Shop:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.settings = settings_for(folder, **settings)
        listening = socket.create_server(("127.0.0.1", 0))
        self._server = Server(self.settings)
        self._serving = threading.Thread(target=self._server.run, args=([listening],))
        self._serving.start()
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.client = httpx.Client(base_url=self.url, timeout=600.0, follow_redirects=True)
        self.database = self._server.service.database
        self._worker: Worker | None = None
        self._thread: threading.Thread | None = None

    def hire(self) -> None:
        """From now on somebody works."""
        self._worker = Worker(self.settings, Place("cpu"), STAND_IN)
        self._thread = threading.Thread(target=self._worker.run, args=(OFFERED,))
        self._thread.start()

    def close(self) -> None:
        self.client.close()
        self._server.handle_exit(signal.SIGTERM, None)
        self._serving.join(300)
        assert not self._serving.is_alive()
        if self._worker is not None and self._thread is not None:
            self._worker.stop()
            self._thread.join(300)
            assert not self._thread.is_alive()

    def post(self, model: bytes, path: str = "/v1/jobs", **headers: str) -> dict[str, Any]:
        answer = self.client.post(path, content=model, headers=OCTETS | headers)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def ended(self, job: dict[str, Any]) -> dict[str, Any]:
        for _ in range(120):
            answer = self.client.get(f"/v1/jobs/{job['id']}", headers={"Prefer": "wait=5"})
            assert answer.status_code == 200, answer.text
            if answer.json()["ended"] is not None:
                return answer.json()
        raise AssertionError("it did not end")


def until(true: Callable[[], bool], seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
