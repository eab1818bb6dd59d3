"""Columns of decimals in Parquet and Arrow files, as integers of the smallest unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.formats.arrow import Arrow, ArrowColumn
from gatherum.files.formats.arrow_groups import NullsError, groups_of, plain_errors
from gatherum.files.formats.format import Location
from gatherum.files.formats.members import choose_member
from gatherum.files.resources.resources import Resources
from gatherum.groups.decimal_numbers import DecimalNumbers, decimals_in, largest_of, part_of

OP = "reduce_file"
HALF = 32  # bits: the sums of up to 2**31 halves of integers do not wrap around
DECODED = 6  # the memory to convert decimals, in sizes of the integers


class WideError(Exception):
    """An integer has more than 64 bits."""


class Integers(Arrow):
    """The format of the integers of a column of decimals, or of their bits from `first_bit` on."""

    converts = DECODED

    def __init__(self, first_bit: int | None = None) -> None:
        self.first_bit = first_bit
        self.largest = 0  # the largest absolute value that has been read

    def described(
        self, location: Location, arrow_type: Any
    ) -> tuple[np.dtype[Any], list[int | None]]:
        """Return the dtype of the integers."""
        return np.dtype(np.int64), []

    def column(self, *arguments: Any) -> ArrowColumn:
        """Return the column that decodes integers."""
        return IntegerColumn(self, *arguments)


class IntegerColumn(ArrowColumn):
    """A column of decimals as an array of integers."""

    def __init__(self, integers: Integers, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._integers = integers

    def items(self, values: Any) -> NDArray[Any]:
        """Return the integers of one group."""
        whole = _numbers(values).integers()
        if whole is None:
            raise WideError
        self._integers.largest = max(self._integers.largest, largest_of(whole))
        first = self._integers.first_bit
        return whole if first is None else part_of(whole, first, HALF, signed=first > 0)


def _numbers(values: Any) -> DecimalNumbers:
    if values.null_count:
        raise NullsError
    numbers = decimals_in(OP, values)
    assert numbers is not None
    return numbers


@dataclass(frozen=True)
class DecimalColumn:
    """A column of decimals, whose integers are operands of files."""

    location: Location
    name: str
    whole: Integers
    scale: int
    size: int

    def integers(self) -> Location:
        """Return the location of the integers. Reading them raises WideError for wide ones."""
        return replace(self.location, format=self.whole)

    def largest(self) -> int:
        """Return the largest absolute value that has been read."""
        return self.whole.largest

    def parts(self) -> Iterator[tuple[int, Location]]:
        """Yield the locations of both halves of the integers, and the first bit of each."""
        for first in (0, HALF):
            yield first, replace(self.location, format=Integers(first))

    def read(self, resources: Resources) -> DecimalNumbers:
        """Return all numbers, which may have up to 38 digits."""
        groups = groups_of(self.location, resources)
        with plain_errors(f"{self.location}: cannot be read"):
            groups.choose(self.name)
        parts = []
        for number in range(len(groups.lengths)):
            with plain_errors(f"{self.location}: group {number}"):
                parts.append(_numbers(groups.read(number)))
        resources.meter.read(16 * self.size)
        high, low = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        return DecimalNumbers(high, low, self.scale)


def open_decimals(location: Location, resources: Resources) -> DecimalColumn | None:
    """Return a column of decimals, None for other columns."""
    from pyarrow import types

    groups = groups_of(location, resources)
    names = groups.schema.names
    name = choose_member(location, "column", location.member, names)
    if names.count(name) != 1:  # opening the column raises the error
        return None
    arrow_type = groups.schema.field(name).type
    if not types.is_decimal(arrow_type):
        return None
    with plain_errors(f"{location}: cannot be read"):
        groups.choose(name)
    return DecimalColumn(location, name, Integers(), arrow_type.scale, sum(groups.lengths))
