"""`aggregate` on tensors by a pointer and by sparse matrices: bits, derivatives, graphs."""

import re
import warnings

import numpy as np
import pytest
from tensors import compiled, torch
from torch.autograd import gradcheck

import gatherum

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*[Ss]parse"),
    pytest.mark.filterwarnings("ignore:`torch.jit.trace` is deprecated"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
]
INDPTR = torch.tensor([0, 2, 2, 3, 7])


def edge_operands(dtype=torch.float64):
    torch.manual_seed(1)
    data = torch.randn(5, 2, dtype=dtype, requires_grad=True)
    weights = torch.randn(7, dtype=dtype, requires_grad=True)
    return data, torch.tensor([0, 4, 2, 1, 3, 3, 1]), weights


def call(data, sources, weights=None, indptr=INDPTR, reduction="add", **more):
    return gatherum.aggregate(data, sources, None, None, reduction, weights, indptr=indptr, **more)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min", "mean"])
@pytest.mark.parametrize("convert", [torch.tensor, np.array, list])
def test_the_bits_of_numpy(reduction, convert):
    data, sources, weights = (each.detach() for each in edge_operands(torch.float32))
    expected = call(data.numpy(), sources.numpy(), weights.numpy(), INDPTR.numpy(), reduction)
    result = call(data, sources, weights, convert(INDPTR.tolist()), reduction)
    assert result.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint64, torch.int32])
def test_pointers_of_other_dtypes(dtype):
    data, sources, _ = edge_operands()
    assert torch.equal(call(data, sources, indptr=INDPTR.to(dtype)), call(data, sources))


def test_derivatives_by_a_pointer():
    data, sources, weights = edge_operands()
    assert gradcheck(lambda d, w: call(d, sources, w), (data, weights), check_forward_ad=True)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc, torch.sparse_coo])
@pytest.mark.parametrize("reduction", ["add", "max"])
def test_matrices(layout, reduction):
    data, sources, weights = edge_operands()
    targets = torch.repeat_interleave(torch.arange(4), INDPTR.diff())
    dense = torch.zeros(4, 5, dtype=data.dtype).index_put(
        (targets, sources), weights.detach(), accumulate=True
    )
    matrix = dense.to_sparse(layout=layout)
    rows, columns = dense.nonzero().T if layout != torch.sparse_csc else dense.T.nonzero().T[[1, 0]]
    values = dense[rows, columns].requires_grad_()
    expected = gatherum.aggregate(data, columns, rows, 4, reduction, values)
    result = gatherum.aggregate(data, matrix, None, None, reduction)
    assert torch.equal(result, expected)
    if reduction == "add":
        torch.testing.assert_close(result, dense @ data)


def test_gradients_reach_the_values_of_a_matrix():
    data, sources, weights = edge_operands()
    sources[3:] = torch.arange(1, 5)  # torch itself allows no duplicates here
    matrix = torch.sparse_csr_tensor(INDPTR, sources, weights, (4, 5))
    result = gatherum.aggregate(data, matrix, None, None, "add")
    expected = call(data, sources, weights)
    ours, theirs = (
        torch.autograd.grad(each.square().sum(), (data, weights)) for each in (result, expected)
    )
    assert all(map(torch.equal, ours, theirs))


def test_a_matrix_of_scipy():
    sparse = pytest.importorskip("scipy.sparse", reason="install scipy to try its matrices")
    data = edge_operands()[0].detach()
    matrix = sparse.random_array((4, 5), density=0.5, rng=np.random.default_rng(2), format="csr")
    result = gatherum.aggregate(data, matrix, None, None, "add")
    expected = gatherum.aggregate(data.numpy(), matrix, None, None, "add")
    assert result.numpy().tobytes() == expected.tobytes()


def test_graphs():
    data, sources, weights = (each.detach() for each in edge_operands())
    graph = compiled(call)
    expected = call(data, sources, weights, INDPTR)
    assert torch.equal(graph(data, sources, weights, INDPTR), expected)
    scripted = torch.jit.trace(call, (data, sources, weights, INDPTR), check_trace=False)
    other = torch.tensor([0, 0, 5, 6, 7])
    assert torch.equal(scripted(data, sources, weights, other), call(data, sources, weights, other))
    for hostile in ([1, 2, 2, 3, 7], [0, 3, 2, 3, 7], [0, 2, 2, 3, 9], [0, -2, 2, 3, 7]):
        for function in (graph, scripted):
            with pytest.raises((RuntimeError, IndexError), match=r"indptr|index -1 is out of"):
                function(data, sources, weights, torch.tensor(hostile))


def test_exported_for_any_number_of_edges():
    class Model(torch.nn.Module):
        def forward(self, data, sources, weights, indptr):
            return call(data, sources, weights, indptr)

    data, sources, weights = (each.detach() for each in edge_operands())
    e, s = torch.export.Dim("e"), torch.export.Dim("s", min=3)
    operands = data, sources, weights, INDPTR
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(
            Model(), operands, dynamic_shapes=({}, {0: e}, {0: e}, {0: s})
        )
    for edges, indptr in ((7, INDPTR), (3, INDPTR[:4])):
        operands = data, sources[:edges], weights[:edges], indptr
        assert torch.equal(exported.module()(*operands), call(*operands))


