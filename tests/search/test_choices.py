# pyright: basic
"""Which session options a deployment is asked for: what the device and the model can feel, nothing that changes
numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

from superopt.ir.onnx import parse
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment
from superopt.runtime.recipe import python_code
from superopt.search.choices import Contents, contents_of, options_for

pytestmark = pytest.mark.unit

CPU = Deployment("cpu", 4)
CUDA = Deployment("cuda", 4)
NOTHING = Contents()
CONVOLUTIONS = Contents(frozenset(("Conv", "Relu")))


def texts(base: Deployment, contents: Contents = NOTHING) -> list[str]:
    return [choice.text for choice in options_for(base, contents)]


def test_a_cpu_is_asked_for_threads_and_levels_never_for_more_threads():
    assert texts(CPU) == [
        "threads=1", "threads=2", "session.dynamic_block_base=4", "level=extended", "level=basic",
    ]  # fmt: skip
    assert texts(Deployment("cpu", 1)) == ["level=extended", "level=basic"]
    assert texts(Deployment("cpu", 2, "extended")) == ["threads=1", "level=basic"]
    assert texts(Deployment("cpu", 1, "disable")) == []


def test_a_gpu_is_asked_for_what_the_model_can_feel():
    plain = ["enable_cuda_graph=1", "level=extended", "level=basic"]
    assert texts(CUDA) == plain
    with_convolutions = texts(CUDA, CONVOLUTIONS)
    assert "prefer_nhwc=1 fuse_conv_bias=1" in with_convolutions
    assert not any("sdpa" in text or "nc1d" in text for text in with_convolutions)
    assert "sdpa_kernel=1" in texts(CUDA, Contents(frozenset(("MultiHeadAttention",))))
    tuned = Contents(frozenset(("MatMul",)), frozenset((DType.FLOAT16,)))
    assert set(texts(CUDA, tuned)) - set(plain) == {"ep.cuda.enable_gemm_auto_tune=1"}
    summing = Contents(frozenset(("ReduceSum",)))
    assert set(texts(CUDA, summing)) - set(plain) == {"use_deterministic_compute=0"}
    assert texts(CPU, summing) == texts(CPU)
    assert len(texts(CUDA, Contents(opaque=True))) > len(with_convolutions)


def test_sums_in_any_order_are_a_deployment_of_their_own():
    [sums] = (c for c in options_for(CUDA, Contents(frozenset(("ReduceMean",)))) if c.dimension == "sums")
    free = sums.applied(CUDA)
    assert not free.deterministic
    assert free.digest != CUDA.digest
    assert sums.applied(free) == free


def test_how_kernels_are_searched_for_can_be_taken_back():
    heuristic, exhaustive = (c for c in options_for(CUDA, CONVOLUTIONS) if c.dimension == "convolution search")
    quick = heuristic.applied(CUDA)
    assert quick.provider_options == (("cudnn_conv_algo_search", "HEURISTIC"),)
    assert heuristic.applied(quick) == quick
    assert exhaustive.applied(quick) == exhaustive.applied(CUDA) == CUDA
    assert exhaustive.text == "without cudnn_conv_algo_search"
    assert not any("algo_search" in text for text in texts(quick, CONVOLUTIONS))


def test_what_the_caller_has_set_is_not_asked_again():
    given = Deployment("cuda", 4, provider_options=(("prefer_nhwc", "0"), ("device_id", "1")))
    asked = texts(given, CONVOLUTIONS)
    assert "fuse_conv_bias=1" in asked
    assert not any("prefer_nhwc" in text for text in asked)


def test_nothing_that_changes_numbers_is_ever_asked():
    everything = Contents(opaque=True, convolves_sequences=True)
    asked = " ".join([*texts(CPU, everything), *texts(CUDA, everything)])
    for word in ("tf32", "bfloat16", "gelu", "denormal", "spinning", "qdq", "int8", "cast_chain"):
        assert word not in asked


def test_the_page_names_every_option_that_is_tried_and_shows_the_code_as_it_is():
    page = (Path(__file__).resolve().parents[2] / "docs" / "deployment.md").read_text()
    everything = Contents(opaque=True, convolves_sequences=True)
    for choice in (*options_for(CPU, everything), *options_for(CUDA, everything)):
        assert f"| {choice.dimension} |" in page
        for name, _ in (*choice.provider_options, *choice.config):
            assert f"`{name}`" in page
    assert f"```python\n{python_code(Deployment('cpu', 1, 'extended'))}```" in page


def test_a_model_says_what_it_holds():
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float16[1, 4, 8] x, float16[2, 4, 3] w) => (float16[1, 2, 6] y) { y = Conv(x, w) }"""
    )
    found = contents_of(parse(made.SerializeToString()))
    assert found == Contents(frozenset(("Conv",)), frozenset((DType.FLOAT16,)), convolves_sequences=True)
    made.graph.node[0].domain = "my.own"
    made.opset_import.add(domain="my.own", version=1)
    assert contents_of(parse(made.SerializeToString())).opaque


def test_what_there_is_more_of_is_asked_first():
    operators = frozenset(("Conv", "Attention"))
    dimensions = [c.dimension for c in options_for(CUDA, Contents(operators))]
    assert dimensions.index("convolution layout") < dimensions.index("attention kernel")
    turned = [c.dimension for c in options_for(CUDA, Contents(operators, mostly_attends=True))]
    assert turned.index("attention kernel") < turned.index("convolution layout")
    assert sorted(turned) == sorted(dimensions)


@pytest.mark.parametrize(("convolutions", "attends"), [(1, True), (2, False)])
def test_attention_is_counted_against_convolutions(convolutions: int, attends: bool):
    made = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[1, 8, 8] x, float[8, 8, 1] w) => (float[1, 8, 8] z) {{
            y = Conv(x, w) {"v = Conv(y, w)" if convolutions == 2 else "v = Relu(y)"}
            u = com.microsoft.MultiHeadAttention<num_heads = 1>(v, v, v)
            z = com.microsoft.MultiHeadAttention<num_heads = 1>(u, u, u)
        }}"""
    )
    assert contents_of(parse(made.SerializeToString())).mostly_attends == attends
