"""The modes, which define how invalid indices are handled. types.hpp of the core has the table."""

from __future__ import annotations

from sys import intern
from typing import Literal, TypeAlias

from gatherum._core import Mode, modes

# For type checkers, which cannot read the table; a test compares them.
ModeName: TypeAlias = Literal["raise", "clip", "wrap", "fill", "drop"]

# The names are interned, because repeated calls of JAX are looked up by the identity of the
# strings.
CORE_MODES = {intern(name): mode for name, mode in modes().items()}
MODES = tuple(CORE_MODES)
# These modes map an invalid index to a valid one, unless the dimension has size 0.
MOVING = tuple(name for name, mode in CORE_MODES.items() if mode in (Mode.clip, Mode.wrap))
# In these modes, a gather stores a fill value for an invalid index and a scatter drops its update.
FILLING = tuple(name for name, mode in CORE_MODES.items() if mode is Mode.drop)
