"""What a client is told when something is refused: RFC 9457, one shape for every error."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An answer, not a bug: a status, one sentence, and what a program may want to know besides."""

    def __init__(
        self, status: int, detail: str, *, title: str = "", headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more
        self.title = title or HTTPStatus(status).phrase
        self.headers = dict(headers or {})

    def document(self) -> dict[str, Any]:
        return {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail, **self.more}
