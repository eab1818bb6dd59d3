"""Conformance of the CUDA functions on a real GPU; skipped without one.

    cd tests/frameworks/cuda
    python -m pytest test_cuda_gpu.py
    compute-sanitizer --tool memcheck  python -m pytest test_cuda_gpu.py -k cases
    compute-sanitizer --tool racecheck python -m pytest test_cuda_gpu.py -k cases

Results are compared with the same call on NumPy arrays, bit for bit.
"""

import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import gatherum
import gatherum.cuda
from cases import CASES
from strategies import DATA_DTYPES, OPERATORS, SCATTERS, Call, calls, same_bits

torch = pytest.importorskip("torch", reason="install torch for CUDA, and run this on a GPU")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device that torch sees", allow_module_level=True)
cupy = pytest.importorskip("cupy", reason="install CuPy, whose arrays are tested, too")
pytestmark = [pytest.mark.frameworks, pytest.mark.cuda]

import gatherum.cuda.host_transfer  # noqa: E402
import gatherum.torch.cuda  # noqa: E402
from gatherum._model.dtypes import is_reducible  # noqa: E402
from gatherum._model.reductions import FOLDS  # noqa: E402

MANY = settings(
    max_examples=int(os.environ.get("GATHERUM_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
FUNCTIONS = {
    "torch": gatherum.torch.cuda.functions(),
    "cupy": gatherum.cuda.host_transfer.functions(),
}
PLAIN = [d for d in DATA_DTYPES if d.isnative and d.isbuiltin == 1 and d.kind in "biufc"]
OF = {"cupy": [d for d in PLAIN if d.char not in "gG"]}
OF["torch"] = [*OF["cupy"], *(d for d in DATA_DTYPES if d.name in ("bfloat16", "float8_e4m3fn"))]
GPU = torch.device("cuda")
GATHER_OF = {
    "scatter_slices": "gather",
    "scatter_elements": "gather_elements",
    "scatter_nd": "gather_nd",
}


class Array:
    """An array of CuPy's memory that has only `__cuda_array_interface__`."""

    def __init__(self, values):
        self._array = cupy.asarray(values)

    @property
    def __cuda_array_interface__(self):
        return self._array.__cuda_array_interface__


def outcome(call, functions):
    try:
        return call.run(functions)
    except (TypeError, ValueError, IndexError) as error:
        return error


def agree(expected, actual):
    if isinstance(expected, Exception):
        return type(expected) is type(actual) and str(expected) == str(actual)
    return not isinstance(actual, Exception) and same_bits(expected, actual)


@pytest.mark.parametrize("framework", FUNCTIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case, framework):
    if case.data.dtype not in OF[framework]:
        pytest.skip(f"{framework} has no dtype {case.data.dtype}")
    assert same_bits(case.run(FUNCTIONS[framework]), case.expected)


@pytest.mark.parametrize("framework", FUNCTIONS)
@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@MANY
def test_calls_of_every_shape_and_dtype(op, framework, data):
    call = data.draw(calls([op], data_dtypes=OF[framework]))
    expected, result = outcome(call, gatherum), outcome(call, FUNCTIONS[framework])
    assert agree(expected, result), (expected, result)


def laid_out(tensor, seed):
    """Return a tensor of the same values with different strides."""
    order = np.random.default_rng(seed).permutation(tensor.dim()).tolist()
    spread = torch.empty(
        [2 * n for n in tensor.permute(order).shape], dtype=tensor.dtype, device=GPU
    )
    view = spread[tuple(slice(1, None, 2) for _ in order)]
    view.copy_(tensor.permute(order))
    return view.permute(np.argsort(order).tolist())


def of_groups(values, groups):
    size = int(groups.max()) + 2
    run = gatherum.groups
    results = run.reduce(values, groups, size, ["std", "logsumexp", "fmean"])
    results |= {name: run.transform(values, groups, name, size=size)
                for name in ("softmax", "normalize")}  # fmt: skip
    weights = values[:, 0].abs()
    results["sum"] = gatherum.aggregate(values, groups, groups, size, "add")
    results["weighted"] = gatherum.aggregate(values, groups, groups, size, "add", weights)
    prepared = gatherum.prepare("scatter_slices", ((size, values.shape[1]), "f4"), groups.cpu(),
                                reduction="add")  # fmt: skip
    for each in range(2):
        results[f"prepared {each}"] = prepared(values.new_zeros(size, values.shape[1]), values)
    return results


@pytest.mark.parametrize("count", [100, 20_000, 200_000])
def test_functions_of_several_scatters(count):
    rng = torch.Generator().manual_seed(count)
    values = torch.randn(count, 5, generator=rng)
    groups = torch.randint(0, count // 10, (count,), generator=rng)
    leaf, there = values.clone().requires_grad_(), values.to(GPU).requires_grad_()
    results, expected = of_groups(there, groups.to(GPU)), of_groups(leaf, groups)
    for name, result in results.items():
        assert same_bits(result.detach().cpu().numpy(), expected[name].detach().numpy()), name
    for each in (results, expected):
        scale = torch.arange(each["sum"].numel(), device=each["sum"].device) % 7
        total = (each["sum"] * scale.reshape(each["sum"].shape)).sum()
        (each["softmax"].square().sum() + total).backward()
    assert same_bits(there.grad.cpu().numpy(), leaf.grad.numpy())


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("op", OPERATORS)
def test_strides(op, dtype):
    there, back = FUNCTIONS["torch"].to_device, FUNCTIONS["torch"].to_host
    random = np.random.default_rng(5)
    data = random.integers(0, 9, (5, 7, 6)).astype(dtype)
    index = random.integers(-5, 5, (4, 7, 6))
    index = index[..., :2] if op.endswith("_nd") else index
    index = index[:, 0, 0] if op in ("gather", "scatter_slices") else index
    operands = [data, index]
    if op in SCATTERS:
        row = gatherum.plan(GATHER_OF[op], data, index)
        operands.append(random.integers(0, 9, row.shape).astype(dtype))
    fold = {"reduction": "add"} if op in SCATTERS else {}
    expected = getattr(gatherum, op)(*operands, **fold)
    tensors = [laid_out(there(a), n) for n, a in enumerate(operands)]
    assert same_bits(back(getattr(gatherum, op)(*tensors, **fold), expected.dtype), expected)


@pytest.mark.parametrize("framework", FUNCTIONS)
@pytest.mark.parametrize("op", SCATTERS)
def test_scatters_in_place(op, framework):
    there, back = FUNCTIONS[framework].to_device, FUNCTIONS[framework].to_host
    case = next(c for c in CASES if c.op == op and c.data.dtype in OF[framework])
    data, *others = map(there, (case.data, case.indices, case.updates))
    assert getattr(gatherum.cuda, op)(data, *others, **dict(case.attributes), out=data) is data
    assert same_bits(back(data, case.data.dtype), case.expected)


# Runs for threads, for warps, and for blocks: destinations and updates.
RUNS = [(1 << 16, 1 << 18), (1 << 16, 1 << 20), (1 << 12, 1 << 20), (7, 1 << 18), (1, 100_000)]


@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i4", "u8"])
@pytest.mark.parametrize(("bins", "updates"), RUNS)
def test_long_runs(dtype, reduction, bins, updates):
    if not is_reducible(np.dtype(dtype), reduction):
        return
    random = np.random.default_rng(bins)
    near_one = 1 + (random.random(updates) - 0.5) / 64
    values = (near_one if np.dtype(dtype).kind in "fc" else random.integers(0, 99, updates)).astype(
        dtype
    )
    data, index = np.ones(bins, dtype), random.integers(0, bins, updates)
    for include_self in (True, False):
        more = {"reduction": reduction, "include_self": include_self}
        expected = gatherum.scatter_slices(data, index, values, **more)
        for functions in FUNCTIONS.values():
            assert same_bits(functions.scatter_slices(data, index, values, **more), expected)


def test_runs_repeat_their_bits():
    index = torch.randint(1 << 18, (1 << 22,), device=GPU)
    updates = torch.randn(1 << 22, device=GPU)
    data = torch.zeros(1 << 18, device=GPU)
    results = [gatherum.scatter_slices(data, index, updates, reduction="add") for _ in range(5)]
    assert all(torch.equal(results[0], other) for other in results[1:])


def test_the_last_of_equal_places_stays():
    index = torch.randint(1000, (1 << 20,), device=GPU)
    updates = torch.arange(1 << 20, device=GPU)
    result = gatherum.scatter_slices(torch.full((1000,), -1, device=GPU), index, updates)
    expected = gatherum.scatter_slices(
        np.full(1000, -1), index.cpu().numpy(), updates.cpu().numpy()
    )
    assert same_bits(result.cpu().numpy(), expected)


@pytest.mark.parametrize("op", SCATTERS)
def test_an_invalid_index_writes_nothing(op):
    data = torch.arange(40_000.0, device=GPU).reshape(-1, 4)
    index = torch.randint(len(data), (9000,), device=GPU)
    index[5000], index[7000] = 10**9, -(10**9)
    if op != "scatter_slices":
        index = index[:, None]
    before = data.clone()
    with pytest.raises(IndexError, match=r"index 1000000000 is out of bounds.*indices\[5000"):
        getattr(gatherum, op)(data, index, torch.zeros((), device=GPU), out=data)
    assert torch.equal(data, before)
    inside = gatherum.scatter_slices(data, index.flatten(), torch.ones((), device=GPU), mode="drop")
    assert int((inside != before).any(-1).sum()) > 0


def test_far_offsets():
    """Offsets past 2^32 bytes and 2^31 elements, if the device has enough memory."""
    if torch.cuda.mem_get_info()[0] < 12 << 30:
        pytest.skip("needs 12 GiB of free memory on the device")
    data = torch.zeros((1 << 31) + 64, 2, dtype=torch.int8, device=GPU)
    rows = torch.tensor([0, 1 << 31, (1 << 31) + 62, -1], device=GPU)
    data[rows] = torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8]], dtype=torch.int8, device=GPU)
    assert torch.equal(gatherum.gather(data, rows), data[rows])
    gatherum.scatter_slices(data, rows, torch.ones((), dtype=torch.int8, device=GPU),
                            reduction="add", out=data)  # fmt: skip
    assert data[1 << 31].tolist() == [4, 5]
    assert data[(1 << 31) + 62].tolist() == [6, 7]
    assert data[(1 << 31) + 63].tolist() == [8, 9]


def test_another_stream():
    stream = torch.cuda.Stream()
    index = torch.randint(1 << 20, (1 << 22,), device=GPU)
    table = torch.zeros(1 << 20, device=GPU)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for number in range(50):  # each gather waits for the preceding fill on this stream
            table.fill_(number)
            result = gatherum.gather(table, index, mode="clip")
    stream.synchronize()
    assert torch.equal(result, torch.full_like(result, 49))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_a_graph_is_captured_and_replayed(reduction):
    data, updates = torch.zeros(1000, device=GPU), torch.randn(4096, device=GPU)
    index = torch.randint(1000, (4096,), device=GPU)

    def run():
        return gatherum.scatter_slices(data, index, updates, reduction=reduction, mode="drop")

    run()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()
    updates.copy_(torch.randn(4096, device=GPU))
    index.copy_(torch.randint(1000, (4096,), device=GPU))
    graph.replay()
    assert torch.equal(result, run())


def test_calls_that_wait_raise_during_a_capture():
    data, index = torch.zeros(1000, device=GPU), torch.zeros(4, dtype=torch.int64, device=GPU)
    gatherum.gather(data, index)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        data.fill_(0)  # torch warns about an empty graph
        try:
            with pytest.raises(
                RuntimeError, match="must not be 'raise' while a CUDA graph is capt"
            ):
                gatherum.gather(data, index)
            with pytest.raises(
                RuntimeError, match="must be on the device while a CUDA graph is ca"
            ):
                gatherum.gather(data, [1, 2], mode="clip")
        finally:
            graph.capture_end()


def test_a_graph_of_cupy_has_its_memory_to_itself():
    data, updates = cupy.zeros(1000, "f4"), cupy.random.random(4096, "f4")
    index = cupy.random.randint(0, 1000, 4096)

    def run():
        return gatherum.scatter_slices(data, index, updates, reduction="add", mode="drop")

    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        expected = run()  # compiles, and fills the pool of this stream
        stream.begin_capture()
        result = run()
        graph = stream.end_capture()
        others = [cupy.ones(1 << size, "u1") for size in range(8, 20) for _ in range(8)]
        graph.launch(stream)
        stream.synchronize()
    assert same_bits(result.get(), expected.get())
    assert all(bool((other == 1).all()) for other in others)


def test_arrays_that_are_known_by_protocol_are_not_captured():
    data, index = cupy.zeros(1000, "f4"), cupy.zeros(4, "i8")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        gatherum.gather(Array(data), Array(index), mode="clip")
        stream.begin_capture()
        try:
            with pytest.raises(RuntimeError, match="cannot be part of a CUDA graph"):
                gatherum.gather(Array(data), Array(index), mode="clip")
            data += 1
        finally:
            stream.end_capture()


def test_graphs_that_inductor_makes():
    """Mode "raise" waits, so the op is not captured, but the code around it is."""
    data, index = torch.randn(100, 8, device=GPU), torch.randint(100, (50,), device=GPU)

    def function(data, index):
        return gatherum.gather(data * 2, index).relu() + 1

    compiled = torch.compile(function, mode="reduce-overhead")
    for _ in range(4):
        assert torch.equal(compiled(data, index), function(data, index))


# torch documents that it does not detect everything.
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_modes_that_do_not_wait():
    data, index = torch.zeros(1000, device=GPU), torch.zeros(4, dtype=torch.int64, device=GPU)
    updates = torch.zeros(4, device=GPU)
    torch.cuda.set_sync_debug_mode("error")  # raises if torch would wait
    try:
        for mode in ("clip", "wrap", "fill", "drop"):
            gatherum.gather(data, index, mode=mode)
            for reduction in ("none", "add"):
                gatherum.scatter_slices(data, index, updates, mode=mode, reduction=reduction)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("reduction", ("none", *FOLDS))
@pytest.mark.parametrize("op", OPERATORS)
def test_gradients_are_those_of_the_host(op, reduction):
    if op not in SCATTERS and reduction != "none":
        return
    data = torch.randn(6, 4, dtype=torch.float32)
    index = torch.tensor([[0, 3, 1, 5], [3, -1, 3, 3]])
    updates = torch.randn(2, 4, 4) if "elements" not in op else torch.randn(2, 4)
    index = index[..., None] if op.endswith("_nd") else index
    fold = {"reduction": reduction} if op in SCATTERS else {}
    gradients = []
    for place in ("cpu", "cuda"):
        operands = [t.to(place).detach().requires_grad_() for t in (data, updates)]
        call = (operands[0], index.to(place), operands[1])
        result = getattr(gatherum, op)(*call[: 3 if op in SCATTERS else 2], **fold)
        needed = operands if op in SCATTERS else operands[:1]
        weights = torch.linspace(1, 2, result.numel(), device=place).reshape(result.shape)
        gradients.append([result, *torch.autograd.grad((result * weights).sum(), needed)])
    for host, there in zip(*gradients, strict=True):
        # torch's own multiplications and divisions may round differently.
        torch.testing.assert_close(there.cpu(), host, rtol=1e-6, atol=1e-6)
    assert torch.equal(gradients[0][0], gradients[1][0].cpu())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("func", ["softmax", "log_softmax", "logsumexp"])
def test_groups_have_the_bits_of_the_host(func, dtype):
    values, groups = 8 * torch.randn(5000, 4, dtype=torch.float64), torch.randint(90, (5000,))
    call = gatherum.groups.reduce if func == "logsumexp" else gatherum.groups.transform
    values = values.to(dtype)
    result = call(values.to(GPU), groups.to(GPU), func=func, size=90)
    assert torch.equal(result.cpu(), call(values, groups, func=func, size=90))


def test_a_compiled_graph():
    data, index = torch.randn(100, 8, device=GPU), torch.randint(100, (50,), device=GPU)

    def function(data, index):
        return gatherum.gather(data * 2, index, mode="clip").relu()

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(data, index), function(data, index))


