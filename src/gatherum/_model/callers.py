"""The names that a function uses for the operands of the operator that it calls.

Errors of such a call name the function and its operands. In traced graphs and in schemas of custom
ops, one attribute is a string that contains the names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .errors import group_out_of_bounds, index_out_of_bounds


class Caller(NamedTuple):
    """A function that calls an operator.

    Attributes
    ----------
    op : str
        The name of the function.
    indices, data, updates : str
        The function's names for the operands of the operator.
    entry : str
        The name of an entry of the indices: "index" or "group".
    place : str
        "same" if the indices have the shape of the function's argument. Otherwise "", and messages
        contain no position.
    """

    op: str
    indices: str
    data: str = "data"
    updates: str = "updates"
    entry: str = "index"
    place: str = "same"

    @property
    def text(self) -> str:
        """The caller as a string, which `caller_of` parses."""
        return "|".join(self)

    def invalid_entry(
        self,
        value: object,
        axis: int,
        size: int,
        position: Sequence[object] | None,
        mode: str,
        negative: bool,
    ) -> IndexError:
        """Create the error for an invalid entry.

        `position` is None if another thread changed the entry during the call.
        """
        if self.entry == "group":
            valid = -size if negative else 0, size
            return group_out_of_bounds(self.op, value, valid, position, mode, self.indices)
        has_same_place = position is None or self.place == "same"
        known_position = position if has_same_place else ()
        error = index_out_of_bounds(self.op, value, axis, size, known_position, mode, self.indices)
        return (
            error if has_same_place else IndexError(str(error).removesuffix(f" ({self.indices})"))
        )


def caller_of(text: str) -> Caller | None:
    """Parse a caller from its string. Return None for an empty string."""
    return Caller(*text.split("|")) if text else None
