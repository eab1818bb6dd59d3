"""The CUDA kernels on this processor, compared with the oracle bit for bit.

Calls have every shape, dtype, layout and mode, with canaries around every operand.
"""

import os
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from shim.device import COMPILER, NO_COMPILER
from shim.functions import ShimFunctions

from canaries import byte_rows, strays
from gatherum import reference
from gatherum.cuda import radix_sort, small_scatters, sorted_updates
from strategies import OPERATORS, SCATTERS, Call, calls, destinations, outcome, same_outcome

pytestmark = [
    pytest.mark.slow,  # compiles every variant of a kernel
    pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER),
]

# Each example may compile a few kernels.
FEW = settings(
    max_examples=int(os.environ.get("GATHERUM_EXAMPLES", "30")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def bytes_of(arrays):
    return [byte_rows(array).tobytes() for array in arrays]


def arrays_of(call):
    return [operand for operand in call.args if isinstance(operand, np.ndarray)]


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@FEW
def test_the_kernels_give_the_result_of_the_oracle(op, data):
    call = data.draw(calls([op]))
    out = None
    expected = outcome(reference, call)
    if not isinstance(expected, Exception) and data.draw(st.booleans()):
        out = data.draw(destinations(expected.shape, expected.dtype))
    inputs = arrays_of(call)
    before = bytes_of(inputs)
    in_block, in_launches = data.draw(st.sampled_from(((4096, 0), (0, 4096), (0, 0))))
    most_small = data.draw(st.sampled_from((0, small_scatters.MOST_TUPLES)))
    with (
        patch.object(small_scatters, "MOST_TUPLES", most_small),
        patch.object(sorted_updates, "MOST_IN_BLOCK", in_block),
        patch.object(radix_sort, "MOST_PAIRS", in_launches),
    ):
        result = outcome(ShimFunctions(), call, out=out)
    assert bytes_of(inputs) == before
    outputs = [] if out is None else [out]
    assert [strays(array) for array in (*inputs, *outputs)] == [[]] * (len(inputs) + len(outputs))
    assert same_outcome(expected, result), (expected, result)


@pytest.mark.parametrize("op", SCATTERS)
@given(data=st.data())
@FEW
def test_a_scatter_in_place_gives_the_same_bits(op, data):
    call = data.draw(calls([op]))
    expected = outcome(reference, call)
    source = call.args[0]
    place = data.draw(destinations(source.shape, source.dtype, contents=source))
    inputs = arrays_of(call)
    before = bytes_of(inputs)
    most_small = data.draw(st.sampled_from((0, small_scatters.MOST_TUPLES)))
    in_place = Call(op, (place, *call.args[1:]), call.kwargs)
    with patch.object(small_scatters, "MOST_TUPLES", most_small):
        result = outcome(ShimFunctions(), in_place, out=place)
    assert bytes_of(inputs) == before
    assert [strays(array) for array in (*inputs, place)] == [[]] * (len(inputs) + 1)
    assert same_outcome(expected, result), (expected, result)
    if isinstance(expected, Exception):
        assert bytes_of([place]) == bytes_of([source])
