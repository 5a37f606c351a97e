"""Rules from the cache are the rules of the file, whatever else is in the cache."""

from __future__ import annotations

import gc
import os
import pickle
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from superopt.errors import BadText
from superopt.rewrite import remembered
from superopt.rewrite.remembered import read_rules
from superopt.rewrite.ruleset import SHIPPED
from superopt.rewrite.text import parse_rules

pytestmark = pytest.mark.unit
TEXT = """
rule add-zero-{0}
  doc     Nothing is added.
  given   x: [n, 2*m]  e: real
  where   m >= 2
  y = Add(x, {0}.5)
  =>
  y = Identity(x)
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path / "cache" / "rules")
    monkeypatch.setattr(remembered, "LEAST", 1)
    remembered._rules.cache_clear()  # pyright: ignore[reportPrivateUsage]
    return tmp_path / "cache" / "rules"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.rules"
    path.write_text("".join(TEXT.format(i) for i in range(3)))
    return path


def again(path: Path) -> list[object]:
    """As another process reads them."""
    remembered._rules.cache_clear()  # pyright: ignore[reportPrivateUsage]
    return list(read_rules(path))


def unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object) -> None:
        raise AssertionError("it was remembered")

    monkeypatch.setattr("superopt.rewrite.text.parse_rules", parse)


def test_what_was_read_before_is_not_parsed_again(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = parse_rules(file.read_text(), str(file))
    assert read_rules(file) == expected
    assert len(list(cache.iterdir())) == 1
    unparsed(monkeypatch)
    assert again(file) == expected


def test_another_text_takes_the_place_of_the_old(file: Path, cache: Path) -> None:
    assert len(again(file)) == 3
    file.write_text(TEXT.format(7))
    assert again(file) == parse_rules(TEXT.format(7), str(file))
    assert len(list(cache.iterdir())) == 1


def test_every_shipped_rule_can_be_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    path = SHIPPED / "matmul.rules"
    expected = read_rules(path)
    unparsed(monkeypatch)
    assert again(path) == expected


def replaced(entry: Path, change: Callable[[bytes], bytes]) -> None:
    entry.write_bytes(change(entry.read_bytes()))


KEY = 32


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[:-9],
        lambda data: b"x" + data[1:],
        lambda data: data[:KEY] + b"not a pickle",
        lambda data: data[:KEY] + pickle.dumps(3),
        lambda data: data[:KEY] + pickle.dumps((os.mkdir,)),
    ],
)
def test_what_cannot_be_read_is_parsed_and_written_anew(
    file: Path, cache: Path, change: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = read_rules(file)
    (entry,) = cache.iterdir()
    replaced(entry, change)
    assert again(file) == expected
    unparsed(monkeypatch)
    assert again(file) == expected


def test_nothing_but_parts_of_rules_is_made(file: Path, cache: Path, tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "harm"),)

    read_rules(file)
    (entry,) = cache.iterdir()
    replaced(entry, lambda data: data[:KEY] + pickle.dumps((Harm(),)))
    again(file)
    assert not (tmp_path / "harm").exists()


def test_without_room_for_a_cache_files_are_parsed(file: Path, cache: Path) -> None:
    cache.parent.write_text("in the way")
    assert len(again(file)) == len(again(file)) == 3
    assert cache.parent.read_text() == "in the way"


def test_what_is_wrong_is_told_every_time(file: Path, cache: Path) -> None:
    file.write_text("rule nothing\n  y = \n")
    for _ in range(2):
        with pytest.raises(BadText):
            again(file)
    assert not cache.exists()


def test_what_a_rule_means_is_remembered_with_it_and_not_with_what_is_made_of_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [(rule.meaning, rule.operators) for rule in read_rules(file)]
    remembered._rules.cache_clear()  # pyright: ignore[reportPrivateUsage]
    unparsed(monkeypatch)
    found = read_rules(file)
    assert [(vars(rule)["meaning"], vars(rule)["operators"]) for rule in found] == expected
    assert replace(found[0], finite=True).meaning != found[0].meaning


def test_garbage_is_looked_for_again_afterwards_and_nothing_is_kept_from_it() -> None:
    with remembered.without_collection():
        assert not gc.isenabled()
        loop: list[object] = []
        loop.append(loop)
        gone = weakref.ref(_Kept(loop))
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    del loop
    gc.collect()
    assert gone() is None


class _Kept:
    """Reached from a loop that nothing else holds."""

    def __init__(self, loop: list[object]) -> None:
        loop.append(self)
