"""`aggregate` by a pointer and by sparse matrices: the bits of the call with two indices."""

import array
import inspect
import pickle
import re

import numpy as np
import pytest

import gatherum
from gatherum import reference
from strategies import INDEX_DTYPES, REDUCTIONS_OF, same_bits

FOLDS = [
    (name, dtype)
    for name, dtypes in REDUCTIONS_OF.items()
    for dtype in ("float32", "int64")
    if name != "none" and np.dtype(dtype) in dtypes
]
ROWS = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
OPERATORS = pytest.mark.parametrize("operators", [gatherum, reference], ids=["core", "oracle"])


def drawn(dtype="f8", nodes=6, edges=40, size=9):
    """Return rows, edge sources sorted by destination, a pointer, and weights."""
    rng = np.random.default_rng(edges)
    data = (9 * rng.standard_normal((nodes, 3))).astype(dtype)
    counts = rng.multinomial(edges, np.full(size, 1 / size))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    weights = (5 * rng.standard_normal(edges)).astype(dtype)
    return data, rng.integers(-nodes, nodes, edges), indptr, weights


@OPERATORS
def test_an_answer_by_hand(operators):
    result = operators.aggregate(ROWS, [0, 1, 2], None, None, "add", indptr=[0, 2, 2, 3])
    assert result.tolist() == [[3, 30], [0, 0], [3, 30]]
    weighted = operators.aggregate(ROWS, [2, 0], None, None, "add", [2.0, 0.5], indptr=[0, 1, 2])
    assert weighted.tolist() == [[6, 60], [0.5, 5]]


@OPERATORS
@pytest.mark.parametrize(("reduction", "dtype"), FOLDS)
def test_a_pointer_has_the_bits_of_both_indices(operators, reduction, dtype):
    data, sources, indptr, weights = drawn(dtype)
    targets = np.repeat(np.arange(9), np.diff(indptr))
    for scale in (None, weights, weights[:1]):
        expected = gatherum.aggregate(data, sources, targets, 9, reduction, scale)
        result = operators.aggregate(data, sources, None, None, reduction, scale, indptr=indptr)
        assert same_bits(result, expected)


@pytest.mark.parametrize("dtype", INDEX_DTYPES, ids=str)
def test_pointers_of_every_dtype_and_stride(dtype):
    data, sources, indptr, _ = drawn()
    expected = gatherum.aggregate(data, sources, None, None, "add", indptr=indptr)
    spread = np.repeat(indptr, 2).astype(dtype)[::2]
    assert same_bits(gatherum.aggregate(data, sources, None, 9, "add", indptr=spread), expected)
    falling = indptr[::-1].astype(dtype)[::-1]
    out = np.empty_like(expected)
    assert gatherum.aggregate(data, sources, None, None, "add", indptr=falling, out=out) is out
    assert same_bits(out, expected)


@OPERATORS
@pytest.mark.parametrize("mode", ["clip", "wrap", "drop", "fill"])
def test_modes_are_for_the_sources(operators, mode):
    sources, targets = [0, 7, -9, 2], [0, 0, 1, 1]
    expected = reference.aggregate(ROWS, sources, targets, 3, "add", mode=mode)
    result = operators.aggregate(
        ROWS, sources, None, None, "add", mode=mode, indptr=np.array([0, 2, 4, 4])
    )
    assert same_bits(result, expected)


def test_sequences_that_numpy_accepts():
    expected = gatherum.aggregate(ROWS, [0, 1, 2], [0, 0, 1], 2, "add")
    indptr = array.array("q", [0, 2, 3])
    for sources in (range(3), (0, 1, 2), array.array("i", [0, 1, 2])):
        result = gatherum.aggregate(ROWS.tolist(), sources, None, None, "add", indptr=indptr)
        assert same_bits(result, expected)


def test_no_destinations_and_no_edges():
    assert gatherum.aggregate(ROWS, [], None, None, "add", indptr=[0]).shape == (0, 2)
    result = gatherum.aggregate(ROWS, [], None, None, "mul", indptr=[0, 0, 0])
    assert result.tolist() == [[1, 1], [1, 1]]


