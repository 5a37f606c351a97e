"""`superopt serve` as people start it: real processes, the real engine, a small model and a small budget."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from server.settings import Settings
from superopt.report import Report
from tests.server.processes import Running, children_of, is_alive, kill
from tests.server.shop import OCTETS, settings_for, until
from tests.server.world import tiny

pytestmark = [pytest.mark.ort, pytest.mark.slow]

SERVE = [sys.executable, "-m", "superopt", "serve"]
QUICK = "budget=0.1&threads=1&target=cpu&options=fixed&partial=false"


def superopt(settings: Settings, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "superopt", *map(str, arguments)]
    environment = {**os.environ, **settings.as_environment(), **more}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Running, Settings, dict[str, str]]]:
    """With tokens, as it would be for others; and the headers of one who has one."""
    settings = settings_for(tmp_path_factory.mktemp("service"), port=0, devices="cpu", auth="on", lease=5.0, attempts=9)
    made = superopt(settings, "token", "create", "--tenant", "alice")
    assert made.returncode == 0, made.stderr
    with Running(settings, SERVE) as running:
        until(lambda: bool(running.logged("ready")), 600.0)
        yield running, settings, {"Authorization": f"Bearer {made.stdout.strip()}"}


def test_one_request_gives_the_model_back(service: tuple[Running, Settings, dict[str, str]]) -> None:
    running, _, token = service
    with httpx.Client(base_url=running.url, headers=token, timeout=600.0) as http:
        answer = http.post(f"/v1/optimize?{QUICK}", content=tiny(), headers=OCTETS)
        assert answer.status_code == 200, answer.text
        assert answer.headers["etag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'
        job = http.get(answer.headers["content-location"].removesuffix("/model")).json()
        report = Report.model_validate(http.get(job["links"]["report"]).json())
        assert http.get("/readyz").json()["ready"] is True
        assert http.post(f"/v1/jobs?{QUICK}", content=tiny(), headers=OCTETS).json()["cached"] is True
    assert httpx.get(f"{running.url}/v1/jobs").status_code == 401
    assert report.before.path == "model.onnx"
    assert report.options["budget"] == 0.1
    assert {line["stage"] for line in job["log"]} >= {"loading", "rewriting", "timing"}
    assert not any("Traceback" in line for line in running.noise), running.noise


def test_from_the_command_line(service: tuple[Running, Settings, dict[str, str]], tmp_path: Path) -> None:
    running, settings, token = service
    (tmp_path / "m.onnx").write_bytes(tiny())
    (tmp_path / "token").write_text(token["Authorization"].split()[1])
    wanted = ["--budget", 0.1, "--threads", 1, "--target", "cpu", "--options", "fixed", "--no-partial", "--json"]
    where = ["remote", "optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--url", running.url]
    done = superopt(settings, *where, *wanted, "--token-file", tmp_path / "token")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["after"]["sha256"] == hashlib.sha256((tmp_path / "o.onnx").read_bytes()).hexdigest()
    assert superopt(settings, *where, *wanted, SUPEROPT_TOKEN="so_wrong").returncode == 2
    listed = superopt(settings, "token", "list").stdout
    assert "alice" in listed
    assert token["Authorization"].split("_")[-1] not in listed


def test_a_broken_model_fails_with_words(service: tuple[Running, Settings, dict[str, str]]) -> None:
    running, _, token = service
    broken = tiny().replace(b"Relu", b"Nope")
    answer = httpx.post(f"{running.url}/v1/optimize?{QUICK}", content=broken, headers=OCTETS | token, timeout=600.0)
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        assert str(running.process.args) not in answer.text
        assert "/" not in answer.json()["detail"]


def test_killed_with_a_real_job_under_way(service: tuple[Running, Settings, dict[str, str]]) -> None:
    running, _, token = service
    with httpx.Client(base_url=running.url, headers=token, timeout=600.0) as http:
        job = http.post(f"/v1/jobs?{QUICK}&seed=5", content=tiny(), headers=OCTETS).json()
        until(lambda: running.runner() is not None and bool(children_of(running.runner() or 0)), 300.0)
        family = [running.runner() or 0, *children_of(running.runner() or 0)]
        for post in ("worker", "api"):
            assert kill(running.pid(post) or 0)
        until(lambda: not any(map(is_alive, family)))

        def done() -> bool:
            try:
                return http.get(f"/v1/jobs/{job['id']}").json()["state"] == "done"
            except httpx.TransportError:
                return False

        until(done, 600.0)
        assert http.get(f"/v1/jobs/{job['id']}").json()["attempts"] == 2


def test_stopped_with_a_job_under_way_it_leaves_it_in_the_queue(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, port=0, devices="cpu", grace=0.0)
    with Running(settings, SERVE) as running:
        until(lambda: bool(running.logged("ready")), 600.0)
        job = httpx.post(f"{running.url}/v1/jobs?budget=60", content=tiny(), headers=OCTETS, timeout=60.0).json()
        until(lambda: running.runner() is not None, 300.0)
        posts = [running.pid("api") or 0, running.pid("worker") or 0, running.runner() or 0]
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(120) == 0
        assert not any(map(is_alive, posts))
    with Running(settings_for(tmp_path, port=0, role="api"), SERVE) as running:
        left = httpx.get(f"{running.url}/v1/jobs/{job['id']}", timeout=120.0).json()
        assert (left["state"], left["attempts"]) == ("queued", 0)


def test_an_address_that_cannot_be_had_is_one_clear_line(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, port=1 if os.geteuid() else 0, host="192.0.2.1", auth="on")
    done = superopt(settings, "serve")
    assert (done.returncode, "cannot listen" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
    done = superopt(settings, "serve", "--auth", "off")
    assert (done.returncode, "only for a loopback address" in done.stderr) == (2, True)
