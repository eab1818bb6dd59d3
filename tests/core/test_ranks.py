"""Every rank that NumPy supports, up to 64: the operators, and all reports about a call."""

import pickle
from math import prod

import numpy as np
import pytest

import gatherum
from canaries import guarded_copy, strays
from gatherum import _core, files, reference
from gatherum._model import shape_limits
from gatherum._model.operators import OPERATORS
from strategies import SCATTERS, same_bits

MOST = 64
F4, I8 = np.dtype("f4"), np.dtype("i8")


def spread(rank, *places, size=2):
    """Return a shape of ones, with another size at the given dimensions."""
    return tuple(size if d in [p % rank for p in places] else 1 for d in range(rank))


def numbered(shape, dtype=F4):
    return np.arange(prod(shape)).astype(dtype).reshape(shape)


# Dimensions apart from each other, none of which merge if the axes are in another order.
WIDE = spread(MOST, 0, 5, 21, 31, 32, 33, 62, 63)
# All elements of WIDE, as index tuples of 64 components.
PLACES = np.stack(np.unravel_index(np.arange(2**8) * 77 % 2**8, WIDE), -1)
BATCHES = spread(MOST, 3, 40, 62)

CALLS = {
    "slices": ("gather", WIDE, np.array([1, 0, -1]), {"axis": 33}),
    "no-dimension": ("gather", WIDE, np.array(1), {"axis": -1}),
    "indices-of-rank-64": ("gather", (7,), numbered(WIDE, I8) % 7, {}),
    "indices-of-rank-63": ("gather", (3, 2), numbered(spread(63, 0, 62), "u1") % 2, {"axis": 1}),
    "elements": ("gather_elements", WIDE, numbered(WIDE, "i2") // 3 % 2, {"axis": 63}),
    "fewer-elements": (
        "gather_elements", WIDE, np.array([1, 1, 0]).reshape(spread(MOST, 32, size=3)),
        {"axis": 32},
    ),
    "tuples-of-64": ("gather_nd", WIDE, PLACES, {}),
    "tuples-of-63": ("gather_nd", WIDE, PLACES[::5, :63].astype(">i4"), {}),
    "tuples-of-none": ("gather_nd", WIDE, np.empty(0, "i1"), {}),
    "tuple-indices-of-rank-64": (
        "gather_nd", (5, 2), numbered((*WIDE[:63], 2), I8) % 2, {}
    ),
    "63-batch-dimensions": (
        "gather_nd", (*BATCHES[:63], 3), numbered((*BATCHES[:63], 1), I8) % 3, {"batch_dims": 63}
    ),
}  # fmt: skip


def laid(array, layout):
    if layout == "strided" and array.ndim:
        turned = array.transpose(*range(0, array.ndim, 2), *range(1, array.ndim, 2))
        order = np.argsort([*range(0, array.ndim, 2), *range(1, array.ndim, 2)])
        return np.ascontiguousarray(turned).transpose(order)
    return guarded_copy(array)


def drawn(name, layout):
    """Return operator, data and indices in a layout, attributes, and the shape that moves."""
    op, shape, indices, attributes = CALLS[name]
    moved = getattr(reference, op)(np.zeros(shape, F4), indices, **attributes).shape
    return op, laid(numbered(shape), layout), laid(indices, layout), dict(attributes), moved


def inverse(op):
    return {"gather": "scatter_slices"}.get(op, op.replace("gather", "scatter"))


@pytest.mark.parametrize("layout", ["plain", "strided"])
@pytest.mark.parametrize("name", CALLS)
def test_gathers(name, layout):
    op, data, indices, attributes, moved = drawn(name, layout)
    expected = getattr(reference, op)(data, indices, **attributes)
    assert same_bits(getattr(gatherum, op)(data, indices, **attributes), expected)
    out = laid(np.full(moved, np.nan, F4), layout)
    assert getattr(gatherum, op)(data, indices, out=out, **attributes) is out
    assert same_bits(out, expected)
    assert layout == "strided" or strays(out) == []
    filled = {"mode": "fill", "fill_value": 7, "negative": False}
    expected = getattr(reference, op)(data, indices - 1, **attributes, **filled)
    assert same_bits(getattr(gatherum, op)(data, indices - 1, **attributes, **filled), expected)


@pytest.mark.parametrize("reduction", ["none", "add", "mean"])
@pytest.mark.parametrize("layout", ["plain", "strided", "broadcast"])
@pytest.mark.parametrize("name", CALLS)
def test_scatters(name, layout, reduction):
    op, data, indices, attributes, moved = drawn(name, layout)
    op, attributes = inverse(op), {**attributes, "reduction": reduction}
    whole = numbered(moved) % 5 - 2
    if layout == "broadcast":
        assert same_bits(
            getattr(gatherum, op)(data, indices, 3, **attributes),
            getattr(reference, op)(data, indices, 3, **attributes),
        )
        whole = np.ascontiguousarray(whole[(slice(1),) * (len(moved) // 2)])
    updates = laid(whole, layout)
    expected = getattr(reference, op)(data, indices, updates, **attributes)
    assert same_bits(getattr(gatherum, op)(data, indices, updates, **attributes), expected)
    attributes["include_self"] = False
    expected = getattr(reference, op)(data, indices, updates, **attributes)
    out = laid(data, layout)
    assert getattr(gatherum, op)(out, indices, updates, out=out, **attributes) is out
    assert same_bits(out, expected)


@pytest.mark.parametrize("name", CALLS)
def test_reports_about_a_call(name):
    for op in (CALLS[name][0], inverse(CALLS[name][0])):
        _, data, indices, attributes, moved = drawn(name, "strided")
        updates = [np.zeros(moved, F4)] * (op in SCATTERS)
        plan = gatherum.plan(op, data, indices, *updates, **attributes)
        again = pickle.loads(pickle.dumps(plan))
        assert again == plan
        assert again.program == plan.program
        expected = getattr(reference, op)(data, indices, *updates, **attributes)
        assert same_bits(again.run(data, indices, *updates), expected)
        for explained in (
            gatherum.explain(op, data, indices, *updates, **attributes),
            gatherum.explain(plan),
        ):
            assert str(plan.nest.loops[0].extent) in explained.loops
            assert str(explained).startswith(f"{op} -> float32")
            assert explained.svg().startswith("<svg")


@pytest.mark.parametrize("name", CALLS)
def test_reports(name):
    op, data, indices, attributes, _ = drawn(name, "strided")
    report = gatherum.index_report(op, data.shape, indices, **attributes)
    entries = indices.shape[:-1] if op == "gather_nd" else indices.shape
    assert (report.entries, report.invalid) == (prod(entries), 0)
    assert report.duplicates == report.entries - distinct(op, data.shape, indices, attributes)
    if indices.size == 0:
        return
    bad = np.array(indices.astype(I8))
    where = tuple(n - 1 for n in bad.shape)
    bad[where] = 9
    report = gatherum.index_report(op, data.shape, bad, **attributes)
    assert report.first_invalid == where[: len(entries)]
    axis = attributes.get("axis", 0) % data.ndim
    if op == "gather_nd":
        axis = attributes.get("batch_dims", 0) + where[-1]
    place = f"[{', '.join(map(str, where))}]" if where else ""
    sentence = (
        f"{op}: index 9 is out of bounds for axis {axis} of size {data.shape[axis]} "
        f"(indices{place})"
    )
    with pytest.raises(IndexError) as caught:
        getattr(gatherum, op)(data, bad, **attributes)
    assert str(caught.value) == sentence
    assert gatherum.explain(op, data, bad, **attributes).refusal == sentence


def distinct(op, shape, indices, attributes):
    """Return the number of destinations that some entry addresses."""
    if op == "gather":
        return np.unique(indices % shape[attributes.get("axis", 0)]).size
    if op == "gather_nd":
        b = attributes.get("batch_dims", 0)
        batch = np.arange(prod(shape[:b])).repeat(prod(indices.shape[b:-1]))
        rows = np.column_stack([batch, indices.reshape(batch.size, indices.shape[-1])])
        return len(np.unique(rows, axis=0))
    axis = attributes["axis"] % len(shape)
    where = np.argwhere(np.ones(indices.shape, bool))
    where[:, axis] = indices.ravel() % shape[axis]
    return len(np.unique(where, axis=0))


@pytest.mark.parametrize("reduction", ["none", "mean", "max"])
@pytest.mark.parametrize("name", CALLS)
def test_accumulators(name, reduction):
    op, data, indices, attributes, moved = drawn(name, "strided")
    op, updates = inverse(op), numbered(moved) % 5 - 2
    fold = gatherum.Accumulator(data, reduction)
    fold = pickle.loads(pickle.dumps(getattr(fold, op)(indices, updates, *attributes.values())))
    expected = getattr(reference, op)(data, indices, updates, reduction=reduction, **attributes)
    assert same_bits(fold.finish(), expected)
    out = laid(np.zeros(data.shape, F4), "strided")
    assert same_bits(fold.finish(out), expected)
    assert fold.counts().sum() == prod(moved)
    if reduction == "max":
        other = gatherum.Accumulator(np.full(data.shape, np.inf, F4), "max")
        assert same_bits(fold.merge(other).finish(), expected)


def test_the_limit_is_numpys():
    assert np.zeros((1,) * shape_limits.MAX_RANK).ndim == shape_limits.MAX_RANK
    with pytest.raises(ValueError, match="64"):
        np.zeros((1,) * (shape_limits.MAX_RANK + 1))


def test_the_limit_is_that_of_the_core():
    """The core reports its limit, kMaxLoops, with the fault."""
    layouts = [shape_limits.OperandLayout.contiguous((1,) * n, 4) for n in (MOST + 1, 1)]
    fields = {"index_width": 8, "item": 4}
    shape_flags = OPERATORS["gather"].addressing.shape_flags
    fault = _core.lower(shape_flags, 0, *layouts, None, None, fields)
    assert fault == ("too_many_dimensions", "data", 0, shape_limits.MAX_RANK, MOST + 1, ())


ONES = np.ones((1,) * MOST, F4)
ZEROS = np.zeros((1,) * MOST, np.int64)
# One dimension more than NumPy supports: of the result, of the updates, and of operands.
REFUSED = [
    ("gather", (ONES, [[0]]), {}, "the result"),
    ("gather", (np.ones((1, 1), F4), ZEROS), {}, "the result"),
    ("gather_nd", (ONES, np.zeros((2, 1, 1), int)), {}, "the result"),
    ("gather_nd", (np.ones((1, 1, 1), F4), ZEROS), {}, "the result"),
    ("scatter_slices", (ONES, [[0]], 1.0), {}, "`updates`"),
    ("scatter_slices", (np.ones((1, 1), F4), ZEROS, 1.0), {}, "`updates`"),
    ("scatter_nd", (ONES, np.zeros((2, 1, 1), int), 1.0), {}, "`updates`"),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "what"), REFUSED)
def test_results_of_rank_65(op, operands, attributes, what):
    sentence = f"{op}: {what} must have at most 64 dimensions, got 65"
    for call in (
        getattr(gatherum, op),
        lambda *a, **k: gatherum.plan(op, *a, **k),
        lambda *a, **k: gatherum.explain(op, *a, **k),
        lambda data, indices, *_, **k: gatherum.index_report(op, data.shape, indices, **k),
    ):
        with pytest.raises(ValueError, match="at most 64") as caught:
            call(*operands, **attributes)
        assert str(caught.value) == sentence
    with pytest.raises(ValueError, match="rank 0 to 64, got 65"):
        getattr(reference, op)(*operands, **attributes)


def test_operands_of_rank_65():
    many, few = ((1,) * 65, "f4"), ((1,), "i8")
    with pytest.raises(
        ValueError, match=r"^gather: `data` must have at most 64 dimensions, got 65"
    ):
        gatherum.plan("gather", many, few)
    words = "^gather: `indices` must have at most 64 dimensions, got 65"
    with pytest.raises(ValueError, match=words):
        gatherum.plan("gather", ((1,), "f4"), (many[0], "i8"))
    words = "^scatter_nd: `updates` must have at most 64 dimensions, got 65"
    with pytest.raises(ValueError, match=words):
        gatherum.plan("scatter_nd", ((1,), "f4"), ((1, 1), "i8"), many)
    with pytest.raises(
        ValueError, match=r"^gather: `data` must have at most 64 dimensions, got 65"
    ):
        gatherum.index_report("gather", (1,) * 65, [0])
    deep = 1
    for _ in range(65):
        deep = [deep]
    with pytest.raises(ValueError, match=r"^gather: `data` cannot be converted to an array: "):
        gatherum.gather(deep, [0])


@pytest.mark.parametrize("suffix", ["npy", "npz", "zarr"])
@pytest.mark.parametrize("name", CALLS)
def test_files(tmp_path, name, suffix):
    op, data, indices, attributes, moved = drawn(name, "plain")
    table = stored(tmp_path, suffix, data)
    np.save(tmp_path / "rows.npy", indices)
    out = tmp_path / "out.npy"
    getattr(files, f"{op}_file")(table, tmp_path / "rows.npy", out, **attributes)
    expected = getattr(reference, op)(data, indices, **attributes)
    assert same_bits(np.load(out), expected)
    op, updates = inverse(op), numbered(moved) % 5 - 2
    np.save(tmp_path / "updates.npy", updates)
    operands = tmp_path / "rows.npy", tmp_path / "updates.npy"
    attributes["reduction"] = "mean"
    getattr(files, f"{op}_file")(table, *operands, out, **attributes)
    expected = getattr(reference, op)(data, indices, updates, **attributes)
    assert same_bits(np.load(out), expected)
    if suffix == "zarr":
        getattr(files, f"{op}_file")(table, *operands, out.with_suffix(".zarr"), **attributes)
        np.save(tmp_path / "rows.npy", np.empty(0, int))
        files.gather_nd_file(out.with_suffix(".zarr"), tmp_path / "rows.npy", out)
        assert same_bits(np.load(out), expected)


def test_updates_in_a_file_that_broadcast_to_rank_64(tmp_path):
    # NumPy 2.4 crashes when it writes a strided array of more than 32 dimensions to a file.
    updates = np.ascontiguousarray(numbered(WIDE)[0, ..., :1])
    for name, array in (("table", numbered(WIDE)), ("rows", np.empty(0, int)), ("new", updates)):
        np.save(tmp_path / f"{name}.npy", array)
    files.scatter_nd_file(*(tmp_path / f"{name}.npy" for name in ("table", "rows", "new", "out")))
    assert same_bits(np.load(tmp_path / "out.npy"), np.broadcast_to(updates, WIDE).copy())


def stored(folder, suffix, data):
    """Write a table, and return its path."""
    path = folder / f"table.{suffix}"
    if suffix == "npy":
        np.save(path, data)
    elif suffix == "npz":
        np.savez(path, a=data)
        return f"{path}:a"
    else:
        zarr = pytest.importorskip("zarr", reason="install zarr")
        chunks = (1, *data.shape[1:-1], 1)[: data.ndim]
        # zarr's check for empty chunks has a limit of 32 dimensions.
        with zarr.config.set({"array.write_empty_chunks": True}):
            whole = zarr.create_array(path, shape=data.shape, dtype=F4, chunks=chunks)
            for place in np.ndindex(*data.shape[:1], *data.shape[-1:]):
                box = (place[0], ..., place[-1]) if data.ndim > 1 else place[:1]
                whole[box] = data[box]
    return path


def test_the_command(capfd):
    cli = pytest.importorskip("gatherum._command.cli", reason="install click")
    ones = "1x" * 63
    assert (
        cli.run(("explain", "gather", "--data", f"{ones}2", "--indices", "3", "--axis", "63")) == 0
    )
    assert capfd.readouterr().out.startswith(f"gather -> float32 ({'1, ' * 63}3)\n")
    assert cli.run(("explain", "gather", "--data", f"{ones}1x2", "--indices", "3")) == 1
    sentence = "gatherum: gather: `data` must have at most 64 dimensions, got 65\n"
    assert capfd.readouterr().err == sentence