REFUSED = {
    "begins": ([1, 2, 4], "`indptr` must begin with 0, got 1 (indptr[0])"),
    "negative first": ([-1, 2, 4], "`indptr` must begin with 0, got -1 (indptr[0])"),
    "falls": ([0, 3, 2, 4], "`indptr` must not decrease, got 2 after 3 (indptr[2])"),
    "negative": ([0, 2, -2, 4], "`indptr` must not decrease, got -2 after 2 (indptr[2])"),
    "beyond": ([0, 2, 5], "`indptr` must end with the number of edges, 4, got 5"),
    "beyond within": ([0, 9, 4], "`indptr` must not decrease, got 4 after 9 (indptr[2])"),
    "short": ([0, 2, 3], "`indptr` must end with the number of edges, 4, got 3"),
    "of 64 bits": (np.array([0, 2**64 - 1], "u8"),
                   f"`indptr` must end with the number of edges, 4, got {2**64 - 1}"),
    "empty": ([], "`indptr` must have at least 1 entry, got 0"),
    "a number": (4, "`indptr` must have 1 dimension, got 0"),
    "a table": ([[0, 4]], "`indptr` must have 1 dimension, got 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_pointers(name):
    indptr, message = REFUSED[name]
    with pytest.raises(ValueError, match=f"^aggregate: {re.escape(message)}$"):
        gatherum.aggregate(ROWS, [0, 1, 2, 0], None, None, "add", indptr=indptr)
    with pytest.raises((ValueError, IndexError)):
        reference.aggregate(ROWS, [0, 1, 2, 0], None, None, "add", indptr=indptr)


@pytest.mark.parametrize(
    ("change", "error_type", "message"),
    [
        ({"indptr": [0.0, 2.0]}, TypeError,
         "`indptr` must have an integer dtype, got float64; write indptr.astype(np.int64)"),
        ({"indptr": [False, True]}, TypeError, "`indptr` must have an integer dtype, got bool; "
         "write indptr.astype(np.int64)"),
        ({"indptr": np.ma.array([0, 2])}, TypeError,
         "`indptr` must not be a masked array: its mask would be lost"),
        ({"scatter_indices": [0, 0]}, ValueError,
         "must have `scatter_indices` or `indptr`, got both"),
        ({"scatter_indices": [0, 0], "indptr": None}, TypeError,
         "`size` must be an integer, got None"),
        ({"indptr": None}, ValueError,
         "must have `scatter_indices`, `indptr`, or a sparse matrix as `gather_indices`"),
        ({"size": 2}, ValueError, "`size` must be None or 1, which `indptr` gives, got 2"),
        ({"size": 1.0}, TypeError, "`size` must be an integer, got 1.0"),
        ({"gather_indices": [[0, 1]]}, ValueError,
         "`gather_indices` must have 1 dimension, got 2"),
        ({"gather_indices": [0, 3]}, IndexError,
         "index 3 is out of bounds for axis 0 of size 3 (gather_indices[1])"),
        ({"weights": [1, 2, 3]}, ValueError, "`weights` must have shape (2,), got (3,)"),
    ],
)  # fmt: skip
def test_aggregate_checks_indptr_and_sparse_matrices(change, error_type, message):
    arguments = {"gather_indices": [0, 1], "scatter_indices": None, "size": None,
                 "reduction": "add", "indptr": [0, 2]} | change  # fmt: skip
    with pytest.raises(error_type, match=f"^aggregate: {re.escape(message)}$"):
        gatherum.aggregate(ROWS, **arguments)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_prepared_by_a_pointer(axis, dtype):
    indptr = np.array([0, 2, 2, 3, 7], dtype)
    indices = np.repeat(np.arange(4), np.diff(indptr))
    shape, moved = ((4, 8), (7, 8)) if axis == 0 else ((8, 4), (8, 7))
    data = np.random.default_rng(1).standard_normal(shape)
    updates = np.random.default_rng(2).standard_normal(moved)
    add = gatherum.prepare("scatter_slices", data, None, indptr=indptr, axis=axis, reduction="add")
    assert add.indices.tolist() == indices.tolist()
    expected = gatherum.scatter_slices(data, indices, updates, axis, reduction="add")
    assert same_bits(add(data, updates), expected)
    assert same_bits(pickle.loads(pickle.dumps(add))(data, updates), expected)
    take = gatherum.prepare("gather", data, None, indptr=indptr, axis=axis)
    assert same_bits(take(data), gatherum.gather(data, indices, axis))


@pytest.mark.parametrize(
    ("op", "indices", "indptr", "error_type", "message"),
    [
        ("gather", [0], [0, 1, 1, 1], ValueError,
         "gather: must have `indices` or `indptr`, got both"),
        ("gather", None, [0, 1, 1], ValueError, "gather: `indptr` must have shape (4,), got (3,)"),
        ("gather", None, [0, 2, 1, 3], ValueError,
         "gather: `indptr` must not decrease, got 1 after 2 (indptr[2])"),
        ("gather", None, [1, 1, 1, 3], ValueError,
         "gather: `indptr` must begin with 0, got 1 (indptr[0])"),
        ("gather", None, [], ValueError, "gather: `indptr` must have at least 1 entry, got 0"),
        ("gather", None, [0.0], TypeError, "gather: `indptr` must have an integer dtype, got "
         "float64; write indptr.astype(np.int64)"),
        ("gather", None, np.array([0, 0, 0, 2**64 - 1], "u8"), ValueError,
         f"gather: `indptr` must be in [-2**63, 2**63), got {2**64 - 1} (indptr[3])"),
        ("gather_nd", None, [0, 1, 1, 1], TypeError, "prepare: unknown attribute 'indptr'; it "
         "takes 'batch_dims', 'mode', 'negative'"),
    ],
)  # fmt: skip
def test_pointers_that_are_not_prepared(op, indices, indptr, error_type, message):
    with pytest.raises(error_type, match=f"^{re.escape(message)}$"):
        gatherum.prepare(op, ROWS, indices, indptr=indptr)


def test_a_pointer_is_named_only():
    parameter = inspect.signature(gatherum.aggregate).parameters["indptr"]
    assert parameter.kind is parameter.KEYWORD_ONLY


@pytest.fixture(scope="module")
def sparse():
    return pytest.importorskip("scipy.sparse", reason="install scipy to try its matrices")


def matrix_of(sparse, data, dtype="f8", size=9):
    rng = np.random.default_rng(3)
    places = rng.integers(0, size, 50), rng.integers(0, len(data), 50)
    values = (5 * rng.standard_normal(50)).astype(dtype)
    return sparse.coo_array((values, places), (size, len(data)))


@pytest.mark.frameworks
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize(("reduction", "dtype"), FOLDS)
def test_matrices_have_the_bits_of_both_indices(sparse, layout, reduction, dtype):
    data = drawn(dtype)[0]
    matrix = matrix_of(sparse, data, dtype).asformat(layout)
    rows, columns = matrix.tocoo().coords if layout != "coo" else matrix.coords
    expected = reference.aggregate(data, columns, rows, 9, reduction, matrix.data)
    assert same_bits(gatherum.aggregate(data, matrix, None, None, reduction), expected)
    if reduction == "add":
        np.testing.assert_allclose(expected, matrix @ data, rtol=1e-5)


@pytest.mark.frameworks
def test_the_older_matrices_and_single_items(sparse):
    data = drawn()[0][:, 0]
    matrix = matrix_of(sparse, data)
    older = sparse.csr_matrix(matrix)
    assert same_bits(
        gatherum.aggregate(data, older, None, 9, "add"),
        gatherum.aggregate(data, sparse.csr_array(matrix), None, None, "add"),
    )


@pytest.mark.frameworks
def test_entries_of_the_same_place_are_edges_of_their_own(sparse):
    matrix = sparse.csr_array((np.array([2.0, 5.0]), np.array([1, 1]), np.array([0, 2])), (1, 3))
    assert gatherum.aggregate(ROWS, matrix, None, None, "max").tolist() == [[10, 100]]
    assert gatherum.aggregate(ROWS, matrix, None, None, "mean").tolist() == [[7, 70]]


@pytest.mark.frameworks
def test_entries_after_the_end_of_a_pointer_do_not_count(sparse):
    matrix = sparse.csr_array(np.eye(3))
    matrix.indptr[2:] = 2
    assert gatherum.aggregate(ROWS, matrix, None, None, "add").tolist() == [
        [1, 10],
        [2, 20],
        [0, 0],
    ]


MATRICES = {
    "format": (lambda s: s.lil_array(np.eye(3)), {}, TypeError,
               "`gather_indices` must be a sparse matrix in CSR, CSC or COO format, got lil; write "
               "gather_indices.tocsr()"),
    "columns": (lambda s: s.csr_array(np.eye(4)), {}, ValueError,
                "`gather_indices` must have a column for each row of `data`, 3, got 4"),
    "dtype": (lambda s: s.csr_array(np.eye(3, dtype="f4")), {}, TypeError,
              "`gather_indices.data` must have the dtype of `data`, float64, got float32; write "
              "gather_indices.astype(data.dtype)"),
    "rank": (lambda s: s.coo_array(np.ones(3)), {}, ValueError,
             "`gather_indices` must have 2 dimensions, got 1"),
    "destinations": (lambda s: s.csr_array(np.eye(3)), {"scatter_indices": [0]}, ValueError,
                     "`scatter_indices` must be None where `gather_indices` is a sparse matrix, "
                     "which has its own"),
    "weights": (lambda s: s.csr_array(np.eye(3)), {"weights": [1.0, 1, 1]}, ValueError,
                "`weights` must be None where `gather_indices` is a sparse matrix, whose values "
                "are the weights"),
    "pointer": (lambda s: s.coo_array(np.eye(3)), {"indptr": [0, 3]}, ValueError,
                "`indptr` must be None where `gather_indices` is a sparse matrix, which has its "
                "own"),
    "size": (lambda s: s.csr_array(np.eye(3)), {"size": 4}, ValueError,
             "`size` must be None or 3, which `gather_indices` gives, got 4"),
}  # fmt: skip


@pytest.mark.frameworks
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_that_are_refused(sparse, name):
    make, more, error_type, message = MATRICES[name]
    arguments = {"scatter_indices": None, "size": None, "reduction": "add"} | more
    with pytest.raises(error_type, match=f"^aggregate: {re.escape(message)}$"):
        gatherum.aggregate(ROWS, make(sparse), **arguments)


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("layout", "attribute", "value", "error_type", "message"),
    [
        ("csr", "indptr", [0, 2, 1, 3], ValueError,
         "`gather_indices.indptr` must not decrease, got 1 after 2 (gather_indices.indptr[2])"),
        ("csc", "indptr", [0, 1, 2, 9], ValueError,
         "`gather_indices.indptr` must end with the number of edges, 3, got 9"),
        ("csr", "indptr", [0, 3], ValueError,
         "`gather_indices.indptr` must have shape (4,), got (2,)"),
        ("csr", "indices", [0, 1, 9], IndexError,
         "index 9 is out of bounds for axis 0 of size 3 (gather_indices.indices[2])"),
        ("csc", "indices", [0, 1, 9], IndexError,
         "index 9 is out of bounds for axis 0 of size 3 (gather_indices.indices[2])"),
        ("coo", "row", [0, 1, 9], IndexError,
         "index 9 is out of bounds for axis 0 of size 3 (gather_indices.row[2])"),
        ("coo", "col", [0, 1, 9], IndexError,
         "index 9 is out of bounds for axis 0 of size 3 (gather_indices.col[2])"),
        ("csr", "data", [1.0, 2], ValueError,
         "`gather_indices.data` must have shape (3,), got (2,)"),
        ("csr", "indices", [0, 1], ValueError,
         "`gather_indices.indices` must have shape (3,), got (2,)"),
        ("csc", "indices", [0, 1], ValueError,
         "`gather_indices.indices` must have shape (3,), got (2,)"),
    ],
)  # fmt: skip
def test_matrices_that_were_changed(sparse, layout, attribute, value, error_type, message):
    matrix = sparse.coo_array(np.eye(3)).asformat(layout)
    setattr(matrix, attribute, np.array(value))
    with pytest.raises(error_type, match=f"^aggregate: {re.escape(message)}$"):
        gatherum.aggregate(ROWS, matrix, None, None, "add")


class Matrix:
    """The attributes of a SciPy matrix that gatherum uses."""

    format, shape = "csr", (2, 3)
    indptr, indices, data = np.array([0, 1, 3]), np.array([2, 0, 1]), np.array([1.0, 1, 2])

    def tocsr(self):
        return self


def test_a_matrix_needs_no_scipy():
    result = gatherum.aggregate(ROWS, Matrix(), None, None, "add")
    assert result.tolist() == [[3, 30], [5, 50]]


@pytest.mark.parametrize("attribute", ["indptr", "indices", "data"])
@pytest.mark.parametrize("value", [None, np.array([np.nan]), np.array([None]), 3.5, "x"])
def test_parts_of_a_matrix_that_are_none(attribute, value):
    matrix = Matrix()
    setattr(matrix, attribute, value)
    with pytest.raises((TypeError, ValueError), match=r"^aggregate: `gather_indices\.\w+` must "):
        gatherum.aggregate(ROWS, matrix, None, None, "add")
