"""Types print and parse; element types know their size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superopt.errors import BadText
from superopt.ir.lexer import Reader
from superopt.ir.parse import parse_type
from superopt.ir.types import DType, MapType, OptionalType, SequenceType, SparseType, TensorType, Type, format_type

pytestmark = pytest.mark.unit

dtypes = st.sampled_from(DType)
dims = st.one_of(st.integers(0, 2**40), st.none(), st.text(min_size=1, max_size=6))
shapes = st.one_of(st.none(), st.lists(dims, max_size=4).map(tuple))
tensors = st.builds(TensorType, st.one_of(st.none(), dtypes), shapes)
types: st.SearchStrategy[Type] = st.recursive(
    st.one_of(st.none(), tensors, st.builds(SparseType, dtypes, shapes)),
    lambda inner: st.one_of(
        st.builds(SequenceType, inner), st.builds(OptionalType, inner), st.builds(MapType, dtypes, inner)
    ),
    max_leaves=3,
)


@given(types)
def test_print_and_parse_give_the_type_back(type_: Type) -> None:
    assert parse_type(Reader(format_type(type_))) == type_


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("float31[2]", "1:1: expected a type, found 'float31'"),
        ("float32[2", "1:10: expected ',', found the end of the text"),
        ("float32[1.5]", "1:9: expected a size, found '1.5'"),
        ("sparse(seq(int64[]))", "1:1: sparse(…) takes a tensor type"),
        ("map(nothing, int64[])", "expected an element type"),
    ],
)
def test_a_bad_type_is_refused_at_its_place(text: str, complaint: str) -> None:
    with pytest.raises(BadText) as caught:
        parse_type(Reader(text))
    assert complaint in str(caught.value)


def test_sizes_of_elements() -> None:
    sizes = {d: d.bits for d in (DType.INT4, DType.UINT2, DType.BOOL, DType.BFLOAT16, DType.COMPLEX128, DType.STRING)}
    assert list(sizes.values()) == [4, 2, 8, 16, 128, 0]
    assert [d.bits for d in DType if d.value.startswith("float8")] == [8] * 5


def test_a_static_shape_has_only_numbers() -> None:
    assert TensorType(DType.INT8, (2, 3)).static_shape == (2, 3)
    assert TensorType(DType.INT8, (2, "n")).static_shape is None
    assert TensorType(DType.INT8, None).static_shape is None
