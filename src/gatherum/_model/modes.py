"""The modes, which define how invalid indices are handled. The core's types.hpp has the table.

The table here adds the words that messages and reports use for the modes that move an index. It
must have a row for each such mode of the core; otherwise importing this module raises ImportError.
"""

from __future__ import annotations

from sys import intern
from typing import Literal, NamedTuple, TypeAlias

from gatherum._core import Mode, modes

# For type checkers, which cannot read the table; a test compares them.
ModeName: TypeAlias = Literal["raise", "clip", "wrap", "fill", "drop"]


class MovingRow(NamedTuple):
    """A mode that maps an invalid index to a valid one.

    Attributes
    ----------
    name : str
        The mode.
    participle : str
        The word for a moved index in errors.
    result : str
        The valid index for an index x and a size n, in the pseudocode of reports.
    """

    name: str
    participle: str
    result: str


_MOVING = (
    MovingRow("clip", "clipped", "the nearest of 0 and n - 1"),
    MovingRow("wrap", "wrapped", "x modulo n"),
)


def _rows_of_core(rows: tuple[MovingRow, ...], names: tuple[str, ...]) -> dict[str, MovingRow]:
    """Return the rows by name, or raise ImportError unless they are the core's modes."""
    table = {intern(row.name): row for row in rows}
    if missing := [name for name in names if name not in table]:
        raise ImportError(f"gatherum._model.modes has no row for {', '.join(missing)} of the core")
    if unknown := [name for name in table if name not in names]:
        raise ImportError(
            f"the core has no mode {', '.join(unknown)}, which has a row in gatherum._model.modes: "
            "rebuild it"
        )
    return table


# The names are interned, because repeated JAX calls are looked up by the identity of the strings.
CORE_MODES = {intern(name): mode for name, mode in modes().items()}
MODES = tuple(CORE_MODES)
# In these modes, a gather stores a fill value for an invalid index and a scatter drops its update.
FILLING = tuple(name for name, mode in CORE_MODES.items() if mode is Mode.drop)
# These modes map an invalid index to a valid one, unless the dimension has size 0.
MOVING = _rows_of_core(
    _MOVING, tuple(name for name in MODES if name != "raise" and name not in FILLING)
)


def mode_after_check(mode: str) -> str:
    """Return the mode of a second call on a device, whose indices an earlier call has checked.

    Another check would wait for the device. If another stream has made an index invalid since the
    check, its update is dropped.
    """
    return "drop" if mode == "raise" else mode
