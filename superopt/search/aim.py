"""What a run is for: the device that is here, or one that a cost file tells of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from superopt.cost.costs import read_costs
from superopt.cost.machine import Machine, chosen_machine
from superopt.errors import BadOption
from superopt.options import Options
from superopt.runtime.deployment import Target
from superopt.runtime.target import cuda_state, resolve_target


@dataclass(frozen=True)
class Aim:
    target: Target
    machine: Machine | None = None
    """Where the device is not here: nothing is timed then."""


def aim_of(options: Options) -> Aim:
    """`--device` names a device of the cost file. Without it, a GPU that is not here may be one that the file tells of,
    if it tells of one only."""
    if options.device:
        assert options.costs is not None
        fitting = [m for m in read_costs(options.costs).machines if options.target in ("auto", m.target)]
        machine = chosen_machine(fitting, options.device, str(options.costs))
        return Aim(machine.target, machine)
    if options.target != "cuda" or options.costs is None or cuda_state().works:
        return Aim(resolve_target(options.target))
    return Aim("cuda", _only_gpu(options.costs))


def _only_gpu(file: Path) -> Machine:
    try:
        found = [m for m in read_costs(file).machines if m.target == "cuda"]
    except BadOption as error:
        raise BadOption(f"target cuda: not usable here: {cuda_state().reason}; {error}") from None
    if not found:
        raise BadOption(
            f"target cuda: not usable here: {cuda_state().reason}; and {file} holds no costs of a CUDA device to "
            "predict with: superopt calibrate measures them where there is one"
        )
    return chosen_machine(found, "", str(file))
