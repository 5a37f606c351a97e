"""The command that would do it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import cast

from superopt.options import Options
from superopt.report import Report


def reproduce(report: Report) -> str:
    """A command line with every option that is not at its default."""
    out = report.after.path if report.after.path != report.before.path else None
    words = ["superopt", "optimize", report.before.path or "MODEL.onnx", "-o", out or "OUT.onnx"]
    usual = Options().as_json()
    for name, value in report.options.items():
        if value != usual.get(name):
            words += _words(f"--{name.replace('_', '-')}", value)
    return shlex.join(words)


def _words(flag: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            yield from (flag, f"{key}={_item(item)}")
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from (flag, str(item))
    elif isinstance(value, bool):
        yield flag if value else flag.replace("--", "--no-", 1)
    elif value is not None:
        yield from (flag, str(value))


def _item(value: object) -> str:
    return ",".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
