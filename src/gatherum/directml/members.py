"""Read members of JSON objects. Errors contain the path of the member and its value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .types import UINT32_MAX, TensorDataType

TYPE_PREFIX: Final = "DML_TENSOR_DATA_TYPE_"


def read_data_type(value: object, where: str) -> TensorDataType:
    """Return the data type with the given short or full name."""
    names = TensorDataType.__members__
    short_name = value.removeprefix(TYPE_PREFIX) if isinstance(value, str) else ""
    if short_name not in names:
        raise ValueError(f"`{where}` must be one of {', '.join(names)}, got {shortened(value)}")
    return names[short_name]


def unsigned_list(values: object, where: str) -> tuple[int, ...]:
    """Return a list of 32-bit unsigned integers; `where` lacks its closing backtick."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise ValueError(f"{where}` must be a list of integers, got {shortened(values)}")
    pairs = enumerate(values)
    return tuple(unsigned(value, f"{where}[{i}]`", UINT32_MAX) for i, value in pairs)


def unsigned(value: object, where: str, limit: int) -> int:
    """Return an integer from 0 to a limit."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
        raise ValueError(f"{where} must be an integer from 0 to {limit}, got {shortened(value)}")
    return value


def number_of(
    source: Mapping[str, Any], name: str, where: str, limit: int, default: int = 0
) -> int:
    """Return the value of a member, an integer from 0 to a limit."""
    return unsigned(source.get(name, default), f"`{where}.{name}`", limit)


def only_one(source: Mapping[str, Any], first: str, second: str, where: str) -> str | None:
    """Return the spelling in which a member is present, or None if it is absent."""
    if first in source and second in source:
        raise ValueError(f"{where} must have one of '{first}' and '{second}', got both")
    return first if first in source else second if second in source else None


def reject_unknown(source: Mapping[str, Any], known_members: tuple[str, ...], where: str) -> None:
    """Raise ValueError for an unknown member."""
    for name in source:
        if name not in known_members:
            raise ValueError(
                f"{where} must have no members but {', '.join(known_members)}, "
                f"got {shortened(name)}"
            )


def as_object(value: object, where: str) -> Mapping[str, Any]:
    """Return a value if it is an object, or raise ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} must be an object, got {shortened(value)}")
    return value


def text_of(source: Mapping[str, Any], name: str, where: str) -> str:
    """Return the value of a member, a string."""
    value = source.get(name)
    if not isinstance(value, str):
        shown = shortened(value) if name in source else "none"
        raise ValueError(f"`{where}.{name}` must be a string, got {shown}")
    return value


def shortened(value: object) -> str:
    """Return a value as JSON text for a message, shortened."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, default=repr)
    return text if len(text) <= 40 else text[:37] + "..."
