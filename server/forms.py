"""A form (multipart/form-data) to files on disk: the model, its data files and options, parsed as it comes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from server.names import safe_name
from server.problems import Problem
from server.records import MODEL
from server.spool import Allowance, Sink, Spooled

MOST_PARTS = 1000
OPTION_BYTES = 64 << 10
AROUND_BYTES = 16 << 20
"""Of a form besides what its parts hold: boundaries, headers, what comes before the first part and after the last."""


@dataclass
class Upload:
    """What came, on disk, checked; `keep` takes the files, `discard` removes what is left of them."""

    files: dict[str, Spooled] = field(default_factory=dict[str, Spooled])
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def discard(self) -> None:
        for file in self.files.values():
            file.discard()


class Form:
    """Parts `model`, `data` (each with a file name) and `options` (JSON), in any order."""

    def __init__(self, spool: Path, allowance: Allowance, boundary: bytes) -> None:
        self._spool, self._allowance = spool, allowance
        self._upload, self._ended, self._parts, self._left = Upload(), False, 0, allowance.limit + AROUND_BYTES
        self._sink: Sink | None = None
        self._options: bytearray | None = None
        self._name = ""
        self._header, self._content = bytearray(), bytearray()
        self._disposition = ""
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_end": self._finished,
            },
        )

    def write(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise Problem(413, "the form is too large", limit_bytes=self._allowance.limit)
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise Problem(400, f"the form does not parse: {str(error)[:200]}") from None

    def finish(self) -> Upload:
        self._parser.finalize()
        if not self._ended:
            raise Problem(400, "the form was cut off")
        if MODEL not in self._upload.files:
            raise Problem(422, "the form has no part named model")
        return self._upload

    def discard(self) -> None:
        if self._sink is not None:
            self._sink.discard()
        self._upload.discard()

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise Problem(413, f"the form has more than {MOST_PARTS} parts")
        self._disposition = ""

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._content += data[start:end]

    def _header_end(self) -> None:
        if bytes(self._header).lower() == b"content-disposition":
            self._disposition = bytes(self._content).decode("latin-1")
        self._header.clear()
        self._content.clear()

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._disposition)
        part = options.get(b"name", b"").decode("utf-8", "replace")
        if part == "options" and self._options is None:
            self._options = bytearray()
            self._name = part
        elif part == "model":
            self._open(MODEL)
        elif part == "data":
            file_name = options.get(b"filename", b"").decode("utf-8", "replace")
            self._open(safe_name(file_name))
        else:
            twice = " again" if part == "options" else ""
            raise Problem(422, f"expected parts named model, data and options, found {part[:100]!r}{twice}")

    def _open(self, name: str) -> None:
        if name in self._upload.files:
            raise Problem(422, f"the form has {name!r} twice")
        self._name, self._sink = name, Sink(self._spool, self._allowance)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._sink is not None:
            self._sink.write(data[start:end])
        elif self._options is not None:
            self._options += data[start:end]
            if len(self._options) > OPTION_BYTES:
                raise Problem(413, f"the options are larger than {OPTION_BYTES >> 10} KiB")

    def _end(self) -> None:
        if self._sink is not None:
            self._upload.files[self._name] = self._sink.finish()
            self._sink = None
        elif self._options is not None:
            self._upload.options = _json_object(bytes(self._options))

    def _finished(self) -> None:
        self._ended = True


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Problem(422, "the part options is no JSON") from None
    if not isinstance(found, dict):
        raise Problem(422, "the part options must be a JSON object")
    return found
