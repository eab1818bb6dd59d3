"""The core plans calls on arrays as Python does, and leaves errors and rare dtypes to Python."""

import contextlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gatherum
from gatherum import _core
from gatherum._core import RunFault
from gatherum._functions import callbacks
from gatherum._model.modes import MODES
from gatherum._model.operators import OPERATORS
from gatherum._model.reductions import REDUCTIONS
from gatherum._system import native
from strategies import DATA_DTYPES, INDEX_DTYPES, THOROUGH

DATA = np.arange(12.0).reshape(4, 3)
ROWS = np.array([3, 0])


def has_number(dtype):
    return dtype.kind in "biufc" or (dtype.isnative and dtype.name in _core.DType.__members__)


def by_python(op, data, indices, updates, *others):
    """Return the bytes of the program that Python plans, or None for an error."""
    try:
        return bytes(callbacks.make_plan(op, data, indices, updates, *others).program)
    except (TypeError, ValueError):
        return None


def by_core(op, data, indices, updates, *others):
    """Run a call. Return the bytes of the program that the core plans, or None."""
    *attributes, out = others
    native.clear_plans()
    with contextlib.suppress(IndexError, TypeError, ValueError):
        native.dispatch_call(sys.intern(op), data, indices, updates, *attributes, 0, out)
    programs = native.clear_plans()
    return bytes(programs[0]) if programs else None


def same(op, data, indices, updates, *others):
    expected = by_python(op, data, indices, updates, *others)
    operands = [data, indices, updates, others[-1]]
    if not all(has_number(operand.dtype) for operand in operands if operand is not None):
        expected = None
    assert by_core(op, data, indices, updates, *others) == expected
    return expected is not None


@st.composite
def arrays(draw, dtype, shape=None):
    """Draw an empty array of any layout."""
    if shape is None:
        shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    rank = len(shape)
    order = draw(st.permutations(range(rank)))
    array = np.zeros([shape[d] for d in order], dtype).transpose(np.argsort(order))
    steps = draw(st.lists(st.sampled_from([None, -1]), min_size=rank, max_size=rank))
    array = array[(*(slice(None, None, step) for step in steps), ...)]
    if draw(st.integers(0, 9)) == 0:
        array = np.broadcast_to(array, (2, *array.shape))
    return array


@st.composite
def random_calls(draw):
    op = draw(st.sampled_from(tuple(OPERATORS)))
    dtype = draw(st.sampled_from(DATA_DTYPES))
    index_dtype = draw(st.sampled_from([*INDEX_DTYPES, *INDEX_DTYPES, *DATA_DTYPES]))
    row, axis = OPERATORS[op], draw(st.integers(-3, 3) | st.sampled_from([2**62, -(2**63)]))
    data, indices = draw(arrays(dtype)), draw(arrays(index_dtype))
    if draw(st.booleans()) and data.ndim:  # indices that fit
        axis = draw(st.integers(0, data.ndim - 1))
        if row.takes_tuples:
            axis = 0
            indices = np.zeros((2, draw(st.integers(0, data.ndim))), index_dtype)
        elif row.addressing.shares_back:
            indices = np.zeros(data.shape, index_dtype)
    other = draw(st.sampled_from([dtype] * 6 + DATA_DTYPES))
    moved = None
    with contextlib.suppress(ValueError):
        moved = row.moved_shape(
            data.shape, indices.shape, row.resolve(data.shape, indices.shape, axis)
        )
    fitting = moved is not None and draw(st.integers(0, 3)) > 0
    updates = draw(arrays(other, moved if fitting else None)) if row.scatters else None
    result = data.shape if row.scatters else moved
    fitting = result is not None and draw(st.integers(0, 3)) > 0
    out_dtype = draw(st.sampled_from([dtype] * 6 + DATA_DTYPES))
    out = draw(st.none() | arrays(out_dtype, result if fitting else None))
    reduction = draw(st.sampled_from(tuple(REDUCTIONS))) if row.scatters else "none"
    include_self = draw(st.booleans()) if row.scatters else True
    attributes = axis, reduction, include_self, draw(st.sampled_from(tuple(MODES)))
    return op, data, indices, updates, *attributes, draw(st.booleans()), out


