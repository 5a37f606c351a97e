"""The worker's sign of life: the lease is renewed while the work goes on, and a job that was lost is noticed."""

from __future__ import annotations

import logging
import threading
import time

from sqlalchemy.exc import SQLAlchemyError

from server.claims import Claim, Claims
from server.fleet import Fleet

LOOK_SECONDS = 0.5
"""How long a canceled job may go unnoticed."""
log = logging.getLogger("superopt.worker")


class Pulse(threading.Thread):
    def __init__(self, worker: str, claims: Claims, fleet: Fleet | None, lease: float) -> None:
        """Without a `fleet`, somebody else tells it that the worker is there."""
        super().__init__(name="pulse", daemon=True)
        self._worker, self._claims, self._fleet, self._lease = worker, claims, fleet, lease
        self._claim: Claim | None = None
        self._holds_until = self._next_beat = 0.0
        self._over = threading.Event()
        self.lost = threading.Event()
        """The job under way is no longer ours: canceled, or taken for dead."""

    def begin(self, claim: Claim) -> None:
        self.lost.clear()
        self._holds_until = time.monotonic() + self._lease
        self._claim = claim
        self._next_beat = 0.0

    def end(self) -> None:
        self._claim = None
        self._next_beat = 0.0

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            claim = self._claim
            asked = time.monotonic()
            beat = asked >= self._next_beat
            try:
                if claim is not None:
                    if not (self._claims.renew(claim) if beat else self._claims.holds(claim)):
                        self._lose(claim)
                    elif beat:
                        self._holds_until = asked + self._lease
                if beat:
                    if self._fleet is not None:
                        self._fleet.beat({self._worker: None if claim is None else claim.job.id})
                    self._next_beat = asked + self._lease / 3
            except SQLAlchemyError as error:
                log.warning("the database did not answer: %s", type(error).__name__)
            if claim is not None and time.monotonic() > self._holds_until:
                self._lose(claim)  # nobody could tell us that it is still ours

    def _lose(self, claim: Claim) -> None:
        if claim is self._claim:
            self.lost.set()
