"""The CUDA kernels on this processor past 2^31 and 2^32 elements and bytes, in sparse files."""

import numpy as np
import pytest
from shim.device import AT_ONCE, COMPILER, NO_COMPILER, ShimDevice
from shim.functions import ShimFunctions

import gatherum
from gatherum.cuda import checks, plan_launches, programs
from gatherum.cuda.device_nests import device_nest
from gatherum.cuda.launch_sizes import OFFSET_LIMIT
from gatherum.cuda.recording import CallRecording
from sparse_files import NEEDS_HOLES, PLACES

pytestmark = [
    pytest.mark.slow,
    NEEDS_HOLES,
    pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER),
    pytest.mark.skipif(AT_ONCE, reason="ThreadSanitizer's shadow of so much memory is too large"),
]


@pytest.fixture
def shim():
    return ShimFunctions()


def bits_of(shim, name):
    """Return the width of the offsets in a kernel of the last call."""
    (kernel,) = (kernel for kernel in shim.last.launches if kernel.name == name)
    return int(dict(kernel.macros)["OFFSET_BITS"])


@pytest.mark.parametrize("index", ["i8", "u8"])
@pytest.mark.parametrize("dtype", ["u1", "f4", "c16", "S3"])
def test_gathers_of_items(space, shim, dtype, index):
    item = np.dtype(dtype).itemsize
    data = space((2**32 + 4096) * item).array(dtype)
    places = np.append(PLACES, data.size - 1)
    data[places] = np.arange(1, len(places) + 1).astype(dtype)
    expected = data[places].tolist()
    assert shim.gather(data, places.astype(index)).tolist() == expected
    assert bits_of(shim, "gather") == 64
    assert shim.gather_elements(data[::-1], data.size - 1 - places).tolist() == expected
    if index == "i8":
        assert shim.gather_nd(data, (places - data.size)[:, None]).tolist() == expected
    for bad in (data.size, 2**62, 2**63 - 1):
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds .* size {data.size} "):
            shim.gather(data, np.array([0, bad], index))


def test_gathers_of_rows_and_components(space, shim):
    data = space(5 * 2**32).array("f4", (5, 2**16, 2**14))
    data[4, -1, -40:] = np.arange(40)
    data[2, 1, 8:48] = np.arange(100, 140)
    pairs = np.array([[4, 2**16 - 1], [2, 1], [-1, -1]])
    result = shim.gather_nd(data[:, :, 8:48], pairs)
    assert result[1].tolist() == list(range(100, 140))
    result = shim.gather_nd(data[:, :, -40:], pairs)
    assert result[0].tolist() == result[2].tolist() == list(range(40))


def test_indices_and_results_far_apart(space, shim):
    indices = space(5 * 2**32).array("i8", (5,), (2**32,))
    indices[...] = [3, 1, -1, 0, 2]
    sparse = space(4 * 2**32 + 16)
    out = sparse.array("f4", (5, 3), (2**32, 4))
    data = np.arange(1, 13, dtype="f4").reshape(4, 3)
    assert shim.gather(data, indices, out=out) is out
    assert out.tolist() == data[[3, 1, -1, 0, 2]].tolist()
    assert sparse.holds(out)


@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
@pytest.mark.parametrize("reduction", ["none", "add", "max", "mean"])
def test_scatters_of_items(space, shim, dtype, reduction):
    sparse = space((2**32 + 4096) * np.dtype(dtype).itemsize)
    data = sparse.array(dtype)
    # Runs for a warp, and for a block.
    places = np.tile(np.append(PLACES, data.size - 1), 600 if reduction == "add" else 30)
    updates = np.arange(places.size).astype(dtype) % 100 + 1
    assert shim.scatter_elements(data, places, updates, reduction=reduction, out=data) is data
    narrow, where = np.unique(places, return_inverse=True)
    expected = np.zeros(narrow.size, dtype)
    gatherum.scatter_elements(expected, where, updates, reduction=reduction, out=expected)
    assert data[narrow].tobytes() == expected.tobytes()
    assert sparse.written() == written(sparse, data, narrow)
    names = [kernel.name for kernel in shim.last.launches]
    if reduction == "none":
        assert names == ["check", "keys", "scatter_sorted"]


