"""A model tidied by the safe passes alone, without check or clock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from superopt.ir.onnx import encode, load, parse
from superopt.ir.onnx.save import serialize
from superopt.normalize import normalize
from superopt.report import Rewrite


@dataclass(frozen=True)
class Tidied:
    model: bytes
    rewrites: tuple[Rewrite, ...]
    changed: bool


def tidy(model: bytes | Path, *, growth_cap: int | None = None) -> Tidied:
    """The model after `normalize`; its own bytes where nothing was to be done. External data comes back inside."""
    parsed = load(model) if isinstance(model, Path) else parse(model)
    result = normalize(parsed, growth_cap=growth_cap)
    if result.graph is parsed.graph:
        return Tidied(parsed.data, (), changed=False)
    return Tidied(serialize(encode(parsed, result.graph)), result.rewrites, changed=True)
