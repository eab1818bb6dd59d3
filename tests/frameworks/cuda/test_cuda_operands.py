"""Device arrays of unknown frameworks: operands, results, streams."""

import weakref

import hypothesis.strategies as st
import numpy as np
import pytest
from doubles import HostArray, HostTensor, Status, array_of
from hypothesis import HealthCheck, given, settings

import gatherum
import gatherum.cuda
from cases import CASES
from gatherum._model.modes import MODES
from strategies import DATA_DTYPES, OPERATORS, Call, calls, same_bits

MANY = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# Dtypes that `__cuda_array_interface__` can name.
NAMED = [d for d in DATA_DTYPES if d.isnative and d.isbuiltin == 1 and d.char not in "gGOV"]


def of_device(call, convert=HostArray, functions=gatherum, lists=False):
    """Run a call on device arrays. Return its result as an array, or its exception."""
    args = [convert(a) if isinstance(a, np.ndarray) else a for a in call.args]
    if lists:
        args[1:] = call.args[1:]
    try:
        result = getattr(functions, call.op)(*args, **call.kwargs)
    except (TypeError, ValueError, IndexError) as error:
        return error
    assert isinstance(result, gatherum.cuda.DeviceArray)
    return array_of(result)


def of_arrays(call):
    try:
        return call.run(gatherum)
    except (TypeError, ValueError, IndexError) as error:
        return error


def agree(expected, actual):
    if isinstance(expected, Exception):
        return type(expected) is type(actual) and str(expected) == str(actual)
    return not isinstance(actual, Exception) and same_bits(expected, actual)


@pytest.mark.parametrize("functions", [gatherum, gatherum.cuda])
@pytest.mark.parametrize("case", [c for c in CASES if c.data.dtype in NAMED], ids=str)
def test_cases(on_core, case, functions):
    operands = (case.data, case.indices, case.updates)[: 2 + (case.updates is not None)]
    call = Call(case.op, operands, dict(case.attributes))
    assert same_bits(of_device(call, functions=functions), case.expected)
    assert same_bits(of_device(call, functions=functions, lists=True), case.expected)


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data(), lists=st.booleans())
@MANY
def test_calls_of_every_shape_and_dtype(on_core, op, lists, data):
    call = data.draw(calls([op], data_dtypes=NAMED))
    if not lists and not np.asarray(call.args[1]).dtype.isnative:
        return
    expected, result = of_arrays(call), of_device(call, lists=lists)
    assert agree(expected, result), (expected, result)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_dlpack(on_core, dtype):
    data = np.arange(24).astype(dtype).reshape(4, 6)[:, ::2].T
    indices = np.array([3, 0, -1], np.int32)
    result = gatherum.gather(HostTensor(data), HostTensor(indices), 1)
    assert same_bits(array_of(result), gatherum.gather(data, indices, 1))


def test_dlpack_says_the_stream_and_is_let_go(on_core):
    data = HostTensor(np.arange(4.0))
    result = gatherum.cuda.gather(data, [1])
    assert array_of(result) == [1.0]
    assert data.streams == [1]  # the legacy default stream
    assert result.__cuda_array_interface__["stream"] == 1


def test_dlpack_arrays_on_the_host_are_not_device_arrays(on_core):
    words = r"^gather: `data` must be a NumPy array, got a doubles.HostTensor; copy it to the host"
    with pytest.raises(TypeError, match=words):
        gatherum.gather(HostTensor(np.arange(4.0), (1, 0)), [1])
    words = (
        "gather: `data` must be an array on a CUDA device, of torch, CuPy or with "
        "__cuda_array_interface__ or __dlpack__, got HostTensor on (1, 0)"
    )
    with pytest.raises(TypeError) as caught:
        gatherum.cuda.gather(HostTensor(np.arange(4.0), (1, 0)), [1])
    assert str(caught.value) == words


@pytest.mark.parametrize("value", [np.arange(3.0), [1.0, 2.0], 5])
def test_data_of_the_host(machine, value):
    with pytest.raises(TypeError, match=r"^scatter_nd: `data` must be an array on a CUDA device"):
        gatherum.cuda.scatter_nd(value, [[0]], [1.0])


