"""Logs for machines: one JSON object a line on stderr, with the job's id. Secrets are not in them."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_JOB: ContextVar[str] = ContextVar("job", default="")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
_SECRET = ("authorization", "token", "password", "secret", "cookie")


@contextmanager
def in_job(id: str) -> Generator[None]:
    """What is logged in here is about a job."""
    before = _JOB.set(id)
    try:
        yield
    finally:
        _JOB.reset(before)


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if _JOB.get():
            line["job"] = _JOB.get()
        for name, value in vars(record).items():
            if name not in _STANDARD and not name.startswith("_") and not any(word in name.lower() for word in _SECRET):
                line[name] = value
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up_logs(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("superopt", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())
    logging.getLogger("uvicorn.access").disabled = True  # our own line has the job's id and no query
