"""Numbers on the command line. Numbers out of range are usage errors."""

from __future__ import annotations

from math import isinf
from typing import Any

import click

from gatherum._system.text_numbers import LONGEST, integer_of, number_of

# Bounds of indices, axes and sizes: the minimum of int64 and the maximum of uint64.
LEAST, GREATEST = -(2**63), 2**64 - 1


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic only in new versions
    """A value on the command line. `parse` returns None if the text does not match `expected`."""

    expected = ""

    def parse(self, text: str) -> Any:
        """Parse a text."""
        raise NotImplementedError

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value, or raise a usage error."""
        parsed = self.parse(value)
        if parsed is None:
            raise click.BadParameter(f"must be {self.expected}, got {short(value)}.", ctx, param)
        return parsed


class Integer(Parsed):
    """A 64-bit integer."""

    name = "integer"
    expected = "an integer of 64 bits"

    def parse(self, text: str | int) -> int | None:
        """Return the integer in a string. A default is already an integer."""
        return text if isinstance(text, int) else integer(text)


def integer(text: str, least: int = LEAST, greatest: int = GREATEST) -> int | None:
    """Parse an integer. Return None if the text is not an integer in the range."""
    value = integer_of(text)
    if value is None:
        return None
    return value if least <= value <= greatest else None


def integers(text: str) -> list[int] | None:
    """Parse comma-separated integers. Return None for any other text."""
    texts = text.split(",") if text else []
    values = [value for text in texts if (value := integer(text)) is not None]
    return values if len(values) == len(texts) else None


def number_or_text(ctx: click.Context, param: click.Parameter, text: str | None) -> object:
    """Return the number in a string, or the string itself; None if the option is missing.

    Raise a usage error for numbers that float64 cannot represent: they would silently become
    infinite.
    """
    if text is None:
        return None
    value = number_of(text)
    if value is None:
        return text
    try:
        infinite = sum(map(isinf, (value.real, value.imag)))
    except OverflowError:  # isinf converts an integer to a float
        infinite = 1
    if infinite > text.lower().count("inf"):
        raise click.BadParameter(
            f"must be a number that float64 can hold, or inf, got {short(text)}.", ctx, param
        )
    return value


def text_and_number(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> tuple[str, object] | None:
    """Return a string, and the number in it or the same string; None if the option is missing."""
    return None if text is None else (text, number_or_text(ctx, param, text))


def short(text: str) -> str:
    """Return a string in quotes, truncated if it is long."""
    return repr(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")