def test_arrays_of_a_device_where_the_data_are_not(machine):
    index, data = HostArray(np.array([0])), np.arange(3.0)
    words = r"^gather: `indices` must be a NumPy array, got a doubles.HostArray; copy it to the h"
    with pytest.raises(TypeError, match=words):
        gatherum.gather(data, index)
    words = (
        "gather: `data` must be one array, got a list that holds a doubles.HostArray; "
        "write its framework's stack(data)"
    )
    with pytest.raises(TypeError) as caught:
        gatherum.gather([HostArray(data)], [0])
    assert str(caught.value) == words


def test_two_devices(on_core):
    data, index = HostArray(np.arange(3.0)), HostArray(np.array([0]))
    on_core.device_of[index.array.ctypes.data] = 1
    with pytest.raises(TypeError) as caught:
        gatherum.gather(data, index)
    assert str(caught.value) == (
        "gather: `indices` must be on the device of `data`, cuda:0, got cuda:1; copy it there"
    )
    tensors = HostTensor(np.arange(3.0), (2, 1)), HostTensor(np.array([0]), (2, 2))
    with pytest.raises(TypeError, match=r"`data`, cuda:1, got cuda:2; copy it there$"):
        gatherum.gather(*tensors)


def test_everything_happens_on_the_device_of_the_data(on_core):
    data = HostTensor(np.arange(3.0), (2, 3))
    assert array_of(gatherum.gather(data, [2])) == [2.0]
    pushed = {call[1] for call in on_core.named("cuCtxPushCurrent")}
    assert pushed == {"context 3"}
    assert on_core.contexts == []  # restored


def test_an_array_without_memory_is_on_any_device(on_core):
    data = HostArray(np.empty((0, 3), np.float32))
    index = HostTensor(np.empty((0,), np.int64), (2, 1))
    assert array_of(gatherum.gather(data, index)).shape == (0, 3)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 of size 0"):
        gatherum.gather(data, [5])


def test_operands_are_not_copied_and_the_hosts_are(on_core):
    data, index = np.arange(12.0).reshape(3, 4).T, np.array([2, 0])
    gatherum.gather(HostArray(data), HostArray(index))
    assert on_core.named("cuMemcpyHtoDAsync") == []
    gatherum.gather(HostArray(data), index[::-1])
    rows = np.broadcast_to(np.array([[5.0, 6, 7]]), (2, 3))
    result = gatherum.scatter_nd(HostArray(data), [[0], [1]], rows)
    assert array_of(result)[:2].tolist() == rows.tolist()
    copied = [call[3] for call in on_core.named("cuMemcpyHtoDAsync")]
    assert copied == [16, 16, 24]  # a repeated row is copied once


def test_the_hosts_values_stay_until_the_stream_has_read_them(on_core):
    values = np.array([1, 2])
    gone = weakref.ref(values)
    on_core.unfinished.update(f"event {n}" for n in range(1000))
    gatherum.gather(HostArray(np.arange(4.0)), values, mode="clip")
    del values
    assert gone() is not None
    on_core.unfinished.clear()
    gatherum.gather(HostArray(np.arange(4.0)), HostArray(np.array([0])), mode="clip")
    assert gone() is None


def test_a_copied_value_keeps_its_bits(on_core):
    true = np.array(0xCD, np.uint8).view(bool)
    result = gatherum.scatter_nd(HostArray(np.zeros((), bool)), np.empty(0, int), true)
    assert array_of(result).view(np.uint8) == 0xCD


def test_scratch_and_copies_are_given_back(on_core):
    result = gatherum.gather(HostArray(np.arange(4.0)), [1, 2])
    assert len(on_core.memory) == 1  # the result: the stream has read the copy of the indices
    gatherum.gather(HostArray(np.arange(4.0)), HostArray(np.array([0])))
    assert len(on_core.memory) == 1
    del result
    assert on_core.memory == {}


