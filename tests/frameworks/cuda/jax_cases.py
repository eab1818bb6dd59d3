"""Calls on JAX arrays on a device, over `jax_device.py`. `test_cuda_jax.py` runs this file.

It needs a separate process, because JAX keeps its handlers and compiled functions.
"""

import ctypes
import json

import jax
import jax.numpy as jnp
import jax_device
import numpy as np
import pytest
import stand_in
from doubles import sort_on_host
from shim.device import ShimDevice

import gatherum
import xla_frames
from gatherum._system import native
from gatherum.cuda import cub, nvidia, radix_sort
from gatherum.cuda.device import Kernel
from gatherum.jax import device_programs, private
from python_calls import python_calls

FAKE = stand_in.Driver()
stand_in.compile_nothing()
SHIM = ShimDevice()
XLA = jax_device.use()
slow = pytest.mark.slow  # compiles kernels


@ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
def run_kernel(code, arguments, grid, block):
    _, _, name, *macros = code.decode().split()
    kernel = Kernel.of(name, **dict(each.split("=") for each in macros))
    SHIM.launch(kernel, grid, block, ctypes.string_at(arguments, stand_in.struct_bytes(kernel)))


@pytest.fixture(autouse=True)
def _memory_is_freed():
    FAKE.run(run_kernel)
    yield
    FAKE.run(None)
    assert XLA.number("blocks").value == 0
    assert not SHIM.strays()


DATA = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
ROWS = np.array([3, 0, -1, 3], np.int32)
UPDATES = np.arange(12, dtype=np.float32).reshape(4, 3) * 5 - 20
PLACES = np.array([[3, 0, 1], [0, 2, -1], [3, 3, 3], [-4, 1, 0]], np.int32)
TUPLES = np.array([[3, 0], [0, 2], [-1, -1], [3, 0]], np.int32)
ITEMS = UPDATES[:, 0].copy()
CALLS = {
    "gather": (DATA, ROWS),
    "gather_elements": (DATA, PLACES),
    "gather_nd": (DATA, TUPLES),
    "scatter_slices": (DATA, ROWS, UPDATES),
    "scatter_elements": (DATA, PLACES, UPDATES),
    "scatter_nd": (DATA, TUPLES, ITEMS),
}
# One block sorts fewer updates.
MANY = DATA, np.resize(ROWS, 4097), np.resize(UPDATES, (4097, 3))
MANY_ITEMS = DATA[:, 0], MANY[1], MANY[2][:, 0]
SCATTERS = [op for op in CALLS if op.startswith("scatter")]


def moved(arrays):
    return [jnp.asarray(array) for array in arrays]


def check(op, arrays, jit=False, **attributes):
    """Compare the bits of calls on JAX arrays and on NumPy arrays."""
    function = getattr(gatherum, op)
    expected = function(*arrays, **attributes)
    run = jax.jit(lambda *each: function(*each, **attributes)) if jit else function
    result = run(*moved(arrays)) if jit else run(*moved(arrays), **attributes)
    assert result.dtype == expected.dtype
    assert np.asarray(result).tobytes() == expected.tobytes(), (result, expected)


@slow
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("op", CALLS)
def test_every_operator(op, jit):
    for mode in ("raise", "clip", "drop"):
        check(op, CALLS[op], jit, mode=mode)
    before = len(SHIM.launches)
    check(op, CALLS[op], jit, mode="clip")
    assert len(SHIM.launches) > before


@slow
@pytest.mark.parametrize("op", SCATTERS)
def test_every_reduction(op):
    for reduction in ("add", "max"):
        check(op, CALLS[op], reduction=reduction)
    check(op, CALLS[op], reduction="mean", include_self=False, mode="wrap")


@slow
def test_integers_use_atomics():
    data, updates = (np.arange(12, dtype=np.int32).reshape(4, 3) for _ in range(2))
    before = len(SHIM.launches)
    check("scatter_slices", (data, ROWS, updates), reduction="add", mode="clip")
    assert [kernel.name for kernel in SHIM.launches[before:]] == ["fold_atomic"]


@slow
def test_fill_values_and_half_precision():
    rows = np.array([1, 7, -9], np.int32)
    for fill in (0, 2.5, np.nan):
        check("gather", (DATA, rows), mode="fill", fill_value=fill)
    half = moved([DATA.astype(np.float16)])[0].astype(jnp.bfloat16)
    updates = half[:, ::-1]
    result = gatherum.scatter_slices(half, ROWS, updates, reduction="add")
    expected = gatherum.scatter_slices(*map(np.asarray, (half, ROWS, updates)), reduction="add")
    assert np.asarray(result).tobytes() == expected.tobytes()