@pytest.mark.parametrize("as_array", [cupy.asarray, lambda t: torch.as_tensor(t, device=GPU)])
def test_arrays_that_only_have_the_protocol(as_array):
    values = np.arange(12.0).reshape(4, 3)
    result = gatherum.gather(Array(values), Array(np.array([3, 1])))
    assert isinstance(result, gatherum.cuda.DeviceArray)
    assert as_array(result).tolist() == values[[3, 1]].tolist()
    counted = gatherum.scatter_nd(Array(np.zeros(4, np.int64)), [[1], [1]], [5, 6], reduction="add")
    assert as_array(counted).tolist() == [0, 11, 0, 0]


def test_cub_sorts_where_no_framework_does():
    pytest.importorskip("cuda.compute", reason="install cuda-cccl[minimal-cu13]")
    random = np.random.default_rng(7)
    for dtype, size, count in (("f4", 7, 5000), ("f8", 1 << 20, 1 << 21), ("f2", 300, 100_000)):
        index = random.integers(0, size, count)
        operands = np.zeros(size, dtype), index, random.standard_normal(count).astype(dtype)
        expected = gatherum.scatter_slices(*operands, reduction="add")
        result = gatherum.scatter_slices(*map(Array, operands), reduction="add")
        assert same_bits(cupy.asnumpy(cupy.asarray(result)), expected)


