"""Whether elements of an array share bytes: each is looked at where they are not too many."""

from gatherum import _core
from gatherum._model.shape_limits import overlaps_itself


def test_elements_are_looked_at_where_they_are_few():
    """The search by steps gives this layout up, and takes it for one that overlaps."""
    sizes, strides = (2,) * 16, tuple(2**40 + 2**i for i in range(16))
    assert _core.overlaps_itself(sizes, strides, 1, True)
    assert not overlaps_itself(sizes, strides, 1)
