"""Candidates settled: each by the first of its forms that is proved, side by side in processes of their own.

What comes out does not depend on how many processes there are: results come in the order of the candidates, and the
time that a proof may take is counted in the process's own CPU seconds, not by the clock on the wall. (Single questions
to Z3 have wall clock limits inside `verify`; a ledger makes an answer final whatever it was.)
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

import specs
from superopt.generate.answering import MEMORY, Question, Workers, bare
from superopt.generate.ledger import Entry, Ledger
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import digest
from superopt.rewrite.text import format_rule, parse_rules
from superopt.verify.prove import SOLVER

_ANSWERING = ("answering", "attributes", "axes", "generalize", "sizes", "trial")

PATIENCE = 2
"""Proofs of one candidate's forms that may take all their time before the next ones are left out."""
NARROWEST = 2
"""Forms that are tried in any case, from the end of the ladder."""

USELESS = "proved, but of no use in this form"

Status = Literal["proved", "refuted", "unknown"]


@dataclass(frozen=True)
class Attempt:
    """One form, and what became of it."""

    form: Rule
    status: Status
    reason: str
    seconds: float


@dataclass(frozen=True)
class Settled:
    """A candidate, and the forms that were tried, up to the first that was proved."""

    candidate: Rule
    attempts: tuple[Attempt, ...]

    @property
    def rule(self) -> Rule | None:
        """The form that was proved."""
        return next((a.form for a in self.attempts if a.status == "proved"), None)

    @property
    def status(self) -> Status:
        """`refuted` where the candidate itself is: its other forms only ask for more."""
        return "proved" if self.rule is not None else self.attempts[-1].status if self.attempts else "unknown"


@dataclass
class _Course:
    """A candidate on its way through its forms."""

    candidate: Rule
    forms: list[Rule] | None = None
    attempts: list[Attempt] = field(default_factory=list[Attempt])

    def tried(self, attempt: Attempt, seconds: float) -> None:
        """Where proofs of wide forms do not end, those in between will not either: the narrowest are left."""
        self.attempts.append(attempt)
        assert self.forms is not None
        endless = sum(a.status == "unknown" and a.seconds >= seconds for a in self.attempts)
        if endless == PATIENCE:
            done = len(self.attempts)
            self.forms = [*self.forms[:done], *self.forms[done:][-NARROWEST:]]

    @property
    def done(self) -> bool:
        if not self.attempts or self.forms is None:
            return False
        last = self.attempts[-1]
        # Where every operator works element by element, narrower shapes make nothing easier.
        plain = all(not call.arguments and call.bundle is None for call in self.candidate.calls)
        hopeless = plain and last.status == "unknown" and last.reason != USELESS
        return last.status == "proved" or hopeless or len(self.attempts) == len(self.forms)


class Pool(Protocol):
    """Whoever answers questions, each when it can."""

    @property
    def idle(self) -> object:
        """Something true while another question may be asked."""
        ...

    @property
    def busy(self) -> bool: ...
    def ask(self, key: str, question: Question) -> None: ...
    def answers(self) -> Iterator[tuple[str, Mapping[str, Any]]]: ...


def settle(
    candidates: Iterable[Rule],
    folders: tuple[Path, ...] = (),
    ledger: Ledger | None = None,
    *,
    workers: int = 2,
    seconds: float = 20.0,
    memory: int = MEMORY,
    pool: Pool | None = None,
    widen: bool = True,
    useful: Callable[[Rule], bool] = lambda _: True,
) -> Iterator[Settled]:
    """Candidates settled, in their order. What the ledger knows is not asked again; what it does not, it learns.

    `seconds` are CPU seconds for each form. A `pool` that was entered before is used and left open. Those that are as
    general as they get need not be widened: their only form is their own. A form that is proved and not `useful` makes
    way for a narrower one.
    """
    registry = specs.load(*folders)
    settling = _Settling(list(candidates), registry, Ledger() if ledger is None else ledger, seconds, widen, useful)
    if settling.advance():
        with nullcontext(pool) if pool is not None else Workers(workers, folders, memory) as working:
            while True:
                yield from settling.finished()
                while working.idle and settling.questions:
                    working.ask(*settling.questions.popleft())
                if not working.busy:
                    break
                for key, answer in working.answers():
                    settling.learn(key, answer)
    yield from settling.finished()


@dataclass
class _Settling:
    """Which questions are open, and who waits for the answers."""

    candidates: list[Rule]
    registry: Registry
    ledger: Ledger
    seconds: float
    widen: bool = True
    useful: Callable[[Rule], bool] = lambda _: True
    questions: deque[tuple[str, Question]] = field(default_factory=deque["tuple[str, Question]"])

    def __post_init__(self) -> None:
        self._courses = deque(_Course(c, None if self.widen else [c]) for c in self.candidates)
        self._waiting: dict[str, list[_Course]] = {}

    def advance(self) -> bool:
        """Take every candidate as far as the ledger knows; whether there are questions left."""
        for course in self._courses:
            self._advance(course)
        return bool(self.questions)

    def _advance(self, course: _Course) -> None:
        while not course.done:
            if course.forms is None:
                question = Question("forms", format_rule(bare(course.candidate)), self.seconds)
                key = _key("forms", course.candidate, self.registry, self.seconds)
            else:
                form = course.forms[len(course.attempts)]
                question = Question("prove", format_rule(bare(form)), self.seconds)
                key = _key("prove", form, self.registry, self.seconds)
            entry = self.ledger.get(key)
            if entry is None:
                if key not in self._waiting:
                    self.questions.append((key, question))
                self._waiting.setdefault(key, []).append(course)
                return
            if course.forms is None:
                course.forms = [_dressed(form, course.candidate) for form in _rules(entry["forms"])]
            else:
                form = course.forms[len(course.attempts)]
                course.tried(self._attempt(form, entry), self.seconds)

    def _attempt(self, form: Rule, entry: Entry) -> Attempt:
        if entry["verdict"] == "proved" and not self.useful(form):
            return Attempt(form, "unknown", USELESS, entry["seconds"])
        return Attempt(form, entry["verdict"], entry["reason"], entry["seconds"])

    def learn(self, key: str, answer: Entry) -> None:
        self.ledger.add((key, answer))
        for course in self._waiting.pop(key):
            self._advance(course)

    def finished(self) -> Iterator[Settled]:
        """Those at the head that are done."""
        while self._courses and self._courses[0].done:
            course = self._courses.popleft()
            yield Settled(course.candidate, tuple(course.attempts))


def _dressed(form: Rule, candidate: Rule) -> Rule:
    return changed(form, name=candidate.name, doc=candidate.doc, origin=candidate.origin, source="", line=0)


def _rules(texts: Iterable[str]) -> list[Rule]:
    return [parse_rules(text)[0] for text in texts]


@cache
def _prover() -> str:
    """A digest of the code that answers, so that a better prover is asked anew."""
    found = hashlib.sha256(SOLVER.encode())
    package = Path(__file__).parent.parent
    here = [Path(__file__).with_name(f"{n}.py") for n in _ANSWERING]
    editing = package / "rewrite" / "editing.py"
    for path in (*sorted((package / "verify").glob("*.py")), editing, *here):
        found.update(path.read_bytes())
    return found.hexdigest()


def _key(what: str, rule: Rule, registry: Registry, seconds: float) -> str:
    """Over the question: what the rule says, what its operators mean, who answers, and within what limits."""
    text = "\n".join((what, digest(rule, registry), _prover(), f"{seconds:g}"))
    return hashlib.sha256(text.encode()).hexdigest()[:24]