def written(sparse, data, places):
    item = data.itemsize
    values = np.frombuffer(data[places].tobytes(), np.uint8)
    offsets = (places[:, None] * item + np.arange(item)).ravel()
    kept = values != 0
    return sorted(zip(offsets[kept].tolist(), values[kept].tolist(), strict=True))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatters_of_rows_far_apart(space, shim, reduction):
    sparse = space(6 * 2**32)
    data = sparse.array("f4", (6, 50), (2**32, 4))
    far = space(200 * 2**28).array("f4", (200, 50), (2**28, 4))
    far[:7] = np.arange(1, 351).reshape(7, 50)
    indices = np.array([5, 0, 5, 3, -1, 0, 1])
    expected = gatherum.scatter_slices(
        np.zeros((6, 50), "f4"), indices, far[:7].copy(), reduction=reduction
    )
    shim.scatter_slices(data, indices, far[:7], reduction=reduction, out=data)
    assert data.tobytes() == expected.tobytes()
    assert sparse.holds(data)


def test_offsets_of_32_bits_up_to_their_last(space, shim):
    """The shim's g++ aborts if a sum of 32 bits overflows."""
    for size, bits in (
        (OFFSET_LIMIT - 4096, 32),
        (OFFSET_LIMIT + 4096, 64),
        (2**31, 64),
        (2**31 + 9, 64),
    ):
        data = space(size + 4096).array("u1")[:size]
        data[[0, 100, size - 2, size - 1]] = [1, 2, 3, 4]
        places = np.array([size - 1, -1, 0, 100, -size, size - 2])
        assert shim.gather(data, places).tolist() == [4, 4, 1, 2, 1, 3]
        assert bits_of(shim, "gather") == bits
        assert shim.gather(data[::-1], places).tolist() == [1, 1, 4, 0, 4, 0]
        shim.scatter_elements(data, places, np.arange(1, 7, dtype="u1"), out=data)
        assert data[[size - 1, 0, 100, size - 2]].tolist() == [2, 5, 4, 6]


@pytest.mark.parametrize("position", [2**31 - 1, 2**31, 2**32 + 5, 2**33 - 1])
def test_positions_past_2_to_the_32(space, position):
    """A grid of that many threads would take hours: run only its last step, the search."""
    indices = space(2**33).array("i1", (2**13, 2**20))
    indices[np.unravel_index(position, indices.shape)] = 9
    data = np.zeros((3, 4), "f4")
    plan = gatherum.plan("gather", data, indices)

    class Checked(ShimDevice):
        def allocate(self, nbytes):
            record = super().allocate(nbytes)
            record.inside.view("u8")[...] = [1, ~position & (1 << 64) - 1, 0, 0, 0]
            return record

    recorder, (data, places, _, out) = programs.Recorder(), map(programs.Slot, range(4))
    call = CallRecording(recorder, 2, plan, device_nest(plan), data, places, out)
    record = recorder.allocate(checks.RECORD_BYTES)
    checks.find_component(call, record)
    checks.read_record(call, record)
    content = Checked().run_program(recorder.program(), (0, indices.ctypes.data, 0, 0))
    count, inverse, result, component, value = np.frombuffer(content, "u8").tolist()
    assert (count, ~inverse & (1 << 64) - 1, result, component, value) == (1, position, 1, 0, 9)


def test_the_formula_of_scratch_for_large_calls():
    table = ((2**33,), "u1")
    few = gatherum.plan("scatter_elements", table, ((8,), "i8"), ((8,), "u1"), mode="drop")
    assert plan_launches.scratch_bytes(few) == 2 * 8 * (8 + 4)
    many = (2**32 + 8,)
    plan = gatherum.plan("scatter_elements", table, (many, "i8"), (many, "u1"), mode="drop")
    assert plan_launches.scratch_bytes(plan) == 2**33 * 8
