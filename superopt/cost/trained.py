"""Prices learned from measurements of known devices, shipped in trained.json: where a calibration starts from.

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
from superopt.runtime.deployment import Target

FILE = Path(__file__).with_name("trained.json")


class Trained(BaseModel):
    """What was learned of one device."""

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


def start_of(target: Target, device: str) -> Coefficients:
    """What was learned of this very device; else what is true of most."""
    known = next((t for t in _shipped() if (t.target, t.device) == (target, device)), None)
    return priors(target) if known is None else known.coefficients


def written(devices: Sequence[Trained]) -> str:
    return _MANY.dump_json(list(devices), indent=1).decode() + "\n"


@cache
def _shipped() -> list[Trained]:
    return _MANY.validate_json(FILE.read_bytes())


def _column(text: str) -> Column:
    kind, unit, *of = text.split(" ", 2)
    return Column(kind, cast(Unit, unit), *of)
