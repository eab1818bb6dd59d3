"""No Python function runs in a call with a cached plan."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest

import gatherum

SCATTERS = ("scatter_slices", "scatter_elements", "scatter_nd")
DATA = np.arange(12.0).reshape(4, 3)
OPERANDS = {
    "gather": (DATA, np.array([3, 0])),
    "gather_elements": (DATA, np.array([[1, 0, 2]])),
    "gather_nd": (DATA, np.array([[3, 2], [0, 0]])),
    "scatter_slices": (DATA, np.array([3, 0]), DATA[:2]),
    "scatter_elements": (DATA, np.array([[1, 0, 2]]), DATA[:1]),
    "scatter_nd": (DATA, np.array([[3], [0]]), DATA[:2]),
}


def python_calls(function, *operands, **attributes):
    """Return the names of the Python functions that run in a call, except the function itself."""
    names = []

    def note(frame, event, _):
        if event == "call" and frame.f_code is not function.__code__:
            names.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        function(*operands, **attributes)
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.parametrize("mode", ["raise", "clip", "wrap", "fill", "drop"])
@pytest.mark.parametrize("op", OPERANDS)
def test_a_repeated_call_runs_no_python(op, mode, kind):
    operands = OPERANDS[op]
    if kind == "tensor":
        if not find_spec("torch"):
            pytest.skip("install torch==2.13.0 to test tensors")
        import torch

        operands = [torch.from_numpy(operand.copy()) for operand in operands]
    function = getattr(gatherum, op)
    for attributes in ({}, {"reduction": "add"} if op in SCATTERS else {"fill_value": 0}):
        function(*operands, mode=mode, **attributes)
        assert python_calls(function, *operands, mode=mode, **attributes) == []
