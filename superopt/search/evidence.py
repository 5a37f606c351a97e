"""What an audit is given besides models: a report as a file, and data files that must be the same."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from superopt.errors import BadInput, BadOption
from superopt.ir.onnx import Model
from superopt.options import Options, from_json
from superopt.report import SCHEMA_VERSION, Report
from superopt.runtime.facts import runtime_facts
from superopt.version import __version__


def read_report(path: Path) -> Report:
    """A report of this version of superopt: rules, passes and their order are other ones in another."""
    try:
        text = path.read_bytes()
        data = json.loads(text)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"{path}: is no JSON, expected a report of superopt optimize") from None
    schema, made_by = _versions(data)
    if schema is not None and schema != SCHEMA_VERSION:
        raise BadInput(f"{path}: is a report of schema version {schema}, this superopt reads {SCHEMA_VERSION}")
    if made_by is not None and made_by != __version__:
        raise BadInput(
            f"{path}: was written by superopt {made_by}, this is {__version__}; passes and rules are those of a "
            "version: audit it with that one"
        )
    try:
        return Report.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise BadInput(f"{path}: is no report of superopt optimize: {place}: {first['msg']}") from None


def _versions(data: Any) -> tuple[object, object]:
    """Of the schema and of superopt, as far as they are told."""
    if not isinstance(data, dict):
        return None, None
    report: dict[str, Any] = data
    environment = report.get("environment")
    return report.get("schema_version"), environment.get("superopt") if isinstance(environment, dict) else None


def options_in(report: Report, path: Path) -> Options:
    """The options of the run that is audited."""
    try:
        return from_json(report.options)
    except (BadOption, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{path}: its options are none of superopt optimize: {error}") from None


def surroundings(report: Report) -> list[str]:
    """What is other here than where the report was made, and may give other shapes or other last bits."""
    here = {"onnx": version("onnx"), "onnxruntime": runtime_facts().version}
    there = {"onnx": report.environment.onnx, "onnxruntime": report.environment.onnxruntime}
    return [
        f"the result was made with {name} {there[name]}, here it is {here[name]}"
        for name in here
        if here[name] != there[name]
    ]


def differing_data(original: Model, other: Model) -> str:
    """The first external data file that is not what it was; empty where all are."""
    for name in original.external:
        assert original.folder is not None
        assert other.folder is not None
        if _digest(original.folder / name) != _digest(other.folder / name):
            return f"{other.folder / name}: is another data file than {original.folder / name}"
    return ""


def _digest(path: Path) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()
