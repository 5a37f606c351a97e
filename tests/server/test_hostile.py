"""Uploads that mean harm, or were harmed: each is answered with a problem, none leaves a file or stops the service."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.forms import OPTION_BYTES
from server.scan import scan
from tests.server.shop import OCTETS, Shop, until
from tests.server.world import external, tiny

pytestmark = pytest.mark.unit

FORM = {"Content-Type": "multipart/form-data; boundary=B"}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shop]:
    """One for all that leave nothing behind."""
    made = Shop(tmp_path_factory.mktemp("shop") / "data")
    yield made
    made.close()


def part(name: str, content: bytes, file_name: str | None = None) -> bytes:
    named = "" if file_name is None else f'; filename="{file_name}"'
    return f'--B\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + content + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--B--\r\n"


def refused(shop: Shop, status: int, content: bytes, headers: dict[str, str] = OCTETS) -> dict[str, Any]:
    answer = httpx.Response(0)
    for path in ("/v1/jobs", "/v1/optimize"):
        answer = shop.client.post(path, content=content, headers=headers)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
    assert list((shop.settings.folder / "spool").iterdir()) == []
    assert shop.client.get("/v1/jobs").json()["jobs"] == []
    return answer.json()


@pytest.mark.parametrize(
    "content", [b"", b"\x00", b"PK\x03\x04", b"{}", b"\xff" * 1000, tiny()[:20], bytes(range(256))]
)
def test_what_is_no_model(shop: Shop, content: bytes) -> None:
    refused(shop, 422, content)


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/json", "application/x-www-form-urlencoded", "multipart/mixed; boundary=B", "x"],
)
def test_what_is_called_something_else(shop: Shop, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    assert "application/octet-stream" in refused(shop, 415, tiny(), headers)["detail"]


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "gzip, gzip"])
def test_what_would_have_to_be_unpacked(shop: Shop, encoding: str) -> None:
    refused(shop, 415, tiny(), OCTETS | {"Content-Encoding": encoding})


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", "multipart/form-data; boundary=", f"multipart/form-data; boundary={'x' * 300}"]
)
def test_a_form_without_a_boundary(shop: Shop, kind: str) -> None:
    refused(shop, 400, form(part("model", tiny())), {"Content-Type": kind})


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400), (b"nothing", 400), (form(), 422), (part("model", tiny()), 400),
        (form(part("model", tiny()))[:-20], 400),
        (form(part("options", b"{}")), 422), (form(part("model", b"no")), 422), (form(part("other", tiny())), 422),
        (form(part("model", tiny()), part("model", tiny())), 422), (form(part("", tiny())), 422),
        (form(part("model", tiny()), part("options", b"{")), 422),
        (form(part("model", tiny()), part("options", b"[]")), 422),
        (form(part("model", tiny()), part("options", b"[" * 60000)), 422),
        (form(part("model", tiny()), part("options", b'{"budget": "\\ud800"}')), 422),
        (form(part("model", tiny()), part("options", b'{"shape": {"\\ud800": [1]}}')), 422),
        (form(part("model", tiny()), part("options", b'{"dim": {"a": NaN}}')), 422),
        (form(part("model", tiny()), part("options", b'{"dim": 7, "shape": 7}')), 422),
        (form(part("model", tiny()), part("options", b'{"rules": ["/etc/passwd"]}')), 422),
        (form(part("model", tiny()), part("options", b"{}"), part("options", b"{}")), 422),
        (form(part("model", tiny()), part("options", b" " * (OPTION_BYTES + 1))), 413),
        (b"--B\r\n" + b"X: y\r\n" * 100 + b"\r\n", 400),
        (b"--B\r\nContent-Disposition: form-data; name=model\r\nX: " + b"y" * 10000 + b"\r\n\r\n", 400),
        (b"--B\r\n\r\nno header\r\n--B--\r\n", 422),
    ],
)  # fmt: skip
def test_forms_that_are_none(shop: Shop, content: bytes, status: int) -> None:
    refused(shop, status, content, FORM)


def test_a_form_of_too_many_parts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.forms.MOST_PARTS", 10)
    refused(shop, 413, form(part("model", tiny()), *(part("data", b"", f"{i}") for i in range(10))), FORM)


@pytest.mark.parametrize(
    "name", ["../w.bin", "/etc/passwd", "a/../../w", "model.onnx", "", "..\\\\w", "http://host/w", "C:/w", "w\x01"]
)
def test_external_data_that_would_leave_the_upload(shop: Shop, name: str) -> None:
    refused(shop, 422, form(part("model", external(name)), part("data", b"w", name)), FORM)
    refused(shop, 422, external(name))
    assert not [p for p in shop.settings.folder.parent.rglob("*") if p.name in ("w.bin", "w", "passwd")]


def test_external_data_must_come_with_the_model_and_be_named_by_it(shop: Shop) -> None:
    assert refused(shop, 422, external("w.bin"))["missing"] == ["w.bin"]
    assert refused(shop, 422, form(part("model", tiny()), part("data", b"", "w.bin")), FORM)["unknown"] == ["w.bin"]
    twice = form(part("model", external("w")), part("data", b"1", "w"), part("data", b"2", "./w"))
    refused(shop, 422, twice, FORM)
    refused(
        shop, 422, form(part("model", external("w", "w/v")), part("data", b"", "w"), part("data", b"", "w/v")), FORM
    )


def test_models_beyond_the_limit_on_nodes(tmp_path: Path) -> None:
    shop = Shop(tmp_path, node_limit=1)
    node = tiny()[4:18]  # the one node of the model, once more in a graph of its own
    assert node.startswith(b"\n\x0c")
    refused(shop, 413, tiny() + b"\x3a" + bytes([len(node)]) + node)
    shop.close()


def endless() -> Iterator[bytes]:
    """A length that nobody told, and no end."""
    while True:
        yield b"\x00" * (1 << 16)


def test_a_stream_without_end_is_cut_at_the_limit(tmp_path: Path) -> None:
    shop = Shop(tmp_path, upload_limit=1)
    told = 0
    for headers, content in ((OCTETS, endless), (OCTETS, b"\x00" * (2 << 20))):
        for path in ("/v1/jobs", "/v1/optimize"):
            try:
                answer = shop.client.post(path, content=content() if callable(content) else content, headers=headers)
            except httpx.TransportError:  # the service hangs up on who goes on sending
                continue
            told += 1
            assert answer.status_code == 413
    assert told > 0
    until(lambda: list((tmp_path / "spool").iterdir()) == [])
    assert shop.client.get("/livez").status_code == 200
    shop.close()


def test_a_length_that_is_too_much_is_refused_before_the_first_byte(tmp_path: Path) -> None:
    shop = Shop(tmp_path, upload_limit=1)
    with socket.create_connection(("127.0.0.1", shop.client.base_url.port or 0)) as line:
        line.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
            b"Content-Length: 99999999999999999999\r\n\r\n"
        )
        assert b" 413 " in line.recv(4096).split(b"\r\n")[0]
    shop.close()


def test_an_upload_that_stalls_is_given_up(tmp_path: Path) -> None:
    shop = Shop(tmp_path, upload_patience=0.3)
    with socket.create_connection(("127.0.0.1", shop.client.base_url.port or 0)) as line:
        line.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
            b"Content-Length: 1000\r\n\r\nabc"
        )
        assert b" 408 " in line.recv(4096).split(b"\r\n")[0]
    until(lambda: list((tmp_path / "spool").iterdir()) == [])
    shop.close()


def test_an_upload_that_breaks_off_leaves_nothing(shop: Shop) -> None:
    with socket.create_connection(("127.0.0.1", shop.client.base_url.port or 0)) as line:
        line.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
            b"Content-Length: 1000000\r\n\r\n" + b"x" * 300000
        )
        time.sleep(0.2)
    until(lambda: list((shop.settings.folder / "spool").iterdir()) == [])
    assert shop.client.get("/v1/jobs").json()["jobs"] == []


def test_a_broken_form_of_many_small_pieces(shop: Shop) -> None:
    whole = form(part("options", b'{"budget": 2}'), part("model", external("w.bin")), part("data", b"w" * 999, "w.bin"))
    pieces = [whole[i : i + 1] for i in range(len(whole))]
    answer = shop.client.post("/v1/jobs", content=iter(pieces), headers=FORM)
    assert answer.status_code == 202, answer.text
    assert answer.json()["options"]["budget"] == 2.0
    for _ in range(2):  # canceled, then given up
        shop.client.delete(answer.headers["location"])


def test_whoever_hangs_up_while_the_model_is_looked_at_ends_that(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scan is held up until it hears of it; that it hears of it at all is what ends the test."""
    heard: list[bool] = []

    def held_up(path: Path, nodes: int, is_given_up: Callable[[], bool]) -> object:
        until(is_given_up)
        heard.append(True)
        return scan(path, nodes, is_given_up)

    monkeypatch.setattr("server.uploads.scan", held_up)
    model = tiny()
    with socket.create_connection(("127.0.0.1", int(shop.url.rpartition(":")[2]))) as client:
        head = f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(model)}\r\n"
        client.sendall(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + model)
        until(lambda: any(shop.settings.folder.glob("spool/*.part")))
        time.sleep(0.2)
    until(lambda: bool(heard))
    until(lambda: not any(shop.settings.folder.glob("spool/*.part")))
    assert shop.client.get("/v1/jobs").json()["jobs"] == []


def test_where_a_request_ends_is_beyond_doubt(shop: Shop) -> None:
    """A proxy that believes the length, and a service that believes the chunks, would see two different requests."""
    with socket.create_connection(("127.0.0.1", int(shop.url.rpartition(":")[2]))) as line:
        line.settimeout(60)
        line.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        answer = b""
        while received := line.recv(4096):
            answer += received
    assert answer.count(b"HTTP/1.1 ") == answer.count(b"HTTP/1.1 400 ") == 1
    assert b"application/problem+json" in answer
