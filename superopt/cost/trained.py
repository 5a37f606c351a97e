"""Prices learned from measurements of known devices, shipped in trained.json: where a calibration starts from, or what
takes its place where nobody has calibrated.

What a calibration does not time (an operator that no sample has) keeps the price that was learned there.
benchmarks/train.py writes the file from cost files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, TypeAdapter

from superopt.cost.coefficients import Coefficients, priors
from superopt.cost.columns import Column, Unit
from superopt.cost.machine import Machine
from superopt.runtime.deployment import Deployment, Target, parse_deployment

FILE = Path(__file__).with_name("trained.json")
_INDIFFERENT = frozenset(("cudnn_conv_algo_search", "device_id"))


class Trained(BaseModel):
    """What was learned of one device under one deployment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: Target
    device: str
    driver: str
    runtime: str
    deployment: str
    observations: int
    seconds: Mapping[str, float]
    """By the text of a column."""
    spared: float = 0.0

    @property
    def coefficients(self) -> Coefficients:
        learned = {_column(text): seconds for text, seconds in self.seconds.items()}
        return Coefficients({**priors(self.target).seconds, **learned}, self.spared)


_MANY = TypeAdapter(list[Trained])


def start_of(deployment: Deployment, device: str) -> Coefficients:
    """What was learned of this very device, if possible under options like these; else what is true of most."""
    target = deployment.target
    known = [t for t in _shipped() if (t.target, t.device) == (target, device)]
    if not known:
        return priors(target)
    asked = _options(deployment)
    return min(known, key=lambda t: len(_options(parse_deployment(t.deployment)) ^ asked)).coefficients


def learned(deployment: Deployment, machine: Machine) -> Coefficients | None:
    """Where that is known of this very device under these very options, and this onnxruntime."""
    asked = deployment.target, machine.device, machine.runtime
    known = (t for t in _shipped() if (t.target, t.device, t.runtime) == asked)
    same = (t for t in known if _options(parse_deployment(t.deployment)) == _options(deployment))
    return next((t.coefficients for t in same), None)


def _options(deployment: Deployment) -> frozenset[tuple[str, str]]:
    """Those that kernels depend on: not threads of the CPU, nor how kernels are searched for."""
    options = {*deployment.provider_settings.items(), *deployment.config, ("level", deployment.level)}
    options |= set() if deployment.deterministic else {("use_deterministic_compute", "0")}
    return frozenset((name, value) for name, value in options if name not in _INDIFFERENT)


def written(devices: Sequence[Trained]) -> str:
    return _MANY.dump_json(list(devices), indent=1).decode() + "\n"


@cache
def _shipped() -> list[Trained]:
    return _MANY.validate_json(FILE.read_bytes())


def _column(text: str) -> Column:
    kind, unit, *of = text.split(" ", 2)
    return Column(kind, cast(Unit, unit), *of)
