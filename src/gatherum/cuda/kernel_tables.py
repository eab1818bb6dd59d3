"""The nest of a plan as the kernels read it: tables of loops and of components, packed.

The fields stand in the order of the structs in ``kernels/nest.cuh`` and ``kernels/indices.cuh``.
Each is 64 bits wide, so structs have no gaps.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import NamedTuple, TypeAlias

Fields: TypeAlias = list[int]

# How many loops and components a table holds: for nearly all calls, and for every call.
FEW_LOOPS, FEW_COMPONENTS = 8, 4
MOST_LOOPS, MOST_COMPONENTS = 66, 64


class Step(NamedTuple):
    """A loop: its extent, and what one step of it adds to the fields of a place."""

    extent: int
    data: int = 0
    index: int = 0  # type: ignore[assignment]  # hides tuple.index
    other: int = 0
    number: int = 0
    position: int = 0


class IndexComponent(NamedTuple):
    """A component of an index tuple; `from_end` is added to a negative index, where one counts
    from the end.
    """

    size: int
    stride: int
    offset: int
    number: int
    from_end: int


Steps: TypeAlias = tuple[Step, ...]
Parts: TypeAlias = tuple[IndexComponent, ...]


def count_points(steps: Iterable[Step]) -> int:
    """Return how many places loops go through."""
    return prod(step.extent for step in steps)


def divisor(extent: int, bits: int) -> Fields:
    """Return what divides by `extent` in words of so many bits: see ``kernels/nest.cuh``."""
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


def struct_bytes(fields: Sequence[int]) -> bytes:
    """Return the bytes of a struct of 64-bit fields, signed and unsigned ones alike."""
    mask = (1 << 64) - 1
    return struct.pack(f"={len(fields)}Q", *(field & mask for field in fields))


def reach(steps: Steps, parts: Parts, width: int) -> int:
    """Return a bound of all intermediate numbers of a place, in any of its fields."""
    most = count_points(steps)
    for field in range(1, len(Step._fields)):
        most = max(most, sum(abs(step[field]) * (step.extent - 1) for step in steps))
    data = sum(abs(step.data) * (step.extent - 1) for step in steps)
    data += sum(abs(part.stride) * max(part.size, 1) for part in parts)
    index = sum(abs(step.index) * (step.extent - 1) for step in steps)
    index += max((abs(part.offset) for part in parts), default=0)
    number = sum(step.number * (step.extent - 1) for step in steps)
    number += sum(part.number * max(part.size, 1) for part in parts)
    return max(most, data, index, number, *(part.size for part in parts)) + width


def alignment(most: int, *numbers: int) -> int:
    """Return the greatest power of two that divides all numbers, at most `most`, itself one."""
    return gcd(most, *numbers)


def table_size(tables: Iterable[Steps]) -> int:
    """Return how many loops the tables of a launch hold."""
    return FEW_LOOPS if all(len(steps) <= FEW_LOOPS for steps in tables) else MOST_LOOPS
