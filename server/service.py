"""Everything that a request may need, made once when the process starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from server.blobs import Blobs
from server.database import Database, open_database
from server.fleet import Fleet
from server.jobs import Jobs, Room
from server.settings import Settings
from server.store import open_store
from server.tokens import Tokens


@dataclass(frozen=True)
class Service:
    settings: Settings
    database: Database
    blobs: Blobs
    fleet: Fleet
    jobs: Jobs
    tokens: Tokens
    spool: Path


def open_service(settings: Settings) -> Service:
    database = open_database(settings.database_url)
    fleet = Fleet(database, settings.lease)
    spool = settings.folder / "spool"
    spool.mkdir(parents=True, exist_ok=True)
    return Service(
        settings=settings,
        database=database,
        blobs=Blobs(database, open_store(settings.store_url)),
        fleet=fleet,
        jobs=Jobs(database, fleet, Room(settings.queue, settings.tenant_queue)),
        tokens=Tokens(database),
        spool=spool,
    )
