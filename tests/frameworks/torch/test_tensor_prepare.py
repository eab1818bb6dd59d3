"""`prepare` on tensors: the operators' bits and derivatives, eager and in graphs."""

import numpy as np
import pytest
from tensors import compiled, torch
from torch.autograd import gradcheck, gradgradcheck

import gatherum

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

INDICES = {
    "gather": [4, 0, -1, 4],
    "gather_elements": [[4, 0], [-1, 4], [2, 2]],
    "gather_nd": [[4, 0], [-1, 1]],
    "scatter_slices": [4, 0, -1, 4],
    "scatter_elements": [[4, 0], [-1, 4], [2, 2]],
    "scatter_nd": [[4], [-1], [2]],
}
MOVED = {"scatter_slices": (4, 2), "scatter_elements": (3, 2), "scatter_nd": (3, 2)}


def prepared_call(op, dtype=torch.float64, like="tensor"):
    torch.manual_seed(1)
    data, indices = torch.randn(5, 2).to(dtype), torch.tensor(INDICES[op])
    more = {"reduction": "add"} if op in MOVED else {}
    shape_of = {"tensor": data, "spec": ((5, 2), str(dtype).removeprefix("torch."))}[like]
    prepared = gatherum.prepare(op, shape_of, indices, **more)
    updates = (torch.randn(MOVED[op]).to(dtype),) if op in MOVED else ()
    return prepared, data, updates, getattr(gatherum, op), (indices, *updates), more


@pytest.mark.parametrize("like", ["tensor", "spec"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
@pytest.mark.parametrize("op", INDICES)
def test_the_bits_of_the_operator(op, dtype, like):
    prepared, data, updates, function, operands, more = prepared_call(op, dtype, like)
    expected = function(data, *operands, **more)
    assert torch.equal(prepared(data, *updates), expected)
    out = torch.empty_like(expected)
    assert prepared(data, *updates, out=out) is out
    assert torch.equal(out, expected)


@pytest.mark.parametrize("op", INDICES)
def test_derivatives(op):
    prepared, data, updates, *_ = prepared_call(op)
    operands = [each.requires_grad_() for each in (data, *updates)]
    assert gradcheck(prepared, operands, check_forward_ad=True)
    assert gradgradcheck(prepared, operands)


@pytest.mark.parametrize("op", INDICES)
def test_graphs_and_batches(op):
    prepared, data, updates, *_ = prepared_call(op)
    operands = (data, *updates)
    expected = prepared(*operands)
    graph = compiled(prepared)
    assert torch.equal(graph(*operands), expected)
    table = torch.nn.Parameter(data)
    assert torch.equal(graph(table, *updates), expected)
    many = [torch.stack([each, each + 1]) for each in operands]
    result = torch.func.vmap(prepared)(*many)
    assert torch.equal(result[0], expected)

    class Model(torch.nn.Module):
        def forward(self, *operands):
            return prepared(*operands)

    assert torch.equal(torch.export.export(Model(), operands).module()(*operands), expected)


def test_arrays_and_tensors_share_prepared_calls():
    prepared = gatherum.prepare("scatter_slices", ((3, 9), "f4"), [2, 0, 2], reduction="add")
    data, updates = torch.zeros(3, 9), torch.ones(3, 9)
    result = prepared(data, updates)
    assert np.array_equal(result.numpy(), prepared(data.numpy(), updates.numpy()))


def test_an_index_without_dimensions():
    data = torch.arange(6.0).view(3, 2).requires_grad_()
    run = gatherum.prepare("gather", data, 1, axis=1)
    assert run(data).tolist() == gatherum.gather(data, 1, axis=1).tolist() == [1, 3, 5]
    add = gatherum.prepare("scatter_slices", data, 1, axis=1, reduction="add")
    assert add(data, torch.ones(3)).tolist() == [[0, 2], [2, 4], [4, 6]]


def test_a_prepared_call_checks_its_tensors():
    prepared = gatherum.prepare("gather", torch.ones(3), [0])
    with pytest.raises(
        ValueError, match=r"^gather: the call was prepared for `data` of shape \(3,\)"
    ):
        prepared(torch.ones(4))
    with pytest.raises(
        TypeError, match=r"^gather: the call was prepared for .* float32, got float64"
    ):
        prepared(torch.ones(3, dtype=torch.float64))
    with pytest.raises(IndexError, match=r"^gather: index 9 is out of bounds"):
        gatherum.prepare("gather", torch.ones(3), torch.tensor([9]))
