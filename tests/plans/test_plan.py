"""Plans: their content, and their execution."""

import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gatherum
from gatherum import _core
from gatherum._functions import callbacks
from gatherum._model.shape_limits import MAX_BYTES, overlaps_itself
from gatherum._system import native
from strategies import same_bits

TABLE = ((4, 8), "f4")
FOURS = [((4, 4), "f4"), ((5, 1), "i8"), ((5, 4), "f4")]


def test_a_plan_prints_the_call():
    plan = gatherum.plan("gather", TABLE, ((3,), "u2"), mode="clip")
    assert str(plan) == (
        "gather -> float32 (3, 8)\n"
        "  data      float32 (4, 8)\n"
        "  indices   uint16 (3,)\n"
        "  with      axis=0, mode='clip', negative=True\n"
        f"  kernel    gather_rows, algorithm {plan.algorithm}\n"
        "  line      3 x (data +0, index +2, moved +32) bytes\n"
        "  block     32 bytes\n"
        "  moves     198 bytes, scratch 0 bytes"
    )


def test_a_plan_is_a_value():
    one = gatherum.plan("gather", TABLE, ((3,), "i8"))
    same = gatherum.plan("gather", np.zeros((4, 8), "f4"), [0, 1, 2], axis=0)
    other = gatherum.plan("gather", TABLE, ((3,), "i8"), axis=1)
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert len({one, same, other}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.shape = ()


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "shape", "kernel"),
    [
        ("gather", [TABLE, ((3,), "i8")], {}, (3, 8), "gather_rows"),
        ("gather", [TABLE, ((3,), "i8")], {"axis": 1}, (4, 3), "gather_lines"),
        ("gather", [((4,), "f4"), ((2, 3), "i1")], {}, (2, 3), "gather_lines"),
        ("gather", [((4,), "V3"), ((3,), "i1")], {}, (3,), "gather_rows"),
        ("gather_elements", [TABLE, ((4, 2), "i8")], {"axis": 1}, (4, 2), "gather_lines"),
        ("gather_nd", [TABLE, ((5, 2), "i8")], {}, (5,), "gather_lines"),
        ("gather_nd", [TABLE, ((4, 3, 1), "i8")], {"batch_dims": 1}, (4, 3), "gather_lines"),
        ("scatter_nd", [TABLE, ((5, 1), "i8"), ((5, 8), "f4")], {}, (4, 8), "scatter_rows"),
        ("scatter_nd", [TABLE, ((5, 2), "i8"), ((5,), "f4")], {}, (4, 8), "scatter_lines"),
        # A row of 16 bytes is copied as one value, and is four sums.
        ("scatter_nd", FOURS, {}, (4, 4), "scatter_lines"),
        ("scatter_nd", FOURS, {"reduction": "add"}, (4, 4), "scatter_rows"),
        (
            "scatter_elements",
            [TABLE, ((4, 2), "i8"), ((4, 2), "f4")],
            {"axis": 1, "reduction": "add"},
            (4, 8),
            "scatter_lines",
        ),
    ],
)
def test_shape_and_kernel(op, operands, attributes, shape, kernel):
    plan = gatherum.plan(op, *operands, **attributes)
    assert (plan.shape, plan.kernel) == (shape, kernel)


def test_prefix_and_batch_dimensions_are_loops_like_any_other():
    plain = gatherum.plan("gather", ((6, 8), "f4"), ((3,), "i8"))
    prefixed = gatherum.plan("gather", ((1, 1, 6, 8), "f4"), ((1, 3), "i8"), axis=2)
    assert prefixed.nest == plain.nest
    assert prefixed.shape == (1, 1, 1, 3, 8)


def test_a_plan_knows_its_bytes():
    plan = gatherum.plan("gather", TABLE, ((3,), "i8"))
    assert (plan.bytes, plan.scratch) == (2 * 3 * 32 + 3 * 8, 0)
    functional = gatherum.plan("scatter_nd", TABLE, ((3, 1), "i8"), ((3, 8), "f4"))
    assert functional.bytes == 2 * 3 * 32 + 3 * 8 + 2 * 4 * 32
    in_place = gatherum.plan("scatter_nd", TABLE, ((3, 1), "i8"), ((3, 8), "f4"), out=TABLE)
    assert in_place.bytes == 2 * 3 * 32 + 3 * 8


