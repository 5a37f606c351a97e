"""What the numbers say: means, who is slower than whom, and what the table shows of it."""

from __future__ import annotations

import math

import pytest

from benchmarks import standings
from benchmarks.records import (
    BY_HAND,
    ORIGINAL,
    AuditOutcome,
    Contender,
    OptimizeOutcome,
    PeerOutcome,
    Ratio,
    Result,
)
from benchmarks.texts import without_folders

pytestmark = pytest.mark.unit

PEERS = ("onnxsim", "onnxslim")


def contender(name: str, value: float, low: float | None = None, high: float | None = None) -> Contender:
    return Contender(name=name, median=0.002, ratio=Ratio(value=value, low=low, high=high))


def result(
    *contenders: Contender,
    peers: tuple[PeerOutcome, ...] = (),
    optimize: OptimizeOutcome | None = None,
    audit: AuditOutcome | None = None,
    name: str = "net",
    group: str = "real",
    timing_problem: str = "",
) -> Result:
    return Result(
        name=name, group=group, key="k", code="c", command="superopt optimize net.onnx", nodes=10, file_bytes=1_500_000,
        optimize=optimize or OptimizeOutcome(returned="optimized", nodes=7, file_bytes=1_000_000),
        audit=audit or AuditOutcome(status="passed"), peers=list(peers), contenders=list(contenders),
        timing_problem=timing_problem, environment=None, date="2030-01-01 00:00 UTC",
    )  # fmt: skip


def test_the_geometric_mean_of_twice_and_half_is_one() -> None:
    assert standings.geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert standings.geometric_mean([1.0, 1.0, 8.0]) == pytest.approx(2.0)
    assert math.isnan(standings.geometric_mean([]))


def test_the_inverse_of_a_ratio_swaps_its_bounds() -> None:
    assert Ratio(value=2.0, low=1.0, high=4.0).inverse() == Ratio(value=0.5, low=0.25, high=1.0)
    assert Ratio(value=2.0).inverse() == Ratio(value=0.5)


@pytest.mark.parametrize(
    ("ratio", "slower"),
    [
        (Ratio(value=0.9, low=0.85, high=0.97), True),
        (Ratio(value=0.97, low=0.95, high=0.985), False),  # slower, but by less than 2 %
        (Ratio(value=0.9, low=0.7, high=1.1), False),  # too noisy to say
        (Ratio(value=1.5, low=1.4, high=1.6), False),
        (Ratio(value=0.5), False),  # no interval
        (None, False),
    ],
)
def test_slower_means_that_the_whole_interval_says_so(ratio: Ratio | None, slower: bool) -> None:
    assert standings.is_slower(ratio) is slower


def test_only_what_excludes_one_is_claimed() -> None:
    assert standings.certain(Ratio(value=1.2, low=1.1, high=1.3)) == 1.2
    assert standings.certain(Ratio(value=0.8, low=0.7, high=0.9)) == 0.8
    assert standings.certain(Ratio(value=1.2, low=0.9, high=1.5)) == 1.0
    assert standings.certain(Ratio(value=1.2)) == 1.0


def test_every_contender_that_is_faster_is_named() -> None:
    lost = result(
        contender(ORIGINAL, 1.2, 1.1, 1.3),
        contender("onnxsim", 0.8, 0.7, 0.9),
        contender("onnxslim", 1.1, 1.0, 1.2),
        contender(BY_HAND, 0.5, 0.4, 0.6),
    )
    assert standings.loses_to(lost) == ["onnxsim", BY_HAND]
    assert standings.verdict(lost) == f"FAILED: slower than onnxsim, {BY_HAND}"


def test_nobody_loses_to_a_wrong_model() -> None:
    wrong = PeerOutcome(peer="onnxsim", version="1", status="wrong", detail="off by one")
    found = result(contender(ORIGINAL, 1.0, 1.0, 1.0), contender("onnxsim", 0.5, 0.4, 0.6), peers=(wrong,))
    assert standings.loses_to(found) == []
    assert standings.cell(found, "onnxsim") == "0.50 [0.40, 0.60] wrong"
    assert standings.means([found], PEERS)["onnxsim"] == 1.0


