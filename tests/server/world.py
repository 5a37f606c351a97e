"""A database, a store and everything over them, in a folder of the test's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server.blobs import Blobs
from server.claims import Claim, Claims, Outcome
from server.database import Database, open_database
from server.fleet import Fleet
from server.jobs import Jobs, Order, Room
from server.records import MODEL, REPORT, File, Job
from server.spool import Allowance, Sink
from server.store import open_store
from superopt.runtime.probe import relu_model

TARGETS = {"auto": "print", "cpu": "print"}
SUMMARY: dict[str, Any] = {"speedup": 1.5, "returned": "optimized", "verdict": "faster"}


@dataclass
class World:
    folder: Path
    url: str
    lease: float = 15.0
    attempts: int = 3
    room: Room = field(default_factory=lambda: Room(all=1000, tenant=1000))

    def __post_init__(self) -> None:
        self.database: Database = open_database(self.url)
        self.blobs = Blobs(self.database, open_store(str(self.folder / "store")))
        self.fleet = Fleet(self.database, patience=60.0)
        self.jobs = Jobs(self.database, self.fleet, self.room)
        self.claims = Claims(self.database, self.lease, self.attempts)

    def keep(self, content: bytes, name: str = MODEL) -> File:
        sink = Sink(self.folder, Allowance.of(1 << 30))
        sink.write(content)
        spooled = sink.finish()
        self.blobs.keep(spooled)
        return File(name, spooled.digest, spooled.size)

    def submit(
        self, model: bytes = b"model", tenant: str = "a", key: str | None = None, target: str = "cpu", **options: Any
    ) -> Job:
        return self.jobs.submit(Order(tenant, (self.keep(model),), options, target, key))

    def claim(self, worker: str = "w", targets: Mapping[str, str] = TARGETS) -> Claim:
        claim = self.claims.claim(worker, targets)
        assert claim is not None
        return claim

    def outcome(self, content: bytes = b"faster", whole: bool = True, **summary: Any) -> Outcome:
        files = (self.keep(content), self.keep(b"{}", REPORT))
        return Outcome(files, SUMMARY | summary, whole, {"timing": 2.0})

    def find(self, job: Job) -> Job:
        return self.jobs.find(job.tenant, job.id)


def tiny(**told: Any) -> bytes:
    """A real model of one node; as its producer's name, what a stand-in is to do with it."""
    text = json.dumps(told).encode()
    return relu_model(opset=13, ir_version=7) + (b"\x12" + varint(len(text)) + text if told else b"")


def external(*locations: str) -> bytes:
    """A model whose weights lie in these files."""
    tensors = b""
    for i, location in enumerate(locations):
        entry = wire(1, b"location") + wire(2, location.encode())
        tensor = b"\x08\x01" + b"\x10\x01" + wire(8, f"w{i}".encode()) + wire(13, entry) + b"\x70\x01"
        tensors += wire(5, tensor)
    return relu_model(opset=13, ir_version=7) + wire(7, tensors)  # a second graph is merged with the first


def wire(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
