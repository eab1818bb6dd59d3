"""Calls with prepared indices equal the plain calls bit for bit."""

import importlib
import pickle
import threading
from itertools import product
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import gatherum
from canaries import guarded_copy, strays
from gatherum._edges.edge_lists import EdgeEnd, EdgeLoops
from gatherum._model.call import FoldRule
from samples import every
from strategies import OPERATORS, SCATTERS, calls, outcome, same_bits, same_outcome

pytestmark = pytest.mark.slow

INT32 = np.dtype(np.int32)
module = importlib.import_module("gatherum._functions.sorted_updates")
# With these thresholds, a few items have lists of a few blocks.
SMALL = {"FEWEST_ITEMS": 1, "FEWEST_BYTES": 1, "LIST_BYTES": 16}


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
def test_any_call_has_the_bits_of_the_operator(op, data):
    assert_bits(op, data.draw(calls([op])))


@pytest.mark.parametrize("op", SCATTERS)
@given(data=st.data())
def test_any_scatter_of_few_items_has_them_too(op, data):
    with mock.patch.multiple(module, **SMALL):
        assert_bits(op, data.draw(calls([op])))


def assert_bits(op, call):
    expected = outcome(gatherum, call)
    attributes = dict(call.kwargs)
    fill = {"fill_value": attributes.pop("fill_value")} if "fill_value" in attributes else {}
    try:
        prepared = gatherum.prepare(op, call.args[0], call.args[1], **attributes)
    except (IndexError, ValueError, TypeError) as error:
        assert type(error) is type(expected)
        assert str(error) == str(expected)
        return
    assert isinstance(expected, np.ndarray)
    operands = (call.args[0], *call.args[2:])
    assert prepared.shape == expected.shape
    assert same_outcome(expected, prepared(*operands, **fill))
    assert same_outcome(expected, prepared(*operands, **fill))  # a prepared call can be repeated
    again = pickle.loads(pickle.dumps(prepared))
    assert same_bits(again.indices, prepared.indices)
    assert same_outcome(expected, again(*operands, **fill))
    if op in SCATTERS:
        place = guarded_copy(call.args[0])  # padding included
        assert prepared(place, call.args[2], out=place) is place
        assert same_outcome(expected, place)
        assert strays(place) == []


REDUCTIONS = [("add", True), ("add", False), ("max", True), ("mean", True), ("mean", False)]


@pytest.mark.parametrize(
    ("reduction", "include_self", "dtype", "threads"),
    every(3, [(*fold, *form) for fold in REDUCTIONS
              for form in product(["f4", "f8", "f2", "i8"], [1, 2, 3, 7])]),
)  # fmt: skip
@pytest.mark.usefixtures("settings_restored")
def test_rows_on_any_threads(reduction, include_self, dtype, threads):
    rng = np.random.default_rng(1)
    data = (9 * rng.standard_normal((200, 5, 30))).astype(dtype)
    indices = rng.zipf(1.4, (100, 90)) % 200 - 100
    updates = (9 * rng.standard_normal((100, 90, 5, 30))).astype(dtype)
    options = {"reduction": reduction, "include_self": include_self}
    expected = gatherum.scatter_slices(data, indices, updates, **options)
    gatherum.set_num_threads(threads)
    prepared = gatherum.prepare(gatherum.scatter_slices, (data.shape, dtype), indices, **options)
    assert prepared.nbytes > 2 * indices.size * INT32.itemsize  # the order is kept
    assert same_bits(expected, prepared(data, updates))
    out = np.empty_like(data)
    assert same_bits(expected, prepared(data, updates, out=out))
    across = np.asfortranarray(data)  # rows do not merge into one step
    assert same_bits(expected, prepared(across, updates))
    assert same_bits(
        gatherum.scatter_slices(data, indices, updates[0, 0], **options),
        prepared(data, updates[0, 0]),
    )


ITEM_REDUCTIONS = [*REDUCTIONS, ("mul", True), ("mul", False), ("min", True), ("max", False)]


