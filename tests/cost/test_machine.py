"""Which machine of a cost file is meant: one, or an error that names them all."""

from __future__ import annotations

import pytest

from superopt.cost.machine import Machine, chosen_machine
from superopt.errors import BadOption

pytestmark = pytest.mark.unit

H200 = Machine("cuda", "NVIDIA H200", "580.1", "1.31.1")
OLDER = Machine("cuda", "NVIDIA H200", "580.1", "1.30.0")
CORE = Machine("cpu", "Big Core (4 cores)", "", "1.31.1")


def test_a_machine_in_words() -> None:
    assert H200.text == "NVIDIA H200, driver 580.1, onnxruntime 1.31.1"
    assert CORE.text == "Big Core (4 cores), onnxruntime 1.31.1"


@pytest.mark.parametrize(
    ("machines", "wanted", "found"),
    [
        ([H200], "", H200),
        ([H200, CORE], "h200", H200),
        ([H200, CORE], "big core", CORE),
        ([H200, OLDER], "onnxruntime 1.30", OLDER),
    ],
)
def test_a_part_of_its_text_is_enough(machines: list[Machine], wanted: str, found: Machine) -> None:
    assert chosen_machine(machines, wanted, "c.json") == found


def test_times_of_two_runtimes_are_not_mixed_but_asked_about() -> None:
    with pytest.raises(BadOption) as caught:
        chosen_machine([H200, OLDER, CORE], "H200", "c.json")
    assert "c.json holds costs of 2 devices, drivers or runtimes, which are not mixed" in str(caught.value)
    assert f"{OLDER.text}; {H200.text}" in str(caught.value)
    assert CORE.text not in str(caught.value)


def test_a_device_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(BadOption, match=r"A100: c\.json holds no costs of it, but of: Big Core.*; NVIDIA H200"):
        chosen_machine([H200, CORE], "A100", "c.json")
    with pytest.raises(BadOption, match=r"--device A100: c\.json holds no costs of it$"):
        chosen_machine([], "A100", "c.json")
