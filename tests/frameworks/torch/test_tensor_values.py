"""The operators on tensors: the bits and messages of the same call on arrays."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tensors import SHARED, array_of, room, tensor_of, torch

import gatherum
from cases import CASES
from gatherum import reference
from strategies import DATA_DTYPES, OPERATORS, SCATTERS, Call, calls, same_bits

OURS = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")
DTYPES = [d for d in DATA_DTYPES if d.isnative and d.name in (*SHARED, *OURS)]
MANY = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def of_tensors(call, **more):
    """Run a call on tensors. Return its result as an array, or its exception."""
    args = [tensor_of(a) if isinstance(a, np.ndarray) else a for a in call.args]
    try:
        result = getattr(gatherum, call.op)(*args, **call.kwargs, **more)
    except (TypeError, ValueError, IndexError) as error:
        return error
    return array_of(result, np.asarray(call.args[0]).dtype)


def agree(expected, actual):
    if isinstance(expected, Exception):
        return type(expected) is type(actual) and str(expected) == str(actual)
    return same_bits(expected, actual)


def of_arrays(call):
    try:
        return call.run(gatherum)
    except (TypeError, ValueError, IndexError) as error:
        return error


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.data.dtype.name in (*SHARED, *OURS)], ids=str
)
def test_cases(case):
    call = Call(case.op, (case.data, case.indices, case.updates)[: 2 + (case.updates is not None)],
                dict(case.attributes))  # fmt: skip
    assert same_bits(of_tensors(call), case.expected)


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@MANY
def test_calls_of_every_shape_and_dtype(op, data):
    call = data.draw(calls([op], data_dtypes=DTYPES))
    expected, result = of_arrays(call), of_tensors(call)
    assert agree(expected, result), (expected, result)


@pytest.mark.parametrize("op", SCATTERS)
@given(data=st.data())
@MANY
def test_in_place_and_into_another_tensor(op, data):
    call = data.draw(calls([op], data_dtypes=DTYPES))
    expected, dtype = of_arrays(call), np.asarray(call.args[0]).dtype
    args = [tensor_of(a.copy()) if isinstance(a, np.ndarray) else a for a in call.args]
    before = tensor_of(call.args[0].copy())
    other = torch.zeros_like(before)
    for out in (other, args[0]):
        try:
            assert getattr(room, op)(*args, **call.kwargs, out=out) is out
            result = array_of(out, dtype)
        except (TypeError, ValueError, IndexError) as error:
            result = error
        assert agree(expected, result), (expected, result)
        if isinstance(expected, Exception):
            untouched = before if out is args[0] else torch.zeros_like(before)
            assert same_bits(array_of(untouched, dtype), array_of(out, dtype))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_any_number_of_threads(threads, settings_restored):
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(300, 64, generator=generator)
    updates = torch.randn(20_000, 64, generator=generator)
    indices = torch.randint(0, 300, (20_000,), generator=generator)
    gatherum.set_num_threads(1)
    for dtype in (torch.float32, torch.bfloat16):
        expected = room.scatter_slices(data.to(dtype), indices, updates.to(dtype), reduction="add")
        gatherum.set_num_threads(threads)
        result = room.scatter_slices(data.to(dtype), indices, updates.to(dtype), reduction="add")
        assert torch.equal(expected.view(torch.uint8), result.view(torch.uint8))
        by_rows = gatherum.scatter_slices(
            data.numpy(), indices.numpy(), updates.numpy(), reduction="add"
        )
        if dtype == torch.float32:
            assert same_bits(by_rows, result.numpy())


def test_the_first_bad_index_in_a_sentence():
    data = torch.arange(6.0).reshape(2, 3)
    with pytest.raises(IndexError, match=r"^gather: index 3 is out of bounds for axis 1 of size 3 "
                       r"\(indices\[1\]\)$"):  # fmt: skip
        gatherum.gather(data, torch.tensor([0, 3, 9]), axis=1)


def test_large_results_live_in_recycled_memory(settings_restored):
    gatherum.clear_output_cache()
    from gatherum._system import native

    data = torch.zeros(1000, 1000)
    result = room.gather(data, torch.arange(1000))
    pointer = result.data_ptr()
    assert pointer % (1 << 12) == 0
    del result
    assert native.cached_output_bytes() >= 4_000_000
    assert room.gather(data, torch.arange(1000)).data_ptr() == pointer


def test_oracle_of_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.0, 2.0, 1e-3, 300.0], ml_dtypes.bfloat16)
    call = Call("scatter_slices", (values, np.array([0, 0, 0]), values[1:]), {"reduction": "add"})
    assert same_bits(of_tensors(call), call.run(reference))
