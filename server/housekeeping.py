"""What has to be done now and then: leases of dead workers, jobs past their time, files of killed processes."""

from __future__ import annotations

import logging
import threading
import time

from sqlalchemy.exc import SQLAlchemyError

from server.alone import tried_alone
from server.blobs import Blobs
from server.claims import Claims
from server.database import Database
from server.retention import expire
from server.settings import Settings
from server.spool import sweep

EXPIRE_SECONDS = 60.0
log = logging.getLogger("superopt.housekeeping")


class Housekeeping(threading.Thread):
    """Every worker does it; done twice at once it does no harm."""

    def __init__(self, settings: Settings, database: Database, blobs: Blobs, claims: Claims) -> None:
        super().__init__(name="housekeeping", daemon=True)
        self._settings, self._database, self._blobs, self._claims = settings, database, blobs, claims
        self._over = threading.Event()
        self._expire_at = 0.0

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(self._settings.lease / 3):
            try:
                lost = self._claims.sweep()
                if lost:
                    log.warning("took jobs back from workers that said nothing more", extra={"jobs": lost})
                if time.monotonic() >= self._expire_at:
                    with tried_alone(self._database, "housekeeping") as mine:
                        if mine:
                            expire(self._database, self._blobs, self._settings.retention)
                    sweep(self._settings.folder / "spool")
                    self._expire_at = time.monotonic() + EXPIRE_SECONDS
            except (SQLAlchemyError, OSError) as error:
                log.warning("housekeeping failed: %s", type(error).__name__)
