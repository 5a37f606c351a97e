"""Everything that is found out about a model, step by step, and kept."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import graphs, stages
from benchmarks.commandline import SUPEROPT, has_command
from benchmarks.peers import TIMED, Peers
from benchmarks.records import BY_HAND, ORIGINAL, AuditOutcome, Contender, OptimizeOutcome, PeerOutcome, Result
from benchmarks.stages import Timing, Workplace
from benchmarks.subjects import Subject
from benchmarks.texts import without_folders

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Choices:
    target: str
    budget: float
    timing: float
    cache: Path
    extra: tuple[str, ...] = ()
    again: bool = False  # find out what is known already
    stale: bool = False  # take what is known, whatever code and options it comes from


class Examination:
    """One set of choices for all models."""

    def __init__(self, choices: Choices, peers: Peers | None) -> None:
        self._choices, self._peers = choices, peers
        self._code = code_digest()
        self._can_audit = has_command("audit")

    def result(self, subject: Subject) -> Result:
        """What is known about the model, or what is found out now."""
        record = self._place(subject).folder / "result.json"
        key = self._key(subject)
        known = None if self._choices.again else read(record)
        if known and (known.key == key or self._choices.stale):
            return known
        found = self._find_out(subject, key)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(found.model_dump_json(indent=2) + "\n")
        return found

    def _find_out(self, subject: Subject, key: str) -> Result:
        try:
            return self._examine(subject, key)
        except Exception as error:  # noqa: BLE001 - one model must not cost the others their results
            trouble = OptimizeOutcome(problem=without_folders(f"{type(error).__name__}: {error}")[:300])
            nothing = AuditOutcome(status="nothing to audit")
            return self._assemble(subject, key, trouble, nothing, [], Timing((), None))

    def _examine(self, subject: Subject, key: str) -> Result:
        place = self._place(subject)
        outcomes = self._peers.outcomes(subject, place.target) if self._peers else []
        optimized = stages.optimize(subject, place)
        audited = stages.audit(subject, place, self._can_audit)
        timing = stages.time_all(subject, place, self._entrants(subject, outcomes))
        return self._assemble(subject, key, optimized, audited, outcomes, timing)

    def _entrants(self, subject: Subject, outcomes: Sequence[PeerOutcome]) -> list[tuple[str, Path]]:
        """Models to time besides superopt's and the original; of equal graphs only the first."""
        found: dict[str, tuple[str, Path]] = {}
        for outcome in outcomes:
            if self._peers and outcome.status in TIMED:
                found.setdefault(outcome.graph, (outcome.peer, self._peers.model(outcome.peer, subject)))
        by_hand = [(BY_HAND, subject.hand)] if subject.hand else []
        return [*found.values(), *by_hand]

    def _assemble(
        self, subject: Subject, key: str, optimized: OptimizeOutcome,
        audited: AuditOutcome, outcomes: list[PeerOutcome], timing: Timing,
    ) -> Result:  # fmt: skip
        seen = graphs.facts(subject.path)
        command = stages.optimize_command(subject, self._place(subject))[len(SUPEROPT) :]
        return Result(
            name=subject.name,
            group=subject.group,
            key=key,
            code=self._code,
            command=shlex.join(["superopt", *map(without_folders, command)]),
            nodes=seen.nodes,
            file_bytes=seen.file_bytes,
            optimize=optimized,
            audit=audited,
            peers=outcomes,
            contenders=[*timing.contenders, *implied(timing.contenders, outcomes)],
            timing_problem=timing.problem,
            environment=timing.environment,
            date=now(),
        )

    def _place(self, subject: Subject) -> Workplace:
        c = self._choices
        return Workplace(c.cache / c.target / subject.name, c.target, c.budget, c.timing, c.extra)

    def _key(self, subject: Subject) -> str:
        c = self._choices
        hand = graphs.digest(subject.hand) if subject.hand else ""
        versions = {p: i.version for p, i in self._peers.installed.items()} if self._peers else {}
        parts = (graphs.digest(subject.path), hand, self._code, versions, c.target, c.budget, c.timing, c.extra)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read(record: Path) -> Result | None:
    """What was found out before; none if another version of this benchmark wrote it."""
    try:
        return Result.model_validate_json(record.read_text())
    except (OSError, ValueError):
        return None


def implied(contenders: Sequence[Contender], outcomes: Sequence[PeerOutcome]) -> Iterator[Contender]:
    """Peers that were not timed because their graph was: the original's, or another peer's."""
    timed = {c.name: c for c in contenders}
    for i, outcome in enumerate(outcomes):
        twin = ORIGINAL if outcome.status == "unchanged" else ""
        if outcome.status in TIMED:
            twin = next((o.peer for o in outcomes[:i] if o.status in TIMED and o.graph == outcome.graph), "")
        if twin in timed and outcome.peer not in timed:
            found = timed[twin]
            yield Contender(name=outcome.peer, median=found.median, ratio=found.ratio, detail=f"as {twin}")


def code_digest(root: Path = ROOT) -> str:
    """Names the state of superopt, its specs and its rules."""
    found = hashlib.sha256()
    for folder, ending in (("superopt", "py"), ("specs", "py"), ("rules", "rules")):
        for path in sorted((root / folder).rglob(f"*.{ending}")):
            found.update(str(path.relative_to(root)).encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
