"""Questions about candidates, answered in processes of their own: which forms there are, and whether one is true.

The time that an answer may take is counted in the process's own CPU seconds, its memory is limited, and a process that
dies costs its own question alone.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as changed
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import specs
from superopt.generate.generalize import forms
from superopt.generate.trial import DRAWS, NOT_A_RULE, SEED
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule
from superopt.rewrite.text import format_rule, parse_rules
from superopt.verify.counterexample import find_counterexample
from superopt.verify.prove import prove

MEMORY = 3 << 30
"""Bytes of address space that a proving process may have."""
WALL = 8.0
"""A proof ends after this many times its CPU seconds by the clock on the wall, whatever happened."""
FORMS = 3.0
"""Making all forms of a candidate may take this many times the CPU seconds of one proof."""
AGAIN = 0.1
"""CPU seconds after which a proof that did not end is told so once more."""
ATTEMPTS = 2
"""Processes that may die over one question before the answer is `unknown`."""


@dataclass(frozen=True)
class Question:
    what: Literal["forms", "prove"]
    text: str
    seconds: float


def bare(rule: Rule) -> Rule:
    """Without what a proof does not depend on."""
    return changed(rule, name="rule", doc="", origin="candidate", proof=None, source="", line=0)


class _OutOfTime(BaseException):
    """The CPU seconds are spent. No `Exception`, so that nothing on the way takes it for its own."""


def answer(question: Question, registry: Registry) -> dict[str, Any]:
    """What goes into the ledger."""
    rule = parse_rules(question.text)[0]
    if question.what == "forms":
        return _limited_forms(rule, registry, question)
    spent = resource.getrusage(resource.RUSAGE_SELF)
    try:
        with _CpuSeconds(question.seconds):
            verdict = prove(rule, registry, seconds=WALL * question.seconds, patient=False)
        status, reason = verdict.status, verdict.reason
    except _OutOfTime:
        status, reason = "unknown", f"no proof within {question.seconds:g} CPU seconds"
    except MemoryError:
        status, reason = "unknown", "out of memory"
    except Exception as error:  # noqa: BLE001 — whatever the prover chokes on, z3's own errors included, is not proved
        status, reason = "unknown", f"{type(error).__name__}: {error}"
    now = resource.getrusage(resource.RUSAGE_SELF)
    used = now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime
    return {"verdict": status, "reason": reason, "seconds": round(used, 2), "form": question.text}


def _limited_forms(rule: Rule, registry: Registry, question: Question) -> dict[str, Any]:
    """The forms; the candidate alone where they cannot be made in time."""
    try:
        with _CpuSeconds(FORMS * question.seconds):
            if find_counterexample(rule, registry, wanted=DRAWS, seed=SEED) is not None:
                return {"forms": [question.text]}  # nothing more general can be true
            found = [format_rule(bare(form)) for form in forms(rule, registry)]
    except (_OutOfTime, MemoryError, *NOT_A_RULE):
        found = [question.text]
    return {"forms": found}


class _CpuSeconds:
    """A limit on the CPU time of what runs inside."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGPROF, _stop)
        # Again and again after that: what is raised while an object is thrown away gets lost.
        signal.setitimer(signal.ITIMER_PROF, self.seconds, AGAIN)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)


def _stop(signum: int, frame: FrameType | None) -> None:
    raise _OutOfTime


def _work(connection: Connection, folders: tuple[Path, ...], memory: int) -> None:
    """A process that answers questions until none come."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    registry = specs.load(*folders)
    while True:
        try:
            question = connection.recv()
        except EOFError:
            return
        connection.send(answer(question, registry))


class Workers:
    """Processes, one question each at a time. One that dies is replaced, and its question asked once more."""

    def __init__(self, count: int, folders: tuple[Path, ...], memory: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._arguments = (folders, memory)
        self._processes: dict[Connection, BaseProcess] = {}
        self._asked: dict[Connection, tuple[str, Question]] = {}
        self._died: dict[str, int] = {}
        self._given_up: list[tuple[str, Mapping[str, Any]]] = []
        self.count = max(1, count)

    def __enter__(self) -> Workers:
        for _ in range(self.count):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        for connection, process in self._processes.items():
            connection.close()
            process.terminate()
            process.join()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, *self._arguments), daemon=True)
        process.start()
        theirs.close()
        assert isinstance(ours, Connection)
        self._processes[ours] = process

    @property
    def idle(self) -> list[Connection]:
        return [c for c in self._processes if c not in self._asked]

    @property
    def busy(self) -> bool:
        return bool(self._asked or self._given_up)

    def ask(self, key: str, question: Question) -> None:
        connection = self.idle[0]
        self._asked[connection] = (key, question)
        try:
            connection.send(question)
        except OSError:
            self._replace(connection)

    def answers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Those that are there; waits for one where there are none, unless a process dies meanwhile."""
        for ready in wait(list(self._asked), 0 if self._given_up else None):
            assert isinstance(ready, Connection)
            try:
                found = ready.recv()
            except (EOFError, OSError):
                self._replace(ready)
                continue
            yield self._asked.pop(ready)[0], found
        yield from self._given_up
        self._given_up.clear()

    def _replace(self, dead: Connection) -> None:
        key, question = self._asked.pop(dead)
        process = self._processes.pop(dead)
        dead.close()
        process.join()
        self._died[key] = self._died.get(key, 0) + 1
        self._start()
        if self._died[key] < ATTEMPTS:
            self.ask(key, question)
        else:
            self._given_up.append((key, _gave_up(question)))


def _gave_up(question: Question) -> dict[str, Any]:
    if question.what == "forms":
        return {"forms": [question.text]}
    return {"verdict": "unknown", "reason": "the proving process died", "seconds": 0.0, "form": question.text}