@slow
@pytest.mark.parametrize("op", CALLS)
def test_the_error_of_an_invalid_index(op):
    data, indices, *updates = CALLS[op]
    indices = indices.copy()
    indices[(2, *(0 for _ in indices.shape[1:]))] = 9
    function = getattr(gatherum, op)
    with pytest.raises(IndexError) as expected:
        function(data, indices, *updates)
    arrays = moved((data, indices, *updates))
    for _ in range(2):
        with pytest.raises(IndexError) as raised:
            function(*arrays)
        assert str(raised.value) == str(expected.value)
    with pytest.raises((RuntimeError, ValueError)) as raised:
        jax.block_until_ready(jax.jit(function)(*arrays))
    assert str(expected.value) in str(raised.value)
    assert np.array_equal(arrays[0], data)


@slow
def test_an_axis_of_size_0():
    empty, rows = np.empty((2, 0), np.float32), np.array([0, 5], np.int32)
    for mode in ("raise", "clip", "wrap"):
        with pytest.raises(IndexError) as expected:
            gatherum.gather(empty, rows, axis=1, mode=mode)
        with pytest.raises(IndexError) as raised:
            gatherum.gather(*moved((empty, rows)), axis=1, mode=mode)
        assert str(raised.value) == str(expected.value)
    check("gather", (empty, rows), axis=1, mode="drop")
    check("gather", (empty, rows[:0]), axis=1)
    check("gather", (DATA, rows[:0]))


@slow
def test_donated_data_are_changed_in_place():
    def add(data, rows, updates):
        return gatherum.scatter_slices(data, rows, updates, reduction="add", mode="clip")

    before = len(SHIM.launches)
    result = jax.jit(add, donate_argnums=0)(*moved((DATA, ROWS, UPDATES)))
    assert [kernel.name for kernel in SHIM.launches[before:]] == ["fold_small"]
    assert np.asarray(result).tobytes() == add(DATA, ROWS, UPDATES).tobytes()


@slow
def test_batches():
    data, rows, updates = (np.stack([array, array[::-1]]) for array in (DATA, ROWS % 4, UPDATES))
    taken = jax.vmap(gatherum.gather)(*moved((data, rows)))
    sums = jax.vmap(lambda *each: gatherum.scatter_slices(*each, reduction="add"))(
        *moved((data, rows, updates))
    )
    for i in range(2):
        expected = gatherum.gather(data[i], rows[i])
        assert np.asarray(taken[i]).tobytes() == expected.tobytes()
        expected = gatherum.scatter_slices(data[i], rows[i], updates[i], reduction="add")
        assert np.asarray(sums[i]).tobytes() == expected.tobytes()


@slow
@pytest.mark.parametrize("reduction", ["none", "add", "max", "mul"])
def test_derivatives(reduction):
    def total(data, updates):
        result = gatherum.scatter_slices(data, moved([ROWS])[0], updates, reduction=reduction)
        return (result * jnp.arange(3)).sum()

    arrays = moved((DATA, UPDATES))
    gradients = jax.jit(jax.grad(total, (0, 1)))(*arrays)
    with jax_device.lowered_for("cpu"):
        expected = jax.jit(jax.grad(total, (0, 1)))(*arrays)
    for gradient, each in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, each, rtol=1e-6)
    change = arrays[0] + 1
    _, tangent = jax.jvp(lambda data: total(data, arrays[1]), arrays[:1], [change])
    np.testing.assert_allclose(tangent, (gradients[0] * change).sum(), rtol=1e-5)


@slow
def test_the_gradient_of_a_gather():
    gradient = jax.grad(lambda data: gatherum.gather(data, moved([ROWS])[0]).sum())
    assert gradient(moved([DATA])[0]).tolist() == [[1] * 3, [0] * 3, [0] * 3, [3] * 3]


