"""Keeps the reference's outputs while the candidate runs: in memory up to a limit, then in a temporary file."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Mapping
from typing import Any

from superopt.errors import LimitHit
from superopt.runtime.values import Value


class Shelf:
    def __init__(self, memory_bytes: int) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=memory_bytes, prefix="superopt-check-")  # noqa: SIM115

    def put(self, outputs: Mapping[str, Value]) -> int:
        """The ticket under which `get` finds them."""
        ticket = self._file.seek(0, 2)
        try:
            pickle.dump(dict(outputs), self._file, protocol=5)
        except OSError as error:
            folder = tempfile.gettempdir()
            raise LimitHit(f"no room in {folder} for the original's outputs: {error.strerror}") from error
        return ticket

    def get(self, ticket: int) -> Mapping[str, Value]:
        self._file.seek(ticket)
        outputs: Any = pickle.load(self._file)
        return outputs

    def close(self) -> None:
        self._file.close()
