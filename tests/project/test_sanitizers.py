"""Builds with sanitizers detect deliberate mistakes.

Each mistake runs in a separate process, which must end with a report that names the core.
"""

import os
import subprocess
import sys

import pytest

from source import SOURCE

# The name that `nox -s asan` and `nox -s tsan` give to the build under test.
SANITIZER = os.environ.get("SANITIZER")
NEEDS = "needs a build with a sanitizer: run nox -s asan and nox -s tsan"

START = """
import threading
import numpy as np
import gatherum
from numpy.lib.stride_tricks import as_strided

def claimed(array, shape, strides=None):
    '''Return an array that says it is larger than its memory.'''
    return as_strided(array, shape, array.strides if strides is None else strides)

data = np.zeros(1000)
"""
ADDRESS = {
    "a read past the end": (
        "gatherum.gather(claimed(data[:10].copy(), (1000,)), [0, 10, 2])",
        "AddressSanitizer: heap-buffer-overflow",
    ),
    "a write past the end": (
        "out = claimed(data[:10].copy(), (1000,))\ngatherum.scatter_nd(out, [[10]], 1.0, out=out)",
        "AddressSanitizer: heap-buffer-overflow",
    ),
    "a read of a result that was freed": (
        "large = gatherum.gather(data, np.zeros(1_000_000, int))\n"
        "class Gone: __array_interface__ = large.__array_interface__\n"
        "gone = np.asarray(Gone())\n"
        "del large\n"
        "gatherum.gather(gone, [5])",
        "AddressSanitizer: use-after-poison",
    ),
    "a write behind a large result": (
        "large = claimed(gatherum.gather(data, np.zeros(1_000_001, int)), (1_000_002,))\n"
        "gatherum.scatter_nd(large, [[1_000_001]], 1.0, out=large)",
        "AddressSanitizer: use-after-poison",
    ),
    "an address that overflows": (
        "gatherum.gather(claimed(data, (4,), (3 * 2**60,)), [3, 3, 3, 3])",
        "runtime error: ",
    ),
}
THREAD = {
    "two calls that write the same memory": (
        "indices = np.arange(900_000)[:, None] % 1000\n"
        "def add():\n"
        "    gatherum.scatter_nd(data, indices, 1.0, reduction='add', out=data)\n"
        "threads = [threading.Thread(target=add) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()",
        "ThreadSanitizer: data race",
    ),
}


def _run(code):
    return subprocess.run(
        [sys.executable, "-c", START + code],
        env=os.environ | {"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )


def _check(code, report):
    run = _run(code)
    assert run.returncode != 0
    assert report in run.stderr, run.stderr[-2000:]
    assert "gatherum::" in run.stderr


def test_without_a_mistake_nothing_ends_the_process():
    run = _run("print(gatherum.gather(claimed(data, (4,)), np.arange(4)))")
    # Its reports about objects that live until the end do not matter.
    assert (run.returncode, run.stdout) == (0, "[0. 0. 0. 0.]\n")


@pytest.mark.skipif(SANITIZER != "address", reason=NEEDS)
@pytest.mark.parametrize("name", ADDRESS)
def test_address(name):
    _check(*ADDRESS[name])


@pytest.mark.skipif(SANITIZER != "thread", reason=NEEDS)
@pytest.mark.parametrize("name", THREAD)
def test_thread(name):
    _check(*THREAD[name])
