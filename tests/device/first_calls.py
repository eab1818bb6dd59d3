"""The first calls on a device: each path of the kernels once, compared with NumPy's bits.

Each line names a call, followed by ok or the difference. A driver error affects all later calls, so
the first line that is not ok is the one to read.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import gatherum
from gatherum._command import verify

Array = NDArray[np.generic]


def operands() -> dict[str, tuple[str, tuple[Array, ...], dict[str, str]]]:
    """Return the calls, keyed by name: operator, operands, attributes."""
    random = np.random.default_rng(48)
    table = random.standard_normal((1000, 12)).astype("f4")
    near = random.integers(-50, 50, 3000)
    whole = random.integers(-9, 9, (3000, 12))
    near_one = (1 + random.random((3000, 12)) / 64).astype("f4")
    # Destinations with runs of 3, 100 and 2000 updates: for a thread, for a warp, for a block.
    runs = random.permutation(np.repeat([5, 17, 999], [3, 100, 2000]))
    far = np.where(np.arange(500) == 123, 1000, near[:500])
    wrong = np.where(np.arange(3000) == 1234, 1000, near)
    add = {"reduction": "add"}
    return {
        "gather": ("gather", (table, near), {}),
        "winners": ("scatter_slices", (table, near, near_one), {}),
        "integer add": ("scatter_slices", (whole[:1000].copy(), near, whole), add),
        "float add, runs of 3, 100, 2000": ("scatter_slices", (table, runs, near_one[:2103]), add),
        "a bad index": ("scatter_slices", (table, wrong, near_one), {}),
        "small scatter": ("scatter_slices", (table, near[:500], near_one[:500]), {}),
        "small float add": ("scatter_slices", (table, runs[:500], near_one[:500]), add),
        "a bad index of a small scatter": ("scatter_slices", (table, far, near_one[:500]), add),
    }


def answer(functions: object, op: str, arrays: tuple[Array, ...], more: dict[str, str]) -> bytes:
    """Return the bits of a result, or the message of the IndexError."""
    try:
        result: Array = getattr(functions, op)(*arrays, **more)
        return result.tobytes()
    except IndexError as error:
        return str(error).encode()


def main() -> int:
    """Make the calls, and return the number of failures."""
    device = verify._on_cuda()
    print(device.name, flush=True)
    wrong = 0
    for name, (op, arrays, more) in operands().items():
        expected = answer(gatherum, op, arrays, more)
        try:
            result = answer(device, op, arrays, more)
            words = "ok" if result == expected else "other bits than NumPy's"
        except Exception as error:  # any error of a device: make the next call
            words = f"{type(error).__name__}: {error}"
        wrong += words != "ok"
        print(f"{name}: {words}", flush=True)
    print(f"{wrong} of {len(operands())} calls went wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
