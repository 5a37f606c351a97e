"""The page of benchmarks, its plot and the README's table, held to the results they are made from."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import page_plots, pages
from benchmarks.gpu_cells import BEST, COMPILED, CORE, DEFAULT, OURS, Cell, Ledger, Made, Run
from benchmarks.plots import bars
from superopt.report import Interval

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("path", list(pages.pages()), ids=lambda p: p.name)
def test_pages_say_what_was_measured(path: Path) -> None:
    assert path.read_text() == pages.pages()[path], "run: python benchmarks/pages.py"


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Results of two networks on a GPU beside those of the CPU."""
    shutil.copy(pages.RESULTS / "optimizer-cpu.json", tmp_path)
    run = Run(
        command="python benchmarks/gpu.py --time-limit 540", date="2030-01-01", device="GPU 1", driver="5",
        versions={"onnxruntime": "1.31.1"}, code="0123abcd", notes=["TF32 is on"],
    )  # fmt: skip
    ledger = Ledger.opened(tmp_path / "gpu.json", [], run)
    for model, default in (("bert_base", 4.0), ("resnet50", 1.0)):
        for method, ratio in ((OURS, 1.0), (DEFAULT, default), (BEST, 2.0), (COMPILED, 0.5)):
            ledger.add(
                Cell(
                    model=model, dtype="fp32", batch=1, method=method, code="c" if method in CORE else "", status="ok",
                    median=ratio * 1e-3, interval=Interval(low=ratio * 0.99e-3, high=ratio * 1.01e-3),
                    over_ours=None if method == COMPILED else ratio,
                    made=_made() if method == OURS else None,
                )
            )  # fmt: skip
    return tmp_path


def _made() -> Made:
    return Made(
        returned="optimized", verdict="", check="equal (8 runs)", rules={"qkv": 12}, nodes_before=9, nodes_after=7
    )


def test_the_page_has_every_number_with_its_device_and_command(measured: Path) -> None:
    text = pages.page(measured)
    assert "## GPU 1" in text
    assert "`python benchmarks/gpu.py --time-limit 540`" in text
    assert "TF32 is on" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| bert_base |")]
    assert row.startswith("| bert_base | 4000 | 1000 | 4.00 | 2.00 | 0.50 [0.49, 0.51]!")
    assert "| geometric mean | | | 2.00 of 2 | 2.00 of 2 | 0.50 of 2 |" in text.replace("|  |  |", "| | |")
    assert "qkv (12)" in text
    assert "resnet50 fp32 b1: slower than torch.compile" in text


def test_without_results_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert pages.page(tmp_path) == pages.INTRODUCTION
    assert pages.headline(tmp_path) == []
    assert pages.plots(tmp_path) == {}


def test_the_headline_is_four_lines_at_most(measured: Path) -> None:
    found = pages.headline(measured)
    assert len(found) == 4
    assert found[2] == "| GPU 1 (fp32) | 2 | 2.00 | 2.00 | 0.50 | - |"


def test_only_the_table_of_the_readme_changes(measured: Path) -> None:
    text = f"before\n\n| {pages.HEADLINE[0]} | {pages.HEADLINE[1]} | x |\n|---|---|---|\n| old | 1 | 2 |\n\nafter\n"
    found = pages.readme(text, measured)
    assert found.startswith("before\n\n| device |")
    assert found.endswith("|\n\nafter\n")
    assert "old" not in found
    assert pages.readme(found, measured) == found
    with pytest.raises(ValueError, match="no table"):
        pages.readme("nothing", measured)


def test_the_plot_shows_speed_ups_over_the_default_session(measured: Path) -> None:
    texts, values = _told(pages.plots(measured)[pages.EACH])
    assert "bert_base" in texts
    # The default takes four times as long as superopt's result, twice as long as with best options, eight as compiled.
    assert values[:3] == ["4.00", "2.00", "8.00"]


def _told(drawn: str) -> tuple[list[str], list[str]]:
    """All words of a plot, and the values at its bars."""
    texts = [e.text or "" for e in ElementTree.fromstring(drawn).iter() if e.tag.endswith("text")]
    return texts, [text for text in texts if re.fullmatch(r"\d\.\d\d", text)]


def test_the_overview_shows_means_of_what_all_were_measured_on(measured: Path) -> None:
    texts, values = _told(pages.plots(measured)[pages.OVERVIEW])
    assert "fp32, batch 1, 2 networks" in texts
    assert values == ["2.00", "1.00", "4.00"]  # bert_base 4, 2, 8; resnet50 1, 0.5, 2; no peer was measured


def test_who_was_not_measured_on_most_networks_has_no_mean(measured: Path) -> None:
    book = pages.load_gpu(measured)
    cells = {cell.key: cell for cell in book.cells if (cell.model, cell.method) != ("resnet50", COMPILED)}
    drawn = page_plots.settings(cells, "GPU 1")
    assert drawn is not None
    assert _told(drawn)[1] == ["2.00", "1.00"]


def test_bars_are_as_long_as_their_values() -> None:
    root = ElementTree.fromstring(bars("a < b", ("one", "two"), {"x & y": [2.0, None], "z": [4.0, 1.0]}))
    widths = [float(e.attrib["width"]) for e in root.iter() if e.tag.endswith("rect") and e.attrib["height"] == "8"]
    assert widths == pytest.approx([280, 560, 140], abs=0.2)
