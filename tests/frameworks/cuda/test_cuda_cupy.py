"""CuPy arrays, by a small double of CuPy on host memory."""

import ctypes
import sys
import weakref
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import gatherum
import gatherum.cuda
from cases import CASES
from gatherum.cuda import adapter
from gatherum.cuda.device import Pairs, Widths
from strategies import same_bits


def small_cupy():
    """Make a module like CuPy, with the parts that gatherum uses."""
    module = ModuleType("cupy")
    current = []  # entered devices

    class NdArray:
        def __init__(self, shape, dtype, memory=None, device=0, values=None):
            dtype = np.dtype(dtype)
            if values is None and memory is not None:
                raw = (ctypes.c_char * (dtype.itemsize * int(np.prod(shape)))).from_address(
                    memory.ptr
                )
                values = np.frombuffer(raw, dtype).reshape(shape)
            self.values = np.empty(shape, dtype) if values is None else values
            self.device = SimpleNamespace(id=current[-1] if current else device)
            self.shape, self.dtype = self.values.shape, self.values.dtype
            self.strides = self.values.strides
            self.data = SimpleNamespace(ptr=self.values.ctypes.data, keeps=self.values)

    NdArray.__module__, NdArray.__name__ = "cupy", "ndarray"

    @contextmanager
    def device(number):
        current.append(number)
        yield
        current.pop()

    class Memory:
        """Memory of the pool that records its release."""

        def __init__(self, nbytes):
            self.keeps = np.full(nbytes + 512, 0xA5, np.uint8)
            self.ptr = (self.keeps.ctypes.data + 511) // 512 * 512
            taken.add(self)

    allocators, taken = [Memory], weakref.WeakSet()

    @contextmanager
    def using_allocator(allocator):
        allocators.append(allocator)
        yield
        allocators.pop()

    def memory(nbytes):
        assert current
        return allocators[-1](nbytes)

    def of(values):
        return NdArray(values.shape, values.dtype, values=values)

    def argsort(array):
        memory(array.values.nbytes)  # for the copy of the keys
        return of(np.argsort(array.values, kind="stable"))

    module.ndarray = NdArray
    module.empty = NdArray
    module.argsort = argsort
    module.take = lambda array, order: of(array.values[order.values])
    module.cuda = SimpleNamespace(
        Device=device,
        alloc=memory,
        get_allocator=lambda: allocators[-1],
        using_allocator=using_allocator,
        get_current_stream=lambda n: SimpleNamespace(ptr=60 + n if n < 9 else 0),
    )
    module.taken = taken
    module.array = lambda values, device=0: NdArray(None, values.dtype, None, device, values)
    return module


@pytest.fixture
def cupy(monkeypatch):
    module = small_cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.delitem(sys.modules, "gatherum.cuda.cupy", raising=False)
    adapter._cupy.cache_clear()
    yield module
    adapter._cupy.cache_clear()
    sys.modules.pop("gatherum.cuda.cupy", None)


NAMED = [c for c in CASES if c.data.dtype.kind in "biufc" and c.data.dtype.isnative]


@pytest.mark.parametrize("case", NAMED, ids=str)
def test_cases(on_core, cupy, case):
    operands = [case.data, case.indices, *([case.updates] if case.updates is not None else [])]
    result = getattr(gatherum, case.op)(*map(cupy.array, operands), **case.attributes)
    assert type(result) is cupy.ndarray
    assert same_bits(result.values, case.expected)
    out = cupy.array(np.zeros_like(case.expected))
    assert getattr(gatherum, case.op)(*map(cupy.array, operands), **case.attributes, out=out) is out
    assert same_bits(out.values, case.expected)
    of_the_host = getattr(gatherum.cuda, case.op)(
        cupy.array(operands[0]), *operands[1:], **case.attributes
    )
    assert same_bits(of_the_host.values, case.expected)


def test_results_and_launches_are_where_the_data_are(on_core, cupy):
    data = cupy.array(np.arange(4.0), 3)
    result = gatherum.gather(data, [1], mode="clip")
    assert result.device.id == 3
    assert {call[1] for call in on_core.named("cuCtxPushCurrent")} == {"context 3"}
    assert on_core.named("cuMemcpyHtoDAsync")[0][4] == 63  # CuPy's current stream of that device
    assert on_core.named("cuMemAllocAsync", "cuStreamSynchronize") == []


def test_the_default_stream_has_a_distinct_number(on_core, cupy):
    gatherum.gather(cupy.array(np.arange(4.0), 9), [1])
    assert on_core.named("cuMemcpyHtoDAsync")[0][4] == 1


@pytest.mark.parametrize("mode", ["clip", "wrap", "fill", "drop"])
def test_a_graph_takes_every_mode_that_does_not_wait(on_core, cupy, mode):
    on_core.capturing.add(60)
    index = cupy.array(np.array([9]))
    gatherum.gather(cupy.array(np.arange(4.0)), index, mode=mode)
    assert on_core.named("cuStreamSynchronize") == []


