"""Rules of several files together: a name stands for one rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.errors import BadInput
from superopt.rewrite.ruleset import load_rules

pytestmark = pytest.mark.unit

TWICE = "rule twice\n  {}given x: [m, k]\n  y = Relu(Relu(x))\n  =>\n  y = Relu(x)\n"
OTHER = "rule twice\n  given x: [m, k]\n  y = Abs(Abs(x))\n  =>\n  y = Abs(x)\n"


def written(folder: Path, **texts: str) -> list[Path]:
    for name, text in texts.items():
        (folder / f"{name}.rules").write_text(text)
    return [folder / f"{name}.rules" for name in texts]


def test_what_a_further_file_repeats_counts_once_where_it_may(tmp_path: Path) -> None:
    files = written(tmp_path, ours=TWICE.format(""), mined=TWICE.format("doc said again\n  "))
    (rule,) = load_rules(files, repeated=True)
    assert rule.source == str(files[0])
    with pytest.raises(BadInput, match="the name 'twice' is taken by"):
        load_rules(files)


def test_a_name_never_stands_for_two_rules(tmp_path: Path) -> None:
    files = written(tmp_path, ours=TWICE.format(""), theirs=OTHER)
    for repeated in (False, True):
        with pytest.raises(BadInput, match="the name 'twice' is taken by"):
            load_rules(files, repeated=repeated)
