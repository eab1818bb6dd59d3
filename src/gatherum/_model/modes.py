"""The modes, which say what an invalid index means; the core has the table (types.hpp)."""

from __future__ import annotations

from sys import intern
from typing import Literal, TypeAlias

from gatherum._core import Mode, modes

# For type checkers, who read no table; a test compares them.
ModeName: TypeAlias = Literal["raise", "clip", "wrap", "fill", "drop"]

# Interned: JAX calls that repeat are found by the identity of their words.
CORE_MODES = {intern(name): mode for name, mode in modes().items()}
MODES = tuple(CORE_MODES)
# An invalid index becomes a valid one, unless there is none.
MOVING = tuple(name for name, mode in CORE_MODES.items() if mode in (Mode.clip, Mode.wrap))
# A gather stores a fill value for an invalid index, a scatter drops its update.
FILLING = tuple(name for name, mode in CORE_MODES.items() if mode is Mode.drop)