def test_calls_that_wait_raise_during_a_capture(on_core, cupy):
    on_core.capturing.add(60)
    data, index = cupy.array(np.arange(4.0)), cupy.array(np.array([1]))
    with pytest.raises(RuntimeError) as caught:
        gatherum.gather(data, index)
    assert str(caught.value) == (
        "gather: `mode` must not be 'raise' while a CUDA graph is captured, because it waits for "
        "the device; take 'clip', 'wrap', 'fill' or 'drop'"
    )
    with pytest.raises(RuntimeError) as caught:
        gatherum.scatter_slices(data, index, [1.0], mode="drop")
    assert str(caught.value) == (
        "scatter_slices: `updates` must be on the device while a CUDA graph is captured, got "
        "values on the host; copy them before the capture"
    )
    assert not cupy.taken


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_a_graph_refuses_modes_that_have_no_place_to_go_to(on_core, cupy, mode):
    data, index = cupy.array(np.zeros((3, 0))), cupy.array(np.array([1]))
    with pytest.raises(IndexError):
        gatherum.gather(data, index, axis=1, mode=mode)
    on_core.capturing.add(60)
    with pytest.raises(RuntimeError) as caught:
        gatherum.gather(data, index, axis=1, mode=mode)
    assert str(caught.value) == (
        f"gather: mode {mode!r} has no place to go to in a dimension of size 0, and cannot wait "
        "for the device to name the index while a CUDA graph is captured"
    )
    assert on_core.named("cuStreamSynchronize", "cuLaunchKernel") == []
    assert gatherum.gather(data, index, mode=mode).shape == (1, 0)


def test_memory_of_a_graph_lives_as_long_as_its_result(machine, cupy, monkeypatch):
    def run(device, plan, data, indices, *_):
        keys, payload = device.allocate(4 * 4), device.allocate(4 * 4)
        for memory in (keys, payload):
            ctypes.memset(memory.address, 0, 16)
        device.sort(Pairs(keys, payload, 4, Widths(4, 4, 3)))

    monkeypatch.setattr("gatherum.cuda.plan_launches.run", run)
    data, index = cupy.array(np.zeros(4)), cupy.array(np.arange(4))
    result = gatherum.gather(data, index, mode="clip")
    assert not cupy.taken  # returned to the pool
    machine.capturing.add(60)
    result = gatherum.gather(data, index, mode="clip")
    assert len(cupy.taken) == 3  # including the sort's memory
    del result
    assert not cupy.taken


def test_the_hosts_values_stay_until_the_stream_has_read_them(on_core, cupy):
    data, index = cupy.array(np.arange(4.0)), np.array([1, 2])
    gone = weakref.ref(index)
    on_core.unfinished.update(f"event {n}" for n in range(1000))
    gatherum.gather(data, index, mode="clip")
    del index
    assert gone() is not None
    on_core.unfinished.clear()
    gatherum.gather(data, [1], mode="clip")
    assert gone() is None


def test_two_devices_and_two_frameworks(on_core, cupy):
    data = cupy.array(np.arange(4.0), 1)
    with pytest.raises(TypeError, match=r"^gather: `indices` must be on the device of `data`, cud"):
        gatherum.gather(data, cupy.array(np.array([0]), 2))

    class Other:
        __module__ = "numba.cuda"
        __cuda_array_interface__ = None

    with pytest.raises(TypeError) as caught:
        gatherum.gather(data, Other())
    assert str(caught.value) == (
        "gather: the arrays must be of one framework, got a cupy.ndarray as `data` and a "
        "numba.Other as `indices`"
    )


def test_plans(machine, cupy):
    plan = gatherum.plan("gather", cupy.array(np.zeros((3, 4)).T), [0, 1], axis=1)
    assert (plan.device, plan.shape, plan.call.data.strides) == ("cuda", (4, 2), (8, 32))


@pytest.mark.slow
def test_the_kernels_and_the_sort(on_shim, cupy):
    data = cupy.array(np.zeros(3, np.float32))
    index = cupy.array(np.array([2, 0, 2, 2]))
    updates = np.array([1e8, 1, 1, -1e8], np.float32)
    result = gatherum.scatter_slices(data, index, cupy.array(updates), reduction="add")
    expected = gatherum.scatter_slices(data.values, index.values, updates, reduction="add")
    assert same_bits(result.values, expected)


def test_a_prepared_call_sorts_once(on_shim, cupy, monkeypatch, library_sorts):
    framework_class, sorts = type(adapter._cupy()), []
    sort = framework_class.sort
    monkeypatch.setattr(framework_class, "sort", lambda *call: sorts.append(call) or sort(*call))
    data, updates = np.ones((3, 2), np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
    index = [2, 0, -1, 2]
    run = gatherum.prepare("scatter_slices", data, index, reduction="add")
    for _ in range(2):
        result = run(cupy.array(data), cupy.array(updates))
        assert same_bits(result.values, run(data, updates))
    assert len(sorts) == 1
    take = gatherum.prepare("gather", data, [1, 9], mode="fill")
    taken = take(cupy.array(data), fill_value=7)
    assert same_bits(taken.values, take(data, fill_value=7))
    with pytest.raises(ValueError, match=r"^scatter_slices: "):
        run(cupy.array(data[:2]), cupy.array(updates))
    with pytest.raises(TypeError, match=r"^scatter_slices: "):
        run(cupy.array(data.astype("f8")), cupy.array(updates))
    on_shim.capturing.add(60)
    run(cupy.array(data), cupy.array(updates))
    assert len(sorts) == 1
    with pytest.raises(RuntimeError, match=r"^gather: `indices`"):
        gatherum.prepare("gather", data, [1])(cupy.array(data))
