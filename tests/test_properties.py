"""The operators against the oracle, bit for bit, over calls of every shape, dtype and layout."""

import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import gatherum
from gatherum import reference
from strategies import (
    OPERATORS,
    Call,
    byte_rows,
    calls,
    destinations,
    outcome,
    same_outcome,
)

THOROUGH = settings(
    max_examples=int(os.environ.get("GATHERUM_EXAMPLES", "400")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def _inputs_of(call):
    return [operand for operand in call.args if isinstance(operand, np.ndarray)]


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@THOROUGH
def test_a_fresh_result_is_that_of_the_oracle(op, data):
    call = data.draw(calls([op]))
    before = [byte_rows(operand).tobytes() for operand in _inputs_of(call)]
    expected, found = outcome(reference, call), outcome(gatherum, call)
    assert same_outcome(expected, found), (expected, found)
    assert [byte_rows(operand).tobytes() for operand in _inputs_of(call)] == before
    if isinstance(found, np.ndarray):
        assert type(found) is np.ndarray
        assert found.flags.c_contiguous
        assert found.flags.writeable
        assert found.flags.owndata


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@THOROUGH
def test_out_gets_the_same_bits_and_nothing_beside_it_changes(op, data):
    call = data.draw(calls([op]))
    expected = outcome(reference, call)
    if isinstance(expected, Exception):
        shape, dtype = np.shape(call.args[0]), np.asarray(call.args[0]).dtype
    else:
        shape, dtype = expected.shape, expected.dtype
    place = data.draw(destinations(shape, dtype))
    before = byte_rows(place.array).tobytes()
    found = outcome(gatherum, call, out=place.array)
    assert place.strays() == []
    if isinstance(expected, Exception):
        assert isinstance(found, Exception)
        if call.op.startswith("scatter"):
            assert byte_rows(place.array).tobytes() == before
    else:
        assert same_outcome(expected, found), (expected, found)
        assert found is place.array


@pytest.mark.parametrize("op", ["scatter_elements", "scatter_nd"])
@given(data=st.data())
@THOROUGH
def test_a_scatter_in_place_gives_the_same_bits(op, data):
    call = data.draw(calls([op]))
    expected = outcome(reference, call)
    source = call.args[0]
    place = data.draw(destinations(source.shape, source.dtype, contents=source))
    found = outcome(gatherum, Call(op, (place.array, *call.args[1:]), call.kwargs), out=place.array)
    assert place.strays() == []
    assert same_outcome(expected, found), (expected, found)
    if isinstance(expected, Exception):
        assert byte_rows(place.array).tobytes() == byte_rows(source).tobytes()
