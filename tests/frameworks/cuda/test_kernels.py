"""The CUDA kernels on this processor: every way to run a plan, and the limits on its effects."""

import itertools
from math import prod

import numpy as np
import pytest
from shim.device import AT_ONCE, COMPILER, NO_COMPILER, ShimDevice
from shim.functions import ShimFunctions
from shim.values import RNG, values
from variants import AXES

import gatherum
from cases import CASES
from gatherum import reference
from gatherum._model.reductions import FOLDS
from gatherum.cuda import movement, plan_launches, radix_sort, small_scatters, sorted_updates
from gatherum.cuda.kernel_tables import DeviceLoop, common_alignment, divisor_of, largest_number
from strategies import INDEX_DTYPES, MODES, same_bits

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER),
    pytest.mark.usefixtures("several_launches"),
]
slow = pytest.mark.slow  # compiles each variant of a kernel, a third of a second each


def rows(count, columns, dtype="f4"):
    return np.arange(count * columns).reshape(count, columns).astype(dtype)


# --- Quick: one call of each way, on few variants


@pytest.fixture
def shim():
    return ShimFunctions()


def test_a_gather_is_one_launch(shim):
    data = rows(6, 40)
    result = shim.gather(data, np.array([5, -1, 0]), mode="drop")
    assert result.tolist() == data[[5, 5, 0]].tolist()
    assert shim.last.names() == ["gather"]
    assert shim.last.reads == 0


def test_of_updates_that_meet_the_last_wins(shim):
    data, indices = rows(6, 40), np.array([3, 1, 3, 3, 7])
    updates = RNG.random((5, 40), np.float32)
    result = shim.scatter_slices(data, indices, updates, mode="drop")
    assert same_bits(result, reference.scatter_slices(data, indices, updates, mode="drop"))
    assert shim.last.names() == ["gather", "winners", "scatter"]
    assert shim.last.reads == 0


@pytest.mark.parametrize("count", [1, 2])
def test_one_update_has_nothing_to_meet(shim, count):
    data, indices = rows(6, 40), np.array([3, 3])[:count]
    updates = RNG.random((count, 40), np.float32)
    result = shim.scatter_slices(data, indices, updates, mode="drop")
    assert same_bits(result, reference.scatter_slices(data, indices, updates, mode="drop"))
    assert shim.last.names() == ["gather", *["winners"] * (count > 1), "scatter"]


def test_a_call_that_raises_writes_nothing_and_names_the_position(shim):
    data, updates = rows(6, 40), RNG.random((5, 40), np.float32)
    place = data.copy()
    indices = np.array([3, 1, 6, 3, -7])
    with pytest.raises(IndexError) as caught:
        shim.scatter_slices(place, indices, updates, out=place)
    with pytest.raises(IndexError) as expected:
        gatherum.scatter_slices(place, indices, updates, out=place)
    assert str(caught.value) == str(expected.value)
    assert same_bits(place, data)
    assert shim.last.names()[:3] == ["check", "winners", "scatter"]


