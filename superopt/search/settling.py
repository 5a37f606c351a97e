"""What models and regions are timed with on a GPU: the session options that decide most, settled before the search.

Without a CUDA graph a small model's time is the host's, who launches one kernel after another: BERT-base in fp16 takes
2.5 ms so on an H200, and 0.8 ms with a graph. Rewrites that save kernels' time then drown in the noise of launches, and
those that save launches look better than they are. With channels last a convolution has other kernels: what pays in the
one layout may cost in the other. So where the original gains by them, which is how it will be deployed, everything is
timed so.

Kernels of convolutions come from cuDNN's heuristics meanwhile, where a search among all of them finds nothing faster
for the original: some sessions are there far sooner then, and hundreds are opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from superopt.cost.contest import Method
from superopt.cost.measure import Subject
from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.runtime.values import Value
from superopt.search.choices import (
    EXHAUSTIVE,
    FUSED_BIAS,
    HEURISTIC,
    LAUNCHES,
    NHWC,
    Choice,
    Contents,
    convolves,
    is_hasty,
)
from superopt.search.deployments import LIKELY, Measure

SECONDS = 1.0
"""To see whether it pays, for each choice: it is worth a factor, or nothing."""
_STAGES = (
    (LAUNCHES,),
    (Choice("convolution layout", provider_options=(NHWC,)),
     Choice("convolution layout", provider_options=(NHWC, FUSED_BIAS))),
)  # fmt: skip
_WORDS = {"enable_cuda_graph": "launches recorded in a CUDA graph", "prefer_nhwc": "channels last in convolutions"}
_HASTY = "kernels of convolutions by heuristics, with which sessions open sooner"
_SETTLED = HEURISTIC.names.union(*(choice.names for stage in _STAGES for choice in stage))

Gains: TypeAlias = Callable[[Deployment, Sequence[Deployment]], Sequence[float | None]]
"""The original's time under the first over that under each of the others, at the sizes where that is least; None where
it does not run."""


def settled(base: Deployment, contents: Contents, gains: Gains, hasty: bool = True) -> tuple[Deployment, ...]:
    """From the base to what everything is timed with, a choice more each time. Whether heuristics may choose kernels is
    asked where one is `hasty`."""
    quick = HEURISTIC.applied(base) if hasty and chooses_kernels(base, contents) else base
    _, *found = _climbed(quick, contents, gains)
    if quick == base:
        return base, *found
    (gain,) = gains(found[-1], [EXHAUSTIVE.applied(found[-1])]) if found else (None,)
    if gain is None:  # one of the two does not run, or nothing gains with heuristics
        _, *searched = _climbed(base, contents, gains)
        return base, *(searched if len(searched) >= len(found) else found)
    return base, *(map(EXHAUSTIVE.applied, found) if gain >= LIKELY else found)


def _climbed(base: Deployment, contents: Contents, gains: Gains) -> tuple[Deployment, ...]:
    found = [base]
    for stage in _stages(base, contents):
        others = [choice.applied(found[-1]) for choice in stage]
        speedups = gains(found[-1], others)
        best = max(range(len(others)), key=lambda i: speedups[i] or 0.0)
        if (speedups[best] or 0.0) >= LIKELY:
            found.append(others[best])
    return tuple(found)


def chooses_kernels(base: Deployment, contents: Contents) -> bool:
    """Whether cuDNN searches for kernels, and nobody has said how."""
    given = {name for name, _ in base.provider_options}
    return base.target == "cuda" and convolves(contents) and not given & HEURISTIC.names


def measured_gains(
    subject: Subject,
    others: Sequence[Deployment],
    feeds: Sequence[Mapping[str, Value]],
    measure: Measure,
    seed: int,
) -> list[float | None]:
    """By the clock, on all inputs: the subject's time over that under the others."""
    subjects = [subject, *(replace(subject, name=other.text, deployment=other) for other in others)]
    method = Method(seconds=SECONDS * len(others), seed=seed)
    found: list[list[float | None]] = []
    try:
        for inputs in feeds:
            told = measure(subjects, inputs, method)
            found.append([told.pair(s.name).speedup for s in subjects[1:]])
    except CannotRun:
        return [None] * len(others)
    return [least(column) for column in zip(*found, strict=True)]


def least(speedups: Sequence[float | None]) -> float | None:
    """Of several sizes; None where it does not run at one of them."""
    known = [speedup for speedup in speedups if speedup is not None]
    return min(known) if len(known) == len(speedups) else None


def unsettled(deployment: Deployment) -> Deployment:
    """Without what is settled here."""
    kept = tuple(pair for pair in deployment.provider_options if pair[0] not in _SETTLED)
    return replace(deployment, provider_options=kept)


def note(base: Deployment, timed: Deployment) -> str:
    """What to tell of it; empty where nothing was settled."""
    given = dict(base.provider_options)
    told = [words for name, words in _WORDS.items() if name in dict(timed.provider_options) and name not in given]
    hasty = f"; {_HASTY}" if is_hasty(timed) and not is_hasty(base) else ""
    return f"timed with {' and '.join(told)}, as it is best deployed{hasty}" if told else ""


def _stages(base: Deployment, contents: Contents) -> list[tuple[Choice, ...]]:
    """None where there is no GPU; not those that the base has an answer to, or that cannot matter."""
    given = {name for name, _ in base.provider_options}
    fitting = [s for s in _STAGES if s[0] is LAUNCHES or convolves(contents)] if base.target == "cuda" else []
    return [s for s in fitting if not any(name in given for choice in s for name, _ in choice.provider_options)]
