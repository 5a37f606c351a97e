"""What the benchmark on a GPU would do, and in which order."""

from __future__ import annotations

import pytest

from benchmarks import gpu, gpu_plan
from benchmarks.gpu_cells import COMPILED, CORE, OURS, PEERS, TUNED
from benchmarks.gpu_plan import FIRST, FURTHER, Job, Pace

pytestmark = pytest.mark.unit


def test_what_is_worth_most_comes_first() -> None:
    planned = gpu_plan.jobs(["magika"])
    assert planned[0] == Job("bert_base", "fp32", 1, CORE)
    assert planned[1] == Job("bert_base", "fp32", 1, (COMPILED,))
    first = [i for i, job in enumerate(planned) if job.model in FIRST and job.methods in (CORE, (COMPILED,))]
    peers = [i for i, job in enumerate(planned) if job.model in FIRST and job.methods == PEERS]
    further = [i for i, job in enumerate(planned) if job.model in FURTHER]
    assert max(first) < min(peers) <= max(peers) < min(further)
    assert len(set(planned)) == len(planned)


def test_every_cell_is_planned_once_and_real_models_as_they_are() -> None:
    keys = [key for job in gpu_plan.jobs(["magika"]) for key in job.keys]
    assert len(set(keys)) == len(keys)
    assert {key[1:3] for key in keys if key[0] == "magika"} == {("fp32", 1)}
    assert {key[1:3] for key in keys if key[0] == "resnet50"} == set(gpu_plan.SETTINGS)
    assert {key[3] for key in keys} == set(gpu.METHODS)


def test_a_part_of_the_plan() -> None:
    planned = gpu_plan.jobs([], "^resnet50$", [("fp16", 16)], [OURS, TUNED])
    assert planned == [Job("resnet50", "fp16", 16, CORE), Job("resnet50", "fp16", 16, (TUNED,))]
    given, extra = gpu.parse(["--settings", "fp16-b16", "--methods", "superopt", "--", "--no-partial"])
    assert given.settings == (("fp16", 16),)
    assert given.methods == ("superopt",)
    assert extra == ("--no-partial",)


@pytest.mark.parametrize("words", [["--settings", "fp64-b1"], ["--methods", "tvm"], ["--only", "("], ["--again", "["]])
def test_what_is_not_known_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        gpu.parse(words)


def test_a_job_begins_only_if_it_is_expected_to_end_in_time() -> None:
    pace, job = Pace(), Job("resnet50", "fp32", 1, CORE)
    assert not pace.fits(job, 50)
    pace.took(job, 20)
    pace.took(job, 40)
    assert pace.expected(job) == 30
    assert pace.fits(job, 50)
    assert pace.affordable([job] * 5, 100) == [job] * 3
