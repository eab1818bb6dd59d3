"""The operators equal the oracle bit for bit, over calls of every shape, dtype and layout."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import gatherum
from canaries import byte_rows, strays
from gatherum import reference
from sizes import SIZES, chosen_from
from strategies import (
    OPERATORS,
    SCATTERS,
    THOROUGH,
    Call,
    calls,
    destinations,
    outcome,
    same_outcome,
)

pytestmark = pytest.mark.slow


def _arrays_of(call):
    return [operand for operand in call.args if isinstance(operand, np.ndarray)]


def _bytes_of(arrays):
    return [byte_rows(array).tobytes() for array in arrays]


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@THOROUGH
def test_a_fresh_result_is_that_of_the_oracle(op, data):
    call = data.draw(calls([op]))
    inputs = _arrays_of(call)
    before = _bytes_of(inputs)
    expected, result = outcome(reference, call), outcome(gatherum, call)
    assert same_outcome(expected, result), (expected, result)
    assert _bytes_of(inputs) == before
    assert [strays(array) for array in inputs] == [[]] * len(inputs)
    if isinstance(result, np.ndarray):
        assert type(result) is np.ndarray
        assert result.flags.c_contiguous
        assert result.flags.writeable
        assert result.flags.owndata


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@THOROUGH
def test_every_algorithm_gives_the_result_of_the_oracle(op, data):
    call = data.draw(calls([op]))
    sizes = data.draw(st.sampled_from(SIZES[1:]))
    expected = outcome(reference, call)
    with chosen_from(sizes):
        result = outcome(gatherum, call)
    assert same_outcome(expected, result), (expected, result)


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@THOROUGH
def test_out_gets_the_same_bits_and_memory_around_it_is_unchanged(op, data):
    call = data.draw(calls([op]))
    expected = outcome(reference, call)
    if isinstance(expected, Exception):
        shape, dtype = np.shape(call.args[0]), np.asarray(call.args[0]).dtype
    else:
        shape, dtype = expected.shape, expected.dtype
    out = data.draw(destinations(shape, dtype))
    inputs = _arrays_of(call)
    before, before_out = _bytes_of(inputs), _bytes_of([out])
    result = outcome(gatherum, call, out=out)
    assert _bytes_of(inputs) == before
    assert [strays(array) for array in (*inputs, out)] == [[]] * (len(inputs) + 1)
    if isinstance(expected, Exception):
        assert isinstance(result, Exception)
        if call.op.startswith("scatter"):
            assert _bytes_of([out]) == before_out
    else:
        assert same_outcome(expected, result), (expected, result)
        assert result is out


@pytest.mark.parametrize("op", SCATTERS)
@given(data=st.data())
@THOROUGH
def test_a_scatter_in_place_gives_the_same_bits(op, data):
    call = data.draw(calls([op]))
    expected = outcome(reference, call)
    source = call.args[0]
    place = data.draw(destinations(source.shape, source.dtype, contents=source))
    inputs = _arrays_of(call)
    before = _bytes_of(inputs)
    result = outcome(gatherum, Call(op, (place, *call.args[1:]), call.kwargs), out=place)
    assert _bytes_of(inputs) == before
    assert [strays(array) for array in (*inputs, place)] == [[]] * (len(inputs) + 1)
    assert same_outcome(expected, result), (expected, result)
    if isinstance(expected, Exception):
        assert _bytes_of([place]) == _bytes_of([source])