def test_operands_stay_until_the_stream_has_read_them(on_core):
    on_core.unfinished.update(f"event {n}" for n in range(1000))
    for _ in range(3):
        gatherum.gather(HostArray(np.arange(4.0)), [1])
    assert len(on_core.memory) == 3
    on_core.unfinished.clear()
    gatherum.gather(HostArray(np.arange(4.0)), HostArray(np.array([0])))
    assert on_core.memory == {}
    events = [call[1] for call in on_core.named("cuEventDestroy")]
    assert len(events) == len(set(events)) == 4


def test_streams_of_arrays(on_core):
    data, index = HostArray(np.arange(4.0), 40), HostArray(np.array([1]), 50)
    updates = HostArray(np.array([7.0]), 40)
    result = gatherum.scatter_slices(data, index, updates)
    assert array_of(result).tolist() == [0, 7, 2, 3]
    assert result.__cuda_array_interface__["stream"] == 40
    (recorded, kept) = on_core.named("cuEventRecord")
    assert recorded[2] == 50  # after the work that made the indices
    assert [call[1] for call in on_core.named("cuStreamWaitEvent")] == [40]
    assert kept[2] == 40
    assert {call[2] for call in on_core.named("cuMemAllocAsync")} == {40}


def test_masks_and_dtypes_of_interfaces(on_core):
    masked = HostArray(np.arange(3.0), mask=HostArray(np.zeros(3, bool)))
    with pytest.raises(TypeError, match=r"^gather: `data` must not be a masked array"):
        gatherum.gather(masked, [0])
    records = np.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "f8")])
    result = array_of(gatherum.gather(HostArray(records), [1]))
    assert same_bits(result, records[1:])
    again = gatherum.gather(gatherum.gather(HostArray(records), [1, 0]), [1])
    assert again.__cuda_array_interface__["descr"] == records.dtype.descr
    assert same_bits(array_of(again), records[:1])
    with pytest.raises(TypeError, match=r"`indices` must have an integer dtype, got float64;"):
        gatherum.gather(HostArray(np.arange(3.0)), HostArray(np.arange(3.0)))
    with pytest.raises(TypeError, match=r"`updates` must have the dtype of `data`, float64, got f"):
        gatherum.scatter_slices(HostArray(np.arange(3.0)), [0], HostArray(np.ones(1, "f4")))


def test_fill_values(on_core):
    data = HostArray(np.arange(3, dtype=np.float32))
    result = gatherum.gather(data, [5, 1], mode="fill", fill_value=2.5)
    assert array_of(result).tolist() == [2.5, 1]
    with pytest.raises(ValueError, match=r"^gather: `fill_value` must "):
        gatherum.gather(data, [5, 1], mode="fill", fill_value=1e300)
    gatherum.gather(data, [0, 1], fill_value="not looked at")


@pytest.mark.parametrize("functions", [gatherum, gatherum.cuda])
@pytest.mark.parametrize("case", [c for c in CASES if c.data.dtype in NAMED], ids=str)
def test_out_of_any_strides(on_core, case, functions):
    operands = (case.data, case.indices, case.updates)[: 2 + (case.updates is not None)]
    target = np.zeros(case.expected.shape[::-1], case.data.dtype).T
    out, function = HostArray(target), getattr(functions, case.op)
    result = function(*map(HostArray, operands), **dict(case.attributes), out=out)
    assert result is out
    assert same_bits(target, case.expected)
    if case.updates is not None:  # in place
        data = HostArray(case.data.copy())
        function(data, *map(HostArray, operands[1:]), **dict(case.attributes), out=data)
        assert same_bits(data.array, case.expected)


def outs(data, indices, updates):
    """Yield arrays that must not be `out`."""
    both = np.zeros((4, 3), np.float32)
    yield from (np.zeros((4, 2), "f4"), np.zeros((4, 3)), np.zeros((4, 3), ">f4"), both[:, ::-1])
    yield from (data[::-1], indices.view("f4")[:, :3], updates)
    yield np.broadcast_to(both[:1], (4, 3))
    both.flags.writeable = False
    yield both


