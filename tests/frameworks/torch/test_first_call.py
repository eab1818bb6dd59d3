"""The first call on a tensor uses the same fast path as the second call."""

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="install torch==2.13.0")

FIRST = """
import torch
import gatherum
calls = []
import sys
def profile(frame, event, argument):
    if event == "call" and frame.f_code.co_qualname == "TorchAdapter.call":
        calls.append(frame)
sys.setprofile(profile)
result = gatherum.gather(torch.arange(6.0).reshape(3, 2), torch.tensor([2, 0]))
sys.setprofile(None)
print(result.tolist(), len(calls))
"""


def test_the_adapter_does_not_run_the_first_call():
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", FIRST], capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "[[4.0, 5.0], [0.0, 1.0]] 0", run.stderr
