"""Modules that were dropped and are imported again, with torch's ops already registered."""

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="install torch to run the tests of its tensors")

CODE = """
import sys
import torch
import gatherum

def check(package):
    data = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    package.gather(data, torch.tensor([2, 2])).sum().backward()
    assert data.grad.tolist() == [0.0, 0.0, 2.0]
    assert package.torch.gather(data, [1]).tolist() == [2.0]
    added = torch.ops.gatherum.scatter_slices(data, torch.tensor([0]), data[:1], 0, "add")
    assert added.tolist() == [2.0, 2.0, 4.0]

check(gatherum)
before = gatherum
for name in [name for name in sys.modules if name.partition(".")[0] == "gatherum"]:
    del sys.modules[name]
import gatherum
assert gatherum is not before
check(gatherum)
check(before)
print("done")
"""


def test_modules_that_are_imported_again():
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "done\n", done.stderr
