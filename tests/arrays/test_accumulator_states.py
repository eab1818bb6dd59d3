"""Errors of accumulators, and their pickles and copies."""

import copy
import os
import pickle

import numpy as np
import pytest

import gatherum
from gatherum import Accumulator, _core
from strategies import ORDERED

# --- Errors


@pytest.mark.parametrize(
    ("arguments", "kwargs", "error", "sentence"),
    [
        (([1], "sum"), {}, ValueError, "Accumulator: `reduction` must be one of 'none', 'add', "),
        (([1], "add"), {"mode": "no"}, ValueError, "Accumulator: `mode` must be one of 'raise', "),
        (
            ([1], "add"),
            {"include_self": 1},
            TypeError,
            "Accumulator: `include_self` must be True or False, got 1",
        ),
        (
            ([1], "add"),
            {"negative": None},
            TypeError,
            "Accumulator: `negative` must be True or False, got None",
        ),
        (
            ([None], "none"),
            {},
            TypeError,
            "Accumulator: `data` must have a dtype without objects or references, got object",
        ),
        (
            ([True], "mean"),
            {},
            TypeError,
            "Accumulator: `reduction` 'mean' is not defined for dtype bool",
        ),
        (
            (np.ma.zeros(3), "add"),
            {},
            TypeError,
            "Accumulator: `data` must not be a masked array: its mask would be lost",
        ),
    ],
)
def test_arguments_that_accumulators_refuse(arguments, kwargs, error, sentence):
    with pytest.raises(error) as raised:
        Accumulator(*arguments, **kwargs)
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize(
    ("method", "arguments", "error", "sentence"),
    [
        (
            "scatter_nd",
            ([[0], [3]], [1, 2]),
            IndexError,
            "scatter_nd: index 3 is out of bounds for axis 0 of size 3 (indices[1, 0])",
        ),
        (
            "scatter_elements",
            ([0, -4], [1, 2]),
            IndexError,
            "scatter_elements: index -4 is out of bounds for axis 0 of size 3 (indices[1])",
        ),
        (
            "scatter_nd",
            ([[0]], [1.5]),
            ValueError,
            "scatter_nd: `updates` must be integers where `data` is int32, got [1.5]",
        ),
        (
            "scatter_nd",
            ([[0]], None),
            TypeError,
            "scatter_nd: `updates` must be an array, got NoneType",
        ),
        (
            "scatter_nd",
            ([[0, 0]], [1]),
            ValueError,
            "scatter_nd: the last dimension of `indices` must be at most 1, the dimensions of "
            "`data` that are not batch dimensions, got 2",
        ),
        (
            "scatter_elements",
            ([0], [1], 1),
            ValueError,
            "scatter_elements: `axis` must be in [-1, 1), got 1",
        ),
    ],
)
def test_a_batch_is_refused_as_the_operator_would_and_leaves_no_trace(
    method, arguments, error, sentence
):
    fold = Accumulator(np.arange(3, dtype=np.int32), "add").scatter_nd([[0]], [5])
    with pytest.raises(error) as raised:
        getattr(fold, method)(*arguments)
    assert str(raised.value) == sentence
    assert fold.finish().tolist() == [5, 1, 2]
    assert fold.counts().tolist() == [1, 0, 0]


def test_clip_into_an_empty_axis_is_refused():
    fold = Accumulator(np.zeros((0, 2)), "add", mode="clip")
    with pytest.raises(IndexError, match=r"^scatter_nd: index 7 cannot be clipped into axis 0"):
        fold.scatter_nd([[7]], 1.0)


@pytest.mark.parametrize(
    ("out", "error", "sentence"),
    [
        ([1, 2, 3], TypeError, "`out` must be a numpy.ndarray, got list"),
        (np.ma.zeros(3), TypeError, "`out` must not be a masked array: its mask would be lost"),
        (np.zeros(3, np.float32), TypeError, "`out` must have the dtype of `data`, float64, "),
        (np.zeros(4), ValueError, "`out` must have shape (3,), got (4,)"),
        (np.broadcast_to(np.zeros(1), 3), ValueError, "`out` must not overlap itself, "),
        (np.frombuffer(bytes(24)), ValueError, "`out` must be writable, got a read-only array"),
    ],
)
def test_where_a_result_cannot_go(out, error, sentence):
    with pytest.raises(error) as raised:
        Accumulator(np.zeros(3), "add").finish(out)
    assert str(raised.value).startswith("Accumulator.finish: " + sentence)


