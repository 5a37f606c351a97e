"""What Prometheus is told: counted in the database, so that every process answers the same."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from server import tallies
from server.database import Database
from server.fleet import Fleet
from server.tables import jobs

CONTENT_TYPE = CONTENT_TYPE_LATEST
STATES = ("queued", "running", "done", "failed", "canceled")
_Counts = dict[str, list[tuple[dict[str, str], float]]]


def exposition(database: Database, fleet: Fleet) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Counted(database, fleet))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Counted(Collector):
    def __init__(self, database: Database, fleet: Fleet) -> None:
        self._database, self._fleet = database, fleet

    def collect(self) -> Iterator[Metric]:
        with self._database.read() as connection:
            now = self._database.now(connection)
            query = select(jobs.c.state, func.count()).where(~jobs.c.gone).group_by(jobs.c.state)
            by_state = {row[0]: row[1] for row in connection.execute(query)}
            oldest = connection.execute(select(func.min(jobs.c.queued)).where(jobs.c.state == "queued")).scalar_one()
            live = self._fleet.live(connection)
            running = select(jobs.c.worker, jobs.c.started).where(jobs.c.state == "running")
            under_way = [(str(w), now - s) for w, s in connection.execute(running) if s is not None]
            counts = tallies.counted(connection)
        held = GaugeMetricFamily("superopt_jobs", "jobs that are kept, by state", labels=["state"])
        for state in STATES:
            held.add_metric([state], by_state.get(state, 0))
        yield held
        age = 0.0 if oldest is None else max(0.0, now - oldest)
        yield GaugeMetricFamily("superopt_queue_age_seconds", "how long the oldest waiting job has waited", value=age)
        busy = GaugeMetricFamily("superopt_device_busy", "1 while a worker works on a job", labels=["device", "worker"])
        for worker in live:
            busy.add_metric([worker.device, worker.id], float(worker.job is not None))
        yield busy
        yield from _counters(counts)
        yield _busy(counts, under_way)
        yield _histogram(counts, "job_seconds", "superopt_job_seconds", "from claim to end of jobs that were done")
        yield _histogram(counts, "stage_seconds", "superopt_stage_seconds", "spent by jobs in one stage", "stage")
        yield _histogram(counts, "speedup", "superopt_speedup", "of the model that came back; 1 for the original")


def _counters(counts: _Counts) -> Iterator[Metric]:
    ended = CounterMetricFamily("superopt_jobs_ended", "jobs by how they ended", labels=["state"])
    for labels, value in counts.get("jobs", ()):
        ended.add_metric([labels["state"]], value)
    yield ended
    described = {
        "submitted": "jobs handed in",
        "cache_hits": "jobs answered with the result of an equal one",
        "workers_lost": "times that a worker died with a job",
    }
    for name, words in described.items():
        yield CounterMetricFamily(f"superopt_{name}", words, value=sum(v for _, v in counts.get(name, ())))


def _busy(counts: _Counts, under_way: list[tuple[str, float]]) -> Metric:
    """A job counts from its first second on, so that the rate of this is how much a device is used."""
    seconds: dict[str, float] = {}
    ended = [(labels["worker"], value) for labels, value in counts.get("busy_seconds", ())]
    for worker, value in (*ended, *under_way):
        seconds[worker] = seconds.get(worker, 0.0) + max(0.0, value)
    family = CounterMetricFamily("superopt_device_busy_seconds", "time that devices worked on jobs", labels=["worker"])
    for worker, value in sorted(seconds.items()):
        family.add_metric([worker], value)
    return family


def _histogram(counts: _Counts, name: str, shown: str, words: str, label: str | None = None) -> Metric:
    family = HistogramMetricFamily(shown, words, labels=[] if label is None else [label])
    sums = {labels.get(label or "", ""): value for labels, value in counts.get(f"{name}_sum", ())}
    for key, total in sorted(sums.items()):
        found = [(x["le"], v) for x, v in counts.get(f"{name}_bucket", ()) if x.get(label or "", "") == key]
        running, buckets = 0.0, list[tuple[str, float]]()
        for edge, value in sorted(found, key=lambda pair: float(pair[0])):
            running += value
            buckets.append((edge, running))
        if not buckets or buckets[-1][0] != "+Inf":
            buckets.append(("+Inf", running))
        family.add_metric([] if label is None else [key], buckets, sum_value=total)
    return family
