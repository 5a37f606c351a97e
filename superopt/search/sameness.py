"""One model under two deployments: does it still answer the same?

Tolerances are those of the check between two models, TF32 is off on both sides, and a model that amplifies rounding is
held to its own noise. A CUDA graph is captured with other values than it then answers: an input that it froze shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from superopt.check.compare import Gap, compare, scale_of
from superopt.check.noise import Own, judge, own_gaps
from superopt.check.reference import element_type
from superopt.check.tolerance import STEP_SHARE, Rule, rule_of
from superopt.check.traits import Traits, traits_of_outputs
from superopt.errors import CannotRun
from superopt.ir.onnx import Model
from superopt.runtime.deployment import Deployment
from superopt.runtime.port import Port
from superopt.runtime.session import Session
from superopt.runtime.values import Value


@dataclass(frozen=True)
class _Known:
    outputs: Mapping[str, Value]
    rules: Mapping[str, Rule]


class Sameness:
    """Answers on one input set, under `base` and under others."""

    def __init__(self, path: Path, model: Model, feeds: Mapping[str, Value], base: Deployment) -> None:
        self._path, self._model, self._feeds, self._base = path, model, dict(feeds), base.without_tf32
        self._traits = dict(zip(model.graph.output_names, traits_of_outputs(model.graph), strict=True))

    def difference(self, deployment: Deployment) -> str:
        """How its answer differs from the base's, empty where it does not; `CannotRun` where there is no answer."""
        found = self._answer(deployment.without_tf32)
        for name, rule in self._known.rules.items():
            gap = compare(self._known.outputs[name], found[name], rule)
            reason = self._meaning(name, gap, rule)
            if reason:
                return f"output {name}: {reason}"
        return ""

    def _meaning(self, name: str, gap: Gap, rule: Rule) -> str:
        if gap.steps > STEP_SHARE * gap.elements:
            return f"{gap.steps} of {gap.elements} values are one step off"
        if gap.within or judge(gap, self._own[name], rule.cap).verdict == "widened":
            return ""
        if gap.structure or gap.wrong:
            return gap.structure or f"{gap.wrong_count} of {gap.elements} values differ where they must be equal"
        return f"off by {gap.absolute:.3g}, {gap.ratio:.3g} times the tolerance"

    @cached_property
    def _known(self) -> _Known:
        with Session(self._path, self._base) as session:
            outputs = session.run(self._feeds)
            ports = [p for p in session.outputs if not self._traits_of(p).random]
        rules = {p.name: rule_of(element_type(p), self._traits_of(p), scale_of(outputs[p.name])) for p in ports}
        return _Known(outputs, rules)

    def _traits_of(self, port: Port) -> Traits:
        return self._traits.get(port.name, Traits())

    @cached_property
    def _own(self) -> Mapping[str, Own]:
        """The base against itself."""
        (found,) = own_gaps(
            self._model, lambda d, instead: Session(self._path, d, weights=instead), self._base,
            {0: lambda: dict(self._feeds)}, lambda _: self._known.outputs, self._known.rules,
        ).values()  # fmt: skip
        return found

    def _answer(self, deployment: Deployment) -> dict[str, Value]:
        with Session(self._path, deployment) as session:
            if not deployment.captures_cuda_graph:
                return session.run(self._feeds)
            try:
                return session.replay(reversed_values(self._feeds, "fciub"), self._feeds)
            except CannotRun:  # whole numbers may be sizes, which are not to be mixed up
                return session.replay(reversed_values(self._feeds, "fc"), self._feeds)


def reversed_values(feeds: Mapping[str, Value], kinds: str) -> dict[str, Value]:
    """The same values, and so as valid, in reverse order, where numpy knows the type to be of these kinds."""
    return {
        name: _reversed(v) if isinstance(v, np.ndarray) and v.dtype.kind in kinds else v for name, v in feeds.items()
    }


def _reversed(array: np.ndarray) -> np.ndarray:
    return array.ravel()[::-1].reshape(array.shape).copy()