def test_a_subclass_of_ndarray_may_be_out():
    out = np.zeros(3).view(np.recarray)
    assert Accumulator(np.ones(3), "add").finish(out) is out
    assert out.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("other", "error", "sentence"),
    [
        (3, TypeError, "`other` must be an Accumulator, got int"),
        (
            ([1, 2], "add"),
            ValueError,
            "`other` must have the shape of this accumulator, (3,), got (2,)",
        ),
        (
            ([1.0, 2, 3], "add"),
            ValueError,
            "`other` must have the dtype of this accumulator, int64, got float64",
        ),
        (
            ([1, 2, 3], "max"),
            ValueError,
            "`other` must have the reduction of this accumulator, add, got max",
        ),
        (
            ([1, 2, 3], "add", False),
            ValueError,
            "`other` must have the include_self of this accumulator, True, got False",
        ),
    ],
)
def test_accumulators_that_cannot_be_merged(other, error, sentence):
    if isinstance(other, tuple):
        other = Accumulator(*other[:2], include_self=len(other) == 2)
    with pytest.raises(error) as raised:
        Accumulator(np.arange(3), "add").merge(other)
    assert str(raised.value) == "Accumulator.merge: " + sentence


@pytest.mark.parametrize(("reduction", "dtype"), ORDERED, ids=str)
def test_where_the_order_matters_nothing_is_merged(reduction, dtype):
    with pytest.raises(ValueError) as raised:
        Accumulator(np.zeros(3, dtype), reduction).merge(Accumulator(np.zeros(3, dtype), reduction))
    assert str(raised.value) == (
        f"Accumulator.merge: accumulators of {reduction!r} of dtype {dtype} cannot be merged, "
        "because the result depends on the order of the updates"
    )


def test_an_accumulator_may_be_merged_with_itself():
    fold = Accumulator([1, 1], "mul").scatter_nd([[0]], [3])
    assert fold.merge(fold).finish().tolist() == [9, 1]


# --- Pickles


# The 64-bit C type that is not NumPy's int64 here.
OTHER_INT64 = "q" if np.dtype(np.int64).char == "l" else "l"
SHARED = np.zeros(3, np.int64)


def state(**changes):
    fold = Accumulator(np.arange(3, dtype=np.int16), "mean").scatter_nd([[0]], [5])
    return fold.__getstate__() | changes


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {},
        state(version=2),
        state(more=1),
        state(reduction="sum"),
        state(reduction=np.zeros(3)),
        state(mode=0),
        state(include_self=1),
        state(negative="yes"),
        state(dtype="i2"),
        state(dtype=np.dtype("O")),
        state(dtype=np.dtype(np.int32)),
        state(dtype=np.dtype(">i2")),
        state(data=None),
        state(data=[0, 1, 2]),
        state(data=np.zeros(2, np.int16)),
        state(sums=None),
        state(sums=np.zeros(3, np.int16)),
        state(sums=np.zeros(2, np.int64)),
        state(counts=None),
        state(counts=np.zeros(3)),
        state(counts=np.zeros((3, 1), np.int64)),
        state(counts=np.array([1, -1, 0])),
        state(counts=np.ma.zeros(3, np.int64)),
        state(counts=np.zeros(3, OTHER_INT64)),
        state(counts=np.zeros(3, ">i8")),
    ],
)
def test_a_damaged_state_is_refused(broken):
    fold = Accumulator.__new__(Accumulator)
    with pytest.raises(ValueError, match=r"^Accumulator: the pickled state cannot be read: "):
        fold.__setstate__(broken)


