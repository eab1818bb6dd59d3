"""Every advice of a message about tensors is followed literally, and the call succeeds."""

import numpy as np
import pytest
from tensors import torch

from advised import follow

TABLE = torch.arange(12.0).reshape(4, 3)
with torch.inference_mode():
    INFERRED = torch.ones(4, 3)
AGGREGATE = "gatherum.aggregate(data, gather_indices, None, None, 'add')"

# The operands, the call, the advice, and the call that follows it.
CASES = {
    "mask": (
        {"data": TABLE, "mask": TABLE[:, 0] > 2},
        "gatherum.gather(data, mask)",
        "; mask.flatten().nonzero()[:, 0] makes indices of a mask",
        "gatherum.gather(data, mask.flatten().nonzero()[:, 0])",
    ),
    "mask of tuples": (
        {"data": TABLE, "mask": TABLE > 2},
        "gatherum.gather_nd(data, mask)",
        "; torch.argwhere makes index tuples of a mask",
        "gatherum.gather_nd(data, torch.argwhere(mask))",
    ),
    "floats": (
        {"data": TABLE, "indices": torch.tensor([1.0, 2])},
        "gatherum.gather(data, indices)",
        "; write indices.to(torch.int64)",
        "gatherum.gather(data, indices.to(torch.int64))",
    ),
    "index of a mask": (
        {"src": TABLE, "index": torch.tensor([True, False, True, False])},
        "gatherum.torch.scatter(src, index, 0)",
        "; write index.to(torch.int64)",
        "gatherum.torch.scatter(src, index.to(torch.int64), 0)",
    ),
    "sorted index of a mask": (
        {"src": TABLE, "index": torch.tensor([True, False, True, False])},
        "gatherum.torch.torch_scatter.gather_coo(src, index)",
        "; write index.to(torch.int64)",
        "gatherum.torch.torch_scatter.gather_coo(src, index.to(torch.int64))",
    ),
    "pointer": (
        {"src": TABLE, "indptr": torch.tensor([0.0, 4])},
        "gatherum.torch.segment_csr(src, indptr)",
        "; write indptr.to(torch.int64)",
        "gatherum.torch.segment_csr(src, indptr.to(torch.int64))",
    ),
    "index of another shape": (
        {"src": TABLE, "index": torch.tensor([0, 1, 1, 0])},
        "gatherum.torch.scatter(src, index)",
        "; write dim=0 for one entry for each slice there",
        "gatherum.torch.scatter(src, index, dim=0)",
    ),
    "out": (
        {"src": TABLE, "index": torch.tensor([0, 1, 1, 0]), "out": TABLE.double()},
        "gatherum.torch.scatter(src, index, 0, out=out)",
        "; write src.to(out.dtype)",
        "gatherum.torch.scatter(src.to(out.dtype), index, 0, out=out)",
    ),
    "tuple of tensors": (
        {"data": TABLE, "tensors": (torch.tensor([3, 1]), torch.tensor([0, 2]))},
        "gatherum.gather_nd(data, tensors)",
        "torch.stack(tensors, -1), makes index tuples",
        "gatherum.gather_nd(data, torch.stack(tensors, -1))",
    ),
    "one tuple": (
        {"data": TABLE[:, 0], "indices": torch.tensor([3, 1])},
        "gatherum.gather_nd(data, indices)",
        "; indices[:, None] makes a tuple of each index",
        "gatherum.gather_nd(data, indices[:, None])",
    ),
    "an index for each": (
        {"data": TABLE, "indices": torch.tensor([[3], [1]]), "updates": TABLE[:2]},
        "gatherum.scatter_elements(data, indices, updates)",
        "; write torch.broadcast_to(indices, (2, 3)) for an index for each",
        "gatherum.scatter_elements(data, torch.broadcast_to(indices, (2, 3)), updates)",
    ),
    "slices": (
        {"data": TABLE, "indices": torch.tensor([[3], [1]]), "updates": TABLE[:2]},
        "gatherum.scatter_elements(data, indices, updates)",
        ", or call scatter_slices with indices.ravel()",
        "gatherum.scatter_slices(data, indices.ravel(), updates)",
    ),
    "updates": (
        {"data": TABLE, "updates": torch.ones(1, 3).double()},
        "gatherum.scatter_slices(data, [0], updates)",
        "; write updates.to(data.dtype)",
        "gatherum.scatter_slices(data, [0], updates.to(data.dtype))",
    ),
    "weights": (
        {"data": TABLE, "weights": torch.ones(2).double()},
        "gatherum.aggregate(data, [0, 1], [0, 1], 2, 'add', weights)",
        "; write weights.to(data.dtype)",
        "gatherum.aggregate(data, [0, 1], [0, 1], 2, 'add', weights.to(data.dtype))",
    ),
    "fill value": (
        {"data": TABLE, "fill_value": np.float64(0.1)},
        "gatherum.gather(data, [9], mode='fill', fill_value=fill_value)",
        "; write fill_value.item() to round it",
        "gatherum.gather(data, [9], mode='fill', fill_value=fill_value.item())",
    ),
    "fill value with a gradient": (
        {"data": TABLE, "fill_value": torch.tensor(1.0, requires_grad=True)},
        "gatherum.gather(data, [9], mode='fill', fill_value=fill_value)",
        "; write fill_value.item()",
        "gatherum.gather(data, [9], mode='fill', fill_value=fill_value.item())",
    ),
    "no tensor": (
        {"data": TABLE.numpy()},
        "gatherum.torch.gather(data, [0])",
        "; write torch.as_tensor(data)",
        "gatherum.torch.gather(torch.as_tensor(data), [0])",
    ),
    "sparse data": (
        {"data": TABLE.to_sparse},
        "gatherum.gather(data, [0])",
        "; write data.to_dense()",
        "gatherum.gather(data.to_dense(), [0])",
    ),
    "nested data": (
        {"data": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])},
        "gatherum.gather(data, [0])",
        "; call it for each of data.unbind(), or pad by torch.nested.to_padded_tensor",
        "[gatherum.gather(each, [0]) for each in data.unbind()]"
        " + [gatherum.gather(torch.nested.to_padded_tensor(data, 0), [0])]",
    ),
    "inference": (
        {"out": INFERRED},
        "gatherum.scatter_slices(out, [0], 1, out=out)",
        "; write out.clone()",
        "gatherum.scatter_slices(out, [0], 1, out=out.clone())",
    ),
    "out of a recorded call": (
        {"data": TABLE.clone().requires_grad_(), "out": torch.empty(4, 3)},
        "gatherum.scatter_slices(data, [0], 1, out=out)",
        "; leave `out` out, or call it under torch.no_grad()",
        "[gatherum.scatter_slices(data, [0], 1),"
        " torch.no_grad()(gatherum.scatter_slices)(data, [0], 1, out=out)]",
    ),
    "indices of NumPy's call": (
        {"data": TABLE.numpy(), "indices": torch.tensor([1])},
        "gatherum.gather(data, indices)",
        "; write indices.numpy(force=True)",
        "gatherum.gather(data, indices.numpy(force=True))",
    ),
    "matrix beside an array": (
        {"data": TABLE.numpy(), "gather_indices": lambda: torch.eye(4).to_sparse_csr()},
        AGGREGATE,
        "; write torch.as_tensor(data)",
        AGGREGATE.replace("data", "torch.as_tensor(data)"),
    ),
    "matrix of blocks": (
        {"data": TABLE, "gather_indices": lambda: torch.eye(4).to_sparse_bsr((2, 2))},
        AGGREGATE,
        "; write gather_indices.to_dense().to_sparse_csr()",
        AGGREGATE.replace("gather_indices", "gather_indices.to_dense().to_sparse_csr()"),
    ),
    "matrix with duplicates": (
        {"data": TABLE,
         "gather_indices": lambda: with_duplicates((4, 4))},
        AGGREGATE,
        "; write gather_indices.coalesce()",
        AGGREGATE.replace("gather_indices", "gather_indices.coalesce()"),
    ),
}  # fmt: skip
MATRICES = {
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
    "coo": torch.Tensor.to_sparse_coo,
}


