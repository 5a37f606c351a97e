"""Which session options are worth trying on a model: those that may be faster and compute the same.

One dimension is one question (how many threads? which layout?), a choice one answer other than the present one.
Dimensions come in the order in which they matter: what hides the effect of the others first, a CUDA graph above all.

Never among them: what trades precision for speed (TF32, bfloat16 products, approximate GELU, denormals as zero, less
rounding), what only looks fast on a machine that does nothing else (spinning threads), and what was measured to give
nothing. docs/deployment.md names them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from superopt.ir.graph import Graph, Node
from superopt.ir.onnx import Model
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment, Level, Pairs

_LEVELS: tuple[Level, ...] = ("all", "extended", "basic")
_UNEVEN_FROM = 3  # threads: with fewer there is nothing to even out
_DOMAINS = frozenset(("", "ai.onnx.ml", "com.microsoft"))
_CONVOLUTIONS = frozenset(("Conv", "ConvTranspose", "FusedConv"))
_PRODUCTS = frozenset(("MatMul", "Gemm", "FusedMatMul", "FusedGemm"))
_SUMS = frozenset(("ReduceLogSum", "ReduceMean", "ReduceSum", "ReduceSumSquare"))
"""Those for which onnxruntime has CUDA kernels of its own, which threads add up in as they come."""
_HALF = frozenset((DType.FLOAT16, DType.BFLOAT16))
# Bits of onnxruntime's mask: flash, memory-efficient, cuDNN's, and the plain products.
_ATTENTION_KERNELS = ("1", "2", "8", "16")
NHWC, FUSED_BIAS = ("prefer_nhwc", "1"), ("fuse_conv_bias", "1")


@dataclass(frozen=True)
class Choice:
    """One change to a deployment. What it leaves None or empty stays as it is."""

    dimension: str
    threads: int | None = None
    level: Level | None = None
    deterministic: bool | None = None
    provider_options: Pairs = ()
    config: Pairs = ()
    without: tuple[str, ...] = ()
    """Provider options that are onnxruntime's own again."""

    @property
    def text(self) -> str:
        words = [] if self.threads is None else [f"threads={self.threads}"]
        words += [] if self.level is None else [f"level={self.level}"]
        words += [] if self.deterministic is None else [f"use_deterministic_compute={int(self.deterministic)}"]
        words += [f"without {name}" for name in self.without]
        return " ".join([*words, *(f"{name}={value}" for name, value in (*self.provider_options, *self.config))])

    @property
    def names(self) -> frozenset[str]:
        """Of the options that it is about."""
        return frozenset((*(name for name, _ in (*self.provider_options, *self.config)), *self.without))

    def applied(self, to: Deployment) -> Deployment:
        kept = {name: value for name, value in to.provider_options if name not in self.without}
        return replace(
            to,
            threads=to.threads if self.threads is None else self.threads,
            level=self.level or to.level,
            deterministic=to.deterministic if self.deterministic is None else self.deterministic,
            provider_options=tuple({**kept, **dict(self.provider_options)}.items()),
            config=tuple({**dict(to.config), **dict(self.config)}.items()),
        )


@dataclass(frozen=True)
class Contents:
    """What of a model decides which options can matter. Where it holds bodies that are not seen, anything may."""

    operators: frozenset[str] = frozenset()
    dtypes: frozenset[DType] = frozenset()
    convolves_sequences: bool = False
    mostly_attends: bool = False
    """There is more attention than convolutions."""
    opaque: bool = False

    def any_of(self, operators: frozenset[str]) -> bool:
        return self.opaque or bool(self.operators & operators)

    @property
    def attends(self) -> bool:
        return self.opaque or any(map(_attends, self.operators))

    @property
    def is_half(self) -> bool:
        return self.opaque or bool(self.dtypes & _HALF)


LAUNCHES = Choice("launches", provider_options=(("enable_cuda_graph", "1"),))
_SEARCH = "cudnn_conv_algo_search"
HEURISTIC = Choice("convolution search", provider_options=((_SEARCH, "HEURISTIC"),))
EXHAUSTIVE = Choice("convolution search", without=(_SEARCH,))
"""onnxruntime's default: kernels are chosen by trying them, when a model runs for the first time."""


