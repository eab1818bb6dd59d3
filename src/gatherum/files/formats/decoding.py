"""Decode packed arrays box by box, for any storage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from gatherum._model.errors.audience import option
from gatherum.files.formats.packing import ATTRIBUTES, LINEAR, UNSIGNED, Packing, packing_of
from gatherum.files.formats.storage import BoxStorage, Source, boxes_of
from gatherum.files.resources.resources import Budget
from gatherum.files.row_access.grid import BoxArray

COUNTED = ("indices", "groups")  # the operands that contain indices


def decoded(source: Source, budget: Budget, role: str = "table") -> Source:
    """Return an array with its numbers decoded, if it is packed.

    Indices keep the numbers that mark missing values, because the mode handles invalid indices.
    Raise ValueError for indices with a scale or an offset, and for an attribute of the wrong type.
    """
    if source.attributes is None:
        return source
    attributes = {name: value for name, value in source.attributes().items() if name in ATTRIBUTES}
    if role in COUNTED:
        if any(name in attributes for name in LINEAR):
            raise ValueError(
                f"{source.location}: the {role} must be integers, got packed numbers "
                f"({', '.join(attributes)}); {option('decode=False')} takes the stored numbers"
            )
        attributes = {name: attributes[name] for name in attributes if name == UNSIGNED}
    packing = packing_of(source.location, attributes, source.dtype)
    if packing is None:
        return source
    boxes = DecodedBoxes(boxes_of(source.storage), packing)
    item = source.dtype.itemsize + packing.dtype.itemsize
    budget.check_chunk(source.location, math.prod(boxes.chunks) * item)
    storage = BoxStorage(boxes, packing.why_not_changed)
    return replace(source, dtype=packing.dtype, storage=storage, packing=packing)


class DecodedBoxes(BoxArray):
    """The decoded boxes of an array."""

    def __init__(self, array: BoxArray, packing: Packing) -> None:
        self._array, self._packing = array, packing
        self.shape, self.chunks, self.dtype = array.shape, array.chunks, packing.dtype

    def read_box(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Return a box of the array."""
        return self._packing.decode(self._array.read_box(box))

    def announce(self, boxes: Iterator[tuple[slice, ...]]) -> None:
        """Prepare to read these boxes next, in this order."""
        self._array.announce(boxes)

    def stop(self) -> None:
        """Cancel pending work, because the call is over."""
        self._array.stop()