def test_a_copy_goes_its_own_way():
    fold = Accumulator(np.zeros(2), "add").scatter_nd([[0]], [1.0])
    for other in (copy.copy(fold), copy.deepcopy(fold), pickle.loads(pickle.dumps(fold, 5))):
        other.scatter_nd([[1]], [1.0])
        assert other.finish().tolist() == [1, 1]
    assert fold.finish().tolist() == [1, 0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", [">f4", ">c8", ">U2", ">M8[s]"])
def test_every_pickle_keeps_the_byte_order(protocol, dtype):
    data = np.frombuffer(bytes([0x7F, 0x80, 0, 1]) * 4, "V8").view(dtype)  # a signalling NaN
    if dtype == ">U2":
        data = np.array(["a", "bc"], dtype)
    fold = Accumulator(data, "none").scatter_nd([[1]], data[:1])
    result = pickle.loads(pickle.dumps(fold, protocol)).finish()
    assert result.dtype.str == dtype
    assert result.tobytes() == fold.finish().tobytes()


@pytest.mark.parametrize("dtype", ["l", "q"])
def test_a_copy_of_either_c_type_of_an_int64_is_whole(dtype):
    fold = Accumulator(np.zeros(2, dtype), "add").scatter_nd([[0]], [1])
    for other in (copy.copy(fold), copy.deepcopy(fold), pickle.loads(pickle.dumps(fold))):
        assert other.scatter_nd([[1]], [1]).finish().tolist() == [1, 1]


def read(kept):
    fold = Accumulator.__new__(Accumulator)
    fold.__setstate__(kept)
    return fold


@pytest.mark.parametrize("names", [("data", "sums"), ("data", "counts"), ("sums", "counts")])
def test_one_array_for_two_operands_is_copied_twice(names):
    kept = Accumulator(np.zeros(3, np.int64), "add").__getstate__()
    fold = read(kept | dict.fromkeys(names, SHARED)).scatter_nd([[1]], [4])
    assert fold.finish().tolist() == [0, 4, 0]
    assert fold.counts().tolist() == [0, 1, 0]
    assert not SHARED.any()


@pytest.mark.parametrize("writeable", [True, False])
def test_the_arrays_of_a_state_are_copied(writeable):
    kept = state()
    for name in ("data", "sums", "counts"):
        kept[name].flags.writeable = writeable
    fold = read(kept).scatter_nd([[1]], [4])
    assert kept["counts"].tolist() == [1, 0, 0]
    if writeable:
        for name in ("data", "sums", "counts"):
            kept[name][:] = -1  # counts by which a mean would divide
    assert fold.counts().tolist() == [1, 1, 0]
    assert fold.finish().tolist() == [2, 2, 2]


# The limit on counted updates, and the distance of a count from wrapping.
MOST = 2**52 - 2
WRAPS = 2**63 - 1


@pytest.mark.parametrize("count", [MOST + 1, 2**62, WRAPS - 1, WRAPS])
@pytest.mark.parametrize("reduction", ["add", "mean"])
def test_counts_that_could_wrap_are_refused(count, reduction):
    kept = Accumulator(np.arange(3), reduction).__getstate__()
    kept["counts"][1] = count
    with pytest.raises(ValueError, match=rf"its counts must be in \[0, {MOST}\]$"):
        read(kept)


@pytest.mark.parametrize("include_self", [True, False])
def test_no_merge_and_no_batch_counts_beyond_the_most(include_self):
    kept = Accumulator(np.full(3, -8), "mean", include_self=include_self).__getstate__()
    kept["sums"][:] = -(2**63)
    kept["counts"][:] = MOST - 1
    one, many = Accumulator(np.full(3, -8), "mean", include_self=include_self), read(kept)
    one.scatter_nd([[0]], 1)
    many.merge(one)
    before = many.finish().tolist()
    expected = ((-8 if include_self else 0) - 2**63) // (MOST - 1 + include_self)
    if not include_self:  # otherwise the sum has wrapped
        assert before[1] == expected
    for more in (one, many):
        with pytest.raises(ValueError, match=f"^Accumulator: an element can have at most {MOST} "):
            many.merge(more)
    with pytest.raises(ValueError, match=f"^Accumulator: an element can have at most {MOST} "):
        many.scatter_nd([[0]], 1)
    assert many.counts().tolist() == [MOST, MOST - 1, MOST - 1]
    assert many.finish().tolist() == before


def test_a_mean_of_the_most_updates_is_exact():
    kept = Accumulator(np.zeros(2), "mean").__getstate__()
    kept["sums"][:], kept["counts"][:] = 3.0, MOST
    assert read(kept).finish().tolist() == [3.0 / (MOST + 1)] * 2


def test_a_bound_on_counts_is_not_used_as_a_count():
    fold = Accumulator(np.zeros(3), "add")
    fold._most = MOST  # as after many batches with different destinations
    assert fold.scatter_nd([[0], [1]], 1.0).counts().tolist() == [1, 1, 0]


def test_a_state_that_is_refused_changes_nothing():
    fold = Accumulator(np.zeros(3), "add").scatter_nd([[0]], [5.0])
    wider = Accumulator(np.zeros(1_000_000), "add").__getstate__()
    with pytest.raises(ValueError, match="its arrays do not belong together"):
        fold.__setstate__(wider | {"sums": np.zeros(2)})
    with pytest.raises(IndexError, match="out of bounds for axis 0 of size 3"):
        fold.scatter_nd([[999_999]], 1.0)
    assert fold.finish().tolist() == [5, 0, 0]
    fold.__setstate__(wider)
    assert fold.scatter_nd([[999_999]], 1.0).counts()[-1] == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64])
