"""The page of rules names rules that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from superopt.rewrite.ruleset import SHIPPED, load_rules, rule_files


@pytest.mark.unit
def test_rules_that_the_page_names_exist() -> None:
    page = (Path(SHIPPED).parent / "docs" / "rules.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z0-9-]+)` \|", page, flags=re.MULTILINE)
    assert len(named) > 5
    assert set(named) <= {rule.name for rule in load_rules(rule_files())}
