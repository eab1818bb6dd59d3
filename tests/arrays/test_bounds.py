"""Indices that are valid or invalid by one, in every dtype, compared with the oracle.

Every operand is surrounded by canaries. The answer equals the oracle's to the bit: a result, or the
position, value, axis and size of the first invalid index.
"""

from itertools import product

import numpy as np
import pytest

import gatherum
from canaries import byte_rows, guarded, guarded_copy, strays
from gatherum import reference
from strategies import INDEX_DTYPES, MODES, OPERATORS, Call, outcome, same_outcome

SHAPE = (4, 3, 5)
# Values that are valid, or nearly so, once they are cut to fewer bits.
TRUNCATED = [2**8, 2**8 + 1, 2**16 + 1, 2**31, 2**32, 2**32 + 1, 2**63, -(2**8), -(2**32) + 1]
# (axis or batch_dims, shape of indices, size of the indexed dimension); for the ``*_nd`` operators
# the sizes of all components.
FORMS = {
    "gather": [(0, (6,), 4), (1, (2, 3), 3), (-1, (), 5)],
    "gather_elements": [(0, (6, 3, 5), 4), (1, (4, 2, 3), 3), (-1, (4, 3, 1), 5)],
    "gather_nd": [(0, (6, 1), (4,)), (0, (2, 3), (4, 3, 5)), (1, (4, 2, 2), (3, 5))],
}
FORMS["scatter_elements"], FORMS["scatter_nd"] = FORMS["gather_elements"], FORMS["gather_nd"]
FORMS["scatter_slices"] = FORMS["gather"]


def _special_values(size, dtype, mode):
    info = np.iinfo(dtype)
    values = [0, size - 1, size, -size, -size - 1, info.min, info.max]
    values += TRUNCATED if mode in ("raise", "wrap") else []
    return [value for value in values if info.min <= value <= info.max]


def _modes(op, dtype):
    """Return mode and `negative`, without combinations that are equal by definition."""
    modes = [mode for mode in MODES if mode != ("drop" if op.startswith("gather") else "fill")]
    return list(product(modes, (True, False) if dtype.kind == "i" else (True,)))


def _indices(shape, sizes, dtype, value, turn):
    """Return valid indices with one special value, at a position that depends on `turn`."""
    array = np.zeros(shape, dtype)
    array[...] = np.arange(array.size).reshape(shape) % min(np.ravel(sizes))
    array.flat[turn % array.size] = value
    return guarded_copy(array)


def _moved_shape(op, axis, shape, data=SHAPE):
    if op == "scatter_slices":
        axis %= len(data)
        return data[:axis] + shape + data[axis + 1 :]
    return shape[:-1] + data[axis + shape[-1] :] if op.endswith("_nd") else shape


def check(call):
    """Compare a call with the oracle, without `out`, with it, and in place."""
    inputs = call.args
    before = [byte_rows(operand).tobytes() for operand in inputs]
    expected = outcome(reference, call)
    assert same_outcome(expected, outcome(gatherum, call)), call
    scatters = call.op.startswith("scatter")
    if scatters or not isinstance(expected, Exception):
        like = call.args[0] if scatters else expected
        out = guarded(like.shape, like.dtype)
        kept = byte_rows(out).tobytes()
        assert same_outcome(expected, outcome(gatherum, call, out=out)), call
        assert strays(out) == []
        assert not isinstance(expected, Exception) or byte_rows(out).tobytes() == kept
    if scatters:
        place = guarded_copy(call.args[0])
        in_place = Call(call.op, (place, *call.args[1:]), call.kwargs)
        assert same_outcome(expected, outcome(gatherum, in_place, out=place)), call
        assert strays(place) == []
        assert not isinstance(expected, Exception) or byte_rows(place).tobytes() == before[0]
    assert [byte_rows(operand).tobytes() for operand in inputs] == before
    assert [strays(operand) for operand in inputs] == [[]] * len(inputs)


def _call(op, data, indices, axis, mode, negative, moved):
    kwargs = {"batch_dims" if op.endswith("_nd") else "axis": axis}
    kwargs |= {"mode": mode, "negative": negative}
    if op.startswith("gather"):
        return Call(op, (data, indices), kwargs | {"fill_value": -7})
    updates = 100 + np.arange(int(np.prod(moved)), dtype=data.dtype).reshape(moved)
    return Call(op, (data, indices, guarded_copy(updates)), kwargs)


