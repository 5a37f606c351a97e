"""Whose times they are: a device with its driver, under one version of onnxruntime.

Times of two machines are never mixed: another driver, or another onnxruntime, has other kernels.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from superopt.errors import BadOption
from superopt.runtime.deployment import Deployment, Target
from superopt.runtime.facts import device_facts, runtime_facts


@dataclass(frozen=True, order=True)
class Machine:
    target: Target
    device: str
    driver: str
    runtime: str

    @property
    def text(self) -> str:
        driver = f", driver {self.driver}" if self.driver else ""
        return f"{self.device}{driver}, onnxruntime {self.runtime}"


def machine_here(deployment: Deployment) -> Machine:
    device = device_facts(deployment.target, deployment.device_id)
    return Machine(deployment.target, device.name, device.driver, runtime_facts().version)


def fitting_machines(machines: Collection[Machine], wanted: str, where: str) -> list[Machine]:
    """Those that have this in their text, whatever its case: all of them where nothing is wanted."""
    fitting = sorted(m for m in machines if wanted.casefold() in m.text.casefold())
    if wanted and not fitting:
        others = f", but of: {_told(machines)}" if machines else ""
        raise BadOption(f"--device {wanted}: {where} holds no costs of it{others}")
    return fitting


def chosen_machine(machines: Collection[Machine], wanted: str, where: str) -> Machine:
    """The one of them that is wanted."""
    fitting = fitting_machines(machines, wanted, where)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise BadOption(f"{where} holds no costs of any device")
    chosen = f"--device {wanted}" if wanted else "--device"
    raise BadOption(
        f"{chosen}: {where} holds costs of {len(fitting)} devices, drivers or runtimes, which are not mixed: "
        f"name one by a part of its text that no other has: {_told(fitting)}"
    )


def _told(machines: Collection[Machine]) -> str:
    return "; ".join(m.text for m in sorted(machines))