@slow
def test_groups_and_aggregate():
    values, groups = DATA.ravel() * 3, np.array([0, 2, 1, 0, 2, 2, 1, 0, 0, 1, 2, 1], np.int32)
    for func in ("sum", "mean", "max"):
        expected = gatherum.groups.reduce(values, groups, 3, func)
        result = gatherum.groups.reduce(*moved((values, groups)), 3, func)
        assert np.asarray(result).tobytes() == expected.tobytes()
    expected = gatherum.groups.transform(values, groups, "softmax")
    result = gatherum.groups.transform(*moved((values, groups)), "softmax")
    assert np.asarray(result).tobytes() == expected.tobytes()
    weights = UPDATES[:, 0].copy()
    edges = ROWS % 4, np.array([0, 1, 1, 0], np.int32)
    expected = gatherum.aggregate(DATA, *edges, 2, "add", weights)
    data, *edges, scale = moved((DATA, *edges, weights))
    result = gatherum.aggregate(data, *edges, 2, "add", scale)
    assert np.asarray(result).tobytes() == expected.tobytes()


@pytest.fixture
def sorts(monkeypatch):
    """Let CUB sort the updates of small calls, too, and count its sorts."""
    counted = []

    def sort(framework, pairs, *place):
        counted.append(pairs)
        return sort_on_host(framework, pairs, *place)

    monkeypatch.setattr(cub, "sort_with_cub", sort)
    monkeypatch.setattr(radix_sort, "MOST_PAIRS", 0)
    return counted


def rows_of_groups(count=5000):
    rng = np.random.default_rng(7)
    values = rng.standard_normal((count, 3)).astype(np.float32)
    return values, rng.integers(-5, 5, count).astype(np.int32)


@slow
@pytest.mark.parametrize("mode", ["raise", "drop"])
@pytest.mark.parametrize("func", ["softmax", "normalize"])
def test_a_compiled_composition_sorts_once(sorts, func, mode):
    values, groups = rows_of_groups()
    groups = groups if mode == "drop" else groups % 5

    def call(values, groups):
        return gatherum.groups.transform(values, groups, func, size=5, mode=mode)

    result = jax.jit(call)(*moved((values, groups))).block_until_ready()
    # The counts of `normalize` are single numbers, which are sorted together with their groups.
    assert len(sorts) == (1 if func == "softmax" else 2)
    with jax_device.lowered_for("cpu"):
        expected = jax.jit(call)(*moved((values, groups)))
    assert np.asarray(result).tobytes() == np.asarray(expected).tobytes()


@slow
def test_a_gradient_uses_the_sort_of_the_values(sorts):
    def total(values, groups):
        result = gatherum.groups.transform(values, groups, "softmax", size=5)
        return (result * jnp.arange(3)).sum()

    values, groups = rows_of_groups()
    arrays = moved((values, groups % 5))
    gradient = jax.jit(jax.grad(total))(*arrays).block_until_ready()
    assert len(sorts) == 1
    with jax_device.lowered_for("cpu"):
        expected = jax.jit(jax.grad(total))(*arrays)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)


@slow
@pytest.mark.parametrize("axis", [0, 1])
def test_errors_and_results_of_a_separate_sort(sorts, axis):
    values, groups = rows_of_groups()
    values = np.ascontiguousarray(values.T) if axis else values
    table = np.ones((3, 5) if axis else (5, 3), np.float32)
    options = {"axis": axis, "reduction": "mul"}
    check("scatter_slices", (table, groups, values), jit=True, **options)
    check("scatter_nd", (DATA.reshape(4, 3)[:, :2], np.resize(ROWS, (4097, 1)),
                         np.resize(UPDATES, (4097, 2))), reduction="mean")  # fmt: skip
    assert len(sorts) == 2
    groups[4000] = 5
    with pytest.raises(IndexError) as expected:
        gatherum.scatter_slices(table, groups, values, **options)
    with pytest.raises(IndexError) as raised:
        gatherum.scatter_slices(*moved((table, groups, values)), **options)
    assert str(raised.value) == str(expected.value)


@slow
@pytest.mark.skipif(private.is_old, reason="calls on several devices need JAX 0.7")
def test_several_devices():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), "x")
    share = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    rows = jax.device_put(moved([ROWS])[0], share)
    expected = gatherum.gather(DATA, ROWS)
    result = gatherum.gather(moved([DATA])[0], rows)
    assert result.sharding.is_equivalent_to(share, 2)
    assert np.asarray(result).tobytes() == expected.tobytes()
    spec = jax.sharding.PartitionSpec("x")
    each = jax.shard_map(
        lambda part: gatherum.gather(moved([DATA])[0], part, mode="clip", negative=False),
        mesh=mesh,
        in_specs=spec,
        out_specs=spec,
    )
    result = jax.jit(each)(moved([ROWS % 4])[0])
    assert np.asarray(result).tobytes() == gatherum.gather(DATA, ROWS % 4).tobytes()


# Without kernels.


