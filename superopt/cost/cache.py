"""Comparisons of models and times of regions kept in one SQLite file, so that what was measured once can be frozen.

Several processes may share the file. An entry that is present is returned instead of measuring again; its key holds
everything that a time depends on, so nothing measured elsewhere, or otherwise, is ever taken for an answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

from platformdirs import user_cache_path
from pydantic import Field, TypeAdapter, ValidationError

from superopt.cost.measure import METHOD_VERSION
from superopt.cost.result import Comparison
from superopt.errors import BadOption

_APPLICATION = 0x5C057  # marks the file as ours, in SQLite's own header
_BUSY_SECONDS = 30.0
_BUSY_PAUSE = 0.01
_DAY = 86400.0
# What each version of the file adds to the one before it.
_VERSIONS = (
    """
create table costs (
    digest text primary key,
    key text not null,
    comparison text not null,
    measured real not null
) without rowid
""",
    """
create table regions (
    digest text primary key,
    key text not null,
    seconds real,
    reason text not null,
    measured real not null
) without rowid
""",
)
_SCHEMA = len(_VERSIONS)


@dataclass(frozen=True)
class Input:
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class CostKey:
    """What a comparison depends on. Models and deployments are in the order of its subjects."""

    models: tuple[str, ...]
    deployments: tuple[str, ...]
    inputs: tuple[Input, ...]
    device: str
    driver: str
    runtime: str
    method: int = METHOD_VERSION
    look: int = 0
    """1 for a closer look at what a first one may have left in doubt: it is no answer to the same question."""

    @property
    def text(self) -> str:
        """A first look is not mentioned: files had no other, once."""
        told = asdict(self)
        return json.dumps(told if self.look else {k: v for k, v in told.items() if k != "look"}, sort_keys=True)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class RegionKey:
    """What the time of a region depends on; `structure` covers its sizes too, and no weight's content."""

    structure: str
    deployment: str
    device: str
    driver: str
    runtime: str
    method: int

    @property
    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class RegionTime:
    """Seconds of a run; None where it cannot run, and why."""

    seconds: Annotated[float, Field(ge=-_DAY, le=_DAY, allow_inf_nan=False)] | None
    """What takes no longer than an empty model, whose time is taken off, may be below 0."""
    reason: str = ""


@dataclass(frozen=True)
class Entry:
    key: CostKey
    comparison: Comparison
    measured: float


@dataclass(frozen=True)
class RegionEntry:
    key: RegionKey
    time: RegionTime
    measured: float


def default_cost_file() -> Path:
    return user_cache_path("superopt") / "costs.sqlite"


