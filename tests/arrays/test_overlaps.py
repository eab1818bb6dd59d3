"""Overlaps between the elements of an array: if there are few elements, each is checked."""

from gatherum import _core
from gatherum._model.shape_limits import overlaps_itself


def test_few_elements_are_compared_one_by_one():
    """The search by strides gives up on this layout, and assumes an overlap."""
    sizes, strides = (2,) * 16, tuple(2**40 + 2**i for i in range(16))
    assert _core.overlaps_itself(sizes, strides, 1, True)
    assert not overlaps_itself(sizes, strides, 1)
