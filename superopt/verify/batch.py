"""Many rules proved side by side, each within its own time; a worker that dies costs one rule its verdict."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import specs
from superopt.rewrite.rule import Rule
from superopt.verify.prove import SECONDS, Verdict, prove


def prove_all(
    rules: Iterable[Rule], folders: tuple[Path, ...] = (), *, workers: int = 2, seconds: float = SECONDS
) -> Iterator[tuple[Rule, Verdict]]:
    """Verdicts as they come."""
    rules = list(rules)
    if workers == 1:
        registry = specs.load(*folders)
        for rule in rules:
            yield rule, prove(rule, registry, seconds=seconds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_prepare, initargs=(folders,)) as pool:
        waiting: dict[Future[Verdict], Rule] = {pool.submit(_prove, rule, seconds): rule for rule in rules}
        for future in as_completed(waiting):
            try:
                yield waiting[future], future.result()
            except BrokenProcessPool:
                yield waiting[future], Verdict("unknown", "the proving process died", 0, 0.0)


def _prepare(folders: tuple[Path, ...]) -> None:
    specs.load(*folders)


def _prove(rule: Rule, seconds: float) -> Verdict:
    return prove(rule, specs.load(), seconds=seconds)
