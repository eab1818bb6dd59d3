"""Peak memory of a call: no copy of an operand, and no more scratch than documented."""

import os
import subprocess
import sys

import pytest

from source import SOURCE

pytestmark = pytest.mark.slow

# Runs one call in a fresh process. Prints the growth of the peak resident set beyond the memory
# that was resident before the call, and the plan's figures.
SCRIPT = """
import numpy as np
import gatherum

def status(field):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(field))

gatherum.set_num_threads(2)
rng = np.random.default_rng(0)
SETUP
gatherum.gather(np.zeros(10), [0])
plan = gatherum.plan(OP, *operands, **attributes)
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")  # the peak starts anew
base = status("VmRSS")
result = getattr(gatherum, OP)(*operands, **attributes)
print(max(0, status("VmHWM") - base), result.nbytes, plan.scratch, plan.algorithm)
"""
# Additional memory of threads, page tables, and slabs of 2 MiB per thread.
SLACK = 24 << 20

CASES = {
    "int8 indices are never widened": (
        "gather",
        """
operands = np.ones(100, "u1"), rng.integers(0, 100, 100_000_000, np.int8)
attributes = {}
""",
        0,
    ),
    "byte-swapped, strided indices are never copied": (
        "gather",
        """
operands = np.ones(100, "u1"), rng.integers(0, 100, 60_000_000, np.int32).astype(">i4")[::2]
attributes = {}
""",
        0,
    ),
    "broadcast updates are never stretched": (
        "scatter_nd",
        """
indices = rng.integers(0, 2_000_000, (20_000_000, 1), np.int32)
operands = np.zeros(2_000_000, "f4"), indices, np.float32(1)
attributes = {"reduction": "add"}
""",
        16 * 20_000_000,
    ),
    "a partition takes at most 16 bytes an update": (
        "scatter_nd",
        """
indices = rng.integers(0, 20_000_000, (8_000_000, 1), np.int32)
operands = np.zeros(20_000_000), indices, np.ones(8_000_000)
attributes = {"reduction": "add"}
""",
        16 * 8_000_000,
    ),
    "accumulators of all threads take at most 2 bytes an update": (
        "scatter_nd",
        """
gatherum.set_num_threads(16)
indices = rng.integers(0, 500_000, (40_000_000, 1), np.int32)
operands = np.zeros(500_000, "i8"), indices, np.int64(1)
attributes = {"reduction": "add"}
""",
        2 * 40_000_000,
    ),
    "lists of rounds take at most 1.4 MiB a thread": (
        "scatter_nd",
        """
gatherum.set_num_threads(64)
indices = rng.integers(0, 500_000, (40_000_000, 1), np.int32)
operands = np.zeros(500_000, "i8"), indices, np.int64(1)
attributes = {"reduction": "add"}
""",
        8 * 500_000 + 64 * (1434 << 10),
    ),
    "grouping takes at most 16 bytes an update": (
        "scatter_nd",
        """
indices = rng.integers(0, 3_000, (4_000_000, 1), np.int32)
operands = np.zeros((3_000, 8), "f4"), indices, np.ones((4_000_000, 8), "f4")
attributes = {"reduction": "mean"}
""",
        16 * 4_000_000,
    ),
    "packed columns take a fixed amount": (
        "gather_elements",
        """
operands = np.ones((8192, 2048), "f4"), rng.integers(0, 8192, (8192, 2048), np.int16)
attributes = {"axis": 0}
""",
        0,
    ),
}


@pytest.mark.skipif(
    sys.platform != "linux", reason="reads the resident set from /proc: run on Linux"
)
@pytest.mark.parametrize("name", CASES)
def test_peak_memory(name):
    op, setup, scratch = CASES[name]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("SETUP", setup).replace("OP", repr(op))],
        env=os.environ | {"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    grown, result, planned, algorithm = run.stdout.split()
    assert int(planned) <= scratch + (8 << 20), algorithm
    assert int(grown) <= int(result) + scratch + SLACK, (grown, result, planned, algorithm)
