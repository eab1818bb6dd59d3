"""Overlaps between the elements of an array: if there are few elements, each is checked."""

import numpy as np

import gatherum
from gatherum import _core
from gatherum._model.shape_limits import overlaps_itself


def test_few_elements_are_compared_one_by_one():
    """The search by strides gives up on this layout, and assumes an overlap."""
    sizes, strides = (2,) * 16, tuple(2**40 + 2**i for i in range(16))
    assert _core.overlaps_itself(sizes, strides, 1, True)
    assert not overlaps_itself(sizes, strides, 1)


def test_strides_of_dimensions_of_size_1_have_no_effect_in_place():
    row = np.zeros(3)
    data, out = row[None], row.reshape(1, -1)
    assert data.strides != out.strides
    result = gatherum.scatter_nd(data, [[0, 1]], [5.0], out=out)
    assert result is out
    assert row.tolist() == [0, 5, 0]


def test_the_first_operand_that_shares_memory_with_out_is_named():
    memory = np.zeros(30)
    data, indices, updates = memory[:10], memory[10:20], memory[20:]
    assert _core.first_overlap(data, indices, None, data) == "data"
    assert _core.first_overlap(data, indices, updates, data) is None  # a scatter in place
    assert _core.first_overlap(data, indices, updates, memory[1:11]) == "data"
    assert _core.first_overlap(data, indices, updates, memory[15:25]) == "indices"
    assert _core.first_overlap(data, indices, updates, memory[20:]) == "updates"
    assert _core.first_overlap(data[::2], indices, None, data[1::2]) is None
