"""The session options that a result of superopt says it is best run with: its metadata's word, which anybody may have
written. It is told to people, never obeyed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

from superopt.ir.onnx import Model
from superopt.ir.onnx.metadata import own_notes
from superopt.runtime.deployment import Deployment
from superopt.runtime.recipe import flat_options

NOTE = "superopt.deployment"
_MOST = 10_000
"""Characters; ours have a few hundred."""
_WORD = re.compile(r"[\w.:-]{1,80}", re.ASCII)
"""As options are called and set. Anything else, an escape sequence say, would be printed to somebody's terminal."""
_OF_THE_MACHINE = frozenset(("intra_op_num_threads",))


def noted_options(model: Model) -> dict[str, str]:
    """By onnxruntime's names, as `flat_options` has them; none where there is no such note, or another one."""
    text = own_notes(model.proto).get(NOTE, "")
    try:
        found = json.loads(text) if len(text) <= _MOST else None
    except (ValueError, RecursionError):
        return {}
    options = cast("Mapping[str, object]", found) if isinstance(found, dict) else {}
    words = {name: value for name, value in options.items() if isinstance(value, str)}
    return {name: value for name, value in words.items() if _WORD.fullmatch(name) and _WORD.fullmatch(value)}


def unused_options(model: Model, used: Deployment) -> str:
    """What the model asks for beyond what was used, for people; empty where that is nothing, or is for another device.

    How many threads there are is the machine's."""
    asked, given = noted_options(model), flat_options(used)
    if asked.get("execution_provider") != given["execution_provider"]:
        return ""
    return ", ".join(f"{k}={v}" for k, v in sorted(asked.items()) if given.get(k) != v and k not in _OF_THE_MACHINE)