csr, coo = torch.Tensor.to_sparse_csr, torch.sparse_coo_tensor


@pytest.mark.parametrize(
    ("change", "error_type", "message"),
    [
        ({"indptr": torch.tensor([1, 2])}, ValueError,
         "`indptr` must begin with 0, got 1 (indptr[0])"),
        ({"indptr": torch.tensor([0, 3, 2])}, ValueError,
         "`indptr` must not decrease, got 2 after 3 (indptr[2])"),
        ({"indptr": [0, 3]}, ValueError, "`indptr` must end with the number of edges, 2, got 3"),
        ({"indptr": torch.tensor([0.0, 2])}, TypeError,
         "`indptr` must have an integer dtype, got float32"),
        ({"indptr": torch.tensor(2)}, ValueError, "`indptr` must have 1 dimension, got 0"),
        ({"size": 3}, ValueError, "`size` must be None or 1, which `indptr` gives, got 3"),
        ({"gather_indices": torch.tensor([[0, 1]])}, ValueError,
         "`gather_indices` must have 1 dimension, got 2"),
        ({"indptr": None}, ValueError, "must have `scatter_indices`, `indptr`, or a sparse matrix"),
        ({"indptr": None, "gather_indices": lambda: torch.eye(2).to_sparse_bsr((1, 1))}, TypeError,
         "`gather_indices` must be a sparse matrix in CSR, CSC or COO format, got sparse_bsr; "
         "write gather_indices.to_dense().to_sparse_csr()"),
        ({"indptr": None, "gather_indices": lambda: coo([[0, 0], [1, 1]], [1.0, 2])},
         TypeError, "`gather_indices` must be a sparse matrix in CSR, CSC or COO format, got "
         "sparse_coo with duplicates; write gather_indices.coalesce()"),
        ({"indptr": None, "gather_indices": lambda: csr(torch.eye(3))}, ValueError,
         "`gather_indices` must have a column for each row of `data`, 2, got 3"),
        ({"indptr": None, "gather_indices": lambda: csr(torch.eye(2).double())}, TypeError,
         "`gather_indices.values()` must have the dtype of `data`, float32, got float64"),
        ({"indptr": None, "gather_indices": lambda: csr(torch.ones(2, 2, 2))}, ValueError,
         "`gather_indices` must have 2 dimensions, got 3"),
    ],
)  # fmt: skip
def test_aggregate_checks_indptr_and_sparse_tensors(change, error_type, message):
    arguments = {
        "data": torch.ones(2, 1), "gather_indices": torch.tensor([0, 1]), "scatter_indices": None,
        "size": None, "reduction": "add", "indptr": torch.tensor([0, 2]),
    } | change  # fmt: skip
    if callable(make := arguments["gather_indices"]):
        arguments["gather_indices"] = make()
    with pytest.raises(error_type, match="^aggregate: " + re.escape(message)):
        gatherum.aggregate(**arguments)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc, torch.sparse_coo])
@pytest.mark.parametrize("data", [np.ones((2, 1)), [[1.0], [1.0]]], ids=type)
def test_a_sparse_tensor_needs_rows_of_torch(layout, data):
    matrix = torch.eye(2, dtype=torch.float64).to_sparse(layout=layout)
    message = ("aggregate: `data` must be a tensor where `gather_indices` is a sparse tensor, got "
               f"{type(data).__name__}; write torch.as_tensor(data)")  # fmt: skip
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        gatherum.aggregate(data, matrix, None, None, "add")
    result = gatherum.aggregate(torch.as_tensor(data).double(), matrix, None, None, "add")
    assert torch.equal(result, torch.ones(2, 1, dtype=torch.float64))


def test_batches():
    data, sources, weights = (each.detach() for each in edge_operands())
    many = torch.stack([data, data + 1])
    result = torch.func.vmap(lambda d: call(d, sources, weights))(many)
    assert torch.equal(result, torch.stack([call(d, sources, weights) for d in many]))
    scales = torch.stack([weights, 2 * weights])
    result = torch.func.vmap(lambda w: call(data, sources, w))(scales)
    assert torch.equal(result, torch.stack([call(data, sources, w) for w in scales]))
    ends = torch.stack([sources, sources.flip(0)])
    result = torch.func.vmap(lambda s: call(data, s, weights))(ends)
    assert torch.equal(result, torch.stack([call(data, s, weights) for s in ends]))
    jacobians = [
        of(lambda w: call(data, sources, w))(weights)
        for of in (torch.func.jacfwd, torch.func.jacrev)
    ]
    assert torch.equal(*jacobians)
    with pytest.raises(RuntimeError, match="the values of `indptr` cannot be read inside"):
        torch.func.vmap(lambda p: call(data, sources, weights, p))(torch.stack([INDPTR, INDPTR]))