@pytest.mark.parametrize("dtype", INDEX_DTYPES, ids=lambda dtype: dtype.str)
@pytest.mark.parametrize("op", OPERATORS)
def test_indices_at_the_ends(op, dtype):
    data = guarded_copy(np.arange(60, dtype=np.int32).reshape(SHAPE))
    turn = 0
    for (axis, shape, sizes), (mode, negative) in product(FORMS[op], _modes(op, dtype)):
        moved = _moved_shape(op, axis, shape)
        for value in _special_values(np.ravel(sizes)[turn % np.size(sizes)], dtype, mode):
            turn += 1
            indices = _indices(shape, sizes, dtype, value, turn)
            check(_call(op, data, indices, axis, mode, negative, moved))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_every_value_of_a_byte(op, dtype, mode, more):
    info = np.iinfo(dtype)
    values = guarded_copy(np.arange(info.min, info.max + 1).astype(dtype))
    data = guarded_copy(np.arange(info.max + 1 + more, dtype=np.int16))
    indices = values[:, None] if op.endswith("_nd") else values
    check(_call(op, data, indices, 0, mode, True, values.shape))


@pytest.mark.parametrize("dtype", ["u2", "i2"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_size_at_the_end_of_16_bits(dtype, more):
    info = np.iinfo(dtype)
    size = info.max + 1 + more
    data = guarded_copy(np.arange(size, dtype=np.int32))
    ends = [0, info.max - 1, info.max, info.min, max(info.min, -size), max(info.min, -size - 1)]
    for value in ends:
        indices = guarded_copy(np.array([1, value, 2]).astype(dtype))
        if -size <= value < size:
            assert gatherum.gather(data, indices).tolist() == [1, value % size, 2]
        else:
            with pytest.raises(IndexError, match=f"index {value} .* size {size} .*indices.1."):
                gatherum.gather(data, indices)


@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["gather_nd", "scatter_nd"])
def test_tuples_whose_bad_components_cancel_in_the_offset(op, mode, negative):
    data = guarded_copy(np.arange(20, dtype=np.int16).reshape(4, 5))
    around = np.array(list(product(range(-9, 10), repeat=2)), np.int8)
    inside = (around[:, 0] * 5 + around[:, 1] >= 0) & (around[:, 0] * 5 + around[:, 1] < 20)
    bad = (around < 0).any(1) | (around >= [4, 5]).any(1)
    assert np.count_nonzero(inside & bad) == 56
    for pair in around[inside & bad] if mode == "raise" else [around]:
        indices = guarded_copy(pair.reshape(-1, 2))
        check(_call(op, data, indices, 0, mode, negative, indices.shape[:1]))


@pytest.mark.parametrize("dtype", ["i8", "u8", ">i8", ">u8"])
@pytest.mark.parametrize("op", ["gather_nd", "scatter_nd"])
def test_components_whose_offsets_are_multiples_of_2_to_the_64(op, dtype):
    data = guarded_copy(np.arange(16, dtype=np.int64).reshape(4, 4))
    for pair in [(2**59, 0), (0, 2**61), (2**62, 2**62), (2**59 + 1, 3), (1, 2**61 + 2)]:
        indices = guarded_copy(np.array([[3, 3], pair], dtype))
        for mode in MODES:
            check(_call(op, data, indices, 0, mode, True, (2,)))


@pytest.mark.parametrize("op", OPERATORS)
def test_dimensions_of_size_zero_with_indices_that_are_there(op):
    nd, seen = op.endswith("_nd"), set()
    for shape, mode, dtype in product(
        [(0,), (0, 3), (3, 0), (2, 0, 3), (0, 0), (0, 2, 0)], MODES, ["i8", "u1", ">i2"]
    ):
        for axis in range(len(shape)):
            if nd:
                index_shapes = [shape[:axis] + (2, k) for k in range(len(shape) - axis + 1)]
            elif op in ("gather", "scatter_slices"):
                index_shapes = [(), (2,), (2, 2), (0,)]
            else:
                index_shapes = [shape[:axis] + (n,) + shape[axis + 1 :] for n in (0, 1, 3)]
            for index_shape in index_shapes:
                moved = _moved_shape(op, axis, index_shape, shape)
                indices = guarded_copy(np.ones(index_shape, dtype))
                data = guarded(shape, np.float32)
                call = _call(op, data, indices, axis, mode, True, moved)
                check(call)
                seen.add(type(outcome(gatherum, call)))
    assert seen == {np.ndarray, IndexError}


def test_every_combination_of_attributes_has_a_separate_plan():
    operands = [
        guarded_copy(np.array(values)) for values in ([9, 8, 7], [[1], [-2], [7]], [3, 4, 5])
    ]
    reductions = gatherum._model.reductions.REDUCTIONS
    for mode, reduction, include_self, negative in product(
        MODES, reductions, (True, False), (True, False)
    ):
        named = {"mode": mode, "reduction": reduction}
        named |= {"include_self": include_self, "negative": negative}
        check(Call("scatter_nd", tuple(operands), named))
