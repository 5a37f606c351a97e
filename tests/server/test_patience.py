"""Clients that take their time, and disks that are full: nobody else waits for them, and nothing is left of them."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server import spool
from server.problems import Problem
from server.spool import Allowance, Sink
from server.store import FolderStore
from tests.server.shop import OCTETS, Shop, until
from tests.server.world import tiny

pytestmark = pytest.mark.unit

HEAD = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
    b"Content-Length: 100000\r\n\r\n"
)


def dialed(shop: Shop) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", int(shop.url.rpartition(":")[2])))
    line.settimeout(60)
    return line


def drip(line: socket.socket, over: threading.Event) -> threading.Thread:
    """One byte after the other, for as long as somebody listens."""

    def go() -> None:
        while not over.wait(0.05):
            try:
                line.sendall(b"x")
            except OSError:
                return

    dripping = threading.Thread(target=go)
    dripping.start()
    return dripping


def test_an_upload_that_drips_is_given_up(tmp_path: Path) -> None:
    shop, over = Shop(tmp_path, upload_patience=0.5), threading.Event()
    with dialed(shop) as line:
        line.sendall(HEAD)
        dripping = drip(line, over)
        assert b" 408 " in line.recv(4096).split(b"\r\n")[0]
        over.set()
        dripping.join()
    until(lambda: list((tmp_path / "spool").iterdir()) == [])
    shop.close()


@pytest.mark.parametrize("begun", [b"", b"GET /livez HTTP/1.1\r\nHost: local", b"\r\n"])
@pytest.mark.parametrize("first", [b"", b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=["new", "used"])
def test_who_does_not_come_to_the_point_is_hung_up_on(tmp_path: Path, first: bytes, begun: bytes) -> None:
    shop, over = Shop(tmp_path, upload_patience=0.3), threading.Event()
    with dialed(shop) as line:
        if first:
            line.sendall(first)
            assert line.recv(4096).startswith(b"HTTP/1.1 200")
        line.sendall(begun)
        dripping = drip(line, over) if begun.endswith(b"local") else None
        try:
            while line.recv(4096):
                pass
        except ConnectionResetError:
            pass
        over.set()
        if dripping is not None:
            dripping.join()
    shop.close()


def test_an_answer_may_take_longer_than_a_question(tmp_path: Path) -> None:
    shop = Shop(tmp_path, upload_patience=0.2)
    job = shop.post(tiny())
    answer = shop.client.get(f"/v1/jobs/{job['id']}", headers={"Prefer": "wait=1"})
    assert (answer.status_code, answer.json()["state"]) == (200, "queued")
    shop.close()


def test_a_form_that_goes_on_after_its_end_is_cut(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.forms.AROUND_BYTES", -shop.settings.upload_bytes + (1 << 20))

    def endless() -> Iterator[bytes]:
        yield b'--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n' + tiny() + b"\r\n--B--\r\n"
        for _ in range(400):
            yield b"\r\n" * (1 << 14)

    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    with contextlib.suppress(httpx.TransportError):  # hung up on, because it goes on sending
        assert shop.client.post("/v1/jobs", content=endless(), headers=headers).status_code in (400, 413)
    until(lambda: list((shop.settings.folder / "spool").iterdir()) == [])
    assert shop.client.get("/v1/jobs").json()["jobs"] == []


def received(sink: Sink, content: bytes) -> None:
    sink.write(content)
    sink.finish()


def test_nothing_is_left_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _: str) -> object:
        path.touch()
        return open("/dev/full", "wb")

    monkeypatch.setattr(spool, "open", full, raising=False)
    for size in (10, 100_000):
        sink = Sink(tmp_path, Allowance.of(1 << 20))
        with pytest.raises(Problem, match="No space left") as told:
            received(sink, b"x" * size)
        assert told.value.status == 507
        sink.discard()
        assert list(tmp_path.iterdir()) == []


def test_a_full_store_is_told_as_such(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FolderStore, "put", full)
    answer = shop.client.post("/v1/jobs", content=tiny(), headers=OCTETS)
    assert (answer.status_code, answer.headers["content-type"]) == (507, "application/problem+json")
    assert "No space left" in answer.json()["detail"]
    assert list((shop.settings.folder / "spool").iterdir()) == []
    monkeypatch.undo()
    shop.hire()
    assert shop.ended(shop.post(tiny()))["state"] == "done"


def test_uploads_leave_room_for_what_is_to_be_given_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that they filled to the last byte no database could forget a job any more."""
    job = shop.post(tiny())
    monkeypatch.setattr(spool, "RESERVE", 1 << 80)
    form = {"model": ("m", tiny(number=2))}
    for answer in (
        shop.client.post("/v1/jobs", content=tiny(number=1), headers=OCTETS),
        shop.client.post("/v1/jobs", files=form),
    ):
        assert (answer.status_code, answer.headers["content-type"]) == (507, "application/problem+json")
    assert list((shop.settings.folder / "spool").iterdir()) == []
    assert [shop.client.delete(f"/v1/jobs/{job['id']}").status_code for _ in range(2)] == [200, 204]


def test_a_job_whose_result_has_no_room_fails_and_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.post(tiny())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FolderStore, "put", full)
    shop.hire()
    ended = shop.ended(job)
    assert (ended["state"], ended["error"]["status"], ended["attempts"]) == ("failed", 507, 1)


def test_on_a_full_disk_no_job_is_begun(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.worker.FULL_SECONDS", 0.1)
    monkeypatch.setattr("server.worker.LEAST_FREE", 1 << 80)
    job = shop.post(tiny())
    shop.hire()
    until(lambda: len(shop.client.get("/v1/devices").json()["devices"]) > 0)
    answer = shop.client.get(f"/v1/jobs/{job['id']}", headers={"Prefer": "wait=1"})
    assert answer.json()["state"] == "queued"
    monkeypatch.setattr("server.worker.LEAST_FREE", 0)
    assert shop.ended(job)["state"] == "done"


def test_events_after_one_that_never_was_are_all_events(shop: Shop) -> None:
    job = shop.post(tiny())
    shop.hire()
    shop.ended(job)
    url = f"/v1/jobs/{job['id']}/events"
    everything = shop.client.get(url).text
    assert everything.count("event: ") >= 3
    assert shop.client.get(url, headers={"Last-Event-ID": "999999999"}).text == everything
    last = everything.count("id: ")
    assert "event: " not in shop.client.get(url, headers={"Last-Event-ID": str(last)}).text
    for wrong in ("-1", "1e3", "x", "9" * 30):
        assert shop.client.get(url, headers={"Last-Event-ID": wrong}).status_code == 400
