"""Check that an output does not share memory with an input."""

from __future__ import annotations

import numpy as np

from gatherum import _core
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec


def check_out_memory(
    op: str, data: NumpyArray, indices: NumpyArray, updates: NumpyArray | None, out: NumpyArray
) -> None:
    """Raise ValueError if `out` is read-only or shares memory with an input.

    A scatter may have `data` itself as `out`.
    """
    if not np.asarray(out).flags.writeable:  # subclasses may override attributes
        raise errors.out_read_only(op)
    operand = _core.first_overlap(data, indices, updates, out)
    if operand is not None:
        raise errors.out_overlaps(op, operand)


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