@pytest.mark.parametrize("op", ["gather", "scatter_slices"])
@pytest.mark.parametrize("number", range(9))
def test_out_is_checked_as_on_the_host(on_core, op, number):
    data, updates = np.zeros((8, 3), "f4")[::2], np.ones((4, 3), "f4")
    indices = np.zeros((4, 4), np.int32)
    operands = data, indices[:, 0], updates
    out, inputs = list(outs(data, indices, updates))[number], operands[: 2 + ("sc" in op)]
    results = []
    for convert in (np.asarray, HostArray):
        try:
            getattr(gatherum, op)(*map(convert, inputs), out=convert(out))
            results.append(out.tolist())
        except (TypeError, ValueError) as error:
            results.append(f"{type(error).__name__}: {error}")
    assert results[0] == results[1]


def test_an_out_elsewhere(on_core):
    data, out = HostArray(np.arange(3.0)), np.zeros(1)
    for functions in (gatherum, gatherum.cuda):
        with pytest.raises(TypeError) as caught:
            functions.gather(data, [0], out=out)
        assert str(caught.value) == (
            "gather: `out` must be an array on a CUDA device, of torch, CuPy or with "
            "__cuda_array_interface__ or __dlpack__, got ndarray"
        )
    with pytest.raises(ValueError, match=r"^gather: `axis` must be in \[-1, 1\), got 3$"):
        gatherum.gather(data, [0], 3, out=out)
    with pytest.raises(TypeError, match=r"^gather: `out` must be on the device of `data`, cuda:0"):
        gatherum.gather(HostTensor(np.arange(3.0)), [0], out=HostTensor(out, (2, 1)))


def test_readers_of_out_wait_for_the_call(on_core):
    data, target = HostArray(np.arange(4.0), 40), np.zeros(1)
    for stream, waiting in ((40, [40]), (50, [40, 50]), (None, [])):
        on_core.calls.clear()
        gatherum.gather(data, HostArray(np.array([2])), out=HostArray(target, stream))
        waits = [call[1] for call in on_core.named("cuStreamWaitEvent")]
        assert waits == (waiting if stream != 40 else [])
    assert target == [2.0]


@pytest.mark.parametrize("mode", MODES)
def test_a_graph_takes_no_array_that_is_known_by_protocol_only(on_core, mode):
    on_core.capturing.add(40)
    data, index = HostArray(np.arange(4.0), 40), HostArray(np.array([1]))
    with pytest.raises(RuntimeError) as caught:
        gatherum.gather(data, index, mode=mode)
    assert str(caught.value) == (
        "gather: arrays that are known by __cuda_array_interface__ or __dlpack__ alone cannot be "
        "part of a CUDA graph; capture the call on tensors of torch or on arrays of CuPy"
    )
    assert on_core.named("cuMemAllocAsync", "cuEventRecord") == []


def test_the_driver_says_no(on_core):
    on_core.fail["cuMemAllocAsync"] = Status.CUDA_ERROR_OUT_OF_MEMORY
    words = "^gatherum.cuda: cuMemAllocAsync: words of CUDA_ERROR_OUT_OF_MEMORY$"
    with pytest.raises(MemoryError, match=words):
        gatherum.gather(HostArray(np.arange(4.0)), [1])
    on_core.fail["cuMemAllocAsync"] = Status.CUDA_ERROR_INVALID_VALUE
    words = "^gatherum.cuda: cuMemAllocAsync failed with CUDA_ERROR_INVALID_VALUE: words of CUDA_"
    with pytest.raises(RuntimeError, match=words):
        gatherum.gather(HostArray(np.arange(4.0)), [1])
    assert on_core.contexts == []


def test_results_have_a_repr(on_core):
    result = gatherum.gather(HostArray(np.arange(6.0).reshape(2, 3)), [1])
    assert repr(result) == "<gatherum.cuda.DeviceArray of float64 (1, 3)>"
    again = gatherum.gather(result, [0], 1)  # a result can be an operand
    assert array_of(again).tolist() == [[3.0]]


def test_plans_of_arrays_on_a_device(machine):
    data, index = HostArray(np.arange(12.0).reshape(3, 4).T), HostTensor(np.array([2, 0]))
    plan = gatherum.plan("gather", data, index)
    assert plan.shape == (2, 3)
    assert plan.call.data.strides == (8, 32)
    assert gatherum.explain("gather", data, index).indices is None
