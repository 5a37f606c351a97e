"""Which cells gpu.py measures, the most valuable first: there is never time for all of them.

    1  networks of which it is known what can be had: superopt, onnxruntime's default, its best options, torch.compile
    2  the same networks: merged by hand, the other optimizers, torch's slower mode, torch as it is
    3  further networks as in 1
    4  and as in 2

Within each, all networks at one type and batch size before the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import mean

from benchmarks import built_blocks
from benchmarks.gpu_cells import COMPILED, CORE, EAGER, HAND, OURS, PEERS, TUNED, DType, Key, Place

SETTINGS: tuple[tuple[DType, int], ...] = (("fp32", 1), ("fp16", 1), ("fp16", 16), ("fp32", 16))
ALL_SETTINGS: tuple[tuple[DType, int], ...] = (*SETTINGS, ("bf16", 1), ("bf16", 16))
"""Those beyond the first four by name alone."""
FIRST = (
    "bert_base",
    "resnet50",
    "nasrnn",
    "linear-attention",
    "lora-transformer",
    "repvgg-branches",
    "hardswish-spelled",
    "squeezenet1_1",
    "inception_v3",
    "matmul-chain",
    "gelu-spelled",
    "silu-spelled",
    *built_blocks.MODELS,
)
FURTHER = (
    "vit_b_16",
    "gpt2",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "distilbert",
    "t5_small_encoder",
    "whisper_tiny_encoder",
    "efficientnet_b0",
    "swin_t",
    "convnext_tiny",
    "densenet121",
    "resnext50_32x4d",
    "bert_base_masked",
    "mobileone-branches",
    "lstm-unrolled",
    "retinanet-head",
    "dilated-cnn",
)
NETWORKS = (*FIRST, *FURTHER)


@dataclass(frozen=True)
class Job:
    """Cells that are measured together, or one alone."""

    model: str
    dtype: DType
    batch: int
    methods: tuple[str, ...]

    @property
    def place(self) -> Place:
        return (self.model, self.dtype, self.batch)

    @property
    def kind(self) -> str:
        """What jobs of about the same length have in common."""
        return OURS if self.methods == CORE else "peers" if self.methods == PEERS else self.methods[0]

    @property
    def keys(self) -> list[Key]:
        return [(*self.place, method) for method in self.methods]

    @property
    def text(self) -> str:
        name = OURS if self.methods == CORE else ", ".join(self.methods)
        return f"{self.model} {self.dtype} b{self.batch} {name}"


VALUABLE: tuple[tuple[str, ...], ...] = (CORE, (COMPILED,))
OTHERS: tuple[tuple[str, ...], ...] = ((HAND,), PEERS, (TUNED,), (EAGER,))


def jobs(
    real: Sequence[str] = (),
    only: str = "",
    settings: Sequence[tuple[DType, int]] = SETTINGS,
    methods: Sequence[str] = (),
) -> list[Job]:
    """All there are, in order. Real models are what they are: float32, one at a time."""
    wanted = [group for group in (*VALUABLE, *OTHERS) if not methods or any(m in methods for m in group)]
    found: list[Job] = []
    for networks in (FIRST, (*FURTHER, *real)):
        for groups in (VALUABLE, OTHERS):
            for dtype, batch in settings:
                places = [
                    n for n in networks if re.search(only, n) and (n not in real or (dtype, batch) == ("fp32", 1))
                ]
                found += [Job(n, dtype, batch, g) for n in places for g in groups if g in wanted]
    return found


Done = Callable[[Key], bool]


def left(planned: Sequence[Job], is_done: Done, again: str = "") -> Iterator[Job]:
    """Those of which a cell is missing, and those whose text matches `again`."""
    for job in planned:
        if not all(map(is_done, job.keys)) or (again and re.search(again, job.text)):
            yield job


# Seconds that a job takes, until this run knows better.
GUESSES = {OURS: 100.0, COMPILED: 60.0, TUNED: 150.0, EAGER: 20.0, HAND: 25.0, "peers": 60.0}


@dataclass
class Pace:
    """How long jobs of a kind take, on average over those seen."""

    seen: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def expected(self, job: Job) -> float:
        return mean(self.seen[job.kind]) if job.kind in self.seen else GUESSES[job.kind]

    def took(self, job: Job, seconds: float) -> None:
        self.seen.setdefault(job.kind, []).append(seconds)

    def fits(self, job: Job, seconds: float) -> bool:
        return self.expected(job) <= seconds

    def affordable(self, planned: Sequence[Job], seconds: float) -> list[Job]:
        """Those at the front that fit together."""
        found: list[Job] = []
        for job in planned:
            seconds -= self.expected(job)
            if seconds < 0:
                break
            found.append(job)
        return found
