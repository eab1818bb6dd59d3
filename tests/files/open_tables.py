"""Helpers of the tests of open tables."""

import os
import warnings
from typing import Any

import numpy as np

__all__ = ["CACHES", "TABLE", "forked"]

TABLE = np.random.default_rng(0).integers(0, 1 << 30, (300, 8)).astype(np.int32)
CACHES = ["0", "4KiB", "1MiB"]


def forked(call: Any) -> int:
    """Run a call in a child, and return its exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and Python >= 3.12 warn if threads run
        child = os.fork()
    if child == 0:
        status = 1
        try:
            call()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