def test_numbers_are_divided_by_multiplication():
    for bits in (32, 64):
        high = (1 << (bits - 1)) - 1
        for extent in [*range(1, 70), 2**16 - 1, 2**16 + 1, high // 3, high - 1, high]:
            _, magic, shift = divisor_of(extent, bits)
            assert magic < 1 << bits
            for n in (0, 1, extent - 1, extent, extent + 1, high // 2, high - 1, high):
                if n <= high:
                    assert (2 * n * magic >> bits) >> shift == n // extent


def test_alignment_and_reach():
    assert common_alignment(16, 0) == 16
    assert common_alignment(16, -24, 64) == 8
    assert common_alignment(8, 5, 16) == 1
    assert (
        largest_number((DeviceLoop(10, data=-8, moved=3), DeviceLoop(5, data=100)), (), 0)
        == 9 * 8 + 4 * 100
    )


# --- Every way, on many variants


@slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_cases(case, shim):
    assert same_bits(case.run(shim), case.expected)


@slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INDEX_DTYPES, ids=str)
def test_every_index_dtype_and_mode(shim, dtype, mode):
    data = values((5, 3), "f4")
    limits = np.iinfo(dtype)
    numbers = [0, 4, 5, 6, 127, limits.max, limits.max // 2 + 1, 2, limits.min, -1, -5, -6]
    indices = np.array([n for n in numbers if limits.min <= n <= limits.max], dtype)
    updates = values((indices.size, 3), "f4")
    for negative in (True, False):
        options = {"mode": mode, "negative": negative}
        for operator, operands in (
            ("gather", (data, indices)),
            ("scatter_slices", (data, indices, updates)),
            ("gather_elements", (data, np.stack([indices] * 2, 1))),
            ("gather_nd", (data, np.stack([indices, indices[::-1]], -1))),
        ):
            for at in (slice(None), slice(0, 2)):
                few = tuple(operand if operand is data else operand[at] for operand in operands)
                expected = result_of(gatherum, operator, few, options)
                assert result_of(shim, operator, few, options) == expected, (operator, few, options)


def result_of(functions, operator, operands, options):
    try:
        return getattr(functions, operator)(*operands, **options).tobytes()
    except IndexError as error:
        return str(error)


@slow
@pytest.mark.parametrize("item", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 100, 300])
def test_items_of_every_size_and_alignment(shim, item):
    for columns, shift in itertools.product((1, 3, 16), (0, 1, 2, 4, 8)):
        raw = np.frombuffer(RNG.bytes(9 * columns * item + shift), np.uint8)[shift:]
        data = raw.view(f"V{item}").reshape(9, columns)
        indices = RNG.integers(-9, 12, 11)
        for operands, op in (
            ((data, indices), "gather"),
            ((data[::-1, ::-1], indices), "gather"),
            ((data, indices, data[RNG.integers(0, 9, 11)]), "scatter_slices"),
        ):
            result = getattr(shim, op)(*operands, mode="drop")
            assert same_bits(result, getattr(gatherum, op)(*operands, mode="drop"))


@slow
@pytest.mark.parametrize("dtype", ["f4", "f2", "c16", "S3", "i8"])
def test_fill_values(shim, dtype):
    fill = 0 if dtype == "S3" else 7
    for columns, shift in itertools.product((1, 3, 16), (0, 1)):  # off by 1: a fill item in pieces
        shape, item = (4, columns), np.dtype(dtype).itemsize
        data = np.ndarray(shape, dtype, bytearray(prod(shape) * item + shift), shift)
        data[...] = values(shape, "u1").astype(dtype)
        indices = RNG.integers(-9, 9, 30)
        options = {"mode": "fill", "fill_value": fill}
        assert same_bits(
            shim.gather(data, indices, **options), gatherum.gather(data, indices, **options)
        )


@slow
@pytest.mark.parametrize("mode", ["drop", "wrap"])
def test_many_destinations_are_sorted_and_few_have_a_table(shim, monkeypatch, mode):
    monkeypatch.setattr(sorted_updates, "MOST_IN_BLOCK", 0)
    monkeypatch.setattr(radix_sort, "MOST_PAIRS", 0)
    data, indices = values((4, 30, 5), "i2"), RNG.integers(-33, 33, (4, 200))
    updates = values((4, 200, 5), "i2")
    options = {"batch_dims": 1, "mode": mode}
    expected = gatherum.scatter_nd(data, indices[..., None], updates, **options)
    for small, names in ((0, ["winners", "scatter"]), (-(1 << 40), ["keys", "scatter_sorted"])):
        monkeypatch.setattr(plan_launches, "SMALL_TABLE_BYTES", small)
        if small:
            monkeypatch.setattr(plan_launches, "_sort_bytes", lambda *_: 0)
        assert same_bits(shim.scatter_nd(data, indices[..., None], updates, **options), expected)
        assert shim.last.names()[1:] == names


LINES = [("f4", "drop")]
LINES += [pytest.param(*each, marks=slow) for each in (("c16", "clip"), ("i1", "raise"))]


@pytest.mark.parametrize(("dtype", "mode"), LINES)
def test_lines_are_scattered_in_shared_memory(shim, dtype, mode, monkeypatch):
    monkeypatch.setattr(movement, "FEWEST_LINES", 4)
    options = {"axis": 2, "mode": mode}
    for shape, updates in (((2, 3, 700), 900), ((3, 2, 70), 18), ((1, 4, 1), 2)):
        data, source = values(shape, dtype), values((*shape[:2], updates), dtype)
        size = shape[2] + (mode != "raise")
        indices = RNG.integers(-size, size, source.shape)
        swapped = values((shape[1], shape[0], shape[2]), dtype).swapaxes(0, 1)
        for each in (data, data[:, ::-1, ::-1], swapped):
            result = shim.scatter_elements(each, indices, source, **options)
            assert shim.last.names()[-2:] == ["gather", "scatter_lines"]
            expected = reference.scatter_elements(each, indices, source, **options)
            assert same_bits(result, expected)
    assert shim.last.scratch() == (40 if mode == "raise" else 0)
    columns = values((8, 30), dtype)
    shim.scatter_elements(columns, np.zeros((20, 30), int), values((20, 30), dtype), axis=0)
    assert "scatter_lines" not in shim.last.names()


@slow
@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_one_update_for_each_destination_needs_no_table(shim, mode):
    data, indices = values((3, 8), "f8"), np.array([[1], [2], [9]])
    updates, options = values((3, 1), "f8"), {"axis": 1, "mode": mode}
    result = shim.scatter_elements(data, indices, updates, **options)
    assert same_bits(result, gatherum.scatter_elements(data, indices, updates, **options))
    assert shim.last.names() == ["gather", "scatter"]


@slow
@pytest.mark.parametrize("moved", [0, 1, 2], ids=["data", "indices", "updates"])
def test_any_operand_may_start_at_any_byte(shim, moved):
    operands = [rows(9, 4), np.array([3, 8, 0, -1]), values((4, 4), "f4")]
    start = operands[moved]
    result = np.frombuffer(b"." + start.tobytes(), np.uint8)[1:]
    operands[moved] = result.view(start.dtype).reshape(start.shape)
    for count, op in ((2, "gather"), (3, "scatter_slices")):
        result = getattr(shim, op)(*operands[:count])
        assert same_bits(result, getattr(gatherum, op)(*operands[:count]))


@slow
@pytest.mark.parametrize(("dimensions", "size"), [(1, 8), (8, 8), (9, 66)])
def test_arguments_have_size_few_loops_or_for_all(shim, dimensions, size):
    # Dimensions in the opposite order do not merge.
    data = values((2,) * dimensions, "i1").transpose(*reversed(range(dimensions)))
    shim.gather_elements(data, np.zeros(data.shape, np.int8))
    assert dict(shim.last.launches[0].macros)["LOOPS"] == str(size)


@slow
def test_many_dimensions(shim):
    shape = (1, 2) * 5 + (3, 1) * 20
    data = values((3, *shape[:10], 2, 2), "f4")
    indices = RNG.integers(-3, 3, (2, 1, 2, 1, 2, 1, 2, 1, 2, 3)).transpose(
        2, 0, 4, 8, 6, 9, 1, 3, 5, 7
    )
    strided = data.transpose(0, *reversed(range(1, data.ndim)))
    assert same_bits(shim.gather(strided, indices), gatherum.gather(strided, indices))
    deep = values((2,) * 9, "i2").transpose(*reversed(range(9)))
    many = RNG.integers(0, 2, (40, 6))
    assert same_bits(shim.gather_nd(deep, many), gatherum.gather_nd(deep, many))
    updates = values((40, 2, 2, 2), "i2")
    for reduction in ("none", "add", "max"):
        result = shim.scatter_nd(deep, many, updates, reduction=reduction)
        assert same_bits(result, gatherum.scatter_nd(deep, many, updates, reduction=reduction))


CALLS = [
    ("gather", ((7, 5), "f4"), ((30,), "i8"), None, {}),
    ("gather_elements", ((7, 5), "f4"), ((30, 5), "i8"), None, {"mode": "drop"}),
    ("scatter_slices", ((7, 5), "f4"), ((30,), "i8"), ((30, 5), "f4"), {}),
    ("scatter_slices", ((7, 5), "f4"), ((30,), "i8"), ((30, 5), "f4"), {"reduction": "add"}),
    ("scatter_slices", ((7, 5), "i4"), ((30,), "i8"), ((30, 5), "i4"), {"reduction": "add"}),
    ("scatter_slices", ((7, 5), "i4"), ((), "i8"), ((5,), "i4"), {"mode": "wrap"}),
    ("scatter_slices", ((2**23,), "i1"), ((3,), "i8"), ((3,), "i1"), {"mode": "wrap"}),
    ("scatter_elements", ((130, 130), "f4"), ((130, 40), "i8"), ((130, 40), "f4"), {"axis": 1}),
    ("scatter_slices", ((5,), "i4"), ((30000,), "i8"), ((30000,), "i4"), {"reduction": "add"}),
    ("scatter_slices", ((0, 5), "f4"), ((3,), "i8"), ((3, 5), "f4"), {"mode": "drop"}),
]


@slow
@pytest.mark.parametrize(("op", "data", "indices", "updates", "options"), CALLS, ids=str)
@pytest.mark.parametrize("most_small", [0, small_scatters.MOST_TUPLES])
def test_scratch_follows_the_formula(
    shim, op, data, indices, updates, options, most_small, monkeypatch
):
    monkeypatch.setattr(small_scatters, "MOST_TUPLES", most_small)
    plan = gatherum.plan(op, data, indices, *([] if updates is None else [updates]), **options)
    size = max(data[0][0], 1)
    operands = [values(*data), RNG.integers(0, size, indices[0])]
    operands += [] if updates is None else [values(*updates)]
    getattr(shim, op)(*operands, **options)
    assert shim.last.scratch() == plan_launches.scratch_bytes(plan)


@slow
@pytest.mark.parametrize("count", [1, 2, 31, 33, 64, 65, 128, 1000, 4096, 4097])
@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_one_block_sorts_few_tuples(shim, dtype, count):
    indices, updates = RNG.integers(-5, 12, count), values((count,), dtype)
    data, options = values((9,), dtype), {"reduction": "mul", "mode": "drop"}
    expected = gatherum.scatter_elements(data, indices, updates, **options)
    assert same_bits(shim.scatter_elements(data, indices, updates, **options), expected)
    assert shim.last.names()[1] == ("sorted_keys" if count <= 4096 else "keys")


@slow
@pytest.mark.parametrize("mode", ["clip", "wrap", "fill", "drop"])
@pytest.mark.parametrize("reduction", ("none", *FOLDS))
def test_only_the_mode_raise_waits_for_the_device(shim, mode, reduction):
    data, indices, updates = values((7,), "f4"), RNG.integers(-20, 20, 90), values((90,), "f4")
    shim.scatter_elements(data, indices, updates, mode=mode, reduction=reduction)
    assert shim.last.reads == 0
    shim.scatter_elements(data, indices % 7, updates, reduction=reduction)
    assert shim.last.reads == 1
    shim.gather(data, indices, mode=mode)
    assert shim.last.reads == 0


@slow
@pytest.mark.parametrize("table", [True, False], ids=["table", "sort"])
@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_a_scatter_that_raises_leaves_out_as_it_was(shim, dtype, reduction, table, monkeypatch):
    monkeypatch.setattr(plan_launches, "_has_table", lambda *_: table)
    data, updates = values((7, 2), dtype), values((90, 2), dtype)
    for bad in (0, 45, 89):
        indices = RNG.integers(0, 7, 90)
        indices[bad] = 7
        for out in (np.full((7, 2), 9, dtype), data.copy()):
            source = data if out[0, 0] == 9 else out
            before = out.tobytes()
            with pytest.raises(IndexError, match=rf"index 7 .*\[{bad}\]|{bad}"):
                shim.scatter_slices(source, indices, updates, reduction=reduction, out=out)
            assert out.tobytes() == before


@slow
def test_places_of_size_zero(shim):
    empty, index = np.zeros((0, 3), "f4"), np.array([[4, -1]])
    for mode in ("clip", "wrap"):
        expected = result_of(gatherum, "gather", (empty, index), {"mode": mode})
        assert result_of(shim, "gather", (empty, index), {"mode": mode}) == expected
        assert "index 4" in expected
    nothing = np.zeros((3, 0), "f4")
    for mode in ("clip", "wrap"):
        place = nothing, np.array([[1, 4]])
        expected = result_of(gatherum, "gather_nd", place, {"mode": mode})
        assert result_of(shim, "gather_nd", place, {"mode": mode}) == expected
        assert "index 4" in expected
    expected = result_of(gatherum, "gather", (nothing, index), {})
    assert result_of(shim, "gather", (nothing, index), {}) == expected
    assert "index 4" in expected
    assert shim.gather(nothing, np.zeros((0,), "i8")).shape == (0, 0)


@slow
def test_indices_that_change_between_the_passes_go_nowhere_else():
    """Another stream invalidates an index after the check: the update is dropped."""
    data, indices, updates = values((7,), "f4"), np.array([1, 2, 3]), values((3,), "f4")

    class Changing(ShimDevice):
        def launch(self, kernel, grid, block, arguments):
            super().launch(kernel, grid, block, arguments)
            if kernel.name == "check":
                indices[1] = 1 << 40

    for reduction in ("none", "add"):
        indices[1] = 2
        result = ShimFunctions(Changing).scatter_elements(
            data, indices, updates, reduction=reduction
        )
        expected = gatherum.scatter_elements(
            data, indices, updates, reduction=reduction, mode="drop"
        )
        assert same_bits(result, expected)

    class Mending(ShimDevice):
        def read(self, buffer, nbytes):
            result = super().read(buffer, nbytes)
            indices[1] = 2
            return result

    indices[1] = 1 << 40
    with pytest.raises(IndexError, match=r"`indices` changed during the call$"):
        ShimFunctions(Mending).scatter_elements(data, indices, updates)


@slow
@pytest.mark.skipif(AT_ONCE, reason="the order of real threads has no seed")
def test_the_order_of_threads_and_blocks_changes_nothing():
    data, indices, updates = values((9, 2), "f4"), RNG.integers(0, 9, 700), values((700, 2), "f4")
    options = {"reduction": "mean"}
    expected = gatherum.scatter_slices(data, indices, updates, **options)
    for seed in range(20):
        shim = ShimFunctions(lambda seed=seed: ShimDevice(1000 * seed))
        assert same_bits(shim.scatter_slices(data, indices, updates, **options), expected)
        assert same_bits(
            shim.scatter_slices(data, indices, updates),
            gatherum.scatter_slices(data, indices, updates),
        )


@slow
@pytest.mark.parametrize("most_small", [0, small_scatters.MOST_TUPLES])
def test_the_compile_table_has_the_macros_of_every_call(shim, most_small, monkeypatch):
    """`nox -s cuda` compiles the macros that calls use for devices."""
    monkeypatch.setattr(small_scatters, "MOST_TUPLES", most_small)
    seen = set()
    for op, data, indices, updates, options in (*CALLS[:6], *CALLS[7:9]):
        operands = [values(*data), RNG.integers(0, 5, indices[0])]
        operands += [] if updates is None else [values(*updates)]
        getattr(shim, op)(*operands, **options)
        seen |= set(shim.last.launches)
    for kernel in seen:
        axes = AXES[kernel.name]
        folds_of = {"VALUE", "REDUCTION", "CHUNK_ITEMS", "CARRIED_BYTES"}
        assert {name for name, _ in kernel.macros} - folds_of == set(axes) - folds_of, kernel
        for name, value in kernel.macros:
            assert name in folds_of or value in map(str, axes[name]), (kernel, name)
