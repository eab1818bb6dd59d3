"""Parse numbers in options, files and environment variables with one strict grammar.

Python's `int`, `float` and `complex` also accept underscores, the digits of all scripts and any
white space around a number, so that ``1_0`` would be 10. Here, only ASCII digits are accepted, and
only blanks, tabs and line ends may surround a number.
"""

from __future__ import annotations

from typing import Final

__all__ = ["integer_of", "number_of"]

LONGEST: Final = 40
_AROUND: Final = " \t\r\n"


def integer_of(text: str) -> int | None:
    """Parse an integer, or return None.

    Return None for a string of more than 40 characters: the number exceeds 64 bits, and `int` would
    take quadratic time.
    """
    if len(text) > LONGEST:
        return None
    number = _parse(text, int)
    return number if isinstance(number, int) else None


def number_of(text: str) -> int | float | complex | None:
    """Parse an integer, a float or a complex number, tried in this order, or return None.

    The number may be infinite.
    """
    for number_type in (int, float, complex):
        if (number := _parse(text, number_type)) is not None:
            return number
    return None


def _parse(
    text: str, number_type: type[int] | type[float] | type[complex]
) -> int | float | complex | None:
    stripped = text.strip(_AROUND)
    if "_" in stripped or not stripped.isascii() or stripped != stripped.strip():
        return None
    try:
        return number_type(stripped)
    except ValueError:
        return None
