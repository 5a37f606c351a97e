"""Two services with an API each on one PostgreSQL, one store and one Ray cluster of two nodes. A node and the process
that dispatches are killed with jobs under way: nothing is lost, and each job has one answer."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import select

from server import events
from server.database import Database
from server.dispatch import Dispatcher
from server.jobs import Order
from server.tables import jobs, results
from superopt.options import Options
from tests.server.processes import Running, is_alive, kill
from tests.server.shop import OCTETS, STAND_IN, settings_for, until
from tests.server.world import World, tiny

if TYPE_CHECKING:
    from tests.server.postgres import Postgres

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.thorough]

SERVICE = [sys.executable, "-P", str(Path(__file__).with_name("stand_in_service.py"))]
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
PATIENCE = 900.0


class Nodes:
    """A Ray cluster on this machine, whose nodes are processes of their own."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(initialize_head=True, head_node_args=NODE)
        self.address = str(self._cluster.address)
        self._others = [self._cluster.add_node(**NODE)]

    def kill_second(self) -> str:
        """Its id."""
        node = self._others.pop()
        self._cluster.remove_node(node, allow_graceful=False)
        return node.node_id

    @property
    def second(self) -> str:
        return self._others[0].node_id

    def add(self, **more: Any) -> None:
        self._others.append(self._cluster.add_node(**NODE | more))

    def close(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Generator[Nodes]:
    pytest.importorskip("ray", reason="needs the extra ray")
    made = Nodes()
    yield made
    made.close()


class Cloud:
    """Both services, and one who uses them in turns."""

    def __init__(self, services: list[Running], database: Database) -> None:
        self.services, self.database = services, database
        self.http = [httpx.Client(base_url=s.url, timeout=600.0, follow_redirects=True) for s in services]

    def post(self, number: int, **told: Any) -> str:
        headers = OCTETS | {"Idempotency-Key": f"{number}"}
        answer = self.http[number % 2].post("/v1/jobs", content=tiny(number=number, **told), headers=headers)
        assert answer.status_code == 202, answer.text
        again = self.http[(number + 1) % 2].post("/v1/jobs", content=tiny(number=number, **told), headers=headers)
        assert again.json()["id"] == answer.json()["id"], "the other API knows the key too"
        return answer.json()["id"]

    def rows(self) -> dict[str, Any]:
        with self.database.read() as connection:
            query = select(jobs.c.id, jobs.c.state, jobs.c.worker, jobs.c.attempts, jobs.c.stage)
            return {row.id: row for row in connection.execute(query)}

    def at_work_on(self, node: str) -> list[str]:
        """Jobs that have begun on a node."""
        rows = self.rows().values()
        return [r.id for r in rows if r.state == "running" and node[:16] in r.worker and r.stage != "starting"]

    def answers(self, id: str) -> set[str]:
        found: set[str] = set()
        for http in self.http * 2:
            answer = http.get(f"/v1/jobs/{id}/model")
            assert answer.status_code == 200, answer.text
            digest = hashlib.sha256(answer.content).hexdigest()
            assert answer.headers["etag"] == f'"{digest}"'
            found.add(digest)
        return found

    def leader(self) -> Running:
        return max(self.services, key=lambda s: len(s.logged("dispatching")))


@pytest.fixture
def cloud(tmp_path: Path, nodes: Nodes, postgres: Postgres, migrated: str) -> Generator[Cloud]:
    url = postgres.url(postgres.create(like=migrated))
    with ExitStack() as stack:
        services: list[Running] = []
        for name in ("one", "two"):
            settings = settings_for(
                tmp_path / name, port=0, engine="ray", address=nodes.address, database=url, attempts=5, lease=10.0,
                store=str(tmp_path / "store"),
            )  # fmt: skip
            services.append(stack.enter_context(Running(settings, SERVICE)))
        database = Database(url)
        stack.callback(database.close)
        made = Cloud(services, database)
        for http in made.http:
            stack.callback(http.close)
        until(lambda: all(http.get("/readyz").status_code == 200 for http in made.http), PATIENCE)
        yield made


def test_a_node_and_a_dispatcher_die_and_nothing_is_lost(cloud: Cloud, nodes: Nodes, tmp_path: Path) -> None:
    until(lambda: all(len(http.get("/v1/devices").json()["devices"]) == 2 for http in cloud.http), PATIENCE)
    pids = {n: tmp_path / f"pid{n}" for n in range(8)}
    made = {n: cloud.post(n, sleep=3.0 if n < 4 else 0.2, pid=str(pids[n])) for n in pids}

    until(lambda: bool(cloud.at_work_on(nodes.second)), PATIENCE)
    (victim,) = cloud.at_work_on(nodes.second)
    number = next(n for n, id in made.items() if id == victim)
    process = int(pids[number].read_text())
    killed = nodes.kill_second()
    until(lambda: not is_alive(process), PATIENCE)
    until(lambda: cloud.rows()[victim].worker is None or killed[:16] not in cloud.rows()[victim].worker, PATIENCE)

    leader = cloud.leader()
    until(lambda: any(r.state == "running" for r in cloud.rows().values()), PATIENCE)
    dispatcher = leader.pid("dispatch")
    assert dispatcher is not None
    assert kill(dispatcher)
    until(lambda: sum(len(s.logged("dispatching")) for s in cloud.services) >= 2, PATIENCE)
    nodes.add()

    until(lambda: all(r.state == "done" for r in cloud.rows().values()), PATIENCE)
    rows = cloud.rows()
    assert set(rows) == set(made.values())
    assert rows[victim].attempts >= 2
    answers = {id: cloud.answers(id) for id in made.values()}
    assert all(len(found) == 1 for found in answers.values()), "a job has two answers"
    assert len(set().union(*answers.values())) == len(made)
    with cloud.database.read() as connection:
        assert len(connection.execute(select(results.c.key)).all()) == len(made)
        for id in made.values():
            states = [e.data["state"] for e in events.after(connection, id, 0) if e.kind == "state"]
            assert states.count("done") == 1
            assert states[-1] == "done"
    told = json.loads(cloud.http[0].get(f"/v1/jobs/{victim}/report").text)
    assert told["verdict"].startswith("1.25× faster")


def test_each_job_has_a_gpu_of_its_own(nodes: Nodes, tmp_path: Path) -> None:
    """Ray only counts GPUs: it is told of two that are not there."""
    nodes.add(num_gpus=2)
    settings = settings_for(tmp_path, engine="ray", address=nodes.address, lease=10.0)
    offered = {"targets": {"auto": "g", "cpu": "c", "cuda": "g"}, "facts": {}}
    dispatcher = Dispatcher(settings, STAND_IN, offered)
    thread = threading.Thread(target=dispatcher.run)
    world = World(tmp_path, settings.database_url)
    told = [tmp_path / f"environment{n}" for n in range(3)]
    for path in told:
        model = tiny(environment=str(path), sleep=1.0)
        world.jobs.submit(Order("a", (world.keep(model),), Options(target="cuda").as_json(), "cuda"))
    thread.start()
    try:
        until(lambda: [j.state for j in world.jobs.latest("a", 3)] == ["done"] * 3, PATIENCE)
    finally:
        dispatcher.stop()
        thread.join(600)
        world.database.close()
    seen = [json.loads(path.read_text()) for path in told]
    assert {e["CUDA_VISIBLE_DEVICES"] for e in seen[:2]} == {"0", "1"}
    assert seen[2]["CUDA_VISIBLE_DEVICES"] in ("0", "1")
    assert not any(name.startswith("SUPEROPT_DATABASE") for e in seen for name in e)
