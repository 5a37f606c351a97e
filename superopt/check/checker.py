"""Are two models equal, as far as onnxruntime can tell?"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from superopt.check.compare import compare
from superopt.check.empty import Careful, differs
from superopt.check.interface import interface_difference
from superopt.check.noise import Own, own_gaps
from superopt.check.randomness import DRAWS, summed_up, unlike
from superopt.check.reference import Progress, Reference, Request, Run, ask_original
from superopt.check.shelf import Shelf
from superopt.check.verdict import Verdict
from superopt.errors import CannotRun
from superopt.ir.onnx import Model
from superopt.ir.tensor import Array
from superopt.report import CheckReport
from superopt.runtime.careful import Undecided
from superopt.runtime.deployment import Deployment
from superopt.runtime.heap import give_back_free_memory
from superopt.runtime.session import Session


def check(
    original: Model,
    candidate: Model | Path,
    request: Request | None = None,
    *,
    deployment: Deployment | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Runs both on the same input sets and compares all outputs; one session is open at a time."""
    with closing(Checker(original, request, deployment)) as checker:
        return checker.check(candidate, progress)


class Checker:
    """An original that is asked once, however many candidates are held against its answers.

    Both run as deployed, but without TF32: a rewrite is judged by what it computes, not by what a tensor core rounds.
    """

    def __init__(self, original: Model, request: Request | None = None, deployment: Deployment | None = None) -> None:
        self._original, self._request = original, request or Request()
        self._how = (deployment or Deployment()).without_tf32
        self._shelf = Shelf(self._request.limits.memory_bytes)
        self._reference: Reference | None = None
        self._refused: CannotRun | None = None
        """Why the original does not run; it is not asked again."""
        self._careful = Careful()
        self._own: dict[int, Mapping[str, Own]] = {}
        """The original's gaps to itself, by ticket, of the runs that were in doubt once."""

    def check(self, candidate: Model | Path, progress: Progress | None = None) -> CheckReport:
        say: Progress = progress or (lambda _: None)
        try:
            reference = self._asked(say)
        except CannotRun as error:
            return _unchecked(f"the original: {error}")
        verdict = Verdict(reference)
        try:
            session = open_model(candidate, self._how)
        except CannotRun as error:
            return verdict.different(f"the candidate: {error}")
        with session, self._careful_closed():
            reason = _interface(reference, session) or _run(reference, session, self._shelf, verdict, say)
            reason = reason or self._run_on_nothing(candidate, reference, session, verdict, say)
        give_back_free_memory()
        if reason:
            return verdict.different(reason)

        def evidence(runs: list[Run]) -> Mapping[int, Mapping[str, Own]]:
            new = [run for run in runs if run.ticket not in self._own]
            if new:
                say("original against itself")
                self._own |= _own_gaps(self._original, self._how, reference, new, self._shelf)
            return self._own

        return verdict.concluded(evidence)

    def never_empty(self, progress: Progress) -> frozenset[str] | None:
        """Names of sizes that are never 0, as far as was tried; None where none may be, or the original does not
        run."""
        try:
            return self._asked(progress).never_empty
        except CannotRun:
            return None

    def _asked(self, say: Progress) -> Reference:
        if self._refused is not None:
            raise self._refused
        if self._reference is None:
            try:
                with open_model(self._original, self._how) as session, self._careful_closed():
                    self._reference = ask_original(
                        self._original, session, self._request, self._shelf, say, self._careful
                    )
            except CannotRun as error:
                self._refused = error
                raise
            finally:
                give_back_free_memory()
        return self._reference

    def _run_on_nothing(
        self, candidate: Model | Path, reference: Reference, session: Session, verdict: Verdict, say: Progress
    ) -> str:
        """Why it differs where a size is 0."""
        for run in reference.empty_runs:
            say(f"candidate: {run.case.text}")
            try:
                found = self._careful.run(candidate, session, reference.source.feeds(run.case))
            except Undecided as error:
                verdict.left_out(run, str(error))
                continue
            except CannotRun as error:
                return _refuses(run, error)
            expected = self._shelf.get(run.ticket)
            for name, rule in reference.rules.items():
                reason = differs(expected[name], found[name], rule) if name not in reference.draws else ""
                if reason:
                    return f"output {name}: {reason}; on {run.case.text}"
            verdict.answered(run)
        return ""

    @contextmanager
    def _careful_closed(self) -> Generator[None]:
        """At the end, whatever happens: nobody waits beside a search."""
        try:
            yield
        finally:
            self._careful.close()

    def close(self) -> None:
        self._careful.close()
        self._shelf.close()


def open_model(model: Model | Path, deployment: Deployment, weights: Mapping[str, Array] | None = None) -> Session:
    """From its file where there is one: external data is mapped then."""
    if isinstance(model, Path):
        return Session(model, deployment, weights=weights)
    return Session(model.path if model.path is not None else model.data, deployment, weights=weights)


def _unchecked(reason: str) -> CheckReport:
    return CheckReport(status="unchecked", reason=reason, runs=0, inputs=[], outputs=[])


def _interface(reference: Reference, session: Session) -> str:
    return interface_difference(
        (reference.inputs, session.inputs),
        (reference.overridable, session.overridable),
        (reference.outputs, session.outputs),
    )


def _run(reference: Reference, session: Session, shelf: Shelf, verdict: Verdict, say: Progress) -> str:
    """Hands what the candidate did to the verdict; answers why it differs where numbers are not needed for that."""
    for run in reference.runs:
        say(f"candidate: {run.case.text}")
        times = DRAWS if run is reference.runs[0] and reference.draws else 1
        try:
            found, *draws = [session.run(reference.source.feeds(run.case)) for _ in range(times)]
        except CannotRun as error:
            return _refuses(run, error)
        for name, own in reference.draws.items() if draws else ():
            reason = unlike(own, [summed_up(outputs[name]) for outputs in (found, *draws)])
            if reason:
                return f"random output {name}: {reason}"
        expected = shelf.get(run.ticket)
        told = [(name, rule) for name, rule in reference.rules.items() if name not in reference.draws]
        verdict.add(run, {name: compare(expected[name], found[name], rule) for name, rule in told})
    return ""


def _refuses(run: Run, error: CannotRun) -> str:
    return f"the candidate refuses what the original accepts ({run.case.text}): {error}"


def _own_gaps(
    original: Model, how: Deployment, reference: Reference, runs: list[Run], shelf: Shelf
) -> dict[int, dict[str, Own]]:
    feeds = {run.ticket: lambda case=run.case: reference.source.feeds(case) for run in runs}
    return own_gaps(original, partial(open_model, original), how, feeds, shelf.get, reference.rules)
