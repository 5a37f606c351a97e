"""Counters that outlive processes: every worker adds to the same rows, and `/metrics` reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from server.database import Database
from server.records import Job
from server.tables import tallies

SECONDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
RATIOS = (1.0, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_INFINITE = "+Inf"


class Tally:
    """What one transaction counts: written as its last statement, all rows in one order, so that two transactions never
    wait for each other, and nobody waits long for a row that all of them count in."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], float] = {}

    def add(self, name: str, value: float = 1.0, **labels: str) -> None:
        key = (name, _text(labels))
        self._counts[key] = self._counts.get(key, 0.0) + value

    def observe(self, name: str, value: float, buckets: Sequence[float], **labels: str) -> None:
        """One value of a histogram: the first bucket that holds it counts it, and whoever reads adds them up."""
        bucket = next((f"{b:g}" for b in buckets if value <= b), _INFINITE)
        self.add(f"{name}_bucket", 1.0, **labels, le=bucket)
        self.add(f"{name}_sum", value, **labels)

    def worked(self, job: Job, now: float) -> None:
        """The time that a device gave to a job."""
        if job.started is not None and job.worker is not None:
            self.add("busy_seconds", max(0.0, now - job.started), worker=job.worker)

    def write(self, database: Database, connection: Connection) -> None:
        rows = [{"name": name, "labels": labels, "value": v} for (name, labels), v in sorted(self._counts.items())]
        if rows:
            row = database.insert(tallies).values(rows)
            together = {"value": tallies.c.value + row.excluded.value}
            connection.execute(row.on_conflict_do_update(index_elements=["name", "labels"], set_=together))


def counted(connection: Connection) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Labels and value of every row, by name."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for name, labels, value in connection.execute(select(tallies.c.name, tallies.c.labels, tallies.c.value)):
        pairs = dict(part.split("=", 1) for part in labels.split(",") if part)
        found.setdefault(name, []).append((pairs, value))
    return found


def _text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{k}={v.replace(',', ' ')}" for k, v in sorted(labels.items()))[:200]
