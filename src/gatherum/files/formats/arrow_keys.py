"""Columns of Parquet and Arrow files that are keys of groups, such as strings and dates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gatherum.files.formats.arrow_groups import Groups, groups_of, plain_errors
from gatherum.files.formats.format import KeyColumn, Location
from gatherum.files.formats.members import choose_member
from gatherum.files.resources.resources import Resources

LONGEST = (
    1 << 30
)  # bytes of keys that are numbered together: Arrow's offsets in strings have 32 bits
DISTINCT = 4  # many keys are distinct if more than one in four is


@dataclass(frozen=True)
class ArrowKeys:
    """One column of keys. `arrow_type` is its type in Arrow."""

    location: Location
    name: str
    groups: Groups
    arrow_type: Any
    resources: Resources  # whose meter counts the bytes of keys

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
            yield self._read(self.groups, number)

    def joined_batches(self) -> Iterator[Any]:
        """Yield the keys of one or several row groups as an Arrow array.

        If many strings of a row group are distinct, the strings of later row groups are not read as
        dictionaries. Their keys are numbered together, which takes less time than to number the
        keys of each row group, and then the distinct keys of all.
        """
        import pyarrow

        groups, limit = self.groups, min(self.resources.budget.window // 2, LONGEST)
        joined: list[Any] = []
        joined_bytes = 0
        for number in range(len(groups.lengths)):
            keys = self._read(groups, number)
            if pyarrow.types.is_dictionary(keys.type):
                yield keys
                if groups is self.groups and self._are_many(keys):
                    groups = groups_of(self.location, self.resources)
                    groups.choose(self.name)
                continue
            for part in getattr(keys, "chunks", [keys]):
                if joined and joined_bytes + part.nbytes > limit:
                    yield pyarrow.concat_arrays(joined)
                    joined, joined_bytes = [], 0
                joined.append(part)
                joined_bytes += part.nbytes
        if joined:
            yield pyarrow.concat_arrays(joined)

    def _read(self, groups: Groups, number: int) -> Any:
        with plain_errors(f"{self.location}: group {number}"):
            keys = groups.read(number)
        self.resources.meter.read(keys.nbytes)
        return keys

    def _are_many(self, keys: Any) -> bool:
        """Return True if many of the strings that were read as a dictionary are distinct."""
        distinct = sum(len(chunk.dictionary) for chunk in getattr(keys, "chunks", [keys]))
        return self.arrow_type != keys.type and distinct * DISTINCT > len(keys)


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
        columns.append(ArrowKeys(location, name, groups, arrow_type, resources))
    return columns