@THOROUGH
@given(call=random_calls())
def test_the_core_and_python_plan_any_call_equally(call):
    same(*call)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", DATA_DTYPES, ids=str)
def test_each_dtype_and_reduction(dtype, reduction):
    data, updates = np.zeros((4, 3), dtype), np.zeros((2, 3), dtype)
    for include_self in (True, False):
        same("scatter_slices", data, ROWS, updates, 0, reduction, include_self, "drop", True, None)


@pytest.mark.parametrize("dtype", ["f8", ">f8", "<i2", "?", "c16", "g"])
def test_every_numbered_dtype_is_planned_by_the_core(dtype):
    data = np.zeros((4, 3), dtype)
    for index in INDEX_DTYPES:
        assert same("gather", data, ROWS.astype(index), None, 0, "none", True, "raise", True, None)


@pytest.mark.parametrize("dtype", [np.dtype("f8", metadata={"unit": "m"}), "M8[s]", "S3", "V8"])
def test_python_plans_other_dtypes(dtype):
    data, call = np.zeros(4, dtype), (None, 0, "none", True, "raise", True, None)
    assert by_core("gather", data, ROWS, *call) is None
    assert by_python("gather", data, ROWS, *call) is not None


def test_copies_of_a_swapped_dtype_share_a_plan():
    native.clear_plans()
    for _ in range(2):
        data = np.zeros(4, np.dtype(">f8", copy=True))
        assert gatherum.gather(data, ROWS.astype(">i4")).dtype == data.dtype
    assert len(native.clear_plans()) == 1


@pytest.mark.parametrize("dtype", ["f8", ">f8"])
@pytest.mark.parametrize("index", ["i8", ">u2"])
def test_errors_after_the_plan_are_those_of_python(dtype, index):
    """The plan that words an error is made when it is needed."""
    data, wrong = DATA.astype(dtype), np.array([1, 9], index)
    native.clear_plans()
    for _ in range(2):
        with pytest.raises(IndexError) as caught:
            gatherum.gather(data, wrong)
        assert str(caught.value) == (
            "gather: index 9 is out of bounds for axis 0 of size 4 (indices[1])"
        )
        with pytest.raises(ValueError, match="`fill_value`") as caught:
            gatherum.gather(data, wrong, mode="fill", fill_value="three")
        assert str(caught.value).startswith("gather: `fill_value` ")
        with pytest.raises(ValueError, match="share memory") as caught:
            gatherum.gather(data, wrong, out=data[:2])
        assert str(caught.value) == "gather: `out` must not share memory with `data`"
    filled = gatherum.gather(data, wrong, mode="fill", fill_value=7)
    assert filled.tolist() == [[3, 4, 5], [7, 7, 7]]


def test_an_axis_beyond_64_bits_is_an_error():
    for axis in (2**70, -(2**70), 2**63, -(2**63)):
        with pytest.raises(ValueError, match="`axis`") as caught:
            gatherum.gather(DATA, ROWS, axis)
        assert str(caught.value) == f"gather: `axis` must be in [-2, 2), got {axis}"


FAULTS = [
    (RunFault.read_only, (), "`out` must be writable"),
    (RunFault.overlap, (1,), "`out` must not share memory with `indices`"),
    (RunFault.changed, (0,), "`data` must keep its shape and memory"),
    (RunFault.invalid, (0, 0, 7), "index 7 "),
]


def test_each_fault_of_a_run_has_an_error():
    plan = gatherum.plan("gather", DATA, ROWS)
    for fault, facts, message in FAULTS:
        with pytest.raises((IndexError, ValueError), match=message):
            callbacks.raise_error(plan, fault, *facts)
    assert [fault for fault, _, _ in FAULTS] == list(RunFault)


def test_a_fault_without_an_error_is_not_taken_for_another():
    with pytest.raises(AssertionError, match="another"):
        callbacks.raise_error(gatherum.plan("gather", DATA, ROWS), "another", 0)
