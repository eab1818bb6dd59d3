"""No Python function runs in a call on arrays or tensors, the first one included."""

from importlib.util import find_spec

import numpy as np
import pytest

import gatherum
from gatherum._model.modes import MODES
from gatherum._system import native
from python_calls import python_calls

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


def operands_of(op, operand_type):
    if operand_type == "array":
        return OPERANDS[op]
    if operand_type == "memory map":
        return [operand.view(np.memmap) for operand in OPERANDS[op]]
    if operand_type == "swapped":
        return [np.asarray(a, a.dtype.newbyteorder()) for a in OPERANDS[op]]
    if not find_spec("torch"):
        pytest.skip("install torch==2.13.0 to test tensors")
    import torch

    return [torch.from_numpy(operand.copy()) for operand in OPERANDS[op]]


@pytest.mark.frameworks
@pytest.mark.parametrize("operand_type", ["array", "memory map", "swapped", "tensor"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", OPERANDS)
def test_no_call_runs_python(op, mode, operand_type):
    operands, function = operands_of(op, operand_type), getattr(gatherum, op)
    function(*operands)  # loads the adapter of tensors
    reduces = op in SCATTERS and operand_type != "swapped"
    for attributes in ({}, {"reduction": "add"} if reduces else {}):
        native.clear_plans()
        for _ in range(2):
            assert python_calls(function, *operands, mode=mode, **attributes) == []


@pytest.mark.parametrize("op", OPERANDS)
def test_a_first_call_with_out_runs_no_python(op):
    function, operands = getattr(gatherum, op), OPERANDS[op]
    out = function(*operands)
    native.clear_plans()
    assert python_calls(function, *operands, out=out) == []


@pytest.mark.frameworks
@pytest.mark.parametrize("reduction", ["add", "max"])
def test_a_first_scatter_into_zeros_runs_no_python(reduction):
    indices, updates = operands_of("gather", "tensor")[::-1]
    gatherum.gather(updates, indices)  # loads the adapter of tensors
    native.clear_plans()
    call = "scatter_slices", 5, indices, updates[:2], 0, reduction, True, "raise", False, False
    total = native.scatter_into_zeros(*call)
    assert python_calls(native.scatter_into_zeros, *call) == []
    assert total.tolist() == native.scatter_into_zeros(*call).tolist()
    assert total[[0, 3]].tolist() == updates[:2].flip(0).tolist()


def test_a_first_call_on_a_list_of_integers_runs_no_python():
    native.clear_plans()
    assert python_calls(gatherum.gather, DATA, [3, 0]) == []
