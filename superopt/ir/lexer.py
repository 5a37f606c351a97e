"""Tokens of the text form, with positions, so that every error can point at its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from superopt.errors import BadText

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)
      | (?P<newline>\n)
      | (?P<number>[+-]?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+|inf\b|nan\b))
      | (?P<digest>\#[0-9a-f]+)
      | (?P<bytes>(?:hex|opaque)"[0-9a-f]*")
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<name>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<symbol>\.\.\.|->|=>|::|==|!=|<=|>=|//|[][(){}<>,:=@?*+/%|-])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    line: int
    column: int


class Reader:
    """Looks one token ahead and says what it expected where it did not find it."""

    def __init__(self, text: str, source: str = "text", first: int = 1) -> None:
        """`first`: the number of the text's first line in its source."""
        self.source, self.lines, self.first = source, text.split("\n"), first
        self._tokens = list(self._scan(text))
        self._at = 0

    def _scan(self, text: str) -> Iterator[Token]:
        position, line, start = 0, self.first, 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                self._fail(f"no token starts with {text[position]!r}", line, position - start + 1)
            kind = match.lastgroup or ""
            if kind == "newline":
                line, start = line + 1, match.end()
            elif kind != "space":
                yield Token(kind, match.group(), line, position - start + 1)
            position = match.end()
        yield Token("end", "", line, position - start + 1)

    def _fail(self, message: str, line: int, column: int) -> NoReturn:
        raise BadText(message, self.source, line, column, self.lines[line - self.first])

    def error(self, message: str, token: Token | None = None) -> NoReturn:
        token = token or self.peek
        self._fail(message, token.line, token.column)

    @property
    def peek(self) -> Token:
        return self._tokens[self._at]

    def at(self, text: str) -> bool:
        token = self._tokens[self._at]
        return token.text == text and token.kind in ("symbol", "name")

    def next(self) -> Token:
        token = self.peek
        if token.kind != "end":
            self._at += 1
        return token

    def take(self, text: str) -> bool:
        if self.at(text):
            self._at += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.at(text):
            self.error(f"expected {text!r}, found {self.found()}")
        return self.next()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.peek.kind != kind:
            self.error(f"expected {what}, found {self.found()}")
        return self.next()

    def found(self) -> str:
        return "the end of the text" if self.peek.kind == "end" else repr(self.peek.text)

    def name(self, what: str = "a name") -> str:
        """A plain name, or any text in double quotes."""
        if self.peek.kind == "string":
            return self.string()
        return self.expect_kind("name", what).text

    def string(self) -> str:
        token = self.expect_kind("string", "a string")
        try:
            return str(json.loads(token.text))
        except ValueError:
            self.error("not a valid string", token)

    def integer(self, what: str = "a whole number") -> int:
        token = self.expect_kind("number", what)
        try:
            return int(token.text)
        except ValueError:
            self.error(f"expected {what}, found {token.text!r}", token)