def test_a_plan_of_strided_operands_runs_on_them():
    data = np.arange(24.0).reshape(4, 6)[:, ::-2]
    indices = np.array([3, 9, 0, 9], ">i4")[::2]
    plan = gatherum.plan("gather", (data.shape, data.dtype, data.strides), indices)
    assert "float64 (4, 3), strides (48, -16)" in str(plan)
    assert same_bits(plan.run(data, indices), data[[3, 0]])


def test_a_plan_with_out_writes_there():
    data, indices = np.arange(6.0), np.array([5, 0])
    out = np.zeros(4)[::2]
    plan = gatherum.plan("gather", data, indices, out=out)
    assert plan.run(data, indices, out=out) is out
    assert out.tolist() == [5, 0]
    with pytest.raises(ValueError, match="plan") as caught:
        plan.run(data, indices)
    assert str(caught.value) == (
        "gather: the plan was made for `out` float64 (2,), strides (16,), got None"
    )


def test_a_plan_checks_the_indices_of_each_run():
    plan = gatherum.plan("gather", ((3,), "f8"), ((1,), "i8"))
    assert plan.run(np.arange(3.0), np.array([2])).tolist() == [2]
    with pytest.raises(IndexError) as caught:
        plan.run(np.arange(3.0), np.array([3]))
    assert str(caught.value) == (
        "gather: index 3 is out of bounds for axis 0 of size 3 (indices[0])"
    )


def test_a_plan_raises_the_errors_of_the_operator():
    with pytest.raises(ValueError, match="updates") as caught:
        gatherum.plan("scatter_nd", TABLE, ((5, 1), "i8"), ((5, 7), "f4"))
    assert str(caught.value) == "scatter_nd: `updates` must have shape (5, 8), got (5, 7)"
    with pytest.raises(TypeError, match="float32") as caught:
        gatherum.plan("gather", TABLE, ((5, 1), "f4"))
    assert str(caught.value).startswith("gather: `indices` must have an integer dtype, got float32")


def test_more_plans_than_the_table_holds():
    data = np.arange(3000.0)
    for size in range(1, 3000):
        assert gatherum.gather(data[:size], np.array([size - 1])).tolist() == [size - 1]


def _pairs(count):
    inner = [("c", "i2"), ("d", "i2", 2)]
    return np.zeros(count, [("a", inner, (2, 1)), ("b", inner)])


@pytest.mark.parametrize("inner", ["", "a", "b"])
@pytest.mark.parametrize("planned", [False, True])
def test_renamed_fields_are_another_dtype(planned, inner):
    data, updates, indices = _pairs(3), _pairs(1), np.array([[1]])
    call = gatherum.scatter_nd
    if planned:
        call = gatherum.plan("scatter_nd", data, indices, updates).run
    call(data, indices, updates)
    dtype = updates.dtype[inner].base if inner else updates.dtype
    names = dtype.names
    dtype.names = ("x", "y")
    for _ in range(2):
        with pytest.raises(TypeError, match="`updates`") as caught:
            call(data, indices, updates)
        assert str(caught.value) == (
            f"scatter_nd: `updates` must have the dtype of `data`, {data.dtype}, "
            f"got {updates.dtype}; write updates.astype(data.dtype)"
        )
    dtype.names = names
    assert same_bits(call(data, indices, updates), data)


def test_fields_renamed_while_a_plan_is_made(monkeypatch):
    """No later call finds that plan. It would be looked up by the old names but holds the new ones,
    and other names may reuse the address of the old ones.
    """
    data, updates, indices = _pairs(3), _pairs(1), np.array([[1]])
    before, build, built = updates.dtype.__reduce__()[2], callbacks.build, []

    def renaming(signature):
        built.append(build(signature))
        updates.dtype.names = ("x", "y")
        return built[-1]

    native.clear_plans()
    monkeypatch.setattr(callbacks, "build", renaming)
    for count in (1, 2):
        gatherum.scatter_nd(data, indices, updates)
        assert len(built) == count
        updates.dtype.__setstate__(before)  # the names at the start of the first call
    monkeypatch.setattr(
        callbacks, "build", lambda signature: built.append(build(signature)) or built[-1]
    )
    for _ in range(2):
        gatherum.scatter_nd(data, indices, updates)
        assert len(built) == 3  # without renaming, the plan is found
        updates.dtype.__setstate__(before)