def test_two_devices_are_named():
    data = torch.zeros(3, device=GPU)
    with pytest.raises(
        TypeError, match=r"`indices` must be on the device of `data`, cuda:0, got cpu"
    ):
        gatherum.gather(data, torch.tensor([0]))
    with pytest.raises(
        TypeError, match=r"a torch.Tensor as `data` and a cupy.ndarray as `indices`"
    ):
        gatherum.gather(data, cupy.array([0]))


def test_empty_operands():
    for shape, index in (((0, 3), (0,)), ((4, 0), (2,)), ((4, 3), (0,))):
        data = torch.zeros(shape, device=GPU)
        result = gatherum.gather(data, torch.zeros(index, dtype=torch.int32, device=GPU))
        assert tuple(result.shape) == index + shape[1:]


def test_the_floor_and_the_plan():
    call = "gather", torch.zeros(1 << 20, 128, device=GPU), torch.arange(1 << 20, device=GPU)
    explained = gatherum.explain(*call)
    assert explained.plan.algorithm == "gather"
    seconds, words = explained.floor()
    assert 0 < seconds < 1
    assert "a copy on cuda:0" in words


def test_repeated_calls_after_an_error():
    data = torch.arange(5.0, device=GPU)
    for _ in range(3):
        with pytest.raises(IndexError, match=r"index 9 .*indices\[1\]"):
            gatherum.gather(data, torch.tensor([0, 9], device=GPU))
        assert gatherum.gather(data, [4]).tolist() == [4.0]


def test_calls_by_name():
    call = Call("gather", (np.arange(5.0), np.array([1, 2])), {})
    for functions in FUNCTIONS.values():
        assert same_bits(call.run(functions), np.array([1.0, 2.0]))
