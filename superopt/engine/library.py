"""`superopt.optimize`: the library's front door, with the same isolation and the same options as the command line."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from superopt.engine.deliver import deliver
from superopt.engine.job import Stage
from superopt.errors import BadOption
from superopt.options import Options
from superopt.report import Report


class Serializable(Protocol):
    """What an `onnx.ModelProto` can do."""

    def SerializeToString(self) -> bytes: ...


@dataclass(frozen=True)
class Result:
    """The model to ship, and what was done to it. `report.returned` says whether it is a new one."""

    model: bytes = field(repr=False)
    report: Report

    def save(self, path: str | Path) -> None:
        Path(path).write_bytes(self.model)


def optimize(
    model: str | Path | bytes | Serializable, *, progress: Callable[[str, str], None] | None = None, **options: Any
) -> Result:
    """Optimize a model given as a path, as bytes or as a ModelProto. Options as on the command line.

    Models with external data are optimized from file to file: give `optimize` of the command line a path.
    """
    chosen = Options.of(**options)

    def tell(stage: Stage) -> None:
        if progress is not None:
            progress(stage.stage, stage.detail)

    with tempfile.TemporaryDirectory(prefix="superopt-") as folder:
        source = Path(folder) / "model.onnx"
        if isinstance(model, str | Path):
            source = Path(model)
        else:
            source.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        out = Path(folder) / "result" / "model.onnx"
        out.parent.mkdir()
        delivered = deliver(source, out, chosen, tell)
        if delivered.written is not None and delivered.written.data_files:
            raise BadOption(f"{source}: has external data; optimize it from file to file with `superopt optimize`")
        return Result(out.read_bytes(), delivered.report)
