"""What the service stands on is gone for a while: nothing is lost, and whoever asks is told to ask again."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from server.database import Database, is_full, open_database
from server.store import FolderStore, RemoteStore, open_store
from server.tables import tallies
from tests.server.shop import OCTETS, Shop, until
from tests.server.test_store import spooled
from tests.server.world import tiny

pytestmark = pytest.mark.unit


def unplug(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk behind the store, as of now; `monkeypatch.undo` brings it back."""

    def gone(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for name in ("put", "open", "probe", "remove"):
        monkeypatch.setattr(FolderStore, name, gone)


def test_a_job_waits_for_its_store_at_both_ends(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.attempt.AWAY_SECONDS", 0.05)
    first = shop.post(tiny())
    with monkeypatch.context() as away:
        unplug(away)
        shop.hire()
        until(lambda: shop.client.get(f"/v1/jobs/{first['id']}").json()["state"] == "running")
        time.sleep(2.5)  # longer than a lease
    ended = shop.ended(first)
    assert (ended["state"], ended["attempts"]) == ("done", 1)
    second = shop.post(tiny(sleep=2.0))  # so long that a busy machine sees it load
    until(lambda: shop.client.get(f"/v1/jobs/{second['id']}").json()["stage"] == "loading", seconds=60.0)
    with monkeypatch.context() as away:
        unplug(away)
        time.sleep(3.5)
        assert shop.client.get(f"/v1/jobs/{second['id']}").json()["state"] == "running"
    ended = shop.ended(second)
    assert (ended["state"], ended["attempts"]) == ("done", 1)


def test_a_job_that_waits_for_its_store_can_be_canceled(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.post(tiny())
    with monkeypatch.context() as away:
        unplug(away)
        shop.hire()
        until(lambda: shop.client.get(f"/v1/jobs/{job['id']}").json()["state"] == "running")
        assert shop.client.delete(f"/v1/jobs/{job['id']}").json()["state"] == "canceled"
        until(lambda: not shop.client.get("/v1/devices").json()["devices"][0]["busy"])


def test_without_its_store_the_service_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.hire()
    done = shop.ended(shop.post(tiny()))
    with monkeypatch.context() as away:
        unplug(away)
        sent = shop.client.post("/v1/jobs", content=tiny(number=2), headers=OCTETS)
        got = shop.client.get(f"/v1/jobs/{done['id']}/model")
        ready = shop.client.get("/readyz")
        for answer in (sent, got):
            assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
            assert int(answer.headers["retry-after"]) > 0
        assert (ready.status_code, ready.json()["checks"]["store"]) == (503, "Input/output error")
    assert list((shop.settings.folder / "spool").iterdir()) == []
    assert shop.client.get(f"/v1/jobs/{done['id']}/model").status_code == 200


def test_whatever_a_file_system_raises_is_an_os_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"file://{tmp_path}/s")
    assert isinstance(store, RemoteStore)
    file = spooled(tmp_path, b"content")
    store.put(file)

    class Strange(Exception):
        pass

    def strange(*_: object, **__: object) -> None:
        raise Strange("https://user:password@host")

    for name in ("exists", "put_file", "open", "pipe_file", "rm_file", "makedirs"):
        monkeypatch.setattr(store.system, name, strange)
    other = spooled(tmp_path, b"other")
    for call in (
        lambda: store.put(other), lambda: store.open(file.digest), lambda: store.has(file.digest),
        lambda: store.remove(file.digest), store.probe,
    ):  # fmt: skip
        with pytest.raises(OSError, match="Strange") as told:
            call()
        assert "password" not in str(told.value)
    assert other.path.exists()


def test_events_go_on_when_the_database_is_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.post(tiny())
    monkeypatch.setattr("server.routes.jobs.AWAY_SECONDS", 0.05)
    monkeypatch.setattr("server.routes.jobs.KEEP_ALIVE_SECONDS", 0.05)

    def gone(_: Database) -> Any:
        raise OperationalError("select", {}, Exception("gone"))

    heard: list[str] = []
    with shop.client.stream("GET", f"/v1/jobs/{job['id']}/events") as stream:
        lines = stream.iter_lines()
        while "queued" not in "".join(heard):
            heard.append(next(lines))
        with monkeypatch.context() as away:
            away.setattr(Database, "read", gone)
            while ": the database does not answer" not in heard:
                heard.append(next(lines))
        shop.client.delete(f"/v1/jobs/{job['id']}")
        heard.extend(lines)
    assert [line for line in heard if line.startswith("id: ")] == ["id: 1", "id: 2"]
    assert '"canceled"' in heard[-2]


@pytest.fixture
def own_postgres() -> Generator[Any]:
    """A server that may be stopped and started again."""
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    from tests.server.postgres import Postgres, programs, short_folder

    programs()
    folder = short_folder()
    yield Postgres(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_postgresql_goes_down_with_jobs_under_way(own_postgres: Any, tmp_path: Path) -> None:
    with own_postgres:
        shop = Shop(tmp_path, database=own_postgres.url(own_postgres.create()), attempts=5)
        shop.hire()
        made = [shop.post(tiny(number=n, sleep=2.0), **{"Idempotency-Key": f"{n}"}) for n in range(3)]
        until(lambda: shop.client.get(f"/v1/jobs/{made[0]['id']}").json()["stage"] == "loading")
    try:
        asked = [
            shop.client.get("/readyz"), shop.client.get(f"/v1/jobs/{made[0]['id']}"),
            shop.client.delete(f"/v1/jobs/{made[1]['id']}"), shop.client.get("/v1/jobs"), shop.client.get("/metrics"),
            shop.client.post("/v1/jobs", content=tiny(number=3), headers=OCTETS | {"Idempotency-Key": "3"}),
        ]  # fmt: skip
        assert [answer.status_code for answer in asked] == [503] * 6
        assert shop.client.get("/livez").status_code == 200
        time.sleep(3.0)  # longer than a lease
        with own_postgres:
            made.append(shop.post(tiny(number=3), **{"Idempotency-Key": "3"}))
            ended = [shop.ended(job) for job in made]
            assert [job["state"] for job in ended] == ["done"] * 4
            assert len(shop.client.get("/v1/jobs").json()["jobs"]) == 4
            shop.close()
    finally:
        shop.close()


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Somebody else writes to the database, and takes his time."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    try:
        yield
    finally:
        other.execute("rollback")
        other.close()


def test_a_locked_database_can_be_read_and_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.database.BUSY_SECONDS", 0.2)
    shop = Shop(tmp_path)
    try:
        known = shop.post(tiny())
        key = OCTETS | {"Idempotency-Key": "k"}
        told: list[int] = []

        def send(number: int) -> None:
            if number % 2:
                told.append(shop.client.post("/v1/jobs", content=tiny(number=number), headers=OCTETS).status_code)
            else:
                told.append(shop.client.delete(f"/v1/jobs/{known['id']}").status_code)

        with locked(tmp_path / "superopt.db"):
            answer = shop.client.post("/v1/jobs", content=tiny(k=1), headers=key)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            threads = [threading.Thread(target=send, args=(number,)) for number in range(60)]
            for thread in threads:
                thread.start()
            assert shop.client.get(f"/v1/jobs/{known['id']}").json()["state"] == "queued", "who reads does not wait"
            for thread in threads:
                thread.join()
        assert told == [503] * 60
        assert shop.client.get(f"/v1/jobs/{known['id']}").json()["state"] == "queued"
        assert shop.client.post("/v1/jobs", content=tiny(k=1), headers=key).status_code == 202
        assert len(shop.client.get("/v1/jobs").json()["jobs"]) == 2
        assert list((tmp_path / "spool").iterdir()) == []
    finally:
        shop.close()


def confine(connection: Connection) -> None:
    """No page more than the file has."""
    pages = connection.exec_driver_sql("pragma page_count").scalar_one()
    connection.exec_driver_sql(f"pragma max_page_count={pages}")


def test_a_full_database_is_told_as_such(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'test.db'}")

    def fill() -> None:
        with database.write() as connection:
            confine(connection)
            for n in range(10_000):
                connection.execute(insert(tallies).values(name=f"{n}", labels="x" * 100, value=0.0))

    with pytest.raises(SQLAlchemyError) as told:
        fill()
    assert is_full(told.value)
    assert not is_full(OperationalError("select", {}, Exception("locked")))
    database.close()


def test_a_service_whose_database_is_full_answers_507(shop: Shop) -> None:
    shop.post(tiny())
    engine = shop.database.engine
    event.listen(engine, "begin", confine)
    told: list[tuple[int, str]] = []
    while not told or (told[-1][0] == 202 and len(told) < 200):
        model = tiny(number=len(told), much="x" * 1000)
        answer = shop.client.post("/v1/jobs", content=model, headers=OCTETS)
        told.append((answer.status_code, answer.json().get("detail", "")))
    assert told[-1] == (507, "the database's disk is full")
    event.remove(engine, "begin", confine)
    engine.dispose()
    assert shop.post(tiny(number=1000))["state"] == "queued"
    assert len(shop.client.get("/v1/jobs?limit=200").json()["jobs"]) == len(told) + 1
