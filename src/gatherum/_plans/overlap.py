"""Check that an output does not share memory with an input."""

from __future__ import annotations

import numpy as np

from gatherum._model import errors, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec


def check_out_memory(
    op: str, data: NumpyArray, indices: NumpyArray, updates: NumpyArray | None, out: NumpyArray
) -> None:
    """Raise ValueError if `out` is read-only or shares memory with an input.

    A scatter may have `data` itself as `out`.
    """
    out, data = np.asarray(out), np.asarray(data)  # subclasses may override attributes
    if not out.flags.writeable:
        raise errors.out_read_only(op)
    in_place = updates is not None and _is_same_place(out, data)
    for name, operand in (("data", data), ("indices", indices), ("updates", updates)):
        if operand is None or (name == "data" and in_place):
            continue
        if shape_limits.shares_memory(out, operand):
            raise errors.out_overlaps(op, name)


class _Place:
    def __init__(self, address: int, spec: ArraySpec, writable: bool) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not writable),
            "shape": spec.shape,
            "strides": spec.strides,
            "typestr": f"|V{spec.dtype.itemsize}",
        }


def place_at(address: int, spec: ArraySpec, writable: bool = True) -> NumpyArray:
    """Return an array at an address, for checks of addresses. Its memory must not be read."""
    return np.asarray(_Place(address, spec, writable))


def _is_same_place(a: NumpyArray, b: NumpyArray) -> bool:
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides
