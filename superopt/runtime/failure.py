"""What onnxruntime says when it fails, as one line a user can act on."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator
from pathlib import Path

from superopt.errors import CannotRun
from superopt.runtime.library import errors

_STATUS = re.compile(r"\[ONNXRuntimeError\] : \d+ : (\w+) : ")
# "/onnxruntime_src/…/reshape_helper.h:91 onnxruntime::ReshapeHelper::ReshapeHelper(const …&, bool) "
_SOURCE = re.compile(r"(?:/[\w.\-+]+)+\.(?:cc|h|cu|cuh|cpp|hpp):\d+ (?:[^()\n]*\([^\n]*?\)(?: const)? )?")
# "… [with ERRTYPE = cudaError; …] CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=… ; file=…"
_CUDA = re.compile(r"(CU\w+ failure \d+: .*?) *; *GPU=")
_BAD_ALLOC = re.compile(r"bad_alloc|bad allocation|failed to allocate memory", re.IGNORECASE)
_NO_MEMORY = re.compile(r"out of memory|alloc_failed", re.IGNORECASE)


@contextlib.contextmanager
def translated(doing: str, model: Path | None = None) -> Generator[None]:
    """Any exception of onnxruntime becomes `CannotRun("doing: reason")`."""
    try:
        yield
    except errors() as error:
        raise CannotRun(f"{doing}: {reason(error, model)}") from error


def is_of_memory(reason: str) -> bool:
    """Whether there was too little memory, which others may have had at the time."""
    return _NO_MEMORY.search(reason) is not None


def reason(error: BaseException, model: Path | None = None) -> str:
    text = str(error)
    if isinstance(error, MemoryError) or _BAD_ALLOC.search(text):
        return "out of memory"
    from_cuda = _CUDA.search(text)
    if from_cuda is not None:
        return from_cuda.group(1)
    if model is not None:
        text = text.replace(str(model), model.name)
    text = _SOURCE.sub("", _STATUS.sub("", text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    is_sentence = lines[0].endswith((".", "!", "?"))
    return " ".join(lines[: 1 if is_sentence else 2])
