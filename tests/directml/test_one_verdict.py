"""`compile` plans every desc that `check` accepts: both know the same limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatherum._model.shape_limits import MAX_BYTES
from gatherum.directml import (
    BufferTensorDesc,
    Device,
    GatherElementsOperatorDesc,
    GatherOperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
    check,
)

from .page_examples import f32, u32

EDGES = [0, 1, 2, 3, 7, 1000, 1009, 2**16, 2**30, 2**31, 2**32 - 1]


def test_strides_beyond_all_addresses_are_rejected():
    far = BufferTensorDesc("FLOAT64", (2**31,), (2**30,))
    output = BufferTensorDesc("FLOAT64", (5,))
    (violation,) = check(GatherOperatorDesc(far, u32(5), output, 0, 1))
    assert violation.message == (
        f"GATHER: `InputTensor.Strides` must keep the elements within {MAX_BYTES} bytes, which is "
        f"all that can be addressed, got {{{2**30}}} with {(2**31 - 1) * 2**33 + 8}"
    )
    assert violation.rule == ("DML_BUFFER_TENSOR_DESC, Strides; ruling: tensors can be addressed")
    with pytest.raises(ValueError, match=r"^GATHER: feature level 6_4 does not accept this desc:"):
        Device().compile(GatherOperatorDesc(far, u32(5), output, 0, 1))


@pytest.mark.parametrize(("steps", "fits"), [(2**30 - 1, True), (2**30, False)])
@pytest.mark.parametrize("ones", [(), (1,) * 7])
def test_the_last_address_is_the_limit(steps, fits, ones):
    data = BufferTensorDesc("FLOAT64", (*ones, steps + 1), (*(2**32 - 1 for _ in ones), 2**30))
    indices, output = u32(*ones, 5), BufferTensorDesc("FLOAT64", (*ones, 5))
    desc = GatherOperatorDesc(data, indices, output, len(ones), 1)
    assert (check(desc) == []) == fits
    if fits:
        Device().compile(desc)


def test_large_outputs_that_do_not_overlap_are_planned():
    spread = BufferTensorDesc(
        "FLOAT32", (1200, 1000), (1009, 1201)
    )  # multiples of the two differ until much later
    desc = GatherElementsOperatorDesc(f32(1200, 5), u32(1200, 1000), spread, 1)
    assert check(desc) == []
    Device().compile(desc)
    data = np.arange(6000, dtype=np.float32).reshape(1200, 5)
    out = np.zeros(spread.required_bytes // 4, np.float32)
    indices = np.arange(1_200_000, dtype=np.uint32).reshape(1200, 1000) % 5
    Device().compile(desc).dispatch(input_tensor=data, indices_tensor=indices, output_tensor=out)
    view = np.lib.stride_tricks.as_strided(out, (1200, 1000), (4 * 1009, 4 * 1201))
    assert (view == np.take_along_axis(data, indices.astype(int), 1)).all()


@st.composite
def tensors(draw, sizes, data_type=None):
    width = st.sampled_from(EDGES) | st.integers(0, 2**32 - 1)
    strides = st.none() | st.lists(width, min_size=len(sizes), max_size=len(sizes))
    data_type = data_type or draw(st.sampled_from(["FLOAT64", "FLOAT32", "INT8"]))
    return BufferTensorDesc(data_type, sizes, draw(strides))


@st.composite
def descs(draw):
    """Draw descs of valid sizes, with strides of any reach."""
    d = draw(st.integers(1, 8))
    extent = st.sampled_from(EDGES[1:])
    sizes = [draw(extent) if draw(st.booleans()) else 1 for _ in range(d)]
    axis = draw(st.integers(0, d - 1))
    along = draw(extent)
    taken = [*sizes[:axis], along, *sizes[axis + 1 :]]
    data = draw(tensors(sizes))
    data_type = data.data_type
    indices = draw(tensors(taken, draw(st.sampled_from(["INT64", "UINT32"]))))
    which = draw(st.sampled_from(["gather", "elements", "scatter", "nd"]))
    if which == "elements":
        return GatherElementsOperatorDesc(data, indices, draw(tensors(taken, data_type)), axis)
    if which == "scatter":
        updates, output = draw(tensors(taken, data_type)), draw(tensors(sizes, data_type))
        return ScatterOperatorDesc(data, indices, updates, output, axis)
    if which == "gather":
        one = draw(tensors([1] * (d - 1) + [along], "INT32"))
        return GatherOperatorDesc(data, one, draw(tensors(taken, data_type)), axis, 1)
    tuples = draw(tensors([1] * (d - 1) + [draw(st.integers(1, d))], "UINT64"))
    left = sizes[tuples.sizes[-1] :]
    updates = draw(tensors([1] * (d - len(left)) + left, data_type))
    return ScatterNdOperatorDesc(data, tuples, updates, draw(tensors(sizes, data_type)), d, 1)


@settings(max_examples=300)
@given(descs())
def test_accepted_descs_are_planned(desc):
    if not check(desc):
        Device().compile(desc)
