# pyright: basic
"""docker-compose.yml and examples/, held to the code: settings, commands, ports, paths, stages and users are real."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.api import ROUTES
from server.settings import Settings, read_settings, variable
from superopt.cli.parser import build_parser
from tests.test_dockerfile import PROJECT, commands, last, stages

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OVER_CUDA: dict[str, Any] = yaml.safe_load((FOLDER / "docker-compose.cuda.yml").read_text())
MANIFEST: list[dict[str, Any]] = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
WORKFLOW: dict[Any, Any] = yaml.safe_load((FOLDER / "optimize-model.yml").read_text())
OWN = ("api", "worker")
PLAIN = {path for module in ROUTES for route in module.router.routes if "GET" in route.methods for path in [route.path]}
KNOWN = {variable(f.name) for f in dataclasses.fields(Settings)}


def settings_of(command: list[str], environment: dict[str, str]) -> Settings:
    """As the container would read them, with what the image sets."""
    pairs = (i.value.partition("=") for i in stages()["service"] if i.keyword == "ENV")
    image = {name: value for name, _, value in pairs}
    given = build_parser().parse_args(command)
    assert given.command == "serve"
    flags = {f.name: getattr(given, f.name) for f in dataclasses.fields(Settings)}
    for name in environment:
        assert not name.startswith("SUPEROPT_") or name in KNOWN, name
    return read_settings(flags, environment={**image, **environment})


def extras(text: str) -> set[str]:
    found = set(text.strip("[]").split(","))
    assert found <= set(PROJECT["project"]["optional-dependencies"])
    return found


def deployment(name: str) -> dict[str, Any]:
    (found,) = [d for d in MANIFEST if (d["kind"], d["metadata"]["name"]) == ("Deployment", name)]
    return found


def pod(part: str) -> dict[str, Any]:
    return deployment(f"superopt-{part}")["spec"]["template"]["spec"]


def container(part: str) -> dict[str, Any]:
    (found,) = pod(part)["containers"]
    return found


def environment_of(part: str) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "postgresql://u:p@h/d") for entry in container(part)["env"]}


def test_every_example_is_looked_at_here() -> None:
    looked_at = {"docker-compose.cuda.yml", "kubernetes.yaml", "optimize-model.yml"}
    assert {p.name for p in FOLDER.iterdir()} == looked_at


def test_compose_starts_an_api_a_worker_and_postgres() -> None:
    services = COMPOSE["services"]
    assert set(services) == {*OWN, "postgres"}
    for name in OWN:
        service = services[name]
        settings = settings_of(service["command"], service["environment"])
        assert settings.role == name
        assert settings.database.startswith("postgresql://")
        assert settings.needs_token
        assert service["build"]["target"] in stages()
        assert "postgres" in extras(service["build"]["args"]["EXTRAS"])
        assert set(service["depends_on"]) <= set(services)
        assert service["init"] is True, "somebody must wait for what a killed job leaves"
        seconds = float(service["stop_grace_period"].removesuffix("s"))
        assert seconds > settings.grace, "a running job gets its time"
        (mount,) = service["volumes"]
        volume, _, where = mount.partition(":")
        assert volume in COMPOSE["volumes"]
        assert Path(where) == settings.folder
        assert settings.store_url.startswith(where), "both see the same store"
    (port,) = services["api"]["ports"]
    host, outside, inside = port.split(":")
    assert (host, int(outside), int(inside)) == ("127.0.0.1", Settings().port, Settings().port)
    assert "ports" not in services["worker"]


def test_compose_has_one_password_and_nobody_has_written_it_down() -> None:
    asked = "${POSTGRES_PASSWORD:?is not set}"
    assert COMPOSE["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"] == asked
    for name in OWN:
        assert f":{asked}@postgres/" in COMPOSE["services"][name]["environment"]["SUPEROPT_DATABASE"]
    database = COMPOSE["services"]["postgres"]["environment"]
    url = COMPOSE["services"]["api"]["environment"]["SUPEROPT_DATABASE"]
    assert f"//{database['POSTGRES_USER']}:" in url
    assert url.endswith(f"/{database['POSTGRES_DB']}")


def test_the_cuda_variant_changes_what_is_there() -> None:
    assert set(OVER_CUDA["services"]) <= set(COMPOSE["services"])
    for service in OVER_CUDA["services"].values():
        assert extras(service["build"]["args"]["EXTRAS"]) == {"cuda", "postgres"}
    (device,) = OVER_CUDA["services"]["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])


def test_the_manifest_has_what_it_needs() -> None:
    kinds = [(d["kind"], d["metadata"]["name"]) for d in MANIFEST]
    assert kinds == [
        ("PersistentVolumeClaim", "superopt-store"), ("Service", "superopt"), ("Deployment", "superopt-api"),
        ("Deployment", "superopt-worker"),
    ]  # fmt: skip
    claim, service = MANIFEST[:2]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    labels = deployment("superopt-api")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    for name in ("superopt-api", "superopt-worker"):
        found = deployment(name)
        assert found["spec"]["selector"]["matchLabels"] == found["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize("part", OWN)
def test_pods_run_the_service_as_its_user_with_their_files_mounted(part: str) -> None:
    settings = settings_of(container(part)["args"], environment_of(part))
    assert settings.role == part
    assert pod(part)["terminationGracePeriodSeconds"] > settings.grace + 5
    (made,) = [words for words in commands() if words[0] == "useradd"]
    assert pod(part)["securityContext"]["runAsUser"] == int(made[made.index("--uid") + 1])
    mounts = {m["mountPath"]: m["name"] for m in container(part)["volumeMounts"]}
    volumes = {v["name"]: v for v in pod(part)["volumes"]}
    assert set(mounts.values()) == set(volumes)
    assert volumes[mounts[settings.store_url]]["persistentVolumeClaim"]["claimName"] == "superopt-store"
    cache = next(i.value.partition("=")[2] for i in stages()["service"] if i.value.startswith("XDG_CACHE_HOME="))
    for writable in (str(settings.folder), cache, "/tmp"):
        assert writable in mounts, "the rest of the file system is read-only"
    assert mounts[str(settings.folder)] != mounts[settings.store_url], "locks and work belong to one pod"


def test_the_database_is_known_by_reference_alone() -> None:
    for part in OWN:
        (entry,) = [e for e in container(part)["env"] if e["name"] == "SUPEROPT_DATABASE"]
        assert entry["valueFrom"]["secretKeyRef"] == {"name": "superopt", "key": "database"}
    assert not [d for d in MANIFEST if d["kind"] == "Secret"]


def test_probes_and_ports_are_those_of_the_api() -> None:
    api = container("api")
    settings = settings_of(api["args"], environment_of("api"))
    (port,) = api["ports"]
    assert port["containerPort"] == settings.port == int(last("service", "EXPOSE").value)
    assert not settings.is_loopback
    (outside,) = MANIFEST[1]["spec"]["ports"]
    assert outside["targetPort"] == port["name"]
    probes = {name: api[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert [p["path"] for p in probes.values()] == ["/livez", "/readyz"]
    assert all(p["path"] in PLAIN and p["port"] == port["name"] for p in probes.values())
    told = deployment("superopt-api")["spec"]["template"]["metadata"]["annotations"]
    assert (told["prometheus.io/path"], told["prometheus.io/port"]) == ("/metrics", str(settings.port))
    assert told["prometheus.io/path"] in PLAIN


def test_a_worker_has_a_gpu() -> None:
    assert container("worker")["resources"]["limits"]["nvidia.com/gpu"] == 1
    text = (FOLDER / "kubernetes.yaml").read_text()
    assert {"cuda", "postgres"} == extras(re.findall(r'EXTRAS="(\[[^\]]*\])"', text)[0])


def test_the_workflow_runs_commands_that_exist() -> None:
    """Every `docker run … "$IMAGE" COMMAND` is one that the command line takes."""
    steps = WORKFLOW["jobs"]["optimize"]["steps"]
    text = "\n".join(step.get("run", "") for step in steps).replace("\\\n", " ")
    options = WORKFLOW["env"]["OPTIONS"].split()
    runs = [line.partition('"$IMAGE"')[2] for line in text.splitlines() if "docker run" in line]
    parsed = [build_parser().parse_args(_words(run, options)) for run in runs]
    assert [p.command for p in parsed] == ["optimize", "check", "audit"]
    kept = next(s["with"]["path"] for s in steps if "upload-artifact" in s.get("uses", ""))
    assert str(parsed[0].output).startswith(f"{kept}/")
    for other in parsed[1:]:
        assert str(parsed[0].output) in map(str, vars(other).values())
    assert str(parsed[0].model) == WORKFLOW[True]["push"]["paths"][0]  # `on` is a truth value in YAML
    assert text.count('-v "$PWD:/models"') == len(runs)
    assert last("command", "WORKDIR").value == "/models"


def _words(run: str, options: list[str]) -> list[str]:
    return [word for part in shlex.split(run) for word in (options if part == "$OPTIONS" else [part])]


def test_what_comments_tell_to_type_is_right() -> None:
    """Commands of superopt in the comments of all these files, and of the Dockerfile."""
    files = [ROOT / "docker-compose.yml", ROOT / "Dockerfile", *FOLDER.iterdir()]
    lines = [line for file in files for line in file.read_text().splitlines() if line.startswith("#")]
    found = [line.partition("superopt token ")[2] for line in lines if "superopt token " in line]
    assert len(found) == 2
    for words in found:
        assert build_parser().parse_args(["token", *words.split()]).command == "token"
    for target in (m for line in lines for m in re.findall(r"--target (\w+)", line)):
        assert target in stages()
    for file in (m for line in lines for m in re.findall(r"\b(examples/[\w.-]+\.ya?ml|docker-compose\.yml)", line)):
        assert (ROOT / file).is_file(), file
    for path in (m for line in lines for m in re.findall(r"http://127\.0\.0\.1:8000(/[\w/]*)", line)):
        assert any(path == r.path for module in ROUTES for r in module.router.routes)
