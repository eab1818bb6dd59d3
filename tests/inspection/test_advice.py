"""Every advice of a message about arrays in memory is followed literally, and the call succeeds."""

import sys

import numpy as np
import pytest

from advised import follow

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
SWAPPED = TABLE.astype(">f4")
NATIVE = "data.astype(data.dtype.newbyteorder('='))"

# The operands, the call, the advice, and the call that follows it.
CASES = {
    "mask": (
        {"data": TABLE, "mask": TABLE[:, 0] > 2},
        "gatherum.gather(data, mask)",
        "; np.flatnonzero makes indices of a mask",
        "gatherum.gather(data, np.flatnonzero(mask))",
    ),
    "mask of tuples": (
        {"data": TABLE, "mask": TABLE > 2},
        "gatherum.gather_nd(data, mask)",
        "; np.argwhere makes index tuples of a mask",
        "gatherum.gather_nd(data, np.argwhere(mask))",
    ),
    "floats": (
        {"data": TABLE, "indices": np.array([1.0, 2])},
        "gatherum.gather(data, indices)",
        "; write indices.astype(np.int64)",
        "gatherum.gather(data, indices.astype(np.int64))",
    ),
    "groups of floats": (
        {"values": TABLE, "groups": np.array([0.0, 1, 1, 0])},
        "gatherum.groups.reduce(values, groups)",
        "; write groups.astype(np.int64)",
        "gatherum.groups.reduce(values, groups.astype(np.int64))",
    ),
    "groups of a mask": (
        {"values": TABLE, "groups": np.array([True, False, True, False])},
        "gatherum.groups.reduce(values, groups)",
        "; write groups.astype(np.int64)",
        "gatherum.groups.reduce(values, groups.astype(np.int64))",
    ),
    "groups of strings": (
        {"values": TABLE, "groups": np.array(["b", "a", "a", "b"])},
        "gatherum.groups.reduce(values, groups)",
        "; groups, keys = gatherum.groups.factorize(groups) numbers keys",
        "gatherum.groups.reduce(values, gatherum.groups.factorize(groups)[0])",
    ),
    "edges from a mask": (
        {"data": TABLE, "gather_indices": np.array([True, False])},
        "gatherum.aggregate(data, gather_indices, [0, 1], 2, 'add')",
        "; write gather_indices.astype(np.int64)",
        "gatherum.aggregate(data, gather_indices.astype(np.int64), [0, 1], 2, 'add')",
    ),
    "edges to a mask": (
        {"data": TABLE, "scatter_indices": np.array([True, False])},
        "gatherum.aggregate(data, [0, 1], scatter_indices, 2, 'add')",
        "; write scatter_indices.astype(np.int64)",
        "gatherum.aggregate(data, [0, 1], scatter_indices.astype(np.int64), 2, 'add')",
    ),
    "pointer": (
        {"data": TABLE, "indptr": np.array([0.0, 1, 2])},
        "gatherum.aggregate(data, [0, 1], None, None, 'add', indptr=indptr)",
        "; write indptr.astype(np.int64)",
        "gatherum.aggregate(data, [0, 1], None, None, 'add', indptr=indptr.astype(np.int64))",
    ),
    "one tuple": (
        {"data": TABLE[:, 0], "indices": np.array([3, 1])},
        "gatherum.gather_nd(data, indices)",
        "; indices[:, None] makes a tuple of each index",
        "gatherum.gather_nd(data, indices[:, None])",
    ),
    "updates of one tuple": (
        {"data": TABLE, "indices": np.array([3, 1]), "updates": TABLE[:2]},
        "gatherum.scatter_nd(data, indices, updates)",
        "; indices[:, None] makes a tuple of each index",
        "gatherum.scatter_nd(data, indices[:, None], updates)",
    ),
    "tuple of arrays": (
        {"data": TABLE, "arrays": (np.array([3, 1]), np.array([0, 2]))},
        "gatherum.gather_nd(data, arrays)",
        "; np.argwhere, or np.stack(arrays, -1), makes index tuples",
        "gatherum.gather_nd(data, np.stack(arrays, -1))",
    ),
    "an index for each": (
        {"data": TABLE, "indices": np.array([[3], [1]]), "updates": TABLE[:2]},
        "gatherum.scatter_elements(data, indices, updates)",
        "; write np.broadcast_to(indices, (2, 3)) for an index for each, or call scatter_slices",
        "gatherum.scatter_elements(data, np.broadcast_to(indices, (2, 3)), updates)",
    ),
    "slices": (
        {"data": TABLE, "indices": np.array([[3], [1]]), "updates": TABLE[:2]},
        "gatherum.scatter_elements(data, indices, updates)",
        ", or call scatter_slices with indices.ravel()",
        "gatherum.scatter_slices(data, indices.ravel(), updates)",
    ),
    "slices across": (
        {"data": TABLE, "indices": np.array([[2, 0]]), "updates": TABLE[:, :2]},
        "gatherum.scatter_elements(data, indices, updates, 1)",
        ", or call scatter_slices with indices.ravel()",
        "gatherum.scatter_slices(data, indices.ravel(), updates, 1)",
    ),
    "updates": (
        {"data": TABLE, "updates": np.ones((1, 3))},
        "gatherum.scatter_slices(data, [0], updates)",
        "; write updates.astype(data.dtype)",
        "gatherum.scatter_slices(data, [0], updates.astype(data.dtype))",
    ),
    "weights": (
        {"data": TABLE, "weights": np.ones(2)},
        "gatherum.aggregate(data, [0, 1], [0, 1], 2, 'add', weights)",
        "; write weights.astype(data.dtype)",
        "gatherum.aggregate(data, [0, 1], [0, 1], 2, 'add', weights.astype(data.dtype))",
    ),
    "fill value": (
        {"data": TABLE, "fill_value": np.float64(0.1)},
        "gatherum.gather(data, [9], mode='fill', fill_value=fill_value)",
        "; write fill_value.item() to round it",
        "gatherum.gather(data, [9], mode='fill', fill_value=fill_value.item())",
    ),
    "byte order": (
        {"data": SWAPPED, "updates": SWAPPED[:1]},
        "gatherum.scatter_slices(data, [0], updates, reduction='add')",
        f"; write {NATIVE}, and the same for updates",
        f"gatherum.scatter_slices({NATIVE}, [0], {NATIVE.replace('data', 'updates')}, "
        "reduction='add')",
    ),
    "byte order of an accumulator": (
        {"data": SWAPPED},
        "gatherum.Accumulator(data, 'add')",
        f"; write {NATIVE}",
        f"gatherum.Accumulator({NATIVE}, 'add')",
    ),
    "byte order of edges": (
        {"data": SWAPPED},
        "gatherum.aggregate(data, [0], [0], 1, 'add')",
        f"; write {NATIVE}",
        f"gatherum.aggregate({NATIVE}, [0], [0], 1, 'add')",
    ),
    "byte order of groups": (
        {"values": SWAPPED},
        "gatherum.groups.reduce(values, [0, 1, 1, 0])",
        "; it needs native byte order",
        "gatherum.groups.reduce(values.astype(values.dtype.newbyteorder('=')), [0, 1, 1, 0])",
    ),
    "groups of long doubles": (
        {"values": TABLE.astype("g")},
        "gatherum.groups.reduce(values, [0, 1, 1, 0])",
        "; it needs float64",
        "gatherum.groups.reduce(values.astype('float64'), [0, 1, 1, 0])",
    ),
    "empty group": (
        {"values": np.arange(4)},
        "gatherum.groups.reduce(values, [0, 2, 2, 2], func='max')",
        "`fill_value` must be given for 'max' of dtype int64",
        "gatherum.groups.reduce(values, [0, 2, 2, 2], func='max', fill_value=0)",
    ),
    "count": (
        {},
        "gatherum.files.reduce_file(None, [0, 1])",
        "; 'count' needs none",
        "gatherum.files.reduce_file(None, [0, 1], func='count')",
    ),
    "exact sums of integers": (
        {"data": np.arange(3)},
        "gatherum.scatter_slices(data, [0], 1, reduction='fsum')",
        "'add' sums integers without rounding",
        "gatherum.scatter_slices(data, [0], 1, reduction='add')",
    ),
    "another name": (
        {"data": TABLE},
        "gatherum.scatter_slices(data, [0], 1, reduction='sum')",
        "; its name here is 'add'",
        "gatherum.scatter_slices(data, [0], 1, reduction='add')",
    ),
    "position": (
        {"data": TABLE},
        "gatherum.gather(data, [9], 'clip')",
        "; write mode='clip'",
        "gatherum.gather(data, [9], mode='clip')",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_advice_of_arrays(name):
    if name == "groups of long doubles" and sys.platform == "win32":
        pytest.skip("long doubles are doubles there")
    operands, call, advice, advised = CASES[name]
    follow(call, advice, advised, {"np": np, **operands})


FORMATS = ("csr", "csc", "coo")


@pytest.mark.frameworks
@pytest.mark.parametrize("layout", FORMATS)
def test_advice_of_matrices(layout):
    sparse = pytest.importorskip("scipy.sparse", reason="install scipy to test sparse matrices")
    matrix = sparse.csr_matrix(np.eye(4, dtype=np.float32)).asformat(layout)
    result = follow(
        "gatherum.aggregate(data, gather_indices, None, None, 'add')",
        "; write gather_indices.astype(data.dtype)",
        "gatherum.aggregate(data, gather_indices.astype(data.dtype), None, None, 'add')",
        {"data": TABLE.astype(np.float64), "gather_indices": matrix},
    )
    assert result.tolist() == TABLE.tolist()


@pytest.mark.frameworks
def test_advice_of_other_matrices():
    sparse = pytest.importorskip("scipy.sparse", reason="install scipy to test sparse matrices")
    follow(
        "gatherum.aggregate(data, gather_indices, None, None, 'add')",
        "; write gather_indices.tocsr()",
        "gatherum.aggregate(data, gather_indices.tocsr(), None, None, 'add')",
        {"data": TABLE, "gather_indices": sparse.lil_matrix(np.eye(4, dtype=np.float32))},
    )


def test_advice_of_stores(tmp_path):
    zarr = pytest.importorskip("zarr", reason="install zarr to test its arrays")
    h5py = pytest.importorskip("h5py", reason="install h5py to test its datasets")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["t"] = TABLE
        for data in (zarr.array(TABLE), file["t"]):
            for advised in ("gatherum.gather(data[...], [1])",
                            "gatherum.files.gather_file(data, [1])"):  # fmt: skip
                result = follow(
                    "gatherum.gather(data, [1])",
                    "; write data[...] to read all of it, or give it to gatherum.files",
                    advised,
                    {"data": data},
                )
                assert result.tolist() == [[3, 4, 5]]
