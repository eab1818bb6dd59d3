"""Columns of Parquet and Arrow files that are keys of groups, such as strings and dates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gatherum.files.formats.arrow_groups import Groups, groups_of, plain_errors
from gatherum.files.formats.format import KeyColumn, Location
from gatherum.files.formats.members import choose_member
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter

__all__ = ["named_columns", "open_keys"]


@dataclass(frozen=True)
class ArrowKeys:
    """One column of keys. `arrow_type` is its type in Arrow. `meter` counts the bytes of keys."""

    location: Location
    name: str
    groups: Groups
    arrow_type: Any
    meter: Meter

    @property
    def length(self) -> int:
        """The number of rows."""
        return sum(self.groups.lengths)

    @property
    def is_key(self) -> bool:
        """Whether values of the column's type are numbered: strings, bytes, dates or bools."""
        from pyarrow import types

        type_names = (
            "string", "large_string", "string_view", "binary", "large_binary",
            "fixed_size_binary", "dictionary", "temporal", "boolean",
        )  # fmt: skip
        return any(getattr(types, f"is_{name}")(self.arrow_type) for name in type_names)

    def batches(self) -> Iterator[Any]:
        """Yield the keys of each row group as an Arrow array."""
        for number in range(len(self.groups.lengths)):
            with plain_errors(f"{self.location}: group {number}"):
                keys = self.groups.read(number)
            self.meter.read(keys.nbytes)
            yield keys


def named_columns(location: Location, resources: Resources) -> list[str]:
    """Return the column names in a location, which are separated by commas."""
    return _named(location, groups_of(location, resources).schema.names)


def _named(location: Location, names: list[str]) -> list[str]:
    member = location.member
    if member is None or member in names or "," not in member:
        return [choose_member(location, "column", member, names)]
    return [choose_member(location, "column", part, names) for part in member.split(",")]


def open_keys(location: Location, resources: Resources) -> list[KeyColumn]:
    """Open the columns in a location. Strings are read as dictionaries."""
    schema = groups_of(location, resources).schema
    columns: list[KeyColumn] = []
    for name in _named(location, schema.names):
        if schema.names.count(name) > 1:
            count = schema.names.count(name)
            raise ValueError(f"{location}: the file has {count} columns of that name")
        groups = groups_of(location, resources, encoded=name)
        with plain_errors(f"{location}: cannot be read"):
            groups.choose(name)
        arrow_type = schema.field(name).type
        columns.append(ArrowKeys(location, name, groups, arrow_type, resources.meter))
    return columns
