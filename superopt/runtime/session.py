"""A model opened for running, on the device that was asked for and no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from superopt.errors import CannotRun
from superopt.ir.tensor import Array
from superopt.runtime.binding import SKIP_CAPTURE, Binding, bind, home, run_options
from superopt.runtime.careful import Opening, elsewhere
from superopt.runtime.deployment import LEVELS, PROVIDERS, QUIET, Deployment
from superopt.runtime.failure import translated
from superopt.runtime.library import FATAL, onnxruntime, preload_cuda
from superopt.runtime.port import Port, port
from superopt.runtime.values import Value, checked, from_ort_value, is_bindable, ort_value, travels_raw

_CUDA, _CPU = PROVIDERS["cuda"], PROVIDERS["cpu"]
_ALWAYS = {**dict(QUIET), "session.record_ep_graph_assignment_info": "1"}
_RUNNING = "onnxruntime cannot run the model"


class Session:
    """An onnxruntime session, sequential, and deterministic unless its deployment is not.

    Give a path wherever a model is large: onnxruntime then maps its external data, and an open session needs about the
    size of the weights; from bytes it needs three times that. `folder` is where bytes find their external data.

    `weights` take the place of initializers of these names.

    `cpu_nodes` counts the nodes the CPU runs, after optimization; None where this onnxruntime does not tell. With
    `profile`, what each node takes is written to a file whose name begins so, when `end_profile` is called.
    """

    def __init__(
        self,
        model: Path | bytes,
        deployment: Deployment,
        folder: Path | None = None,
        profile: Path | None = None,
        weights: Mapping[str, Array] | None = None,
    ) -> None:
        self.deployment = deployment
        self._untried: Opening | None = None
        """Until it has run elsewhere, where that is asked for."""
        tried = elsewhere()
        if tried is not None:
            self._untried = Opening(model, deployment, folder, weights or {})
            tried.open(self._untried)
        with translated("onnxruntime cannot open the model", model if isinstance(model, Path) else None):
            self._weights = {name: onnxruntime().OrtValue.ortvalue_from_numpy(a) for name, a in (weights or {}).items()}
            self._native: Any = _open(model, deployment, folder, profile, self._weights)
        self.inputs = _ports(self._native.get_inputs())
        self.outputs = _ports(self._native.get_outputs())
        self.overridable = _ports(self._native.get_overridable_initializers())
        assigned = _assigned(self._native)
        self.cpu_nodes = None if assigned is None else assigned.count(_CPU)
        if deployment.target == "cuda":
            _insist_on_cuda(self._native, assigned)
        self._bindings = 0

    def run(self, feeds: Mapping[str, Value]) -> dict[str, Value]:
        """All outputs by name: arrays, lists for sequences, None for an empty optional."""
        values = self._ready(feeds)
        raw = any(travels_raw(p) for p in self.outputs)
        with translated(_RUNNING):
            found = self._run_raw(values) if raw else self._run_plain(values)
        return dict(zip((p.name for p in self.outputs), found, strict=True))

    def bind(self, feeds: Mapping[str, Value]) -> Binding:
        """The same inference ready to repeat, its inputs and outputs already in place on the device."""
        values = self._ready(feeds)
        if not all(map(is_bindable, (*self.inputs, *self.outputs))):
            return Binding(lambda: self._run_once(values), resident=False)
        self._bindings += 1
        with translated(_RUNNING):
            return bind(self._native, self.deployment, self.outputs, values, self._bindings)

    def replay(self, first: Mapping[str, Value], then: Mapping[str, Value]) -> dict[str, Value]:
        """What it answers to `then` in the buffers of a binding made with `first`: whether a captured CUDA graph reads
        its inputs anew. Both have the same shapes."""
        values = self._ready(then)
        if self.deployment.captures_cuda_graph:
            _refuse_host_inputs(self._native, values)
        binding = self.bind({name: copy(value) for name, value in first.items()})  # it is overwritten
        with translated(_RUNNING):
            found = binding.replay(values, self.outputs)
        return dict(zip((p.name for p in self.outputs), found, strict=True))

    def end_profile(self) -> Path:
        """The file with what the profiler has seen."""
        with translated("onnxruntime's profiler failed"):
            return Path(self._native.end_profiling())

    def close(self) -> None:
        """Frees the model; bindings made from this session keep it alive."""
        self._native = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ready(self, feeds: Mapping[str, Value]) -> dict[str, Any]:
        """As onnxruntime needs them; tried out elsewhere, where that is asked for."""
        if self._native is None:
            raise RuntimeError("this session is closed")
        ports = {p.name: p for p in (*self.inputs, *self.overridable)}
        for name in feeds:
            if name not in ports:
                raise CannotRun(f"the model has no input {name}; its inputs: {', '.join(ports) or 'none'}")
        for p in self.inputs:
            if p.name not in feeds and not p.dtype.startswith("optional"):
                raise CannotRun(f"input {p.name} ({p.dtype}) is missing")
        values = {name: checked(value, ports[name]) for name, value in feeds.items()}
        tried = elsewhere()
        if tried is not None and self._untried is not None:
            tried.run(self._untried, feeds)
            self._untried = None
        return values

    def _run_plain(self, values: Mapping[str, Any]) -> list[Value]:
        ports = {p.name: p for p in (*self.inputs, *self.overridable)}
        feeds = {n: ort_value(v) if travels_raw(ports[n]) else v for n, v in values.items()}
        return self._native.run(None, feeds, self._options())

    def _run_raw(self, values: Mapping[str, Any]) -> list[Value]:
        for p in self.inputs:
            if not is_bindable(p):
                raise CannotRun(f"input {p.name} ({p.dtype}) cannot be given to a model with outputs of this type")
        feeds = {name: ort_value(value) for name, value in values.items()}
        found = self._native.run_with_ort_values(None, feeds, self._options())
        return [from_ort_value(v, p) for v, p in zip(found, self.outputs, strict=True)]

    def _run_once(self, values: Mapping[str, Any]) -> None:
        with translated(_RUNNING):
            self._run_plain(values)

    def _options(self) -> Any:
        return run_options(self.deployment, SKIP_CAPTURE)


def _open(
    model: Path | bytes,
    deployment: Deployment,
    folder: Path | None,
    profile: Path | None,
    weights: Mapping[str, Any],
) -> Any:
    ort = onnxruntime()
    if deployment.target == "cuda":
        preload_cuda()
        providers: list[Any] = [(_CUDA, deployment.provider_settings), _CPU]
    else:
        providers = [_CPU]
    options = ort.SessionOptions()
    options.log_severity_level = FATAL
    options.intra_op_num_threads = deployment.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = deployment.deterministic
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[deployment.level])
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    for key, value in {**_ALWAYS, **dict(deployment.config)}.items():
        options.add_session_config_entry(key, value)
    for name, value in weights.items():
        options.add_initializer(name, value)
    for name, size in deployment.free_dims:
        options.add_free_dimension_override_by_name(name, size)
    return ort.InferenceSession(model, options, providers=providers, enable_fallback=0, read_config_from_model=0)


def _ports(arguments: Any) -> tuple[Port, ...]:
    return tuple(port(argument) for argument in arguments)


def _assigned(native: Any) -> list[str] | None:
    """For each node, the provider that runs it."""
    if not hasattr(native, "get_provider_graph_assignment_info"):
        return None
    with translated("onnxruntime does not say where its nodes run"):
        graphs = native.get_provider_graph_assignment_info()
        return [graph.ep_name for graph in graphs for _ in graph.get_nodes()]


def _refuse_host_inputs(native: Any, names: Iterable[str]) -> None:
    for name in names:
        if home(native, name, "cuda") == "cpu":
            raise CannotRun(f"input {name} is read on the CPU: a CUDA graph would keep the value it was captured with")


def _insist_on_cuda(native: Any, assigned: list[str] | None) -> None:
    if _CUDA not in native.get_providers():
        raise CannotRun("the CUDA provider did not load; onnxruntime would have run the model on the CPU")
    if assigned and _CUDA not in assigned:
        raise CannotRun(f"none of the model's {len(assigned)} nodes runs on CUDA; all fell back to the CPU")