def target_of(op, *arrays, **attributes):
    """Return the target of a call when it is lowered for CUDA devices."""
    traced = jax.jit(lambda *each: getattr(gatherum, op)(*each, **attributes)).trace(*moved(arrays))
    return "recordable" if "device_recordable_call" in traced.lower().as_text() else "other"


@pytest.mark.parametrize(
    ("expected", "op", "attributes"),
    [
        ("recordable", "gather", {"mode": "clip"}),
        ("recordable", "gather", {"mode": "fill"}),
        ("recordable", "gather_nd", {"mode": "drop"}),
        ("other", "gather", {}),
        ("recordable", "gather", {"mode": "fill", "fill_value": 1.5}),
        ("recordable", "scatter_slices", {"mode": "clip"}),
        ("recordable", "scatter_slices", {"mode": "clip", "reduction": "add"}),
    ],
)
def test_calls_that_xla_may_capture(expected, op, attributes):
    assert target_of(op, *CALLS[op], **attributes) == expected


def test_calls_without_a_library_sort_may_be_captured(monkeypatch):
    many = "scatter_slices", *MANY_ITEMS
    assert target_of(*many, mode="clip", reduction="add") == "recordable"
    monkeypatch.setattr(radix_sort, "MOST_PAIRS", 0)
    assert target_of(*many, mode="clip", reduction="mul") == "other"
    integers = (DATA.astype(np.int32), ROWS, UPDATES.astype(np.int32))
    assert target_of("scatter_slices", *integers, mode="clip", reduction="add") == "recordable"
    one = (DATA, ROWS[:1], UPDATES[:1])
    assert target_of("scatter_slices", *one, mode="clip") == "recordable"


@pytest.mark.parametrize("mode", ["raise", "clip"])
def test_a_capture(mode):
    """Scratch memory of a captured call is a result of the call."""
    FAKE.run(None)
    arrays = moved((DATA, ROWS, UPDATES))
    run = jax.jit(lambda *each: gatherum.scatter_slices(*each, mode=mode))
    run(*arrays).block_until_ready()
    XLA.number("stream").value = 40  # of which libcuda.c reports a capture
    before = XLA.number("allocated").value
    try:
        if mode == "clip":
            run(*arrays).block_until_ready()
        else:
            with pytest.raises((RuntimeError, ValueError), match="cannot be captured"):
                run(*arrays).block_until_ready()
    finally:
        XLA.number("stream").value = 48
    assert XLA.number("allocated").value == before


@pytest.mark.parametrize("mode", ["raise", "clip"])
def test_only_mode_raise_waits_and_calls_use_the_stream_of_xla(mode):
    FAKE.run(None)
    run = jax.jit(lambda data, rows: gatherum.gather(data, rows, mode=mode))
    arrays = moved((DATA, ROWS))
    jax.block_until_ready(run(*arrays))
    with FAKE.logged() as lines:
        jax.block_until_ready(run(*arrays))
    names = [line.split()[0] for line in lines if "attribute" not in line]
    assert names == (["launch"] if mode == "clip" else ["at", "launch", "at", "wait"])
    assert " stream 48 " in next(line for line in lines if line.startswith("launch"))
    before = XLA.number("allocated").value
    jax.block_until_ready(run(*arrays))
    assert XLA.number("allocated").value - before == (mode == "raise")  # the record


def test_a_second_call_runs_without_python():
    FAKE.run(None)
    run = jax.jit(lambda data, rows: gatherum.gather(data, rows, mode="clip"))
    arrays = moved((DATA, ROWS))
    run(*arrays)
    assert python_calls(run, *arrays) == []


def test_errors_of_the_driver_and_of_the_memory():
    FAKE.run(None)
    arrays = moved((DATA, ROWS, UPDATES))
    FAKE.fail_after(0)
    with pytest.raises((RuntimeError, ValueError), match="cuLaunchKernel failed with status 719"):
        jax.block_until_ready(gatherum.gather(*arrays[:2], mode="clip"))
    FAKE.fail_after(-1)
    XLA.has_memory(False)
    with pytest.raises((RuntimeError, ValueError), match="RESOURCE_EXHAUSTED: XLA's words"):
        jax.block_until_ready(gatherum.scatter_slices(*arrays))
    XLA.has_memory(True)


