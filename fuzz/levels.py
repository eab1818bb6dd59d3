"""Instruction-set levels: the bytes of each input choose the level that it runs on.

One run thus covers all levels, and an input that fails on a machine fails there again. The package
is imported late because the fuzzer must instrument its import.
"""

import os
import zlib

__all__ = ["available", "choose"]


def available() -> tuple[str, ...]:
    """Return the levels that this processor and this build support, or the one that is forced."""
    from gatherum._system import native

    forced = os.environ.get("GATHERUM_ISA")
    return (forced,) if forced else native.available_levels()


def choose(data: bytes, levels: tuple[str, ...]) -> str:
    """Run the core on the level that an input chooses, and return its name."""
    from gatherum import _core

    level = levels[zlib.crc32(data) % len(levels)]
    assert _core.choose_level(level), level
    return level
