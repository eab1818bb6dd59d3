"""Indices on the command line, or in a text file (.csv, .tsv or .txt)."""

from __future__ import annotations

import codecs
import re

import numpy as np

from gatherum._model.arrays import NumpyArray
from gatherum._model.operators import Operator
from gatherum._system.regular_files import read_regular
from gatherum._system.text_numbers import number_of

from .numbers import Parsed, integer, integers, short

TEXTS = (".csv", ".tsv", ".txt")
LARGEST = 64 << 20
_LINE_END = re.compile(r"\r\n|\r|\n")
_BETWEEN = re.compile(r"[, \t]+")
_NUMERIC = re.compile(r"\s*[+-]?\.?\d")  # digits of any script; also 1_0, 0x10 and 1;2


class Values(Parsed):
    """Indices on the command line: comma-separated integers."""

    name = "values"
    expected = "integers such as 0,2,2,7"

    def parse(self, text: str) -> list[int] | NumpyArray | None:
        """Return a list of integers."""
        return integers(text)


class Axes(Parsed):
    """Dimensions on the command line: comma-separated numbers or names."""

    name = "axes"
    expected = "dimensions such as 1,2 or lat,lon"

    def parse(self, text: str) -> list[int | str] | None:
        """Return a list of integers and names."""
        parts = [part.strip() for part in text.split(",")]
        axes = [part if (axis := integer(part)) is None else axis for part in parts]
        return axes if all(parts) else None


def is_text(path: str) -> bool:
    """Return True if a file of indices contains numbers as text."""
    return path.lower().endswith(TEXTS)


def as_operand(
    operator: Operator, indices: str | list[int], role: str = "INDICES", *, components: int = 1
) -> str | NumpyArray:
    """Return an array of numbers, or the path of an array file.

    `components` is the number of values after ``--values`` that form a tuple.
    """
    from gatherum.files.formats import UnknownFormat, locate
    from gatherum.files.remote import refuse_url

    if not isinstance(indices, str):
        width = components if len(indices) % components == 0 else len(indices)
        return _array("--values", [indices]).reshape((-1, width) if operator.takes_tuples else -1)
    if is_text(indices):
        refuse_url(indices, "numbers as text are not read from URLs; download it")
        return from_text(operator, indices, read_regular(indices, LARGEST))
    try:
        locate(indices)
    except UnknownFormat as error:
        text_files = f"{', '.join(TEXTS[:-1])} or {TEXTS[-1]} file"
        more = (
            f"numbers in a {text_files}, or after --values"
            if role == "INDICES"
            else f"a {text_files}"
        )
        raise UnknownFormat(f"{error}. {role} may also be {more}") from None
    return indices


def from_text(operator: Operator, name: str, content: bytes) -> NumpyArray:
    """Parse a string with one row per line. Commas, tabs or blanks separate the numbers.

    If the operator takes tuples, each line is a tuple. Otherwise a single line or column is a flat
    list. As in `numpy.loadtxt`, a ``#`` begins a comment. A byte-order mark determines the
    encoding: spreadsheets write one before UTF-8, and PowerShell before UTF-16. A first line
    without any number is a header.
    """
    try:
        utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        lines = _LINE_END.split(content.decode("utf-16" if utf16 else "utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(f"{name}: is not a text file") from None
    rows: list[list[int]] = []
    header: tuple[int, str] | None = None
    for line_number, line in enumerate(lines, 1):
        text = line.partition("#")[0]
        row = integers(",".join(filter(None, _BETWEEN.split(text))))
        if row is None and not rows and header is None and _is_header(text):
            header = line_number, line
            continue
        if row is None:
            raise NotIntegers(name, line_number, line)
        if row and rows and len(row) != len(rows[0]):
            raise ValueError(
                f"{name}, line {line_number}: has {len(row)} numbers, the lines before "
                f"{len(rows[0])}"
            )
        rows += [row] if row else []
    if not rows and header and re.search("[0-9]", header[1]):  # numbers in another notation
        raise NotIntegers(name, *header)
    indices = _array(name, rows)
    return indices.ravel() if 1 in indices.shape and not operator.takes_tuples else indices


class NotIntegers(ValueError):
    """A line of text contains something other than integers.

    `has_numbers`: whether all words of the line are numbers.
    """

    def __init__(self, name: str, line_number: int, line: str) -> None:
        super().__init__(f"{name}, line {line_number}: expected integers, got {short(line)}")
        self.has_numbers = all(map(_is_number, _words(line)))


def _is_header(line: str) -> bool:
    """Return True if no word of a line is a number or begins like one in another notation."""
    return not any(_NUMERIC.match(word) or number_of(word) is not None for word in _words(line))


def _words(line: str) -> list[str]:
    return re.split("[,\t]", line) if "," in line or "\t" in line else line.split()


def _is_number(word: str) -> bool:
    return number_of(word) is not None


def _array(where: str, rows: list[list[int]]) -> NumpyArray:
    """Return rows of integers as an array of int64, or of uint64 if int64 is too small."""
    shape = len(rows), len(rows[0]) if rows else 1
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(rows, dtype).reshape(shape)
        except OverflowError:  # numbers from 2**63 on fit only uint64
            continue
    raise ValueError(f"{where}: the numbers fit neither int64 nor uint64 together")
