"""Loads onnxruntime once, silently, when it is first needed."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import sys
import tempfile
from collections.abc import Generator
from typing import Any

FATAL = 4


@functools.cache
def onnxruntime() -> Any:
    """The module itself, with its log and telemetry off."""
    with captured_stderr():
        import onnxruntime as module

    module.set_default_logger_severity(FATAL)
    module.disable_telemetry_events()
    return module


@functools.cache
def errors() -> tuple[type[BaseException], ...]:
    """What onnxruntime raises: its own exceptions share no base class, and its bindings add Python's."""
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    own = [kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    return (*own, RuntimeError, ValueError, TypeError, OSError, MemoryError)


@functools.cache
def preload_cuda() -> None:
    """Loads the CUDA libraries of the `superopt[cuda]` extra; where they are missing, the provider says so."""
    module = onnxruntime()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(*errors()):
        module.preload_dlls()


@contextlib.contextmanager
def captured_stderr() -> Generator[list[str]]:
    """Keeps what native code writes to the standard error; the list is filled on leaving."""
    lines: list[str] = []
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:
        yield lines
        return
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            sink.seek(0)
            lines += sink.read().decode(errors="replace").splitlines()
