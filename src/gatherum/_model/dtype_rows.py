"""The core's table of dtypes, and the names of dtypes in interfaces and file formats."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import starmap
from typing import NamedTuple

from gatherum import _core
from gatherum._core import Value


class DTypeRow(NamedTuple):
    """The properties of a dtype (see model/dtypes.hpp).

    Attributes
    ----------
    code : _core.DType
        The number of the dtype in plans.
    name : str
        NumPy's name, or the name that NumPy would use.
    nbytes : int
        The size of an item in NumPy arrays, in bytes.
    bits : int
        The number of bits of an item, less than ``8 * nbytes`` if other frameworks pack several
        items into a byte.
    kind : str
        "b", "i", "u", "f" or "c", as in NumPy.
    is_of_numpy : bool
        Whether NumPy itself defines the dtype.
    dlpack, xla : int or None
        DLPack's code and XLA's number, None if they lack the dtype.
    value : _core.Value
        The value type of reductions, `Value.none` if none is defined.
    encoding : tuple or None
        The fields of a `FloatFormat` after the first, for types that NumPy lacks.
    """

    code: _core.DType
    name: str
    nbytes: int
    bits: int
    kind: str
    is_of_numpy: bool
    dlpack: int | None
    xla: int | None
    value: Value
    encoding: tuple[int, int, int, int | None, int, int] | None

    @property
    def has_whole_bytes(self) -> bool:
        """Whether an item takes whole bytes in every framework."""
        return self.bits == 8 * self.nbytes


ROWS = {row.name: row for row in starmap(DTypeRow, _core.dtype_rows())}


def value_named(name: str) -> Value:
    """Return the value type of the dtype with this name, or `Value.none` for other names."""
    return ROWS[name].value if name in ROWS else Value.none


def has_arithmetic(name: str) -> bool:
    """Return True if reductions are defined for the dtype with this name."""
    return value_named(name) is not Value.none


def own_name(row: DTypeRow) -> str | None:
    """Return the name of a row. Most interfaces spell the dtype in this way."""
    return row.name


def spellings(
    where: str,
    spelling: Mapping[str, str],
    absent: Collection[str],
    otherwise: Callable[[DTypeRow], str | None] = own_name,
) -> dict[str, str]:
    """Map the names of all dtypes in the table to their spellings in an interface.

    Parameters
    ----------
    where : str
        The interface, for the message of an error.
    spelling : mapping
        The spellings that differ.
    absent : collection of str
        The dtypes that the interface lacks.
    otherwise : callable, optional
        Returns the spelling of a row that is in neither argument, or None if the row must be in one
        of them.

    Raises
    ------
    ImportError
        If a name is not in the table, or a row has no spelling.
    """
    if unknown := sorted({*spelling, *absent} - ROWS.keys()):
        raise ImportError(f"{where}: the core has no dtype {', '.join(unknown)}: rebuild it")
    names = {}
    for name, row in ROWS.items():
        if name in absent:
            continue
        text = spelling.get(name) or otherwise(row)
        if text is None:
            raise ImportError(f"{where} has no spelling for dtype {name} of the core")
        names[name] = text
    return names
