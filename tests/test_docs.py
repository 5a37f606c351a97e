"""The pages under docs/ and the README, held to the code they describe."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from docs import generate
from superopt import errors

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", list(generate.pages()), ids=lambda p: p.name)
def test_generated_pages_say_what_the_code_says(path: Path) -> None:
    assert path.read_text() == generate.pages()[path], "run: python docs/generate.py"


def test_a_changed_report_would_change_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    before = generate.report_page()
    monkeypatch.setattr(generate.report, "SCHEMA_VERSION", 99)
    assert generate.report_page() != before


def test_the_page_has_every_command_and_no_other() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert re.findall(r"^## superopt ([\w-]+)$", page, flags=re.MULTILINE) == list(generate.commands())


def test_exit_codes_are_those_of_the_errors() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)}

    def codes(error: type[errors.SuperoptError]) -> set[int]:
        return {error.exit_code}.union(*(codes(e) for e in error.__subclasses__()))

    assert documented == {0, 130} | codes(errors.SuperoptError)


def test_the_architecture_page_names_every_layer_in_order() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = [c["layers"] for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    rows = re.findall(r"^\| (`.*`) \|", (ROOT / "docs" / "architecture.md").read_text(), flags=re.MULTILINE)
    assert [row.replace("`", "").replace(", ", " | ") for row in rows] == layers


def test_the_architecture_page_calls_empty_what_is_empty() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    told = re.findall(r"^Empty so far: (.*?)\. ", page, flags=re.MULTILINE)
    packages = [ROOT / "server", ROOT / "specs", *(p.parent for p in (ROOT / "superopt").glob("*/__init__.py"))]
    empty = {".".join(p.relative_to(ROOT).parts) for p in packages if len(list(p.glob("**/*.py"))) == 1}
    assert {name for names in told for name in names.replace("`", "").split(", ")} == empty


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_make_targets_named_in_prose_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for named in re.findall(r"`make ([a-z -]+)`", page.read_text()):
        assert set(named.split()) <= targets


def test_no_speed_is_claimed_without_the_script_that_prints_it() -> None:
    """A number of the form 1.6x or 1.6× belongs to a results file, not to a page."""
    for page in PAGES:
        assert not re.search(r"\d(\.\d+)?\s?[x×](?!\d)", page.read_text()), page.name


def test_readme_fits_one_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 45
