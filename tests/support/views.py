"""Calls on views: memory that is described as another framework describes it."""

import numpy as np

from gatherum import _core
from gatherum._system import native

DLPACK = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
ATTRIBUTES = {
    "axis": 0,
    "reduction": "none",
    "include_self": True,
    "mode": "raise",
    "negative": True,
    "fill": None,
}


def dtype_of(array, dtype=None):
    if dtype is not None:
        return _core.DType.__members__[dtype]
    return _core.dtype_of_dlpack(DLPACK[array.dtype.kind], 8 * array.itemsize)


def view(array, dtype=None):
    """Return an array as another framework exports it; `dtype` describes its bytes."""
    address, code = array.ctypes.data, dtype_of(array, dtype)
    return native.View(address, array.shape, array.strides, code, array.flags.writeable)


def call(op, data, indices, updates=None, *, out=None, dtype=None, **attributes):
    """Call an operator on views of arrays. `dtype` applies to all operands except the indices."""
    results = []

    def allocate(shape):
        results.append(np.empty(shape, data.dtype))
        return results[0].ctypes.data

    merged = ATTRIBUTES | attributes
    assert len(merged) == len(ATTRIBUTES)
    native.run_on_views(
        op,
        view(data, dtype),
        view(indices),
        None if updates is None else view(updates, dtype),
        *merged.values(),
        None if out is None else view(out, dtype),
        allocate,
    )
    return results[0] if out is None else out
