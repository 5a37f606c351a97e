"""Rules that were read before: what a file says, kept in the user's cache, because thousands of rules take far
longer to parse than to unpickle.

An entry holds for one text, read by one parser. It is written whole or not at all, and nothing but parts of rules is
unpickled. Where there is no room for a cache, or what is there cannot be read, files are parsed as ever.
"""

from __future__ import annotations

import gc
import hashlib
import io
import os
import pickle
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from platformdirs import user_cache_path

from superopt.errors import BadInput
from superopt.ir import lexer
from superopt.rewrite import expression, formulas, numerals, rule, sharing, text
from superopt.rewrite.rule import Rule
from superopt.rewrite.sharing import shared

LEAST = 1 << 12
"""Characters of a file that is worth an entry."""
_PARSER: tuple[ModuleType, ...] = (lexer, expression, formulas, numerals, rule, sharing, text)
"""What an entry depends on besides the text."""
_PARTS = frozenset((expression.__name__, rule.__name__))
_UNREADABLE = (
    OSError,
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    AttributeError,
    ImportError,
    IndexError,
)


def read_rules(path: Path) -> list[Rule]:
    """The rules of a file."""
    try:
        said = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is no text") from None
    return list(_rules(said, str(path)))


@cache
def folder() -> Path:
    return user_cache_path("superopt") / "rules"


@lru_cache(maxsize=64)
def _rules(said: str, source: str) -> tuple[Rule, ...]:
    if len(said) < LEAST or not folder().is_absolute():  # without a home
        return tuple(text.parse_rules(said, source))
    entry = folder() / f"{hashlib.sha256(source.encode()).hexdigest()[:24]}.pickle"
    key = hashlib.sha256(f"{_parser()}\n{source}\n{said}".encode()).digest()
    found = _read(entry, key)
    if found is None:
        found = tuple(text.parse_rules(said, source))
        _write(entry, key, found)
    return found


@cache
def _parser() -> str:
    """What reads rules here, Python included."""
    sources = [Path(module.__file__).read_bytes() for module in _PARSER if module.__file__]
    return hashlib.sha256(b"\n".join((sys.version.encode(), *sources))).hexdigest()


def _read(entry: Path, key: bytes) -> tuple[Rule, ...] | None:
    try:
        data = entry.read_bytes()
        if not data.startswith(key):
            return None
        with without_collection():
            found = _Parts(io.BytesIO(data[len(key) :])).load()
    except _UNREADABLE:
        return None
    return found if isinstance(found, tuple) else None


def _write(entry: Path, key: bytes, rules: tuple[Rule, ...]) -> None:
    with suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=entry.parent, suffix=".partial", delete=False) as staged:
            try:
                staged.write(key + _told(rules))
                staged.close()
                os.replace(staged.name, entry)
            except OSError:
                os.unlink(staged.name)


def _told(rules: tuple[Rule, ...]) -> bytes:
    """With what is asked of every rule as soon as it is read."""
    kept = shared(rules)
    for one in kept:
        _ = one.meaning, one.operators
    return pickle.dumps(kept, protocol=5)


class _Parts(pickle.Unpickler):
    """Of rules alone: an entry that asks for anything else is none of ours."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name not in _PARTS or "." in global_name:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is no part of a rule")
        found = getattr(sys.modules[module_name], global_name)
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is no class")
        return found


@contextmanager
def without_collection() -> Generator[None]:
    """Many objects that all stay: looking for garbage among them takes longer than reading them.

    Afterwards they count as old, or the next look at what is new would be at all of them.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
