"""Row numbers are read from the command line, or from a .csv or .txt file."""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from ..call import Array
from ..operators import Operator
from ..regular_files import read_regular
from .numbers import integers, short

_TEXTS = (".csv", ".txt")
_LARGEST = 64 << 20


class Values(click.ParamType):  # type: ignore[type-arg]  # generic in new versions alone
    """Indices on the command line: integers with commas between them."""

    name = "values"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """Return a list of integers."""
        numbers = integers(value)
        if numbers is None:
            text = f"must be integers such as 0,2,2,7, got {short(value)}."
            raise click.BadParameter(text, ctx, param)
        return numbers


def is_text(path: str) -> bool:
    """Whether a file of indices holds numbers as text."""
    return path.lower().endswith(_TEXTS)


def as_array(operator: Operator, given: str | list[int]) -> str | Array:
    """Return the given array file, or an array of the given numbers."""
    if isinstance(given, str) and not is_text(given):
        return given
    numbers = _read(given) if isinstance(given, str) else _array("--values", [given])
    if numbers.shape[0] == 1 or numbers.shape[1] == 1:
        numbers = numbers.reshape(-1, 1) if operator.tuples else numbers.ravel()
    return numbers


@contextmanager
def as_file(operator: Operator, given: str | list[int]) -> Iterator[str]:
    """Yield an array file of the indices: the given one, or a scratch file with the numbers."""
    numbers = as_array(operator, given)
    if isinstance(numbers, str):
        yield numbers
        return
    with tempfile.TemporaryDirectory(prefix="gatherum-") as folder:
        path = os.path.join(folder, "indices.npy")
        np.save(path, numbers)
        yield path


def _read(path: str) -> Array:
    """Return the numbers in a file, a row a line; commas or blanks stand between them.

    As in `numpy.loadtxt`, what follows a ``#`` is a comment. A byte-order mark says the encoding:
    spreadsheets write one before UTF-8, and PowerShell before UTF-16.
    """
    from ..files.remote import refuse_url

    refuse_url(path, "numbers as text are not read from URLs; download it")
    try:
        content = read_regular(path, _LARGEST)
        utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        lines = content.decode("utf-16" if utf16 else "utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not a text file") from None
    rows: list[list[int]] = []
    for number, line in enumerate(lines, 1):
        row = integers(",".join(line.partition("#")[0].replace(",", " ").split()))
        if row is None:
            raise ValueError(f"{path}, line {number}: expected integers, got {short(line)}")
        if row and rows and len(row) != len(rows[0]):
            raise ValueError(
                f"{path}, line {number}: has {len(row)} numbers, the lines before {len(rows[0])}"
            )
        rows += [row] if row else []
    return _array(path, rows)


def _array(where: str, rows: list[list[int]]) -> Array:
    """Return rows of integers as an array of int64, or of uint64 where they do not fit."""
    shape = len(rows), len(rows[0]) if rows else 1
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(rows, dtype).reshape(shape)
        except OverflowError:
            continue
    raise ValueError(f"{where}: the numbers fit neither int64 nor uint64 together")