def test_more_names_than_a_plan_is_looked_up_by():
    def many(count):
        inner = [(f"{i}", [("x", "i1")]) for i in range(200)]
        return np.ones(count, inner)

    data, updates, indices = many(3), many(1), np.array([[1]])
    gatherum.scatter_nd(data, indices, updates)
    updates.dtype["199"].names = ("y",)
    with pytest.raises(TypeError, match="`updates` must have the dtype of `data`"):
        gatherum.scatter_nd(data, indices, updates)
    assert same_bits(gatherum.scatter_nd(data, indices, data[:1]), data)


def test_an_empty_list_is_of_integers_as_for_the_operator():
    plan = gatherum.plan("gather", np.zeros(3), [])
    assert plan.call.indices.dtype == np.int64
    assert plan.shape == gatherum.gather(np.zeros(3), []).shape


def test_a_dimension_of_size_1_reaches_nowhere():
    far = MAX_BYTES // 2 + 1
    data = (1, 1, 2), "i1", (far, far, far - 2)
    assert gatherum.plan("gather", data, ((3,), "i8"), axis=2).shape == (1, 1, 3)
    for strides in ((MAX_BYTES + 1, 0, 0), (0, 0, MAX_BYTES + 1)):
        with pytest.raises(ValueError, match="that stay within the address space"):
            gatherum.plan("gather", (*data[:2], strides), ((3,), "i8"), axis=2)


@pytest.mark.parametrize("size", [2**60, 2**61, 2**63 - 1])
def test_rows_of_any_size_are_planned(size):
    line, one = ((size,), "i1"), ((1,), "i8")
    wide = ((1, size), "i1")
    calls = [
        ("gather", wide, ((), "i8")),
        ("gather_elements", line, one),
        ("gather_nd", wide, one),
        ("scatter_slices", line, ((), "i8"), ((), "i1")),
        ("scatter_elements", line, one, ((1,), "i1")),
        ("scatter_nd", line, one, ((), "i1")),
        ("scatter_nd", wide, one, line),
    ]
    for call in calls:
        assert gatherum.plan(*call).program.shape
        assert gatherum.explain(*call).svg()


@given(
    dimensions=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=1, max_size=4),
    itemsize=st.integers(1, 4),
)
def test_overlap_is_exact_on_small_layouts(dimensions, itemsize):
    sizes, strides = zip(*dimensions, strict=True)
    places = sorted(
        sum(i * s for i, s in zip(position, strides, strict=True))
        for position in itertools.product(*map(range, sizes))
    )
    expected = any(b - a < itemsize for a, b in itertools.pairwise(places))
    assert overlaps_itself(sizes, strides, itemsize) == expected
    assert _core.overlaps_itself(sizes, strides, itemsize, True) == expected  # as for large layouts


def test_overlap_of_large_layouts_takes_bounded_work():
    assert not overlaps_itself((2**16, 2**16), (2**16, 1), 1)
    assert not overlaps_itself((2**16, 2**15), (1, 2**16), 1)
    assert overlaps_itself((2**16, 2**16), (2**16 - 1, 1), 1)
    assert overlaps_itself((255,) * 4, (3, 5, 7, 11), 1)
    assert not overlaps_itself((1200, 1000), (1009, 1201), 1)
    assert not overlaps_itself((1200, 1000), (2018, 2402), 2)
    assert overlaps_itself((1200, 1000), (2018, 2402), 3)
    assert overlaps_itself((2**20, 2), (0, 1), 1)
    assert _core.overlaps_itself(
        (2, 4, 3), (1, 10, 15), 1, True
    )  # 3 * 10 = 2 * 15, and no step of 1
    hard = (1000,) * 6, tuple(10**9 + d for d in range(6))
    assert overlaps_itself(*hard, 1)


def test_a_dtype_that_changes_its_size_is_another():
    """NumPy lets dtype.__setstate__ change one in place."""
    dtype, indices = np.dtype("V64"), np.zeros((10, 0), int)
    assert gatherum.gather_nd(np.ndarray((), dtype, bytes(64)), indices).nbytes == 640
    state = list(dtype.__reduce__()[2])
    state[5] = 8
    dtype.__setstate__(tuple(state))
    for _ in range(3):
        result = gatherum.gather_nd(np.ndarray((), dtype, bytes(64)), indices)
        assert (result.nbytes, result.dtype.itemsize) == (80, 8)


