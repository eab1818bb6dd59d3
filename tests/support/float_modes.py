"""Floating-point modes of the calling thread that results must not depend on."""

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# position of the floating-point mode in the C library: word of fenv_t, flush to zero, round up
MODES = {"x86_64": (7, 0x8040, 0x4000), "aarch64": (0, 1 << 24, 1 << 22)}


@contextmanager
def another_float_mode(flush: bool = True) -> Iterator[None]:
    """Flush subnormals to zero on this thread, or round upwards."""
    if platform.machine() not in MODES or not sys.platform.startswith("linux"):
        pytest.skip("the floating-point mode cannot be set here")
    libm, saved = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 16)()
    libm.fegetenv(saved)
    changed = type(saved)(*saved)
    word, zero, upwards = MODES[platform.machine()]
    changed[word] |= zero if flush else upwards
    libm.fesetenv(changed)
    try:
        yield
    finally:
        libm.fesetenv(saved)
