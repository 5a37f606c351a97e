import pytest

from superopt.errors import BadOption
from superopt.runtime.cores import allowed_cpus, usable_cores
from superopt.runtime.deployment import Deployment, parse_deployment

pytestmark = pytest.mark.unit


def test_default_threads_are_the_cores_this_process_may_use():
    assert Deployment().threads == usable_cores()
    assert 1 <= usable_cores() <= len(allowed_cpus())


def test_order_of_options_does_not_matter():
    one = Deployment("cuda", 2, provider_options=(("prefer_nhwc", "1"), ("device_id", "1")))
    two = Deployment("cuda", 2, provider_options=(("device_id", "1"), ("prefer_nhwc", "1")))
    assert one == two
    assert one.digest == two.digest
    assert one.device_id == 1


@pytest.mark.parametrize(
    "other",
    [
        Deployment("cuda", 2, provider_options=(("prefer_nhwc", "1"),)),
        Deployment("cuda", 2, tf32=False),
        Deployment("cuda", 2, config=(("session.x", "1"),)),
        Deployment("cuda", 2, free_dims=(("n", 4),)),
        Deployment("cuda", 2, level="basic"),
        Deployment("cuda", 2, deterministic=False),
        Deployment("cuda", 3),
        Deployment("cpu", 2),
    ],
)
def test_every_field_is_in_the_digest(other: Deployment):
    assert other.digest != Deployment("cuda", 2).digest


def test_tf32_is_nothing_to_a_cpu():
    assert Deployment("cpu", 2, tf32=True).digest == Deployment("cpu", 2, tf32=False).digest


def test_an_option_given_as_provider_option_wins_over_tf32():
    deployment = Deployment("cuda", 1, tf32=True, provider_options=(("use_tf32", "0"),))
    assert deployment.provider_settings == {"use_tf32": "0"}


def test_text_is_one_canonical_line():
    deployment = Deployment(
        "cuda", 4, provider_options=(("prefer_nhwc", "1"),), config=(("a.b", "c"),), free_dims=(("batch", 2),)
    )
    assert deployment.text == "cuda threads=4 level=all prefer_nhwc=1 use_tf32=1 a.b=c dim:batch=2"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Deployment("tpu"), "expected cpu or cuda, found 'tpu'"),  # pyright: ignore[reportArgumentType]
        (lambda: Deployment(level="most"), "found 'most'"),  # pyright: ignore[reportArgumentType]
        (lambda: Deployment(threads=0), "expected at least 1, found 0"),
        (lambda: Deployment(provider_options=(("prefer_nhwc", "1"),)), "for the target cuda, found prefer_nhwc"),
        (lambda: Deployment(config=(("a", "1"), ("a", "2"))), "a is given twice"),
    ],
)
def test_nonsense_is_refused(wrong: object, says: str):
    assert callable(wrong)
    with pytest.raises(BadOption, match=says):
        wrong()


@pytest.mark.parametrize(
    "given",
    [
        Deployment("cpu", 2),
        Deployment("cpu", 1, level="basic", config=(("session.dynamic_block_base", "4"),)),
        Deployment("cuda", 16, tf32=False),
        Deployment("cuda", 16, deterministic=False),
        Deployment(
            "cuda", 16, provider_options=(("enable_cuda_graph", "1"), ("prefer_nhwc", "1")),
            config=(("ep.cuda.enable_gemm_auto_tune", "1"),), free_dims=(("batch", 4),),
        ),
    ],
)  # fmt: skip
def test_a_deployment_is_read_from_its_text(given: Deployment):
    assert parse_deployment(given.text) == given


@pytest.mark.parametrize(
    "text",
    ["", "cpu", "tpu threads=1 level=all", "cpu threads=0 level=all", "cpu threads=x level=all", "cpu level=all",
     "cpu threads=1 level=most", "cpu threads=1 level=all prefer_nhwc=1", "cpu threads=1  level=all",
     "cuda threads=1 level=all", "cpu threads=1 level=all use_deterministic_compute=0",
     "cpu threads=1 level=all dim:n=x", "cpu threads=1 threads=1 level=all"],
)  # fmt: skip
def test_what_is_no_deployment_is_refused(text: str):
    with pytest.raises(BadOption, match="expected a deployment, found"):
        parse_deployment(text)
