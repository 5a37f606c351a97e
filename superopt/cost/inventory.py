"""What a cost file tells of, machine by machine."""

from __future__ import annotations

from superopt.cost.contents import Contents
from superopt.cost.machine import Machine
from superopt.cost.portable import day_of
from superopt.report import RecordedDeployment, RecordedMachine


def inventory(contents: Contents) -> list[RecordedMachine]:
    return [_machine(contents, machine) for machine in contents.machines]


def _machine(contents: Contents, machine: Machine) -> RecordedMachine:
    own = contents.of_machines([machine])
    entries = [*own.regions.values(), *own.comparisons.values()]
    return RecordedMachine(
        target=machine.target,
        device=machine.device,
        driver=machine.driver,
        onnxruntime=machine.runtime,
        deployments=[
            RecordedDeployment(deployment=text, times=count) for text, count in sorted(own.deployments(machine).items())
        ],
        failures=sum(entry.time.seconds is None for entry in own.regions.values()),
        comparisons=len(own.comparisons),
        outdated=own.outdated(machine),
        measured=day_of(max(entry.measured for entry in entries)),
    )