@pytest.mark.parametrize(
    ("reduction", "include_self", "dtype", "op"),
    every(4, [(*fold, *form) for fold in ITEM_REDUCTIONS
              for form in product(["f4", "f8", "f2", "i8", "u1"], SCATTERS)]),
)  # fmt: skip
@pytest.mark.usefixtures("settings_restored")
def test_items_on_any_threads(op, reduction, include_self, dtype, monkeypatch):
    monkeypatch.setattr(module, "LIST_BYTES", 32 << 10)
    rng = np.random.default_rng(1)
    bins, places = 40_003, rng.zipf(1.2, 90_000) % 40_003
    data = (9 * rng.standard_normal(bins)).astype(dtype)
    updates = (9 * rng.standard_normal(places.shape)).astype(dtype)
    indices = places[:, None] if op == "scatter_nd" else places - bins
    options = {"reduction": reduction, "include_self": include_self}
    expected = getattr(gatherum, op)(data, indices, updates, **options)
    for threads in (2, 3, 7):
        gatherum.set_num_threads(threads)
        prepared = gatherum.prepare(op, (data.shape, dtype), indices, **options)
        assert prepared.nbytes >= 2 * places.size * INT32.itemsize  # the order is kept
        for now in (threads, 1, 5):
            gatherum.set_num_threads(now)
            assert same_bits(expected, prepared(data, updates))
        across = np.stack([data, data], 1)[:, 1]
        out = np.stack([data, data], 1)[:, 0]
        gatherum.set_num_threads(threads)
        assert same_bits(expected, prepared(across, updates, out=out))
        assert same_bits(expected, prepared(data, updates[::-1].copy()[::-1]))


@pytest.mark.usefixtures("settings_restored")
def test_items_without_lists():
    gatherum.set_num_threads(2)

    def kept(bins, updates, **options):
        like, indices = ((bins,), "f4"), np.zeros(updates, np.int32)
        prepared = gatherum.prepare(
            "scatter_slices", like, indices, **{"reduction": "add", **options}
        )
        return prepared.nbytes - indices.nbytes

    many = 1 << 16
    assert kept(1 << 13, many) == 4 * many + 4 * 3 + 8 * 4  # two blocks, one stretch
    more = 1 << 18  # four stretches; offsets of more than 16 bits
    assert kept(more, more) == 6 * more + 4 * 3 + 8 * 10
    assert kept((1 << 13) - 1, many) == 0  # one thread is as fast
    assert kept(1 << 13, many - 1) == 0  # too few
    assert kept(many + 1, many) == 0  # some destinations would not change
    assert kept(1 << 13, many, reduction="none") == 0
    gatherum.set_num_threads(1)
    assert kept(1 << 13, many) == 0  # the indices contain as much


def test_lists_that_there_cannot_be():
    indices = np.array([2, 0])
    edges, end = EdgeLoops.of(indices, indices, (8,)), EdgeEnd("indices", indices, 3)
    for block in (0, 1 << 32):
        with pytest.raises(ValueError, match="a list is of 1 to 4294967295 destinations"):
            edges.make_lists("prepare", end, None, False, "drop", False, block)
    edges.make_lists("prepare", end, None, False, "drop", False, (1 << 32) - 1)
    with pytest.raises(ValueError, match="a list of several destinations has no sources"):
        edges.make_lists("prepare", end, end, False, "drop", False, 2)
    lists = edges.make_lists("prepare", end, None, False, "drop", False, 2)
    items, rows, fill = np.zeros(3), np.zeros((3, 2)), np.zeros(())
    for table, start, weights in [(items, None, None), (items, items, items), (rows, rows, None)]:
        program = edges.row_program(table, table, FoldRule("add"))
        with pytest.raises(ValueError, match="fold items into what there is"):
            lists.fold(program, table, weights, start, fill, table.copy(), True)


def test_later_changes_of_the_indices_have_no_effect():
    indices = np.array([2, 0, 2])
    add = gatherum.prepare("scatter_slices", ((3, 8), "f4"), indices, reduction="add")
    indices[:] = 99
    assert add(np.zeros((3, 8), "f4"), np.ones((3, 8), "f4"))[:, 0].tolist() == [1, 0, 2]
    with pytest.raises(ValueError, match="read-only"):
        add.indices[0] = 1


