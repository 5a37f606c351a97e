"""The settings of the service, defined once: flags, environment, file and docs read this table.

A flag beats the environment (`SUPEROPT_NAME`), which beats the file (TOML), which beats the default.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from superopt.errors import BadOption

Role = Literal["all", "api", "worker"]
Auth = Literal["auto", "on", "off"]
Engine = Literal["local", "ray"]
LogLevel = Literal["debug", "info", "warning", "error"]
PREFIX = "SUPEROPT_"
FILE = f"{PREFIX}CONFIG"
"""Environment variable that names the file."""
CHOICES: dict[str, tuple[str, ...]] = {
    "Role": get_args(Role), "Auth": get_args(Auth), "Engine": get_args(Engine), "LogLevel": get_args(LogLevel)
}  # fmt: skip


def setting(default: Any, help: str, metavar: str = "", *, least: float | None = None) -> Any:
    """A field with its help text and the least value it may have."""
    return field(default=default, metadata={"help": help, "metavar": metavar, "least": least})


@dataclass(frozen=True)
class Settings:
    host: str = setting("127.0.0.1", "address to listen on", "HOST")
    port: int = setting(8000, "port to listen on; 0 = any free one", "PORT", least=0)
    role: Role = setting(
        "all", "what this process does: serve the API, work on jobs, or look after one process for each"
    )
    auth: Auth = setting("auto", "bearer tokens: auto = needed unless host is a loopback address; off only there")
    data: str = setting("", "folder of the service's files; empty = the user's data folder", "DIR")
    database: str = setting("", "URL of the database; empty = SQLite in the data folder", "URL")
    store: str = setting(
        "", "where models and reports are kept, a folder or an fsspec URL; empty = in the data folder", "URL"
    )
    devices: str = setting(
        "auto", "devices to work on, with commas: cpu, cuda:0, …; auto = every GPU, or else the CPU", "LIST"
    )
    searchers: int = setting(
        0, "jobs at once on one device, which take turns at measuring; 0 = one on a CPU, two on a GPU", "N", least=0
    )
    engine: Engine = setting("local", "where jobs run: in processes of this machine, or on a Ray cluster")
    address: str = setting("", "of the Ray cluster, host:port; empty = the one that this machine is part of", "ADDRESS")
    queue: int = setting(1000, "jobs that may wait; more are answered with 429", "N", least=1)
    tenant_queue: int = setting(200, "jobs of one tenant that may wait", "N", least=1)
    upload_limit: int = setting(4096, "MiB of one upload, external data included", "MIB", least=1)
    upload_patience: float = setting(
        30.0, "seconds for the head of a request, and for every 16 KiB of an upload", "SECONDS", least=0.1
    )
    node_limit: int = setting(50_000, "nodes of one model, those of its subgraphs and functions included", "N", least=1)
    budget_limit: float = setting(
        600.0, "most seconds of measuring (`budget`) that a client may ask for", "SECONDS", least=0
    )
    time_limit: float = setting(
        3600.0, "seconds that one job may take, and the most a client may ask for", "SECONDS", least=1
    )
    memory_limit: int = setting(
        0, "MiB that one job may hold; 0 = nine tenths of what is free, shared by the workers", "MIB", least=0
    )
    wait_limit: float = setting(600.0, "most seconds that a request is kept waiting for its job", "SECONDS", least=0)
    retention: float = setting(
        604_800.0, "seconds that a finished job and its files are kept; then 410", "SECONDS", least=1
    )
    lease: float = setting(15.0, "seconds after which a worker that says nothing is taken for dead", "SECONDS", least=1)
    attempts: int = setting(5, "workers that may die of one job before it fails", "N", least=1)
    grace: float = setting(
        5.0, "seconds that a running job gets to finish at shutdown, before it is queued again", "SECONDS", least=0
    )
    log_level: LogLevel = setting("info", "least level that is logged")

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            value, least = getattr(self, entry.name), entry.metadata["least"]
            allowed = CHOICES.get(str(entry.type))
            if allowed is not None and value not in allowed:
                raise BadOption(f"{flag(entry.name)}: expected {' or '.join(allowed)}, found {value!r}")
            if least is not None and not (math.isfinite(value) and value >= least):
                raise BadOption(f"{flag(entry.name)}: expected {least:g} or more, found {value}")
        if self.port > 65535:
            raise BadOption(f"--port: expected at most 65535, found {self.port}")
        if self.auth == "off" and not self.is_loopback:
            raise BadOption(f"--auth off: only for a loopback address, and {self.host} can be reached from elsewhere")

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def needs_token(self) -> bool:
        return self.auth == "on" or (self.auth == "auto" and not self.is_loopback)

    @property
    def folder(self) -> Path:
        """The data folder; made by whoever writes to it first."""
        if self.data:
            return Path(self.data).absolute()
        from platformdirs import user_data_path  # asked for only where no folder was named

        return user_data_path("superopt")

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.folder / 'superopt.db'}"

    @property
    def store_url(self) -> str:
        return self.store or str(self.folder / "store")

    @property
    def upload_bytes(self) -> int:
        return self.upload_limit << 20

    def as_environment(self) -> dict[str, str]:
        """For a process that this one starts."""
        return {variable(f.name): str(getattr(self, f.name)) for f in dataclasses.fields(self)}


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def read_settings(
    flags: Mapping[str, Any] | None = None, file: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Settings from all sources. A flag that was not given is None, or not there."""
    environment = os.environ if environment is None else environment
    if file is None and environment.get(FILE):
        file = Path(environment[FILE])
    values: dict[str, Any] = {} if file is None else _from_file(file)
    for entry in dataclasses.fields(Settings):
        text = environment.get(variable(entry.name))
        if text is not None:
            values[entry.name] = _read(entry, text, variable(entry.name))
        given = (flags or {}).get(entry.name)
        if given is not None:
            values[entry.name] = _read(entry, given, flag(entry.name))
    return Settings(**values)


def _from_file(file: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadOption(f"{file}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadOption(f"{file}: expected TOML: {error}") from None
    known = {f.name: f for f in dataclasses.fields(Settings)}
    for name in table:
        if name not in known:
            raise BadOption(f"{file}: unknown setting {name!r}; the settings are {', '.join(known)}")
    return {name: _read(known[name], value, f"{file}: {name}") for name, value in table.items()}


def _read(entry: dataclasses.Field[Any], value: Any, where: str) -> Any:
    kind = str(entry.type)
    reader = {"int": int, "float": float}.get(kind, str)
    expected = {"int": "a whole number", "float": "a number"}.get(kind, "text")
    if isinstance(value, str | reader) and not isinstance(value, bool):
        try:
            return reader(value)
        except ValueError:
            pass
    elif reader is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    raise BadOption(f"{where}: expected {expected}, found {value!r}")
