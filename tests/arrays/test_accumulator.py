"""Folds in batches: the bits of one scatter of the concatenated batches."""

import pickle
import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import gatherum
from canaries import byte_rows, guarded_copy, strays
from gatherum import Accumulator, reference
from gatherum._model.reductions import FOLDS
from gatherum._plans import plans
from sizes import SIZES, chosen_from
from strategies import (
    ANY_ORDER,
    ORDERED,
    PADDED,
    REDUCTIONS_OF,
    THOROUGH,
    batches,
    destinations,
    same_bits,
    value_bytes,
)

pytestmark = pytest.mark.slow

INVERSES = {
    "scatter_nd": "gather_nd",
    "scatter_elements": "gather_elements",
    "scatter_slices": "gather",
}
FLOATS = ("float16", "bfloat16", "float32", "float64")


def items(array):
    """Return the items of an array in row-major order, padding included."""
    rows = np.ascontiguousarray(byte_rows(array)).reshape(array.size, array.dtype.itemsize)
    return np.ndarray((array.size,), array.dtype, buffer=rows.tobytes() or b"\0")


def taken(drawn, call):
    """Return the element that each update of a batch addresses, and the updates."""
    data, (indices, updates) = drawn.data, call.args
    numbers = np.arange(data.size).reshape(data.shape)
    modes = {name: drawn.kwargs[name] for name in ("mode", "negative")}
    gather = getattr(reference, INVERSES[call.op])
    where = gather(numbers, indices, **call.kwargs, **modes, fill_value=-1)
    values = updates if isinstance(updates, np.ndarray) else np.array(updates).astype(data.dtype)
    return where.ravel(), items(np.broadcast_to(values, where.shape))


class Oracle:
    """One scatter of all updates, element by element."""

    def __init__(self, drawn):
        self.drawn, self.pairs = drawn, []

    def take(self, call):
        self.pairs.append(taken(self.drawn, call))

    def arrays(self):
        data = self.drawn.data
        where = np.concatenate([np.empty(0, np.int64), *(one for one, _ in self.pairs)])
        raw = b"".join(values.tobytes() for _, values in self.pairs)
        values = np.ndarray(where.shape, data.dtype, buffer=raw or b"\0" * 64)
        kept = np.flatnonzero(where >= 0)
        rows = np.ascontiguousarray(byte_rows(values)[kept])
        return where[kept], np.ndarray(kept.shape, data.dtype, buffer=rows.tobytes() or b"\0" * 64)

    def result(self):
        data = self.drawn.data
        options = {name: self.drawn.kwargs[name] for name in ("reduction", "include_self")}
        flat = reference.scatter_elements(items(data), *self.arrays(), **options)
        return flat.reshape(data.shape)

    def counts(self):
        data = self.drawn.data
        return np.bincount(self.arrays()[0], minlength=data.size).reshape(data.shape)


def feed(fold, oracle, calls):
    """Feed batches to both. A batch that the oracle rejects must not change the accumulator."""
    for call in calls:
        try:
            oracle.take(call)
        except IndexError:
            before = fold.finish(), fold.counts()
            with pytest.raises(IndexError, match=rf"^{call.op}: index "):
                call.run(fold)
            assert same_bits(fold.finish(), before[0])
            assert same_bits(fold.counts(), before[1])
        else:
            assert call.run(fold) is fold


def inputs_of(drawn):
    operands = [drawn.data, *(operand for call in drawn.calls for operand in call.args)]
    return [operand for operand in operands if isinstance(operand, np.ndarray)]


@given(drawn=batches(), sizes=st.sampled_from(SIZES))
@THOROUGH
def test_batches_give_the_bits_of_one_scatter(drawn, sizes):
    inputs = inputs_of(drawn)
    before = [byte_rows(array).tobytes() for array in inputs]
    fold, oracle = Accumulator(drawn.data, **drawn.kwargs), Oracle(drawn)
    fold._sums, fold._counts = guarded_copy(fold._sums), guarded_copy(fold._counts)
    kept = [fold._sums, fold._counts]
    plans.build_once.cache_clear()
    with chosen_from(sizes):
        feed(fold, oracle, drawn.calls)
        result = fold.finish()
    plans.build_once.cache_clear()
    assert same_bits(result, oracle.result())
    assert same_bits(fold.counts(), oracle.counts())
    assert type(result) is np.ndarray
    assert result.flags.c_contiguous and result.flags.writeable and result.flags.owndata
    assert [byte_rows(array).tobytes() for array in inputs] == before
    assert [strays(array) for array in (*inputs, *kept)] == [[]] * (len(inputs) + 2)


@given(drawn=batches(), choices=st.data())
@THOROUGH
def test_it_goes_on_behind_a_finish_and_a_pickle(drawn, choices):
    fold, oracle = Accumulator(drawn.data, **drawn.kwargs), Oracle(drawn)
    for call in drawn.calls:
        feed(fold, oracle, [call])
        if choices.draw(st.booleans()):
            fold = pickle.loads(pickle.dumps(fold, choices.draw(st.integers(0, 5))))
        out = choices.draw(destinations(drawn.data.shape, drawn.data.dtype))
        assert fold.finish(out=out) is out
        assert strays(out) == []
        assert same_bits(out, oracle.result())