class CostCache:
    def __init__(self, file: Path | None = None, *, copied: bool = False) -> None:
        """What is `copied` is in memory, and the file, which may be read-only, stays as it is."""
        self.file = default_cost_file() if file is None else file
        with self._complaining():
            if not copied:
                self.file.parent.mkdir(parents=True, exist_ok=True)
            name = ":memory:" if copied else self.file
            self._database = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                if copied:
                    self._copy()
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def get(self, key: CostKey) -> Comparison | None:
        with self._complaining():
            row = self._database.execute("select comparison from costs where digest = ?", (key.digest,)).fetchone()
            return None if row is None else Comparison.model_validate_json(row[0])

    def put(self, key: CostKey, comparison: Comparison) -> None:
        row = (key.digest, key.text, comparison.model_dump_json(), time.time())
        with self._complaining():
            self._database.execute("insert or replace into costs values (?, ?, ?, ?)", row)

    def get_or_measure(
        self, key: CostKey, measure: Callable[[], Comparison], hurried: Callable[[], bool] = lambda: False
    ) -> tuple[Comparison, bool]:
        """The comparison, and whether it came from the file. What was measured in a hurry is not kept."""
        known = self.get(key)
        if known is not None:
            return known, True
        comparison = measure()
        if not hurried():
            self.put(key, comparison)
        return comparison, False

    def entries(self) -> list[Entry]:
        """Everything in the file, oldest first."""
        with self._complaining():
            rows = self._database.execute(
                "select key, comparison, measured from costs order by measured, digest"
            ).fetchall()
            return [
                Entry(_KEYS.validate_json(key), Comparison.model_validate_json(comparison), measured)
                for key, comparison, measured in rows
            ]

    def get_region(self, key: RegionKey) -> RegionTime | None:
        with self._complaining():
            query = "select seconds, reason from regions where digest = ?"
            row = self._database.execute(query, (key.digest,)).fetchone()
            return None if row is None else _REGION_TIMES.validate_python({"seconds": row[0], "reason": row[1]})

    def put_region(self, key: RegionKey, found: RegionTime) -> None:
        """The first to put a time wins: what was answered once is answered ever after."""
        row = (key.digest, key.text, found.seconds, found.reason, time.time())
        with self._complaining():
            self._database.execute("insert or ignore into regions values (?, ?, ?, ?, ?)", row)

    def region_entries(self) -> list[RegionEntry]:
        """Every region in the file, oldest first."""
        with self._complaining():
            rows = self._database.execute(
                "select key, seconds, reason, measured from regions order by measured, digest"
            ).fetchall()
            return [
                RegionEntry(
                    _REGION_KEYS.validate_json(key),
                    _REGION_TIMES.validate_python({"seconds": seconds, "reason": reason}),
                    measured,
                )
                for key, seconds, reason, measured in rows
            ]

    def count_regions(self) -> int:
        with self._complaining():
            (count,) = self._database.execute("select count(*) from regions").fetchone()
            return count

    def add_all(self, regions: Iterable[RegionEntry], comparisons: Iterable[Entry]) -> None:
        """All at once or nothing; what the file holds already stays."""
        region_rows = [(e.key.digest, e.key.text, e.time.seconds, e.time.reason, e.measured) for e in regions]
        cost_rows = [(e.key.digest, e.key.text, e.comparison.model_dump_json(), e.measured) for e in comparisons]
        with self._complaining():
            self._database.execute("begin immediate")
            self._database.executemany("insert or ignore into regions values (?, ?, ?, ?, ?)", region_rows)
            self._database.executemany("insert or ignore into costs values (?, ?, ?, ?)", cost_rows)
            self._database.execute("commit")

    def clear(self) -> None:
        with self._complaining():
            self._database.execute("delete from costs")
            self._database.execute("delete from regions")

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _copy(self) -> None:
        uri = f"{self.file.absolute().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as source:
            source.backup(self._database)

    def _prepare(self) -> None:
        self._database.execute("begin immediate")
        application, schema = self._pragma("application_id"), self._pragma("user_version")
        (tables,) = self._database.execute("select count(*) from sqlite_master").fetchone()
        if application != _APPLICATION and (application, schema, tables) != (0, 0, 0):
            raise BadOption(f"{self.file}: a database, but no cost file of superopt")
        if not 0 <= schema <= _SCHEMA:
            raise BadOption(f"{self.file}: expected cost file version {_SCHEMA} or older, found {schema}")
        for addition in _VERSIONS[schema:]:
            self._database.execute(addition)
        self._database.execute(f"pragma application_id = {_APPLICATION}")
        self._database.execute(f"pragma user_version = {_SCHEMA}")
        self._database.execute("commit")
        self._write_ahead()
        self._database.execute("pragma synchronous = normal")

    def _write_ahead(self) -> None:
        """To change the journal SQLite reads first and then writes, and one that reads it never has wait for another
        that writes: it fails at once, whatever the timeout."""
        until = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._database.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(_BUSY_PAUSE)

    def _pragma(self, name: str) -> int:
        (value,) = self._database.execute(f"pragma {name}").fetchone()
        return value

    @contextlib.contextmanager
    def _complaining(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise BadOption(f"{self.file}: cannot be used as a cost file: {error}") from error
        except ValidationError as error:
            raise BadOption(f"{self.file}: holds an entry that is no comparison of superopt, nor a time") from error


_KEYS = TypeAdapter(CostKey)
_REGION_KEYS = TypeAdapter(RegionKey)
_REGION_TIMES = TypeAdapter(RegionTime)
