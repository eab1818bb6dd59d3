"""Pack a plan's nest into the tables of loops and components that kernels read.

The fields are in the order of the structs in ``kernels/nest.cuh`` and ``kernels/indices.cuh``. Each
field has 64 bits, so the structs have no padding.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, prod
from typing import NamedTuple, TypeAlias

from gatherum._model.shape_limits import MAX_RANK

Fields: TypeAlias = list[int]

# The numbers of loops and components of a table. The smaller table is large enough for nearly all
# calls, the larger one for every call: a nest has at most MAX_RANK loops, and the chunks of a block
# are one more.
FEW_LOOPS, FEW_COMPONENTS = 8, 4
MOST_LOOPS, MOST_COMPONENTS = MAX_RANK + 2, MAX_RANK


class DeviceDivisor(NamedTuple):
    """``Divisor``: a number to divide by, and the constants that replace the division."""

    value: int
    magic: int
    shift: int


class DeviceLoop(NamedTuple):
    """``Loop``: its extent, and the increments that one step adds to the fields of a point."""

    extent: int
    data: int = 0
    index: int = 0  # type: ignore[assignment]  # hides tuple.index
    moved: int = 0
    destination: int = 0
    position: int = 0


class DeviceComponent(NamedTuple):
    """``Component``: a component of an index tuple.

    `from_end` is added to a negative index if negative indices count from the end.
    """

    size: int
    stride: int
    offset: int
    destination: int
    from_end: int


# In ``Loop``, a divisor takes the place of the extent.
_LOOP_FIELDS = len(DeviceDivisor._fields) + len(DeviceLoop._fields) - 1
DeviceLoops: TypeAlias = tuple[DeviceLoop, ...]
DeviceComponents: TypeAlias = tuple[DeviceComponent, ...]


def count_points(loops: Iterable[DeviceLoop]) -> int:
    """Return the number of points that loops iterate over."""
    return prod(loop.extent for loop in loops)


def divisor_of(value: int, bits: int) -> DeviceDivisor:
    """Return the fields of ``Divisor``, to divide by `value` in words of `bits` bits."""
    shift = (value - 1).bit_length()
    return DeviceDivisor(value, (1 << (bits - 1 + shift)) // value + 1, shift)


def loops_fields(loops: DeviceLoops, bits: int, size: int) -> Fields:
    """Return the fields of ``Loops``."""
    fields = [len(loops)]
    for loop in loops:
        fields += [*divisor_of(loop.extent, bits), *loop[1:]]
    return fields + [0] * (_LOOP_FIELDS * (size - len(loops)))


def tuple_fields(components: DeviceComponents, size: int) -> Fields:
    """Return the fields of ``Tuple``."""
    fields = [len(components)]
    for component in components:
        fields += component
    return fields + [0] * (len(DeviceComponent._fields) * (size - len(components)))


def largest_number(loops: DeviceLoops, components: DeviceComponents, access_bytes: int) -> int:
    """Return an upper bound for all numbers that a kernel computes for any field of a point."""
    most = count_points(loops)
    for field in range(1, len(DeviceLoop._fields)):
        most = max(most, sum(abs(loop[field]) * (loop.extent - 1) for loop in loops))
    data = sum(abs(loop.data) * (loop.extent - 1) for loop in loops)
    data += sum(abs(component.stride) * max(component.size, 1) for component in components)
    index = sum(abs(loop.index) * (loop.extent - 1) for loop in loops)
    index += max((abs(component.offset) for component in components), default=0)
    destination = sum(loop.destination * (loop.extent - 1) for loop in loops)
    destination += sum(each.destination * max(each.size, 1) for each in components)
    return max(most, data, index, destination, *(each.size for each in components)) + access_bytes


def common_alignment(most: int, *values: int) -> int:
    """Return the greatest power of 2 that divides all numbers and is at most `most`."""
    return gcd(most, *values)


def table_size(tables: Iterable[DeviceLoops]) -> int:
    """Return the number of loops in the tables of a launch."""
    return FEW_LOOPS if all(len(loops) <= FEW_LOOPS for loops in tables) else MOST_LOOPS