def with_duplicates(shape):
    places, values = torch.tensor([[0, 0], [1, 1]]), torch.tensor([1.0, 2])
    return torch.sparse_coo_tensor(places, values, shape, check_invariants=True)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:.*prototype.*|.*beta state.*")
def test_advice_of_tensors(name):
    operands, call, advice, advised = CASES[name]
    operands = {key: value() if callable(value) else value for key, value in operands.items()}
    follow(call, advice, advised, {"torch": torch, "np": np, **operands})


@pytest.mark.parametrize("form", MATRICES)
@pytest.mark.filterwarnings("ignore:.*beta state.*")
def test_advice_of_matrices(form):
    result = follow(
        AGGREGATE,
        "; write gather_indices.to(data.dtype)",
        AGGREGATE.replace("gather_indices", "gather_indices.to(data.dtype)"),
        {"data": TABLE.double(), "gather_indices": MATRICES[form](torch.eye(4))},
    )
    assert torch.equal(result, TABLE.double())


def test_advice_of_a_matrix_of_scipy():
    sparse = pytest.importorskip("scipy.sparse", reason="install scipy to test sparse matrices")
    result = follow(
        AGGREGATE,
        "; write gather_indices.astype('float64')",
        AGGREGATE.replace("gather_indices", "gather_indices.astype('float64')"),
        {"data": TABLE.double(), "gather_indices": sparse.csr_matrix(np.eye(4, dtype="f4"))},
    )
    assert torch.equal(result, TABLE.double())