@pytest.mark.parametrize("index", [3, -1])
def test_indices_of_a_pickle_are_checked(index):
    make, (*arguments, indices, attributes) = gatherum.prepare(
        "gather", [4, 5, 6], [2, 0]
    ).__reduce__()
    with pytest.raises(IndexError, match=rf"gather: index {index} is out of bounds .* size 3"):
        make(*arguments, np.array([0, index]), attributes)
    again = make(*arguments, indices, attributes)
    assert again([7, 8, 9]).tolist() == [9, 7]
    assert again.indices is not indices


def test_attributes_of_a_prepared_call():
    prepared = gatherum.prepare("gather_nd", ((5, 3), "f4"), [[-1, 2], [9, 0]], mode="drop")
    assert (prepared.op, prepared.shape, prepared.dtype) == ("gather_nd", (2,), np.dtype("f4"))
    assert prepared.indices.tolist() == [[4, 2], [-1, 0]]
    assert prepared.indices.dtype == INT32
    assert prepared.nbytes == 16
    assert repr(prepared) == "<Prepared gather_nd on float32 (5, 3), indices (2, 2)>"


def test_threads_share_prepared_calls():
    rng = np.random.default_rng(2)
    data, updates = rng.standard_normal((50, 40)), rng.standard_normal((5000, 40))
    indices = rng.integers(0, 50, 5000)
    add = gatherum.prepare("scatter_slices", data, indices, reduction="add")
    expected = gatherum.scatter_slices(data, indices, updates, reduction="add")
    results = [None] * 4

    def run(i):
        results[i] = add(data, updates)

    workers = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(same_bits(expected, one) for one in results)


ERRORS = [
    (lambda p: p(np.zeros((3, 8))), TypeError, "scatter_slices: the call was prepared for `data` "
     "of float32, got float64"),
    (lambda p: p(np.zeros((3, 9), "f4")), ValueError, "scatter_slices: the call was prepared for "
     "`data` of shape (3, 8), got (3, 9)"),
    (lambda p: p(np.zeros((3, 8), "f4")), TypeError, "scatter_slices: `updates` must be an array, "
     "got NoneType"),
    (lambda p: p(np.zeros((3, 8), "f4"), np.zeros((2, 9), "f4")), ValueError, "scatter_slices: "
     "`updates` must have shape (2, 8), got (2, 9)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error_type", "sentence"), ERRORS)
def test_operands_that_the_call_was_not_prepared_for(call, error_type, sentence):
    prepared = gatherum.prepare("scatter_slices", ((3, 8), "f4"), [0, 1], reduction="add")
    with pytest.raises(error_type) as caught:
        call(prepared)
    assert str(caught.value) == sentence


def test_out_is_checked_as_the_operator_checks_it():
    prepared = gatherum.prepare("scatter_slices", ((3, 8), "f4"), [0, 1], reduction="add")
    data, updates = np.zeros((3, 8), "f4"), np.ones((2, 8), "f4")
    wrong = {
        "must have shape (3, 8), got (2, 8)": np.zeros((2, 8), "f4"),
        "must not share memory with `data`": data[::-1],
        "must not share memory with `updates`": np.lib.stride_tricks.as_strided(updates, (3, 8)),
    }
    for sentence, out in wrong.items():
        if sentence.endswith("`updates`"):
            big = np.ones((5, 8), "f4")
            updates, out = big[:2], big[1:4]  # noqa: PLW2901  # one array holds both
        with pytest.raises(ValueError, match="`out`") as caught:
            prepared(data, updates, out=out)
        assert str(caught.value) == f"scatter_slices: `out` {sentence}"


def test_a_run_takes_out_and_fill_value_itself():
    for name in ("out", "fill_value"):
        with pytest.raises(TypeError) as caught:
            gatherum.prepare("gather", ((3,), "f4"), [0], **{name: 1})
        assert str(caught.value) == (
            f"prepare: unknown attribute {name!r}; it takes 'axis', 'mode', 'negative'"
        )


@pytest.mark.parametrize("op", ["gather_elements", "gather_nd"])
def test_indices_of_the_most_dimensions(op):
    data = np.arange(3.0).reshape(3, *(1,) * (63 if op == "gather_elements" else 0))
    indices = np.full((1,) * 64, 2)
    ready = gatherum.prepare(op, data, indices)
    assert same_bits(ready(data), getattr(gatherum, op)(data, indices))
