"""One inference over tensors that already lie where the model wants them: what the clock should see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.runtime.failure import reason
from superopt.runtime.library import errors, onnxruntime
from superopt.runtime.port import Port
from superopt.runtime.values import Value, from_ort_value, on_cpu, ort_value, travels_raw

SKIP_CAPTURE = -1
CAPTURED_AFTER = 3


@dataclass(frozen=True)
class Binding:
    """`run()` makes one synchronous inference; `resident` says whether tensors stayed on the device.

    `native` and `inputs` are what onnxruntime reads and writes; without them inputs cannot be changed in place.
    """

    run: Callable[[], None]
    resident: bool
    native: Any = None
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def replay(self, values: Mapping[str, Any], outputs: Sequence[Port]) -> list[Value]:
        """All outputs for other values of the same shapes, after as many runs as it takes to capture a CUDA graph."""
        if self.native is None:
            raise CannotRun("inputs or outputs of this model cannot be bound")
        for _ in range(CAPTURED_AFTER):
            self.run()
        for name, value in values.items():
            self.inputs[name].update_inplace(ort_value(value))
        self.run()
        if not any(map(travels_raw, outputs)):
            return self.native.copy_outputs_to_cpu()
        found = zip(self.native.get_outputs(), outputs, strict=True)
        return [from_ort_value(on_cpu(value), port) for value, port in found]


def bind(
    native: Any, deployment: Deployment, outputs: tuple[Port, ...], values: Mapping[str, Any], number: int
) -> Binding:
    """Binds inputs once; the first run makes the output buffers that onnxruntime writes into ever after, if it can.

    A CUDA graph replays addresses. So each binding captures its own, by number, and only when the outputs have
    their place.
    """
    device, device_id = deployment.target, deployment.device_id
    binding = native.io_binding()
    inputs = {name: ort_value(value, home(native, name, device), device_id) for name, value in values.items()}
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)

    def make_room() -> None:
        binding.clear_binding_outputs()
        for output in outputs:
            binding.bind_output(output.name, device, device_id)

    make_room()
    first = run_options(deployment, SKIP_CAPTURE)
    native.run_with_iobinding(binding, first)
    options = run_options(deployment, number)
    keeps_room = _accepts_own_outputs(native, binding, first)

    def run() -> None:
        try:
            if not keeps_room:
                make_room()
            native.run_with_iobinding(binding, options)
            binding.synchronize_outputs()
        except errors() as error:
            raise CannotRun(f"onnxruntime cannot run the model: {reason(error)}") from error

    return Binding(run, resident=True, native=binding, inputs=inputs)


def _accepts_own_outputs(native: Any, binding: Any, options: Any) -> bool:
    """Not where the file declares an output with another rank than it has: onnxruntime only warns of that when it
    allocates, and refuses the very same buffers when they are given back to it."""
    try:
        native.run_with_iobinding(binding, options)
    except errors():
        return False
    return True


def run_options(deployment: Deployment, graph: int) -> Any:
    """None unless a CUDA graph is captured, where each run must say which one it means."""
    if not deployment.captures_cuda_graph:
        return None
    options = onnxruntime().RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(graph))
    return options


def home(native: Any, name: str, device: str) -> str:
    """Where the model reads this input: a shape, say, is read on the CPU even by a CUDA session."""
    if not hasattr(native, "get_input_memory_infos"):
        return device
    names = [argument.name for argument in native.get_inputs()]
    if name not in names:
        return device
    return "cpu" if native.get_input_memory_infos()[names.index(name)].name == "Cpu" else device
