"""Instruction-set levels: each input runs on one of them, which its own bytes choose.

So one run is a run on all of them, and an input that fails does so again, on the same machine.
The package is imported late: what fuzzes must see its import.
"""

import os
import zlib

__all__ = ["available", "choose"]


def available() -> tuple[str, ...]:
    """Return the levels that this processor and this build have, or the one that is forced."""
    from gatherum._system import native

    forced = os.environ.get("GATHERUM_ISA")
    return (forced,) if forced else native.available_levels()


def choose(data: bytes, levels: tuple[str, ...]) -> str:
    """Let the core run on the level of an input, and return its name."""
    from gatherum import _core

    level = levels[zlib.crc32(data) % len(levels)]
    assert _core.choose_level(level), level
    return level
