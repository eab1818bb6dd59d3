"""Calls on JAX arrays equal calls on NumPy arrays bit for bit, eager and jitted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gatherum
from cases import CASES
from samples import diagonal, every
from strategies import DATA_DTYPES, OPERATORS, calls, outcome, same_bits, same_outcome

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import gatherum.jax  # noqa: E402
from gatherum.jax.dtypes import _WHOLE  # noqa: E402

KNOWN = [dtype for dtype in DATA_DTYPES if dtype.name in _WHOLE and dtype.isnative]


class Jitted:
    """The six functions, each compiled by JAX with all arguments fixed except the arrays."""

    def __getattr__(self, op):
        def call(*operands, **attributes):
            arrays = {n: one for n, one in enumerate(operands) if hasattr(one, "dtype")}

            def run(tracers):
                # Lists and numbers are passed unchanged, and converted to the dtype of the data.
                each = [tracers.get(n, one) for n, one in enumerate(operands)]
                return getattr(gatherum.jax, op)(*each, **attributes)

            return jax.jit(run)(arrays)

        return call


def _native(array):
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _told(operators, call):
    """Return the outcome of a call, including the IndexError that a runtime error contains."""
    try:
        result = outcome(operators, call)
        return result if isinstance(result, Exception) else np.asarray(result)
    except RuntimeError as error:
        result = error
    _, ours, sentence = str(result).partition("OUT_OF_RANGE: ")
    assert ours
    return IndexError(sentence.splitlines()[0])


def _from_value_error(outcome):
    """Convert XLA's error to an IndexError. XLA raises RuntimeErrors or ValueErrors."""
    if isinstance(outcome, ValueError) and "OUT_OF_RANGE: " in str(outcome):
        return IndexError(str(outcome).partition("OUT_OF_RANGE: ")[2].splitlines()[0])
    return outcome


@pytest.mark.parametrize("case", every(2, CASES), ids=str)
def test_the_named_cases(case):
    if case.data.dtype.name not in _WHOLE:
        pytest.skip("a dtype that JAX does not have")
    operands = [jax.numpy.asarray(_native(case.data)), jax.numpy.asarray(_native(case.indices))]
    if case.updates is not None:
        operands.append(jax.numpy.asarray(_native(case.updates)))
    for operators in (gatherum, gatherum.jax, Jitted()):
        result = getattr(operators, case.op)(*operands, **case.attributes)
        assert isinstance(result, jax.Array)
        assert same_bits(np.asarray(result), case.expected)


@pytest.mark.parametrize("op", OPERATORS)
@settings(max_examples=20)  # each compiles one or two programs
@given(data=st.data())
def test_random_calls(op, data):
    call = data.draw(calls([op], data_dtypes=KNOWN, most_dimensions=6))
    expected = outcome(gatherum, call)
    arrays = tuple(
        _native(operand) if isinstance(operand, np.ndarray) else operand for operand in call.args
    )
    eager = type(call)(op, arrays, call.kwargs)
    result = outcome(gatherum.jax, eager)
    result = result if isinstance(result, Exception) else np.asarray(result)
    assert same_outcome(result, expected), (result, expected)
    if isinstance(expected, IndexError):
        assert str(result) == str(expected)
    compiled = _from_value_error(_told(Jitted(), eager))
    assert same_outcome(compiled, expected), (compiled, expected)
    if isinstance(expected, IndexError):
        assert str(compiled) == str(expected)


@pytest.mark.parametrize(
    ("reduction", "threads"), diagonal(2, ["none", "add", "mul", "max", "mean"], [1, 2, 3, 7])
)
def test_large_scatters_on_any_number_of_threads(threads, reduction, settings_restored):
    rng = np.random.default_rng(3)
    data = rng.standard_normal((5_000, 8)).astype(np.float32)
    indices = rng.integers(0, 5_000, 200_000).astype(np.int32)
    updates = rng.standard_normal((200_000, 8)).astype(np.float32)
    gatherum.set_num_threads(1)
    expected = gatherum.scatter_slices(data, indices, updates, reduction=reduction)
    rows = gatherum.gather(expected, indices)
    gatherum.set_num_threads(threads)
    arrays = [jax.numpy.asarray(array) for array in (data, indices, updates)]
    for operators in (gatherum, Jitted()):
        result = operators.scatter_slices(*arrays, reduction=reduction)
        assert same_bits(np.asarray(result), expected)
        assert same_bits(np.asarray(operators.gather(result, arrays[1])), rows)


@pytest.mark.parametrize("name", sorted(_WHOLE))
def test_every_dtype_moves(name):
    if not hasattr(jax.numpy, name) and name != "bool":
        pytest.skip(f"this JAX has no {name}")
    dtype = jax.numpy.dtype(name)
    raw = np.arange(6 * dtype.itemsize, dtype=np.uint8).reshape(6, -1) % 2
    data = raw.copy().view(dtype)[:, 0]
    indices = np.array([5, 0, -1, 2], np.int8)
    expected = gatherum.gather(data, indices)
    for operators in (gatherum.jax, Jitted()):
        assert same_bits(np.asarray(operators.gather(jax.numpy.asarray(data), indices)), expected)


def test_results_are_jax_arrays_for_any_operands():
    result = gatherum.jax.scatter_nd(np.zeros(3, np.float32), [[0], [0]], 1.5, reduction="add")
    assert isinstance(result, jax.Array)
    assert result.tolist() == [3.0, 0.0, 0.0]
    assert gatherum.gather(result, [0, -1]).tolist() == [3.0, 0.0]