def test_an_added_dtype_that_changes_its_size_is_another():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes to have bfloat16")
    values, indices = np.arange(16).astype(ml_dtypes.bfloat16)[::4], np.array([[3], [1]])
    assert gatherum.gather_nd(values, indices).tolist() == [12, 4]
    dtype = values.dtype.newbyteorder().newbyteorder()  # equal, and not shared
    state = list(dtype.__reduce__()[2])
    state[5] = 8
    dtype.__setstate__(tuple(state))
    wide = np.ndarray(4, dtype, bytes(range(32)))  # steps of 8 bytes, as in `values`
    for _ in range(3):
        result = gatherum.gather_nd(wide, indices)
        assert result.dtype.itemsize == 8
        assert result.tobytes() == bytes([*range(24, 32), *range(8, 16)])


def test_a_plan_takes_a_fill_value_as_the_function_does():
    operands = ((3,), "i2"), ((2,), "i8")
    plan = gatherum.plan("gather", *operands, mode="fill", fill_value=-1)
    assert plan == gatherum.plan("gather", *operands, mode="fill")
    assert gatherum.plan("gather", *operands, fill_value=0.5) == gatherum.plan("gather", *operands)
    data, indices = np.arange(3, dtype="i2"), np.array([5, 1])
    for call in (gatherum.gather, partial(gatherum.plan, "gather")):
        with pytest.raises(ValueError) as raised:
            call(data, indices, mode="fill", fill_value=0.5)
        assert str(raised.value) == (
            "gather: `fill_value` must be an integer where `data` is int16, got 0.5"
        )
    with pytest.raises(TypeError, match="scatter_nd: unknown attribute 'fill_value'"):
        gatherum.plan("scatter_nd", ((3,), "f4"), ((1, 1), "i8"), 1.0, fill_value=0)


def test_a_foreign_function_with_the_name_of_an_operator_raises():
    def gather(data, indices):
        raise AssertionError

    with pytest.raises(ValueError, match="gather"):
        gatherum.plan(gather, ((3, 4), "f4"), ((2,), "i8"))


@pytest.mark.parametrize("op", ["gather_nd", "gather-nd", gatherum.gather_nd])
def test_an_operator_is_named_as_one_likes(op):
    operands = ((3, 4), "f4"), ((2, 1), "i8")
    plan = gatherum.plan("gather_nd", *operands)
    assert gatherum.plan(op, *operands) == gatherum.explain(op, *operands).plan == plan
    assert gatherum.index_report(op, (3, 4), [[5]]).invalid == 1


def test_a_plan_writes_into_out_on_every_run():
    data, indices = np.arange(12.0).reshape(4, 3), np.array([2, 0])
    out = np.empty((2, 3))
    plan = gatherum.plan("gather", data, indices, out=out)
    for _ in range(3):
        out[...] = -1
        assert plan.run(data, indices, out=out) is out
        assert out.tolist() == data[[2, 0]].tolist()


def test_a_plan_that_has_run_on_an_array_refuses_its_memory_under_a_mask():
    data, indices = np.arange(12.0).reshape(4, 3), np.array([2, 0])
    plan = gatherum.plan("gather", data, indices)
    for _ in range(2):
        plan.run(data, indices)
        masked = np.ma.array(data, mask=data > 3, copy=False)
        with pytest.raises(TypeError, match=r"^gather: `data` must be .* without a mask"):
            plan.run(masked, indices)
        masked = np.ma.array(indices, mask=[True, False], copy=False)
        with pytest.raises(TypeError, match=r"^gather: `indices` must be .* without a mask"):
            plan.run(data, masked)


@pytest.mark.parametrize("dtype", ["V0", "S0", "U0"])
def test_a_result_of_items_without_bytes_keeps_its_dtype_on_every_call(dtype):
    data, indices = np.zeros(3, [("item", dtype)])["item"], np.array([2, 0])
    for _ in range(3):
        result = gatherum.gather(data, indices)
        assert (result.dtype, result.shape) == (np.dtype(dtype), (2,))


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
def test_an_unused_fill_value_is_not_checked(mode):
    data, indices = np.arange(37.0), np.array([36, 0])
    for _ in range(3):
        result = gatherum.gather(data, indices, mode=mode, fill_value="no number")
        assert result.tolist() == [36, 0]
