"""The names that a function uses for the operands of the operator that it calls.

Errors of such a call name the function and its operands. In traced graphs and in schemas of custom
ops, one attribute is a string that contains the names.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from .errors import group_out_of_bounds, index_out_of_bounds
from .operators import OPERATORS


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
            return group_out_of_bounds(
                self.op, value, size, position, mode, self.indices, negative=negative
            )
        return index_out_of_bounds(
            self.op, value, axis, size, position, mode, self.indices, has_place=self.place == "same"
        )

    @property
    def operands(self) -> dict[str, str]:
        """The function's names by the operator's names."""
        return {"data": self.data, "indices": self.indices, "updates": self.updates}


def caller_of(text: str) -> Caller | None:
    """Parse a caller from its string. Return None for an empty string."""
    return Caller(*text.split("|")) if text else None


@contextmanager
def naming(text: str) -> Iterator[None]:
    """Name the caller's function and arguments in errors that an operator raises."""
    try:
        yield
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        caller = caller_of(text)
        renamed_error = caller and renamed(error, caller.op, caller.operands)
        if renamed_error is None:
            raise
        raise renamed_error from None


def renamed(
    error: Exception, op: str, names: Mapping[str, str], of: Container[str] = OPERATORS
) -> Exception | None:
    """Return the error of a function as an error of the function that called it.

    `names` contains the replacements of operands, and of expressions with operands. Return None if
    no function in `of` raised the error.

    Any error of an operator may be renamed, including errors that `files` and frameworks raise.
    Therefore the words `data`, `indices` and `updates` refer to the operands in all messages of an
    operator, except between quotes, where values are.
    """
    function, _, message = str(error).partition(": ")
    if function not in of:
        return None
    if names:
        longest_first = sorted(names, key=len, reverse=True)
        pattern = rf"(?<![\w'\"])({'|'.join(map(re.escape, longest_first))})(?![\w'\"])"
        message = re.sub(pattern, lambda found: names[found[0]], message)
    return type(error)(f"{op}: {message}")
