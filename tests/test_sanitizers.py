"""That the builds with sanitizers see what they are there for: mistakes made on purpose.

Each runs in a process of its own, which must end with a report that names the core.
"""

import os
import subprocess
import sys

import pytest

from source import SOURCE

# What `nox -s asan` and `nox -s tsan` say of the build that they test.
SANITIZER = os.environ.get("SANITIZER")
NEEDS = "needs a build with a sanitizer: run nox -s asan and nox -s tsan"

START = """
import sys, threading
import numpy as np
import gatherum
from gatherum import native

class Wild:
    '''A plan whose numbers are not those of its operands.'''
    def __init__(self, plan, **changed):
        specs, original = [], native.Program
        native.Program = lambda **spec: specs.append(spec) or original(**spec)
        gatherum.plan(*plan)
        self.program = original(**specs[0] | changed)

# A callback checks that a plan runs on what it was made for: without it, anything goes.
from gatherum import callbacks as planner
native.set_callbacks(
    planner._normalise, planner._plain_attributes, planner._make_plan,
    lambda *operands: None, planner.check_out,
    planner._make_fill, planner.raise_invalid, planner._raise_changed,
)
data = np.zeros(1000)
"""
ADDRESS = {
    "a read past the end": (
        "native.run(gatherum.plan('gather', data, np.arange(3)), data[:10].copy(),"
        " np.array([0, 10, 2]), None, None, 0)",
        "AddressSanitizer: heap-buffer-overflow",
    ),
    "a write past the end": (
        "out = data[:10].copy()\n"
        "plan = gatherum.plan('scatter_nd', data, np.array([[10]]), data[:1], out=data)\n"
        "native.run(plan, out, np.array([[10]]), data[:1], out, 0)",
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
        "large = gatherum.gather(data, np.zeros(1_000_001, int))\n"
        "plan = gatherum.plan('scatter_nd', np.zeros(1_000_002), np.array([[1_000_001]]), data[:1],"
        " out=np.zeros(1_000_002))\n"
        "native.run(plan, large, np.array([[1_000_001]]), data[:1], large, 0)",
        "AddressSanitizer: use-after-poison",
    ),
    "an offset that overflows": (
        "plan = Wild(('gather', data, np.arange(4)),"
        " nest=(0, [(4, 0, 8, 8)], [(1000, 3 * 2**60, 0)], 8))\n"
        "native.run(plan, data, np.full(4, 8), None, None, 0)",
        "runtime error: ",  # of a number or of an address, as the level computes it
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
    "tasks of one call that write the same memory": (
        "gatherum.set_num_threads(4)\n"
        "indices = np.zeros(4_000_000, int)\n"
        "nest = (0, [(4_000_000, 0, 8, 0)], [(1000, 8, 0)], 8)\n"
        "plan = Wild(('gather', data, indices), nest=nest)\n"
        "native.run(plan, data, indices, None, None, 0)",
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
    run = _run(
        "plan = Wild(('gather', data, np.arange(4)))\n"
        "print(native.run(plan, data, np.arange(4), None, None, 0))"
    )
    # What it prints of objects that live until the end does not matter.
    assert (run.returncode, run.stdout) == (0, "[0. 0. 0. 0.]\n")


@pytest.mark.skipif(SANITIZER != "address", reason=NEEDS)
@pytest.mark.parametrize("name", ADDRESS)
def test_address(name):
    _check(*ADDRESS[name])


@pytest.mark.skipif(SANITIZER != "thread", reason=NEEDS)
@pytest.mark.parametrize("name", THREAD)
def test_thread(name):
    _check(*THREAD[name])
