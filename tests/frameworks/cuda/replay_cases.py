"""Replays in the core, over the driver `libcuda.c`. `test_cuda_replays.py` runs this file.

It needs a separate process, in which the core and `cuda.bindings` find that driver.
"""

import ctypes
import sys
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
import stand_in
from doubles import HostArray, array_of, sort_on_host
from hypothesis import HealthCheck, given, settings
from shim.device import ShimDevice

import gatherum
from gatherum.cuda import cub, driver, nvidia, plan_launches, programs, radix_sort
from gatherum.cuda.device import Kernel
from gatherum.cuda.device_nests import unaddressable
from gatherum.cuda.plan_launches import is_in_place, program_of
from python_calls import python_calls
from strategies import OPERATORS, SCATTERS, calls, same_bits

FAKE = stand_in.Driver()
for number in range(2):
    nvidia.architecture_of(driver.open_driver(), number)  # cached
SIZES: dict[Kernel, int] = {}  # bytes of the structs
stand_in.compile_nothing(SIZES)
slow = pytest.mark.slow  # compiles kernels
MANY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
PLACES = st.tuples(*(st.integers(1 << 40, 1 << 41) for _ in range(4)))


class Framework:
    """Scratch memory at the places of an arena that begins anew with every replay."""

    memory = np.zeros(1 << 22, np.uint8)
    begin = (memory.ctypes.data + 255) // 256 * 256

    def __init__(self):
        self.at = self.begin

    def allocate(self, nbytes, device, stream):
        address = self.at
        self.at += -(-nbytes // 256) * 256
        assert self.at < self.memory.ctypes.data + self.memory.size
        return SimpleNamespace(
            address=address, part=lambda start, _: SimpleNamespace(address=address + start)
        )

    def sort(self, pairs, device, stream):
        self.sorted = pairs.keys.address, pairs.payload.address, *pairs[2:]
        results = (SimpleNamespace(address=each.address + 4096) for each in pairs[:2])
        return pairs._replace(keys=next(results), payload=next(results))


def logged(play, program, operands):
    """Return the driver's calls in a run of a program, the bytes that it reads, and its sort."""
    framework = Framework()
    with FAKE.logged() as lines:
        content = play(nvidia.Nvidia(framework, 1, stand_in.STREAM), program, operands)
    return lines, content, getattr(framework, "sorted", None)


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@MANY
def test_a_replay_makes_the_calls_of_the_player(op, data):
    call = data.draw(calls([op]))
    arrays = list(map(np.asarray, call.args))
    attributes = {name: each for name, each in call.kwargs.items() if name != "fill_value"}
    try:
        plan = gatherum.plan(op, *arrays, **attributes)
    except (TypeError, ValueError):
        return
    if unaddressable(plan) >= 0:
        return
    operands = data.draw(PLACES)
    if data.draw(st.booleans()):
        operands = tuple(address // 16 * 16 for address in operands)
    fill = b"" if op in SCATTERS else data.draw(st.binary(min_size=0, max_size=1))
    fill *= plan.call.data.dtype.itemsize
    placement = programs.Placement.of(operands, is_in_place(plan))
    program = program_of(plan, placement, 132, fill)
    if program.arena > 1 << 21:
        return
    for step in program.steps:
        if isinstance(step, programs.Launch):
            SIZES[step.kernel] = len(step.arguments.content)
    played = logged(programs.run_steps, program, operands)
    assert logged(nvidia.Nvidia.run_program, program, operands) == played
    assert len(played[0]) >= sum(not isinstance(step, programs.Sort) for step in program.steps)
    again = plan_launches.program_of.__wrapped__(plan, placement, 132, fill)
    assert (again.steps, again.scratch, again.slots) == (
        program.steps, program.scratch, program.slots,
    )  # fmt: skip


def test_a_failing_launch_ends_a_replay_with_the_error_of_the_driver():
    data, indices = np.zeros((600, 2), np.float32), np.zeros(600, np.int64)
    plan = gatherum.plan("scatter_slices", data, indices, data, mode="clip")
    program = program_of(plan, programs.Placement(16, 16, 16, 16, False), 132)
    FAKE.fail_after(1)
    with FAKE.logged() as lines, pytest.raises(RuntimeError) as raised:
        nvidia.Nvidia(Framework(), 1, stand_in.STREAM).run_program(program, (1 << 40,) * 4)
    assert str(raised.value) == (
        "gatherum.cuda: cuLaunchKernel failed with CUDA_ERROR_LAUNCH_FAILED: words"
    )
    assert [line.split()[0] for line in lines] == ["launch", "at"]  # the copy, the clear
    FAKE.fail_after(-1)


# Tensors. The kernels run on the shim.

KERNELS = {}
SHIM = ShimDevice()


@pytest.fixture(scope="module")
def torch():
    """Tensors that the core believes to be on a device, and kernels that run."""
    module = pytest.importorskip("torch", minversion="2.10", reason="install torch")
    stand_in.use()
    yield module


@pytest.fixture
def running(torch):
    """Let the driver run kernels."""

    @ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    def run(code, arguments, grid, block):
        _, _, name, *macros = code.decode().split()
        kernel = Kernel.of(name, **dict(each.split("=") for each in macros))
        library_size = stand_in.struct_bytes(kernel)
        SHIM.launch(kernel, grid, block, ctypes.string_at(arguments, library_size))

    FAKE.run(run)
    yield torch
    FAKE.run(None)


def operands(torch, op, dtype="float32"):
    data = torch.arange(12).reshape(4, 3).to(getattr(torch, dtype))
    index = torch.tensor([3, 0, -1, 3])
    updates = (torch.arange(12).reshape(4, 3) * 5).to(data.dtype)
    return (data, index) if op == "gather" else (data, index, updates)


CALLS = [
    ("gather", {"mode": "clip"}),
    ("gather", {"mode": "raise"}),
    ("scatter_slices", {"mode": "raise"}),
    ("scatter_slices", {"mode": "raise", "reduction": "add"}),
]


@pytest.mark.frameworks
@slow
@pytest.mark.parametrize(("op", "attributes"), CALLS)
def test_tensors_give_the_result_of_arrays(running, op, attributes):
    tensors = operands(running, op)
    function = getattr(gatherum, op)
    expected = function(*(each.numpy() for each in tensors), **attributes)
    for _ in range(2):
        result = function(*tensors, **attributes)
        assert np.array_equal(result.numpy(), expected)
    FAKE.run(None)
    assert python_calls(function, *tensors, **attributes) == []


@pytest.mark.frameworks
@slow
def test_calls_on_other_alignments(running):
    table = running.arange(40, dtype=running.uint8)
    for start in (0, 1, 4, 16):
        data = table[start : start + 16].reshape(4, 4)
        result = gatherum.gather(data, running.tensor([2, 1]), mode="clip")
        assert running.equal(result, data[[2, 1]])


@pytest.mark.frameworks
@slow
@pytest.mark.parametrize(("op", "attributes"), CALLS[1:3])
def test_an_invalid_index_raises_the_error_and_writes_nothing(running, op, attributes):
    data, index, *updates = operands(running, op)
    getattr(gatherum, op)(data, index, *updates, **attributes)
    index[2], before = 9, data.clone()
    with pytest.raises(IndexError) as expected:
        getattr(gatherum, op)(*(each.numpy() for each in (data, index, *updates)), **attributes)
    with pytest.raises(IndexError) as raised:
        getattr(gatherum, op)(data, index, *updates, **attributes)
    assert str(raised.value) == str(expected.value)
    assert running.equal(data, before)


@pytest.mark.frameworks
def test_a_program_that_waits_is_not_part_of_a_graph(torch):
    stand_in.stream(stand_in.CAPTURED)
    try:
        data, index = operands(torch, "gather")
        with FAKE.logged() as lines, pytest.raises(RuntimeError, match=r"^gather: `mode` must not"):
            gatherum.gather(data, index)
        assert not [line for line in lines if "launch" in line or "memset" in line]
        with FAKE.logged() as lines:
            gatherum.gather(data, index, mode="clip")
        assert [line.split()[0] for line in lines] == ["launch"]
    finally:
        stand_in.stream(stand_in.STREAM)


@pytest.mark.frameworks
def test_an_error_of_the_sort_is_the_error_of_the_call(torch, monkeypatch):
    from gatherum.torch import cuda

    def sort(*_):
        raise MemoryError("torch's words")

    monkeypatch.setattr(radix_sort, "MOST_PAIRS", 0)
    # One block sorts fewer updates.
    call = torch.zeros(4), torch.zeros(5000, dtype=torch.int64), torch.ones(5000)
    gatherum.scatter_slices(*call, reduction="add", mode="clip")
    monkeypatch.setattr(type(cuda.FRAMEWORK), "sort", sort)
    with pytest.raises(MemoryError, match=r"^torch's words$"):
        gatherum.scatter_slices(*call, reduction="add", mode="clip")


@pytest.mark.frameworks
def test_the_forward_pass_of_a_tracked_tensor_is_replayed(torch, monkeypatch):
    data, index = operands(torch, "gather")
    data.requires_grad_()
    assert gatherum.gather(data, index, mode="clip").requires_grad
    monkeypatch.setattr(
        "gatherum.cuda.device_calls.call_on_device", lambda *_: pytest.fail("no replay")
    )
    assert gatherum.gather(data, index, mode="clip").requires_grad


@pytest.mark.frameworks
@slow
@pytest.mark.parametrize("reduction", ["add", "max", "none"])
def test_the_core_replays_a_scatter_whose_order_is_known(running, monkeypatch, reduction):
    data = running.ones(5, 3).to(running.int32 if reduction == "max" else running.float32)
    index = running.arange(5000) * 7 % 5
    updates = running.arange(15000).reshape(5000, 3).to(data.dtype) / 7
    updates = updates.to(data.dtype)
    call = data.numpy(), index.numpy(), updates.numpy()
    expected = gatherum.scatter_slices(*call, reduction=reduction)
    run = gatherum.prepare("scatter_slices", data, index, reduction=reduction)
    assert np.array_equal(run(data, updates).numpy(), expected)

    def through_python(*_):
        raise ZeroDivisionError

    for name in ("gatherum.cuda.device_calls.call_on_device", "gatherum.torch.cuda._share_order"):
        monkeypatch.setattr(name, through_python)
    assert np.array_equal(run(data, updates).numpy(), expected)
    if reduction != "add":  # such scatters have no order
        return
    with pytest.raises(ZeroDivisionError):
        run(data, updates.T.contiguous().T)  # another layout
    stand_in.stream(50)
    try:
        with pytest.raises(ZeroDivisionError):
            run(data, updates)
    finally:
        stand_in.stream(stand_in.STREAM)


@pytest.mark.frameworks
@slow
@pytest.mark.parametrize("mode", ["raise", "clip"])
def test_the_core_replays_both_scatters_of_softmax(running, monkeypatch, mode):
    values = (running.arange(10000.0) % 7).reshape(5000, 2)
    call = values, running.arange(5000) * 7 % 5, "softmax"
    options = {"size": 5, "mode": mode}
    host = (operand.numpy() for operand in call[:2])
    expected = gatherum.groups.transform(*host, "softmax", **options)
    result = gatherum.groups.transform(*call, **options)
    assert np.array_equal(result.numpy(), expected)
    monkeypatch.setattr(
        "gatherum.cuda.device_calls.call_on_device", lambda *_: pytest.fail("no replay")
    )
    assert np.array_equal(gatherum.groups.transform(*call, **options).numpy(), expected)
    call[1][3] = 5
    if mode == "raise":
        with pytest.raises(IndexError, match=r"^groups.transform: group 5 is not in "):
            gatherum.groups.transform(*call, **options)


@pytest.mark.frameworks
@slow
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_the_core_replays_a_scatter_of_torch_scatter(running, monkeypatch, reduce):
    from gatherum.torch import torch_scatter

    src, index = running.arange(12.0).reshape(4, 3) / 7, running.tensor([3, 0, 0, 3])
    expected = running.zeros(5, 3)
    for row in (0, 3):
        rows = src[index == row]
        expected[row] = {"sum": rows.sum, "mean": rows.mean, "max": rows.amax}[reduce](0)
    call = src, index, 0, None, 5, reduce
    torch_scatter.scatter(*call)
    with monkeypatch.context() as patch:
        patch.setattr(
            "gatherum.cuda.device_calls.call_on_device", lambda *_: pytest.fail("no replay")
        )
        assert running.equal(torch_scatter.scatter(*call), expected)
    index[1] = 5
    with pytest.raises(
        IndexError, match=r"^scatter: index 5 is out of bounds for axis 0 of size 5 "
    ):
        torch_scatter.scatter(*call)


@pytest.mark.frameworks
@slow
def test_the_gradient_of_a_replayed_scatter_of_torch_scatter(running):
    from gatherum.torch import torch_scatter

    src, index = running.ones(4, 3, requires_grad=True), running.tensor([3, 0, 0, 3])
    weights = running.arange(15.0).reshape(5, 3)
    (torch_scatter.scatter(src, index, 0, dim_size=5) * weights).sum().backward()
    assert running.equal(src.grad, weights[index])


@pytest.mark.frameworks
def test_the_first_zeros_of_a_device_are_not_made_in_a_graph(torch, monkeypatch):
    from gatherum.torch import cuda

    monkeypatch.setattr(cuda, "_ZEROS", {})
    stand_in.stream(stand_in.CAPTURED)
    try:
        assert cuda.zeros_address(0) == 0
    finally:
        stand_in.stream(stand_in.STREAM)
    assert cuda.zeros_address(0)


# Arrays with a protocol.


@pytest.mark.frameworks
@slow
@pytest.mark.parametrize(("op", "attributes"), CALLS)
def test_protocol_arrays_give_the_result_of_arrays(running, op, attributes, monkeypatch):
    monkeypatch.setattr(cub, "sort_with_cub", sort_on_host)
    arrays = [each.numpy() for each in operands(running, op)]
    function = getattr(gatherum, op)
    expected = function(*arrays, **attributes)
    for _ in range(2):
        result = function(*map(HostArray, arrays), **attributes)
        assert same_bits(array_of(result), expected)
    FAKE.run(None)
    ran = python_calls(function, *map(HostArray, arrays), **attributes)
    ran = {name for name in ran if "_ctypes" not in name}
    assert ran == {"HostArray.__cuda_array_interface__", "DeviceArray.__init__"}


@pytest.mark.frameworks
@slow
@pytest.mark.parametrize(
    ("more", "index"),
    [({"strides": (12, 4)}, [2, 0]), ({"typestr": ">f4"}, [2, 0]), ({"mask": 1}, [2, 0]), ({}, [])],
)
def test_interfaces_of_every_kind_take_the_path_that_reads_them(running, more, index):
    data, index = np.arange(12, dtype="<f4").reshape(4, 3), np.array(index, np.int32)
    if "mask" in more:
        with pytest.raises(TypeError, match="mask"):
            gatherum.gather(HostArray(data, **more), HostArray(index), mode="clip")
        return
    values = data.view(more.get("typestr", "<f4"))
    for _ in range(2):
        result = gatherum.gather(HostArray(data, **more), HostArray(index), mode="clip")
        assert same_bits(array_of(result), gatherum.gather(values, index, mode="clip"))


@pytest.mark.frameworks
@slow
def test_an_invalid_index_of_a_protocol_array(running):
    data, index = HostArray(np.arange(4.0)), HostArray(np.array([1, 4]))
    for _ in range(2):
        with pytest.raises(IndexError, match=r"^gather: index 4 "):
            gatherum.gather(data, index)


def test_operands_of_protocol_arrays_are_kept_until_the_stream_is_done():
    data, index = HostArray(np.arange(4.0)), HostArray(np.array([1, 2]))
    gatherum.gather(data, index, mode="clip")
    before = sys.getrefcount(data)
    FAKE.events_are_done(False)
    gatherum.gather(data, index, mode="clip")
    assert sys.getrefcount(data) == before + 1
    FAKE.events_are_done(True)
    gatherum.gather(HostArray(data.array), index, mode="clip")
    assert sys.getrefcount(data) == before


def test_streams_of_protocol_arrays():
    data, index = np.arange(4.0), np.array([1, 2])
    for streams in ((None, None), (50, None), (50, 50), (50, 60)):
        for _ in range(2):
            with FAKE.logged() as lines:
                gatherum.gather(*map(HostArray, (data, index), streams), mode="clip")
            (launch,) = (line for line in lines if line.startswith("launch"))
            assert f" stream {streams[0] or 1} " in launch
            assert ("wait on the device 50" in "\n".join(lines)) == (streams == (50, 60))
    with pytest.raises(RuntimeError, match=r"^gather: arrays that are known by __cuda_array_int"):
        gatherum.gather(HostArray(data, 40), HostArray(index), mode="clip")