def test_errors_of_a_sort(monkeypatch):
    FAKE.run(None)
    arrays = moved(MANY_ITEMS)
    run = jax.jit(lambda *each: gatherum.scatter_slices(*each, reduction="mul", mode="wrap"))
    monkeypatch.setattr(radix_sort, "MOST_PAIRS", 0)

    def fails(framework, *_):
        framework.allocate(100, 0, 0)
        raise ValueError("the sort's words")

    monkeypatch.setattr(cub, "sort_with_cub", fails)
    with pytest.raises((RuntimeError, ValueError), match="the sort's words"):
        jax.block_until_ready(run(*arrays))

    def allocates(framework, *_):
        XLA.has_memory(False)
        framework.allocate(100, 0, 0)

    monkeypatch.setattr(cub, "sort_with_cub", allocates)
    with pytest.raises((RuntimeError, ValueError), match="RESOURCE_EXHAUSTED: XLA's words"):
        jax.block_until_ready(run(*arrays))
    XLA.has_memory(True)
    monkeypatch.setattr(cub, "sort_with_cub", sort_on_host)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_sort_without_cub_raises_when_lowering(monkeypatch, columns):
    def check():
        raise ImportError("no module")

    monkeypatch.setattr(cub, "check_import", check)
    monkeypatch.setattr(radix_sort, "MOST_PAIRS", 0)
    arrays = moved((DATA[:, :columns], MANY[1], MANY[2][:, :columns]))
    with pytest.raises(NotImplementedError) as raised:
        gatherum.scatter_slices(*arrays, reduction="mul")
    assert str(raised.value) == (
        "scatter_slices: on a CUDA device, this call with reduction 'mul' sorts its updates by "
        "destination, and cuda.compute cannot be imported (no module); write pip install "
        "'cuda-cccl[minimal-cu13]>=1.1', or jax.device_put(data, jax.devices('cpu')[0])"
    )


def test_other_descriptions_are_refused(monkeypatch):
    described = device_programs.describe

    def describe(plan):
        fields = json.loads(described(plan))
        fields["operands"][0][0][0] += 1
        return json.dumps(fields)

    monkeypatch.setattr(device_programs, "describe", describe)
    with pytest.raises((RuntimeError, ValueError), match="does not match its program"):
        jax.block_until_ready(gatherum.gather(*moved((DATA[:3], ROWS[:1])), mode="clip"))


def forged(stage, **attributes):
    """Return a call of the recordable handler in a stage, as a frame of `xla_frames`."""
    plan = gatherum.plan("gather", DATA, ROWS, mode="wrap")
    call = xla_frames.Call(plan.program, [DATA, ROWS], plan.shape, DATA.dtype)
    call.attributes |= {"call": (4, device_programs.describe(plan))} | attributes
    call.stage = stage
    return call


@pytest.fixture
def forge(monkeypatch):
    address = jax_device.pointer_to(native.xla_device_handler(True))
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(xla_frames.Frame))(address)
    monkeypatch.setattr(xla_frames, "handler", handler)
    return forged


def test_initialization_loads_kernels_and_launches_nothing(forge):
    FAKE.run(None)
    before = nvidia.loaded_kernel.cache_info().misses
    with FAKE.logged() as lines:
        assert forge(2).run() is None
    assert not [line for line in lines if line.startswith("launch")]
    assert nvidia.loaded_kernel.cache_info().misses > before
    for stage in (0, 1):
        assert forge(stage).run() is None


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"call": (4, "{}")}, "'operands'"),
        ({"call": (1, (5, np.zeros(1, np.int64)))}, "the call has no description for devices"),
        ({"function": (4, "exp")}, "exp and log have one operand and one result, both buffers"),
    ],
)
def test_forged_calls_are_refused(forge, attributes, message):
    assert forge(2, **attributes).run()[1] == message


def test_the_runtime_learns_which_calls_it_may_capture():
    for is_recordable in (False, True):
        address = jax_device.pointer_to(native.xla_device_handler(is_recordable))
        handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(xla_frames.Frame))(address)
        frame, metadata = xla_frames.metadata_query()
        assert not handler(ctypes.byref(frame))
        assert (metadata.version.major, metadata.version.minor) == (0, 1)
        assert metadata.traits == is_recordable


@slow
def test_functions_of_cuda_and_explanations_take_arrays_on_a_device():
    data, rows = moved([DATA, ROWS])
    taken = gatherum.cuda.gather(data, rows)
    assert np.asarray(taken).tobytes() == DATA[ROWS].tobytes()
    explanation = gatherum.explain("gather", data, rows)
    assert (explanation.plan.device, explanation.plan.algorithm) == ("cuda", "gather")
