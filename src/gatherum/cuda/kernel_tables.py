"""Pack a plan's nest into the tables of loops and components that kernels read.

The fields are in the order of the structs in ``kernels/nest.cuh`` and ``kernels/indices.cuh``. Each
field has 64 bits, so the structs have no padding.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, prod
from typing import NamedTuple, TypeAlias

Fields: TypeAlias = list[int]

# The numbers of loops and components of a table. The smaller table is large enough for nearly all
# calls, the larger one for every call.
FEW_LOOPS, FEW_COMPONENTS = 8, 4
MOST_LOOPS, MOST_COMPONENTS = 66, 64


class Step(NamedTuple):
    """A loop: its extent, and the increments that one step adds to the fields of a position."""

    extent: int
    data: int = 0
    index: int = 0  # type: ignore[assignment]  # hides tuple.index
    moved: int = 0
    destination: int = 0
    position: int = 0


class IndexComponent(NamedTuple):
    """A component of an index tuple.

    `from_end` is added to a negative index if negative indices count from the end.
    """

    size: int
    stride: int
    offset: int
    destination: int
    from_end: int


Steps: TypeAlias = tuple[Step, ...]
Parts: TypeAlias = tuple[IndexComponent, ...]


def count_points(steps: Iterable[Step]) -> int:
    """Return the number of points that loops iterate over."""
    return prod(step.extent for step in steps)


def divisor(extent: int, bits: int) -> Fields:
    """Return the fields to divide by `extent` in words of `bits` bits; see ``kernels/nest.cuh``."""
    shift = (extent - 1).bit_length()
    return [extent, (1 << (bits - 1 + shift)) // extent + 1, shift]


def loops(steps: Steps, bits: int, size: int) -> Fields:
    """Return the fields of ``Loops``."""
    fields = [len(steps)]
    for step in steps:
        fields += [*divisor(step.extent, bits), *step[1:]]
    return fields + [0] * (8 * (size - len(steps)))


def tuple_of(parts: Parts, size: int) -> Fields:
    """Return the fields of ``Tuple``."""
    fields = [len(parts)]
    for part in parts:
        fields += part
    return fields + [0] * (5 * (size - len(parts)))


def reach(steps: Steps, parts: Parts, width: int) -> int:
    """Return an upper bound of all intermediate values of a position, in any field."""
    most = count_points(steps)
    for field in range(1, len(Step._fields)):
        most = max(most, sum(abs(step[field]) * (step.extent - 1) for step in steps))
    data = sum(abs(step.data) * (step.extent - 1) for step in steps)
    data += sum(abs(part.stride) * max(part.size, 1) for part in parts)
    index = sum(abs(step.index) * (step.extent - 1) for step in steps)
    index += max((abs(part.offset) for part in parts), default=0)
    destination = sum(step.destination * (step.extent - 1) for step in steps)
    destination += sum(part.destination * max(part.size, 1) for part in parts)
    return max(most, data, index, destination, *(part.size for part in parts)) + width


def alignment(most: int, *values: int) -> int:
    """Return the greatest power of 2 up to `most`, a power of 2, that divides all numbers."""
    return gcd(most, *values)


def table_size(tables: Iterable[Steps]) -> int:
    """Return the number of loops in the tables of a launch."""
    return FEW_LOOPS if all(len(steps) <= FEW_LOOPS for steps in tables) else MOST_LOOPS
