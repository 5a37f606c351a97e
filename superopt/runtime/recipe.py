"""A deployment for people and programs to take along: Python to paste, and one flat table.

Both say what the measured sessions were told, beyond onnxruntime's defaults. What was only needed to measure (which
provider runs which node) is left out.
"""

from __future__ import annotations

import json

from superopt.runtime.deployment import LEVELS, PROVIDERS, QUIET, Deployment

_SPINNING = "session.intra_op.allow_spinning"
_ON_SPINNING = '# Threads that wait do not spin. On a machine that runs nothing else, "1" is faster and burns CPU time.'
_ON_LIBRARIES = "ort.preload_dlls()  # CUDA libraries of Python packages; those of the system need no such line"
_GRAPH = """
graphs = itertools.count(1)


def capture(feeds):
    \"\"\"A function that runs the model on inputs of these shapes and types, from a CUDA graph of their own.

    A CUDA graph replays addresses: inputs are copied to where they were, outputs come from where they were. So use what
    this returns, never `session.run`, and capture again for other shapes.
    \"\"\"
    binding = session.io_binding()
    inputs = {{name: ort.OrtValue.ortvalue_from_numpy(array, "cuda", {device}) for name, array in feeds.items()}}
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda", {device})
    first, later = ort.RunOptions(), ort.RunOptions()
    first.add_run_config_entry("gpu_graph_id", "-1")  # no capture yet: this run makes room for the outputs
    later.add_run_config_entry("gpu_graph_id", str(next(graphs)))
    session.run_with_iobinding(binding, first)

    def run(feeds):
        for name, array in feeds.items():
            inputs[name].update_inplace(array)
        session.run_with_iobinding(binding, later)
        return binding.copy_outputs_to_cpu()

    return run
"""


def python_code(deployment: Deployment, model: str = "model.onnx") -> str:
    """Python that opens the model as it was measured, in the variable `session`."""
    d = deployment
    lines = ["import itertools", ""] if d.captures_cuda_graph else []
    lines += ["import onnxruntime as ort", "", "options = ort.SessionOptions()"]
    lines.append(f"options.intra_op_num_threads = {d.threads}")
    lines += ["options.use_deterministic_compute = True"] if d.deterministic else []
    if d.level != "all":
        lines.append(f"options.graph_optimization_level = ort.GraphOptimizationLevel.{LEVELS[d.level]}")
    for key, value in _config(d).items():
        lines += [_ON_SPINNING] if (key, value) == (_SPINNING, "0") else []
        lines.append(f"options.add_session_config_entry({_quoted(key)}, {_quoted(value)})")
    for name, size in d.free_dims:
        lines.append(f"options.add_free_dimension_override_by_name({_quoted(name)}, {size})")
    if d.target == "cuda":
        lines.append(_ON_LIBRARIES)
        told = "".join(f"    {_quoted(key)}: {_quoted(value)},\n" for key, value in _provider(d).items())
        lines.append(f"cuda = {{\n{told}}}" if told else "cuda = {}")
        provider = f"({_quoted(PROVIDERS['cuda'])}, cuda), {_quoted(PROVIDERS['cpu'])}"
    else:
        provider = _quoted(PROVIDERS["cpu"])
    lines += [
        f"providers = [{provider}]",
        f"session = ort.InferenceSession({_quoted(model)}, options, providers=providers)",
    ]
    if d.target == "cuda":
        lines.append(f"assert {_quoted(PROVIDERS['cuda'])} in session.get_providers()  # else it fell back to the CPU")
    code = "\n".join(lines) + "\n"
    return code + _GRAPH.format(device=d.device_id) if d.captures_cuda_graph else code


def flat_options(deployment: Deployment) -> dict[str, str]:
    """The same as one table: onnxruntime's own names, the CUDA provider's behind `cuda.`."""
    d = deployment
    return {
        "execution_provider": PROVIDERS[d.target],
        "intra_op_num_threads": str(d.threads),
        "graph_optimization_level": LEVELS[d.level],
        "use_deterministic_compute": str(int(d.deterministic)),
        **_config(d),
        **({f"cuda.{key}": value for key, value in _provider(d).items()} if d.target == "cuda" else {}),
        **{f"free_dimension.{name}": str(size) for name, size in d.free_dims},
    }


def _config(deployment: Deployment) -> dict[str, str]:
    """Nodes run one after the other, so that there are no threads between them to tell anything."""
    return {_SPINNING: dict(QUIET)[_SPINNING], **dict(deployment.config)}


def _provider(deployment: Deployment) -> dict[str, str]:
    """Without TF32 where it is on: that is onnxruntime's default."""
    settings = deployment.provider_settings
    return {key: value for key, value in sorted(settings.items()) if (key, value) != ("use_tf32", "1")}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
