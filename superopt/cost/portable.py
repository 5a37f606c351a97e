"""Costs as plain text: one JSON document, the same for the same contents, with a line for each time.

It is what is shipped: it can be read, reviewed and kept beside code, and no database is needed to read it. What is read
may come from anybody: every field is checked before any is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from superopt.cost.cache import CostKey, Entry, Input, RegionEntry, RegionKey, RegionTime
from superopt.cost.contents import Contents, machine_of
from superopt.cost.machine import Machine
from superopt.cost.result import Comparison
from superopt.errors import BadOption
from superopt.ir.files import clear_write_errors
from superopt.runtime.deployment import parse_deployment

FORMAT, VERSION = "superopt costs", 1
TEXT = ".json"
"""How the names of such files end."""
MOST_BYTES = 1 << 28
DAY = "%Y-%m-%d"

_Name = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
_Key = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
_Reason = Annotated[str, Field(max_length=2000)]
_Seconds = Annotated[float, Field(gt=0.0, le=86400.0, allow_inf_nan=False)]
_Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Regions(_Record):
    """Times of regions with one deployment."""

    deployment: _Key
    method: int
    measured: _Day = Field(description="when the last of them was")
    seconds: dict[_Key, _Seconds]
    failures: dict[_Key, _Reason]


class _Compared(_Record):
    models: tuple[_Key, ...]
    deployments: Annotated[tuple[_Key, ...], Field(min_length=1)]
    inputs: tuple[Input, ...]
    method: int
    look: int = 0
    measured: _Day
    comparison: Comparison


class _OfMachine(_Record):
    target: Literal["cpu", "cuda"]
    device: _Name
    driver: _Name
    runtime: _Name
    regions: list[_Regions]
    comparisons: list[_Compared]


class _Document(_Record):
    format: Literal["superopt costs"]
    version: Literal[1]
    machines: list[_OfMachine]


class _Head(BaseModel):
    """What says which version it is, whatever else is there."""

    format: str
    version: int


def is_portable(file: Path) -> bool:
    """Whether it begins as such a file does, and as no database does."""
    try:
        with open(file, "rb") as f:
            return f.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def write_portable(contents: Contents, file: Path) -> None:
    document = _Document(format=FORMAT, version=VERSION, machines=[_told(contents, m) for m in contents.machines])
    # What older files do not have is left out where it says nothing.
    told = document.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False)
    with clear_write_errors(file):
        staged = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            staged.write_text(f"{text}\n", encoding="utf-8")
            os.replace(staged, file)
        finally:
            staged.unlink(missing_ok=True)


def read_portable(file: Path) -> Contents:
    try:
        size = file.stat().st_size
        if size > MOST_BYTES:
            raise BadOption(f"{file}: has {size >> 20} MiB, a cost file has at most {MOST_BYTES >> 20}")
        data = file.read_bytes()
    except OSError as error:
        raise BadOption(f"{file}: cannot be read: {error.strerror}") from None
    _refuse_others(data, file)
    try:
        document = _Document.model_validate_json(data)
        return Contents.of(_regions(document), _comparisons(document))
    except ValidationError as error:
        raise BadOption(f"{file}: is no cost file of superopt: {_first(error)}") from None
    except BadOption as error:
        raise BadOption(f"{file}: is no cost file of superopt: {error}") from None


def _refuse_others(data: bytes, file: Path) -> None:
    """What is not JSON or something else, and other versions: in words of their own."""
    try:
        head = _Head.model_validate_json(data)
    except ValidationError as error:
        raise BadOption(f"{file}: is no cost file of superopt, or only a part of one: {_first(error)}") from None
    if head.format != FORMAT:
        raise BadOption(f"{file}: expected the format {FORMAT!r}, found {head.format[:80]!r}")
    if head.version != VERSION:
        raise BadOption(f"{file}: expected version {VERSION} of the text form of costs, found {head.version}")


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:80] for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


def _told(contents: Contents, machine: Machine) -> _OfMachine:
    own = contents.of_machines([machine])
    groups: dict[tuple[str, int], list[RegionEntry]] = {}
    for key, entry in own.regions.items():
        groups.setdefault((key.deployment, key.method), []).append(entry)
    return _OfMachine(
        target=machine.target, device=machine.device, driver=machine.driver, runtime=machine.runtime,
        regions=[_told_regions(*group, groups[group]) for group in sorted(groups)],
        comparisons=[_told_comparison(own.comparisons[key]) for key in sorted(own.comparisons, key=lambda k: k.text)],
    )  # fmt: skip


def _told_regions(deployment: str, method: int, entries: list[RegionEntry]) -> _Regions:
    ordered = sorted(entries, key=lambda e: e.key.structure)
    return _Regions(
        deployment=deployment, method=method, measured=day_of(max(e.measured for e in entries)),
        seconds={e.key.structure: e.time.seconds for e in ordered if e.time.seconds is not None},
        failures={e.key.structure: e.time.reason for e in ordered if e.time.seconds is None},
    )  # fmt: skip


def _told_comparison(entry: Entry) -> _Compared:
    key = entry.key
    return _Compared(
        models=key.models, deployments=key.deployments, inputs=key.inputs, method=key.method,
        look=key.look, measured=day_of(entry.measured), comparison=entry.comparison,
    )  # fmt: skip


def _regions(document: _Document) -> Iterator[RegionEntry]:
    for machine in document.machines:
        for group in machine.regions:
            parse_deployment(group.deployment)
            measured = _seconds_of(group.measured)
            times = {key: RegionTime(seconds) for key, seconds in group.seconds.items()}
            times |= {key: RegionTime(None, reason) for key, reason in group.failures.items()}
            for name, found in times.items():
                key = RegionKey(
                    name, group.deployment, machine.device, machine.driver, machine.runtime, group.method
                )  # fmt: skip
                _refuse_target(machine_of(key), machine)
                yield RegionEntry(key, found, measured)


def _comparisons(document: _Document) -> Iterator[Entry]:
    for machine in document.machines:
        for told in machine.comparisons:
            for text in told.deployments:
                parse_deployment(text)
            key = CostKey(
                told.models, told.deployments, told.inputs, machine.device, machine.driver, machine.runtime,
                told.method, told.look,
            )  # fmt: skip
            _refuse_target(machine_of(key), machine)
            _refuse_unlike(told)
            yield Entry(key, told.comparison, _seconds_of(told.measured))


def _refuse_target(found: Machine, told: _OfMachine) -> None:
    if found.target != told.target:
        raise BadOption(f"{told.device}: expected deployments on {told.target}, found one on {found.target}")


def _refuse_unlike(told: _Compared) -> None:
    """A comparison has a subject for each deployment, and a pair for each but the first."""
    names = [subject.name for subject in told.comparison.subjects]
    pairs = [pair.name for pair in told.comparison.pairs]
    if len(names) != len(told.deployments) or len(set(names)) != len(names) or pairs != names[1:]:
        raise BadOption(f"expected a comparison of {len(told.deployments)} subjects, found {names} and pairs {pairs}")


def day_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(DAY)


def _seconds_of(day: str) -> float:
    try:
        return datetime.strptime(day, DAY).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise BadOption(f"expected a day, found {day!r}") from None