def test_counts_that_no_fold_gives_end_no_process(dtype):
    value = getattr(_core.Value, np.dtype(dtype).name)
    fold = _core.Fold(_core.Reduction.mean, value, True, np.dtype(dtype).itemsize)
    counts = np.array([-1, -2, -(2**63), 0])
    least = np.full(4, 2**63, np.uint64).view(np.int64)
    fold.finish(np.zeros(4, dtype), least, counts, np.dtype(dtype), None)


@pytest.mark.parametrize(
    ("reduction", "dtype", "n"),
    [("add", "f8", 4), ("add", "f4", 3), ("mean", "f8", 3), ("add", "i8", 3)],
)
def test_a_fold_takes_no_plan_of_another_one(reduction, dtype, n):
    fold = _core.Fold(_core.Reduction.add, _core.Value.float64, True, 8)
    indices, updates = np.array([[2]]), np.ones(1, dtype)
    plan = gatherum.plan("scatter_nd", ((n,), dtype), indices, updates, reduction=reduction)
    sums, counts = np.zeros(3), np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="not a plan of th"):
        fold.accumulate(plan, sums, counts, indices, updates)
    assert not counts.any()


def test_the_repr_describes_the_accumulator():
    assert repr(Accumulator(np.zeros((2, 3), np.float16), "mean", mode="wrap")) == (
        "<Accumulator of float16 (2, 3), reduction='mean', include_self=True, mode='wrap', "
        "negative=True>"
    )


class _Resizing:
    """A fold that first tries to free the memory of arrays, as a finalizer could."""

    def __init__(self, fold, *arrays):
        self.fold, self.arrays, self.refused = fold, arrays, 0

    def __getattr__(self, name):
        for array in self.arrays:
            with pytest.raises(ValueError, match="cannot resize"):
                array.resize(1, refcheck=False)
            self.refused += 1
        return getattr(self.fold, name)


def test_arrays_hold_still_while_they_are_folded():
    accumulator = Accumulator(np.zeros(4), "add")
    indices, updates, out = np.array([[1], [2]]), np.ones(2), np.zeros(4)
    fold = accumulator._fold
    accumulator._fold = _Resizing(fold, indices, updates)
    accumulator.scatter_nd(indices, updates)
    assert accumulator._fold.refused
    accumulator._fold = _Resizing(fold, out)
    assert accumulator.finish(out=out).tolist() == [0, 1, 1, 0]
    assert accumulator._fold.refused


FORK = """
import os, signal, threading
import numpy as np
from gatherum import Accumulator

class Waiting:
    def __getattr__(self, name):
        inside.set()
        go_on.wait()
        return getattr(fold, name)

inside, go_on = threading.Event(), threading.Event()
used, idle = (Accumulator(np.zeros(3), "add").scatter_nd([[0]], [5.0]) for _ in range(2))
fold, used._fold = used._fold, Waiting()
thread = threading.Thread(target=CALL)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)  # what ends a child that waits for ever
    calls = (
        used.counts, used.finish, used.__getstate__, lambda: used.scatter_nd([[0]], [1.0]),
        lambda: used.finish(np.zeros(3)),
    )
    for call in calls:
        try:
            call()
            os._exit(1)
        except RuntimeError as error:
            said = str(error)
    print(said, flush=True)
    second = threading.Thread(target=lambda: idle.scatter_nd([[1]], [2.0]))
    second.start()
    second.join()
    os._exit(0 if idle.finish().tolist() == [5, 2, 0] else 2)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go_on.set()
thread.join()
print(status, used.finish().tolist())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork of POSIX systems")
@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("lambda: used.scatter_nd([[2]], [1.0])", "[5.0, 0.0, 1.0]"),
        ("lambda: used.finish()", "[5.0, 0.0, 0.0]"),
    ],
)
def test_a_forked_child_never_waits_for_a_thread_that_it_has_not(python, call, result):
    done = python(FORK.replace("CALL", call), PYTHONWARNINGS="ignore::DeprecationWarning")
    sentence = (
        "Accumulator: this process was forked while another thread used the accumulator, which may "
        "hold half of a batch"
    )
    assert done.stdout.splitlines() == [sentence, f"0 {result}"]
    assert done.stderr == ""


def test_a_thread_that_forks_inside_a_method_goes_on(python):
    done = python(
        """
