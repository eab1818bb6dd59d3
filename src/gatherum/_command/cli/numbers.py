"""Numbers on the command line are parsed; those out of range are usage errors."""

from __future__ import annotations

from math import isinf
from typing import Any

import click

from gatherum._system.text_numbers import LONGEST, integer_of, number_of

# Bounds of indices, axes and sizes: int64's least value and uint64's greatest.
LEAST, GREATEST = -(2**63), 2**64 - 1


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in new versions alone
    """A value on the command line: `parse` returns None for a text that is not as `expected`."""

    expected = ""

    def parse(self, text: str) -> Any:
        """Return what a text stands for."""
        raise NotImplementedError

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value, or raise a usage error."""
        found = self.parse(value)
        if found is None:
            raise click.BadParameter(f"must be {self.expected}, got {short(value)}.", ctx, param)
        return found


class Integer(Parsed):
    """An integer of 64 bits."""

    name = "integer"
    expected = "an integer of 64 bits"

    def parse(self, text: str | int) -> int | None:
        """Return the integer; a default is one already."""
        return text if isinstance(text, int) else integer(text)


def integer(text: str, least: int = LEAST, greatest: int = GREATEST) -> int | None:
    """Return the integer that a text stands for, or None if it stands for none in the range."""
    number = integer_of(text)
    if number is None:
        return None
    return number if least <= number <= greatest else None


def integers(text: str) -> list[int] | None:
    """Return the integers that a text has between commas, or None if it has anything else."""
    texts = text.split(",") if text else []
    numbers = [number for one in texts if (number := integer(one)) is not None]
    return numbers if len(numbers) == len(texts) else None


def number_or_text(ctx: click.Context, param: click.Parameter, text: str | None) -> object:
    """Return the number that a text stands for, or the text; None where none was given.

    A number that float64 cannot hold is none that was meant: it would be infinite in silence.
    """
    if text is None:
        return None
    number = number_of(text)
    if number is None:
        return text
    try:
        infinite = sum(map(isinf, (number.real, number.imag)))
    except OverflowError:  # isinf converts an integer to a float
        infinite = 1
    if infinite > text.lower().count("inf"):
        raise click.BadParameter(
            f"must be a number that float64 can hold, or inf, got {short(text)}.", ctx, param
        )
    return number


def short(text: str) -> str:
    """Return a text in quotes, the beginning of a long one."""
    return repr(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")