def is_hasty(deployment: Deployment) -> bool:
    """Whether heuristics choose kernels."""
    return set(HEURISTIC.provider_options) <= set(deployment.provider_options)


def convolves(contents: Contents) -> bool:
    return contents.any_of(_CONVOLUTIONS)


def contents_of(model: Model) -> Contents:
    nodes = list(model.graph.all_nodes())
    counts = Counter(node.op for node in nodes)
    attention = sum(count for op, count in counts.items() if _attends(op))
    return Contents(
        operators=frozenset(counts),
        dtypes=frozenset(_dtypes(model.graph, nodes)),
        convolves_sequences=any(node.op in _CONVOLUTIONS and _rank(node) == 3 for node in nodes),
        mostly_attends=attention > sum(counts[op] for op in _CONVOLUTIONS),
        opaque=bool(model.functions) or any(node.domain not in _DOMAINS for node in nodes),
    )


def options_for(base: Deployment, contents: Contents) -> tuple[Choice, ...]:
    """Choices by dimension, in the order to try them. What the caller has set in the base is not asked again. Among
    them are those that undo what a search may begin with."""
    found = _on_cuda(contents) if base.target == "cuda" else _on_cpu(base)
    given = {name for name, _ in (*base.provider_options, *base.config)}
    asked = [c for c in (*found, *_levels(base)) if not given & c.names]
    return tuple(c for c in asked if c.without or c.applied(base) != base)


def _on_cpu(base: Deployment) -> Iterator[Choice]:
    """Never more threads than the base has: what it leaves free belongs to others."""
    for threads in sorted({1, max(1, base.threads // 2)}):
        yield Choice("threads", threads=threads)
    if base.threads >= _UNEVEN_FROM:
        yield Choice("work per thread", config=(("session.dynamic_block_base", "4"),))


def _on_cuda(contents: Contents) -> Iterator[Choice]:
    """A network of attention with one convolution at its start may have no time left for the latter's options."""
    yield LAUNCHES
    kinds = (_of_attention, _of_convolutions) if contents.mostly_attends else (_of_convolutions, _of_attention)
    for choices in kinds:
        yield from choices(contents)
    if contents.any_of(_SUMS):
        yield Choice("sums", deterministic=False)
    if contents.is_half and contents.any_of(_PRODUCTS):
        yield Choice("matrix products", config=(("ep.cuda.enable_gemm_auto_tune", "1"),))


def _of_convolutions(contents: Contents) -> Iterator[Choice]:
    if convolves(contents):
        for options in ((NHWC,), (FUSED_BIAS,), (NHWC, FUSED_BIAS)):
            yield Choice("convolution layout", provider_options=options)
        yield from (HEURISTIC, EXHAUSTIVE)
        yield Choice("convolution workspace", provider_options=(("cudnn_conv_use_max_workspace", "0"),))
    if contents.convolves_sequences:
        yield Choice("convolution of sequences", provider_options=(("cudnn_conv1d_pad_to_nc1d", "1"),))


def _of_attention(contents: Contents) -> Iterator[Choice]:
    if contents.attends:
        for kernel in _ATTENTION_KERNELS:
            yield Choice("attention kernel", provider_options=(("sdpa_kernel", kernel),))


def _levels(base: Deployment) -> Iterator[Choice]:
    """onnxruntime's later optimizations are not always for the better; those the caller turned off stay off."""
    allowed = _LEVELS[_LEVELS.index(base.level) :] if base.level in _LEVELS else ()
    for level in allowed:
        yield Choice("optimization level", level=level)


def _attends(op: str) -> bool:
    return "Attention" in op


def _dtypes(graph: Graph, nodes: list[Node]) -> Iterator[DType]:
    values = (*(p.type for p in graph.inputs), *(t for node in nodes for t in node.types))
    for type_ in values:
        dtype = getattr(type_, "dtype", None)
        if isinstance(dtype, DType):
            yield dtype


def _rank(node: Node) -> int | None:
    type_ = node.inputs[0].tensor_type if node.inputs and node.inputs[0] is not None else None
    return None if type_ is None else type_.rank