@given(drawn=batches(), choices=st.data())
@THOROUGH
def test_merging_is_taking_the_others_batches_too(drawn, choices):
    kwargs, dtype = drawn.kwargs, drawn.data.dtype
    mergeable = (kwargs["reduction"], dtype) in ANY_ORDER
    other_data = np.frombuffer(
        value_bytes(np.random.default_rng(0), dtype, max(1, drawn.data.size)), np.uint8
    )
    other_data = np.ndarray(drawn.data.shape, dtype, buffer=other_data)
    one, two = Accumulator(drawn.data, **kwargs), Accumulator(other_data, **kwargs)
    if not mergeable:
        with pytest.raises(ValueError, match="cannot be merged"):
            one.merge(two)
        return
    cut = choices.draw(st.integers(0, len(drawn.calls)))
    oracle = Oracle(drawn)
    feed(one, oracle, drawn.calls[:cut])
    feed(two, oracle, drawn.calls[cut:])
    before = two.finish()
    assert one.merge(two) is one
    assert same_bits(one.finish(), oracle.result())
    assert same_bits(one.counts(), oracle.counts())
    assert same_bits(two.finish(), before)


@pytest.mark.parametrize(("reduction", "dtype"), [*ANY_ORDER, *ORDERED], ids=str)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("width", [1, 21])
def test_every_reduction_of_every_dtype(reduction, dtype, include_self, width):
    rng = np.random.default_rng(width)

    def drawn(*shape):
        raw = bytearray(value_bytes(rng, dtype, int(np.prod(shape))))
        return np.ndarray(shape, dtype, buffer=raw)

    data, updates = drawn(7, width), drawn(40, width)
    indices = rng.integers(0, 5, (40, 1))
    fold = Accumulator(data, reduction, include_self=include_self)
    for begin, end in [(0, 3), (3, 3), (3, 20), (20, 40)]:
        fold.scatter_nd(indices[begin:end], updates[begin:end])
    expected = gatherum.scatter_nd(
        data, indices, updates, reduction=reduction, include_self=include_self
    )
    assert same_bits(fold.finish(), expected)
    counts = np.bincount(indices[:, 0], minlength=7)
    assert same_bits(fold.counts(), np.repeat(counts[:, None], width, 1))


@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("name", FLOATS)
def test_a_nan_that_only_one_update_brings_keeps_its_bits(reduction, name):
    dtype = next((one for one in REDUCTIONS_OF["add"] if one.name == name), None)
    if dtype is None:
        pytest.skip("install ml_dtypes to have bfloat16")
    bits = np.dtype(f"u{dtype.itemsize}")
    nan = {"float16": 0x7E55, "bfloat16": 0x7FD5, "float32": 0x7FC00055}.get(name, 0x7FF8 << 48 | 5)
    payload = np.array([nan], bits).view(dtype)
    zero = np.zeros(1, bits).view(dtype)
    data = np.repeat(payload, 3)
    fold = Accumulator(data, reduction, include_self=False).scatter_nd([[0]], payload)
    fold.scatter_nd([[1]], zero)
    kept = gatherum.scatter_nd(
        data, [[0], [1]], np.concatenate([payload, zero]), reduction=reduction, include_self=False
    )
    assert same_bits(fold.finish(), kept)
    if reduction not in ("mean", "fsum", "fmean"):  # which produce a canonical NaN
        assert fold.finish().view(bits)[0] == nan
    assert fold.finish().view(bits)[2] == nan


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("reduction", ["add", "mul", "mean"])
def test_halves_are_rounded_once_behind_many_batches(name, reduction):
    dtype = next((one for one in REDUCTIONS_OF["add"] if one.name == name), None)
    if dtype is None:
        pytest.skip("install ml_dtypes to have bfloat16")
    rng = np.random.default_rng(3)
    updates = (1 + rng.standard_normal((5000, 3)) / 100).astype(dtype)
    indices = rng.integers(0, 4, (5000, 1))
    data = np.ones((4, 3), dtype)
    fold = Accumulator(data, reduction)
    rounded = data
    for begin in range(0, 5000, 50):
        batch = indices[begin : begin + 50], updates[begin : begin + 50]
        fold.scatter_nd(*batch)
        rounded = gatherum.scatter_nd(rounded, *batch, reduction=reduction)
    expected = gatherum.scatter_nd(data, indices, updates, reduction=reduction)
    assert same_bits(fold.finish(), expected)
    assert not same_bits(rounded, expected)


def test_any_true_byte_of_a_bool_that_is_only_copied_stays():
    two = np.array([2], np.uint8).view(bool)
    fold = Accumulator([False, False, False], "add", include_self=False)
    fold.scatter_nd([[0], [1], [1]], np.repeat(two, 3))
    assert fold.finish().view(np.uint8).tolist() == [2, 1, 0]
    late = Accumulator([False, False, False], "add", include_self=False)
    assert late.merge(fold).finish().view(np.uint8).tolist() == [2, 1, 0]