import os
import numpy as np
from gatherum import Accumulator

class Forking:
    def __getattr__(self, name):
        children.append(os.fork())
        return getattr(fold, name)

children = []
accumulator = Accumulator(np.zeros(2), "add")
fold, accumulator._fold = accumulator._fold, Forking()
accumulator.scatter_nd([[0]], [5.0])
accumulator._fold = fold
if children == [0]:
    os._exit(0 if accumulator.scatter_nd([[1]], [2.0]).finish().tolist() == [5, 2] else 1)
print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_fold_takes_only_arrays_of_its_size_and_order():
    fold = _core.Fold(_core.Reduction.mean, _core.Value.float16, True, 2)
    data, counts = np.ones(6, np.float16), np.zeros(6, np.int64)
    sums = np.zeros(6 * fold.sum_bytes, np.uint8)
    fold.begin(data, sums)
    for wrong in (sums[:-1], np.append(sums, sums[:1]), np.append(sums, sums)[::2], list(sums)):
        with pytest.raises(ValueError, match="not an array of this fold"):
            fold.begin(data, wrong)
        with pytest.raises(ValueError, match="not an array of this fold"):
            fold.merge(sums, counts, wrong, counts)
    for wrong in (counts.astype(np.uint64), counts.astype(float), list(counts)):
        with pytest.raises(ValueError, match="not the counts of a fold"):
            fold.merge(sums, wrong, sums, counts)
    assert not fold.any_order
    with pytest.raises(ValueError, match="not the data of this fold"):
        fold.finish(data, sums, counts, data.dtype, None)
    other = _core.Fold(_core.Reduction.max, _core.Value.float16, True, 2)
    with pytest.raises(ValueError, match="not the data of this fold"):
        other.finish(None, sums[: 6 * other.sum_bytes], counts, data.dtype, None)


@pytest.mark.parametrize("reduction", ["add", "max", "mean"])
def test_rows_over_elements_that_have_been_met_and_others_that_have_not(reduction):
    for met in range(17):  # a row is several vectors of any width
        data = np.full((2, 67), 9, np.float32)
        updates = -np.arange(1, 68, dtype=np.float32)
        places = [[1, i] for i in range(67) if i % 17 != met]
        expected = data.copy()
        expected[1] = {"add": 2 * updates, "max": updates, "mean": updates}[reduction]
        expected[1, met::17] = updates[met::17]
        kept = Accumulator(data, reduction, include_self=False)
        kept.scatter_nd(places, updates[[i for _, i in places]]).scatter_nd([[1]], updates[None])
        assert np.array_equal(kept.finish(), expected)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_merge_keeps_elements_without_updates_in_the_other(reduction):
    for value in (-5, 5):
        one, other = (
            Accumulator(np.zeros(3, np.int64), reduction, include_self=False) for _ in range(2)
        )
        one.scatter_nd([[0], [1]], value).merge(other.scatter_nd([[2]], 3))
        assert one.finish().tolist() == [value, value, 3]
        assert one.counts().tolist() == [1, 1, 1]


def test_a_fold_takes_nothing_of_items_without_bytes():
    fold = _core.Fold(_core.Reduction.none, _core.Value.uint8, True, 1)
    operands = np.zeros(3, "V0"), np.array([[1]]), np.zeros(1, "V0")
    counts = np.zeros(3, np.int64)
    plan = gatherum.plan("scatter_nd", *operands)
    fold.accumulate(plan, np.zeros(3 * fold.sum_bytes, np.uint8), counts, *operands[1:])
    assert not counts.any()
