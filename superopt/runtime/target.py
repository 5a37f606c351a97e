"""cpu or cuda: what the user asked for, or an error. Never a silent fallback."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from superopt.errors import BadOption, CannotRun
from superopt.runtime.deployment import Deployment, Target
from superopt.runtime.library import FATAL, captured_stderr, onnxruntime, preload_cuda
from superopt.runtime.probe import relu_model
from superopt.runtime.session import Session

_ERROR = 3
_LOAD_FAILURE = re.compile(r"with error: (.+)")


@dataclass(frozen=True)
class CudaState:
    works: bool
    reason: str


def resolve_target(asked: Literal["auto", "cpu", "cuda"]) -> Target:
    """`auto` is cuda only where a model really runs there."""
    if asked == "cpu":
        return "cpu"
    if asked not in ("auto", "cuda"):
        raise BadOption(f"target: expected auto, cpu or cuda, found {asked!r}")
    cuda = cuda_state()
    if cuda.works:
        return "cuda"
    if asked == "cuda":
        raise BadOption(f"target cuda: not usable here: {cuda.reason}")
    return "cpu"


@functools.cache
def cuda_state() -> CudaState:
    """Runs one Relu on the device; the reason is for people, empty when it works."""
    ort = onnxruntime()
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        return CudaState(False, "this onnxruntime was built without CUDA")
    preload_cuda()
    reason = "no CUDA device answered"
    with captured_stderr() as lines:
        ort.set_default_logger_severity(_ERROR)
        try:
            with Session(relu_model(opset=13, ir_version=7), Deployment("cuda", threads=1)) as session:
                session.run({"x": np.ones(1, np.float32)})
            return CudaState(True, "")
        except CannotRun as error:
            reason = str(error)
        finally:
            ort.set_default_logger_severity(FATAL)
    said = _LOAD_FAILURE.search("\n".join(lines))
    return CudaState(False, said.group(1).strip() if said else reason)
