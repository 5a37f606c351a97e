"""The options that a client may choose: those of `superopt.options`, less what names a file on this machine."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from server.problems import Problem
from server.settings import Settings
from superopt.errors import BadOption
from superopt.options import Options, parse_dim, parse_shape, sizes_of

_ON_DISK = ("rules", "inputs", "costs", "device", "keep_rules")
"""Options that name a path, or what is in a file; no client may."""
_CAPS = {"budget": "budget_limit", "search_time": "budget_limit", "mine": "budget_limit", "time_limit": "time_limit"}
LONGEST_TEXT = 10_000


def fields() -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(Options) if f.name not in _ON_DISK]


def from_query(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Options out of a query, written as on the command line: `budget=10`, `time-limit=60`, `dim=batch=8`."""
    found: dict[str, Any] = {}
    for written, text in pairs:
        name = written.replace("-", "_")
        if name == "shape" or name == "dim":
            try:
                key, value = (parse_shape if name == "shape" else parse_dim)(text)
            except BadOption as error:
                raise _refused(name, str(error)) from None
            mapping = found.setdefault(name, {})
            if key in mapping:
                raise _refused(name, f"{key} is given twice")
            mapping[key] = value
        elif name in found:
            raise _refused(name, "is given twice")
        else:
            found[name] = text
    return found


def chosen(given: Mapping[str, Any], settings: Settings) -> Options:
    """The options of a job, each checked, none above what this service allows."""
    known = {f.name for f in fields()}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in _ON_DISK:
            raise _refused(name, "cannot be chosen here: it names a file, and no file is opened by name")
        if name not in known:
            raise _refused(name, f"is no option; the options are {', '.join(sorted(known))}")
        values[name] = _read(name, value)
    for name, cap in _CAPS.items():
        most = getattr(settings, cap)
        if values.get(name, 0) > most:
            raise _refused(name, f"at most {most:g} s here, found {values[name]:g}")
        values.setdefault(name, min(most, getattr(Options, name)))
    most = settings.memory_limit
    if most and values.get("memory_limit", 0) > most:
        raise _refused("memory_limit", f"at most {most} MiB here, found {values['memory_limit']}")
    if most and not values.get("memory_limit"):
        values["memory_limit"] = most
    try:
        return Options.of(**values)
    except (BadOption, TypeError, ValueError, OverflowError) as error:
        raise Problem(422, str(error), title="An option makes no sense") from None


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(typing.get_type_hints(Options)[name])


def _read(name: str, value: Any) -> Any:
    try:
        if len(json.dumps(value, ensure_ascii=False).encode()) > LONGEST_TEXT:
            raise _refused(name, "is too long")
        if name == "dim":
            return {str(k): sizes_of(str(k), v) for k, v in dict(value).items()}
        return _adapter(name).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _refused(name, first["msg"]) from None
    except BadOption as error:
        raise _refused(name, str(error)) from None
    except UnicodeEncodeError:
        raise _refused(name, "is no text") from None
    except (TypeError, ValueError):
        raise _refused(name, "expected a mapping of names to sizes") from None


def _refused(name: str, why: str) -> Problem:
    return Problem(422, f"{name}: {why}", title="An option makes no sense", option=name)


def parameters() -> list[dict[str, Any]]:
    """The options as query parameters of the OpenAPI document, in the words of the table."""
    return [_parameter(field) for field in fields()]


def schema() -> dict[str, Any]:
    """The options as one JSON object."""
    properties = {f.name: {**_schema(f), "description": f.metadata["help"]} for f in fields()}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _parameter(field: dataclasses.Field[Any]) -> dict[str, Any]:
    described = {"name": field.name, "in": "query", "required": False, "description": field.metadata["help"]}
    if field.name in ("shape", "dim"):
        example = "x=1,3,224,224" if field.name == "shape" else "batch=8"
        items = {"type": "string", "description": field.metadata["metavar"], "examples": [example]}
        return {**described, "schema": {"type": "array", "items": items}}
    return {**described, "schema": _schema(field)}


def _schema(field: dataclasses.Field[Any]) -> dict[str, Any]:
    found = _adapter(field.name).json_schema()
    if field.name in ("shape", "dim"):
        sizes: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}}
        return {"type": "object", "additionalProperties": sizes}
    return {**found, "default": field.default}