def test_what_went_wrong_is_a_failure_in_words() -> None:
    assert standings.problems(result(contender(ORIGINAL, 1.2, 1.1, 1.3))) == []
    failed = result(
        optimize=OptimizeOutcome(problem="exit code 1: no"),
        audit=AuditOutcome(status="failed", detail="a weight differs"),
        timing_problem="stopped after 9 s",
    )
    assert standings.problems(failed) == [
        "optimize: exit code 1: no",
        "audit: a weight differs",
        "timing: stopped after 9 s",
    ]


def test_verdicts() -> None:
    assert standings.verdict(result(contender(ORIGINAL, 1.2, 1.1, 1.3))) == "faster"
    assert standings.verdict(result(contender(ORIGINAL, 1.2, 0.9, 1.3))) == "not measurably faster"
    same = OptimizeOutcome(returned="original")
    assert standings.verdict(result(contender(ORIGINAL, 1.0, 1.0, 1.0), optimize=same)) == "the original came back"


def test_a_cell_shows_the_ratio_or_why_there_is_none() -> None:
    crashed = PeerOutcome(peer="onnxslim", version="1", status="crashed")
    found = result(contender("onnxsim", 0.8, 0.7, 0.9), contender(ORIGINAL, 1.2, 1.1, 1.3), peers=(crashed,))
    assert standings.cell(found, "onnxsim") == "0.80 [0.70, 0.90]!"
    assert standings.cell(found, ORIGINAL) == "1.20 [1.10, 1.30]"
    assert standings.cell(found, "onnxslim") == "crashed"
    assert standings.cell(found, BY_HAND) == "-"
    stuck = result(Contender(name="onnxsim", median=None, ratio=None, detail="an input is missing"))
    assert standings.cell(stuck, "onnxsim") == "failed"


def test_the_table_has_a_line_for_each_model_and_columns_in_line() -> None:
    lines = standings.table([result(contender(ORIGINAL, 1.2, 1.1, 1.3)), result(name="longer-name")], PEERS).split("\n")
    assert [line.split()[0] for line in lines] == ["model", "net", "longer-name"]
    at = lines[0].index("nodes")
    assert lines[1][at:].startswith("10 -> 7")
    assert lines[1].rstrip().endswith("faster")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rule r (/home/me/src/rules/a.rules:140) is stale", "rule r (a.rules:140) is stale"),
        ("cannot open '/tmp/x y/net.onnx'", "cannot open 'x y/net.onnx'"),
        ("/data/net.onnx", "net.onnx"),
        ("1/2 and a/b stay, so does rules/a.rules", "1/2 and a/b stay, so does rules/a.rules"),
    ],
)
def test_where_files_lie_is_not_printed(text: str, expected: str) -> None:
    assert without_folders(text) == expected


def test_a_model_that_a_peer_could_not_do_counts_as_one_for_it() -> None:
    both = [
        result(contender(ORIGINAL, 2.0), contender("onnxsim", 0.5)),  # onnxsim is four times as fast as the original
        result(contender(ORIGINAL, 2.0)),
    ]
    means = standings.means(both, PEERS)
    assert means == {"superopt": pytest.approx(2.0), "onnxsim": pytest.approx(2.0)}


def test_the_summary_counts_what_failed_and_says_which() -> None:
    good = result(contender(ORIGINAL, 2.0, 1.9, 2.1), contender(BY_HAND, 1.0, 0.9, 1.1), group="built")
    bad = result(contender(ORIGINAL, 0.5, 0.4, 0.6), name="slow")
    untimed = result(name="broken", timing_problem="no")
    text = "\n".join(standings.summary([good, bad, untimed], PEERS))
    assert "3 models, 2 timed" in text
    assert "speed-up over the original: 1.000x (1.000x" in text
    assert "built: 2.000x of 1" in text
    assert "real: 0.500x of 1" in text
    assert "merged by hand: 1 of 1" in text
    assert "2 failed" in text
    assert "slow: FAILED: slower than original" in text
    assert "broken: FAILED: timing: no" in text