def test_data_is_copied_and_never_changed():
    data = np.zeros((2, 3), np.int32)
    fold = Accumulator(data, "add")
    data[...] = 9
    assert fold.scatter_nd([[0]], [1, 2, 3]).finish().tolist() == [[1, 2, 3], [0, 0, 0]]
    fold.counts()[...] = 7
    assert fold.counts().tolist() == [[1, 1, 1], [0, 0, 0]]
    assert data.tolist() == [[9] * 3] * 2


def test_padding_moves_too():
    raw = np.random.default_rng(0).integers(0, 256, (3, PADDED.itemsize), np.uint8)
    records = np.ndarray((3,), PADDED, buffer=raw.tobytes())
    fold = Accumulator(records, "none")
    assert same_bits(pickle.loads(pickle.dumps(fold)).finish(), records)
    assert same_bits(fold.scatter_nd([[1]], records[2:]).finish()[1:2], records[2:])


def test_items_without_bytes_are_counted():
    data = np.zeros(3, [("text", "S0"), ("n", "i1")])["text"]
    assert data.dtype.itemsize == 0
    fold = Accumulator(data, "none").scatter_nd([[1], [2], [1]], data)
    with pytest.raises(TypeError, match=r"^scatter_nd: `updates` must have the dtype of `data`"):
        fold.scatter_nd([[1]], np.zeros(1))
    again = pickle.loads(pickle.dumps(fold)).scatter_elements([0], data[:1])
    assert again.counts().tolist() == [1, 2, 1]
    assert again.finish().dtype == data.dtype


# --- Threads

RNG = np.random.default_rng(7)
MANY = 300_000
HALVES = RNG.standard_normal((MANY, 1)).astype(np.float16)
THREADED = {
    "items in one place": ("scatter_nd", (1,), np.zeros((MANY, 1), np.int64), HALVES[:, 0]),
    "items": ("scatter_nd", (5000,), RNG.integers(-5000, 5000, (MANY, 1)), HALVES[:, 0]),
    "rows": (
        "scatter_nd",
        (700, 40),
        RNG.integers(0, 700, (MANY // 40, 1)),
        HALVES[: MANY // 40 * 40].reshape(-1, 40),
    ),
    "lines": (
        "scatter_elements",
        (500, 40),
        RNG.integers(0, 500, (MANY // 40, 40)),
        HALVES[: MANY // 40 * 40].reshape(-1, 40),
    ),
    "slices": (
        "scatter_slices",
        (700, 40),
        RNG.integers(0, 700, MANY // 40),
        HALVES[: MANY // 40 * 40].reshape(-1, 40),
    ),
    "batches": (
        "scatter_nd",
        (10, 300),
        RNG.integers(0, 300, (10, MANY // 10, 1)),
        HALVES.reshape(10, -1),
        1,
    ),
}


@pytest.mark.parametrize("name", THREADED)
@pytest.mark.parametrize("reduction", ["add", "none", "max", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_any_number_of_threads_gives_the_same_bits(
    settings_restored, name, reduction, include_self
):
    op, shape, indices, updates, *more = THREADED[name]
    data = RNG.standard_normal(shape).astype(np.float16)
    along = len(more)  # after the batch dimension
    second = np.flip(indices, along), np.flip(updates, along)
    both = [np.concatenate(pair, along) for pair in zip((indices, updates), second, strict=True)]
    options = {"reduction": reduction, "include_self": include_self}
    expected = getattr(gatherum, op)(data, *both, *more, **options)
    for threads in (1, 2, 3, 7):
        gatherum.set_num_threads(threads)
        fold = Accumulator(data, **options)
        getattr(fold, op)(indices, updates, *more)
        getattr(fold, op)(*second, *more)
        assert same_bits(fold.finish(), expected)


def test_large_accumulators_are_begun_merged_and_finished_by_all_threads(settings_restored):
    gatherum.set_num_threads(3)
    data = RNG.standard_normal((700, 1000)).astype(np.float16)
    rows = RNG.permutation(700)[:300, None]
    updates = RNG.standard_normal((300, 1000)).astype(np.float16)
    one, two = Accumulator(data, "max"), Accumulator(data * 0, "max")
    one.merge(two.scatter_nd(rows, updates))
    assert same_bits(one.finish(), gatherum.scatter_nd(data, rows, updates, reduction="max"))
    means = Accumulator(data, "mean").scatter_nd(rows, updates)
    assert same_bits(means.finish(), gatherum.scatter_nd(data, rows, updates, reduction="mean"))


def test_threads_share_an_accumulator():
    folds = [Accumulator(np.zeros(100, np.int64), "add") for _ in range(2)]
    indices = np.arange(20_000)[:, None] % 100

    def work():
        for _ in range(20):
            folds[0].scatter_nd(indices, 1)
            folds[1].scatter_nd(indices[:10], 1)
        folds[0].merge(folds[1])
        folds[1].merge(folds[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The counts include every fold, for any order of merges.
    assert all(same_bits(fold.finish(), fold.counts()) for fold in folds)
    assert folds[0].counts().min() >= 4 * 20 * 200
