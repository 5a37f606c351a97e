"""What gpu.py measures, cell by cell: one method on one network of one type at one batch size.

Cells are kept in one JSON file, written anew after each: whatever ends a run, what it had found is not lost, and the
next one goes on from there. A cell of superopt's belongs to a state of its code; the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from superopt.report import Interval, Record

DType: TypeAlias = Literal["fp32", "fp16", "bf16"]

DEFAULT, BEST, OURS = "ort", "ort-best", "superopt"
EAGER, COMPILED, TUNED = "torch", "torch.compile", "torch.max-autotune"
PEERS = ("onnxsim", "onnxslim", "onnxscript", "ort.transformers")
HAND = "by hand"
CORE = (DEFAULT, BEST, OURS)
METHODS = (*CORE, COMPILED, TUNED, EAGER, *PEERS, HAND)

Status = Literal[
    "ok",
    "wrong",  # timed, but its answers are off by more than the tolerance
    "unchanged",  # a peer gave the graph back as it was
    "does not apply",
    "failed",
    "timed out",
]


class Made(Record):
    """What superopt did to a network."""

    returned: Literal["original", "optimized"]
    verdict: str
    check: str
    rules: dict[str, int] = Field(default_factory=dict[str, int], description="how often each rule or pass was used")
    nodes_before: int = 0
    nodes_after: int = 0


class Cell(Record):
    model: str
    dtype: DType
    batch: int
    method: str
    code: str = Field(default="", description="digest of superopt's code; for its own cells alone")
    status: Status
    detail: str = Field(default="", description="why there is no time, or what else there is to know")
    median: float | None = Field(default=None, description="seconds for one run")
    interval: Interval | None = Field(default=None, description="95 % interval of the median")
    over_default: float | None = Field(default=None, description="its time over the default session's")
    over_default_interval: Interval | None = None
    over_ours: float | None = Field(default=None, description="its time over superopt's, where both ran interleaved")
    over_ours_interval: Interval | None = None
    over_best: float | None = Field(
        default=None, description="its time over that of the original with its best options, opened beside it"
    )
    over_best_interval: Interval | None = None
    error: float | None = Field(default=None, description="‖answer − reference‖ / ‖reference‖, worst output")
    options: dict[str, str] = Field(default_factory=dict[str, str], description="session options beyond the base")
    made: Made | None = None
    seconds: float = Field(default=0.0, description="that this cell took, its share of a common run")
    run: int = Field(default=0, description="which of the runs below measured it")

    @property
    def key(self) -> Key:
        return (self.model, self.dtype, self.batch, self.method)

    @property
    def place(self) -> Place:
        return (self.model, self.dtype, self.batch)


Place: TypeAlias = tuple[str, str, int]
Key: TypeAlias = tuple[str, str, int, str]


class Run(Record):
    """Where and how cells were measured."""

    command: str
    date: str
    device: str
    driver: str
    versions: dict[str, str]
    code: str
    notes: list[str] = Field(default_factory=list[str])


class Book(Record):
    """The file."""

    runs: list[Run] = Field(default_factory=list[Run])
    cells: list[Cell] = Field(default_factory=list[Cell])


@dataclass
class Ledger:
    """Cells by key; a new one takes the place of the old."""

    path: Path
    runs: list[Run] = field(default_factory=list[Run])
    cells: dict[Key, Cell] = field(default_factory=dict[Key, Cell])

    @classmethod
    def opened(cls, path: Path, resumed: Iterable[Path], run: Run) -> Ledger:
        """What earlier runs found, in the order given, and room for this one."""
        runs: list[Run] = []
        cells: dict[Key, Cell] = {}
        for earlier in resumed:
            if earlier.exists():
                book = read(earlier)
                runs += [run for run in book.runs if run not in runs]
                cells |= {c.key: c.model_copy(update={"run": runs.index(book.runs[c.run])}) for c in book.cells}
        return cls(path, [*runs, run], cells)

    def add(self, *cells: Cell) -> None:
        for cell in cells:
            self.cells[cell.key] = cell.model_copy(update={"run": len(self.runs) - 1})
        self.save()

    def save(self) -> None:
        """Runs that nothing is left of are dropped."""
        used = sorted({cell.run for cell in self.cells.values()})
        numbers = {old: new for new, old in enumerate(used)}
        cells = [c.model_copy(update={"run": numbers[c.run]}) for _, c in sorted(self.cells.items())]
        book = Book(runs=[self.runs[i] for i in used], cells=cells)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        partial.write_text(book.model_dump_json(indent=1, exclude_defaults=True) + "\n")
        partial.replace(self.path)

    def is_done(self, key: Key, code: str, stale: bool = False) -> bool:
        """A cell that could not be measured is done too: it is not tried again unless superopt's code changes."""
        cell = self.cells.get(key)
        return cell is not None and (stale or key[3] not in CORE or cell.code == code)


def read(path: Path) -> Book:
    return Book.model_validate_json(path.read_text())
