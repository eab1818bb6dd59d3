"""What a program says that it reaches is counted without overflow: through the C interface."""

from types import SimpleNamespace

import numpy as np
import pytest

import gatherum
from gatherum._core import Program
from test_c_limits import _memory, _refused, core, read  # noqa: F401

FIELDS = ("item", "nest", "checks", "shape")


@pytest.mark.parametrize("far", [2**32, 2**35, 2**39])
def test_2_to_the_64_bytes_fit_no_memory(core, read, far):  # noqa: F811
    """2^32 steps of 2^32 bytes are none in 64 bits, and 2^39 of 2^39 neither."""
    operands = {"data": np.arange(6.0), "indices": np.array([1, 0, 5]), "out": np.zeros(3)}
    program = gatherum.plan("gather", operands["data"], operands["indices"]).program
    fields = {name: getattr(program, name) for name in FIELDS}
    for name in ("nest", "checks"):
        line, loops, ((_, _, offset),), block = fields[name]
        fields[name] = line, loops, ((far + 1, far, offset),), block
    memory = {name: _memory(array) for name, array in operands.items()}
    assert _refused(core, read(SimpleNamespace(program=Program(**fields))), memory) == "data"
