"""One slab, block after block: 256 indices are staged while the preceding ones are folded."""

import numpy as np
import pytest

import gatherum
from gatherum import reference
from sizes import chosen_from, family

SIZE = 50
UPDATES = 3 * 256 + 62
# The first and last elements of a block, and of a vector in it; the last block is partial.
PLACES = [0, 1, 3, 4, 254, 255, 256, 257, 300, 511, 512, 767, 768, 770, 828, 829]
DTYPES = ["i8", "i4", "u8", "u4", "i2", ">i8", ">i4"]


@pytest.fixture(autouse=True)
def _slabs_for_few_updates(settings_restored):
    gatherum.set_num_threads(1)
    with chosen_from({"small_call_bytes": 0, "many_updates": 1}):
        yield


def _operands(index_dtype, dtype="f4"):
    rng = np.random.default_rng(5)
    # Sums of these depend on their order.
    data, updates = (rng.standard_normal(n).astype(dtype) for n in (SIZE, UPDATES))
    indices = rng.integers(0, SIZE, (UPDATES, 1)).astype(index_dtype)
    plan = gatherum.plan("scatter_nd", data, indices, updates, reduction="add")
    assert family(plan.algorithm) == "accumulators"
    return data, indices, updates


@pytest.mark.parametrize("index_dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 255, 256, 257, 511, 512, 513, 768, UPDATES])
@pytest.mark.parametrize("reduction", ["none", "add", "max", "mean"])
def test_blocks_of_every_length(index_dtype, count, reduction):
    data, indices, updates = _operands(index_dtype)
    operands = data, indices[:count], updates[:count]
    result = gatherum.scatter_nd(*operands, reduction=reduction)
    assert result.tobytes() == reference.scatter_nd(*operands, reduction=reduction).tobytes()


@pytest.mark.parametrize("index_dtype", DTYPES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mode", ["drop", "clip", "wrap"])
def test_one_index_that_is_not_valid(index_dtype, place, mode):
    data, indices, updates = _operands(index_dtype)
    indices[place] = SIZE
    result = gatherum.scatter_nd(data, indices, updates, reduction="add", mode=mode)
    expected = reference.scatter_nd(data, indices, updates, reduction="add", mode=mode)
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("index_dtype", ["i8", "i4", ">i8"])
@pytest.mark.parametrize("place", PLACES)
def test_one_negative_index(index_dtype, place):
    data, indices, updates = _operands(index_dtype)
    indices[place] = -SIZE
    result = gatherum.scatter_nd(data, indices, updates, reduction="add")
    assert (
        result.tobytes() == reference.scatter_nd(data, indices, updates, reduction="add").tobytes()
    )


@pytest.mark.parametrize("index_dtype", DTYPES)
@pytest.mark.parametrize("place", PLACES)
def test_one_bad_index_changes_nothing(index_dtype, place):
    data, indices, updates = _operands(index_dtype)
    indices[place] = SIZE
    out, before = data.copy(), data.copy()
    for more in ({}, {"out": out}, {"out": data}):
        with pytest.raises(
            IndexError, match=rf"index {SIZE} is out of bounds .*\(indices\[{place}, 0\]\)"
        ):
            gatherum.scatter_nd(data, indices, updates, reduction="add", **more)
    assert out.tobytes() == data.tobytes() == before.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize("reduction", ["mean", "add", "max"])
@pytest.mark.parametrize("include_self", [True, False])
def test_where_no_update_went_a_nan_keeps_its_payload(dtype, reduction, include_self):
    data, indices, updates = _operands("i8", dtype)
    if reduction == "max" and dtype == "c8":
        reduction = "mul"
    bits = data.view("u4" if dtype == "c8" else f"u{data.itemsize}")
    bits[:] = np.array(np.nan, bits.dtype.str.replace("u", "f")).view(bits.dtype) - 5  # signalling
    indices[indices > 40] = 7
    result = gatherum.scatter_nd(
        data, indices, updates, reduction=reduction, include_self=include_self
    )
    expected = reference.scatter_nd(
        data, indices, updates, reduction=reduction, include_self=include_self
    )
    assert result[41:].tobytes() == data[41:].tobytes()
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("stride", [2, -1])
@pytest.mark.parametrize("strided", ["indices", "updates", "both"])
def test_strided_operands(stride, strided):
    data, indices, updates = _operands("i8")
    if strided != "updates":
        indices = np.repeat(indices, abs(stride), axis=0)[::stride]
    if strided != "indices":
        updates = np.repeat(updates, abs(stride))[::stride]
    result = gatherum.scatter_nd(data, indices, updates, reduction="add")
    assert (
        result.tobytes() == reference.scatter_nd(data, indices, updates, reduction="add").tobytes()
    )


@pytest.mark.parametrize("length", [255, 256, 257, 300, 600])
def test_lines_that_do_not_go_on_in_one_another(length):
    """A whole block may follow a partial one."""
    data, indices, updates = _operands("i8")
    indices = np.resize(indices, (3, 1000, 1))[:, :length]
    updates = np.resize(updates, (3, 1001))[:, :length]
    result = gatherum.scatter_nd(data, indices, updates, reduction="add")
    assert (
        result.tobytes() == reference.scatter_nd(data, indices, updates, reduction="add").tobytes()
    )


@pytest.mark.parametrize("place", [0, 255, 256, 700])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_second_index_of_a_tuple_is_checked_even_without_effect(place, order):
    data, indices, updates = _operands("i8")
    pairs = np.array(np.concatenate([indices, np.zeros_like(indices)], axis=1), order=order)
    result = gatherum.scatter_nd(data[:, None], pairs, updates, reduction="add")
    assert (
        result.tobytes() == gatherum.scatter_nd(data, indices, updates, reduction="add").tobytes()
    )
    pairs[place, 1] = 1
    with pytest.raises(IndexError, match=rf"index 1 .* \(indices\[{place}, 1\]\)"):
        gatherum.scatter_nd(data[:, None], pairs, updates, reduction="add")


@pytest.mark.parametrize("bad", [600_000, 2**62, -(2**63), -600_001])
@pytest.mark.parametrize("index_dtype", ["i8", "i4"])
def test_slabs_that_are_fetched_ahead(bad, index_dtype):
    """Slabs of 4 MiB or more; the slot of a bad index may be anywhere before it is detected."""
    rng = np.random.default_rng(5)
    data, updates = np.zeros(600_000), rng.standard_normal(310_000)
    indices = rng.integers(0, data.size, updates.size).astype(index_dtype)
    expected = data.copy()
    np.add.at(expected, indices, updates)
    plan = gatherum.plan("scatter_nd", data, indices[:, None], updates, reduction="add")
    assert family(plan.algorithm) == "accumulators"
    assert (
        gatherum.scatter_nd(data, indices[:, None], updates, reduction="add").tobytes()
        == expected.tobytes()
    )
    at = [0, 700, 8191, -1]
    bounds = np.iinfo(index_dtype)
    indices[at] = min(max(bad, bounds.min), bounds.max)
    result = gatherum.scatter_nd(data, indices[:, None], updates, reduction="add", mode="drop")
    expected = data.copy()
    np.add.at(expected, np.delete(indices, at), np.delete(updates, at))
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("columns", [2, 8, 70])
@pytest.mark.parametrize(
    ("reduction", "include_self"), [("mean", True), ("mean", False), ("add", False)]
)
def test_each_column_has_separate_counters(columns, reduction, include_self):
    rng = np.random.default_rng(6)
    data, updates = (rng.standard_normal((SIZE, columns)).astype("f4") for _ in range(2))
    indices = rng.integers(0, SIZE, updates.shape)
    options = {"reduction": reduction, "include_self": include_self}
    plan = gatherum.plan("scatter_elements", data, indices, updates, **options)
    assert family(plan.algorithm) == "accumulators"
    result = gatherum.scatter_elements(data, indices, updates, **options)
    assert (
        result.tobytes() == reference.scatter_elements(data, indices, updates, **options).tobytes()
    )
