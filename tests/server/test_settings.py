"""Settings: one table; flags before environment before file; the docs say what the table says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from server.settings import CHOICES, Settings, flag, read_settings, variable
from superopt.errors import BadOption

pytestmark = pytest.mark.unit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "service.md"


def settings_table() -> str:
    lines = ["| flag | environment, file | default | meaning |", "|---|---|---|---|"]
    for entry in dataclasses.fields(Settings):
        kind = str(entry.type)
        value = "{" + ",".join(CHOICES[kind]) + "}" if kind in CHOICES else entry.metadata["metavar"]
        default = f"`{entry.default}`" if entry.default != "" else ""
        names = f"`{variable(entry.name)}`, `{entry.name}`"
        lines.append(f"| `{flag(entry.name)} {value}` | {names} | {default} | {entry.metadata['help']} |")
    return "\n".join(lines)


def test_the_page_has_the_table_of_settings() -> None:
    assert settings_table() in PAGE.read_text(), f"docs/service.md must have:\n{settings_table()}"


def test_sources_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "superopt.toml"
    file.write_text('queue = 1\nport = 1\nhost = "localhost"\nlease = 20\n')
    environment = {"SUPEROPT_CONFIG": str(file), "SUPEROPT_PORT": "2", "SUPEROPT_QUEUE": "2"}
    found = read_settings({"queue": 3, "host": None}, environment=environment)
    assert (found.queue, found.port, found.host, found.lease) == (3, 2, "localhost", 20.0)
    assert found.retention == Settings().retention


def test_settings_travel_to_a_child_whole() -> None:
    chosen = Settings(port=0, data="/d", retention=7.5, database="postgresql://u:p@h/d", auth="on")
    assert read_settings(environment=chosen.as_environment()) == chosen


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"port": "x"}, "--port: expected a whole number, found 'x'"),
        ({"port": 70000}, "at most 65535"),
        ({"queue": 0}, "--queue: expected 1 or more, found 0"),
        ({"retention": "nan"}, "--retention: expected 1 or more"),
        ({"role": "boss"}, "--role: expected all or api or worker, found 'boss'"),
        ({"host": "0.0.0.0", "auth": "off"}, "only for a loopback address"),
    ],
)
def test_nonsense_is_refused(values: dict[str, object], told: str) -> None:
    with pytest.raises(BadOption, match=told):
        read_settings(values, environment={})


@pytest.mark.parametrize(
    ("text", "told"),
    [("quue = 1", "unknown setting 'quue'"), ("queue = true", "expected a whole number"), ("queue =", "expected TOML")],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(BadOption, match=told):
        read_settings(file=tmp_path / "s.toml", environment={})
    with pytest.raises(BadOption, match="cannot be read"):
        read_settings(file=tmp_path / "none.toml", environment={})


@pytest.mark.parametrize(
    ("host", "auth", "needed"),
    [
        ("127.0.0.1", "auto", False), ("::1", "auto", False), ("localhost", "off", False), ("127.0.0.1", "on", True),
        ("0.0.0.0", "auto", True), ("::", "on", True), ("example.org", "auto", True),
    ],
)  # fmt: skip
def test_tokens_are_needed_wherever_others_can_reach(host: str, auth: str, needed: bool) -> None:
    assert read_settings({"host": host, "auth": auth}, environment={}).needs_token == needed
