"""Plans, explanations and reports of calls on tensors equal those of calls on arrays."""

import numpy as np
import pytest
from tensors import tensor_of, torch

import gatherum

DATA, INDICES = np.arange(12.0).reshape(3, 4), np.array([2, 0, 2])


def without_route(explanation):
    return "".join(
        line for line in str(explanation).splitlines(True) if not line.startswith("  strategy")
    )


def test_a_plan_is_that_of_arrays():
    updates, out = np.ones((3, 4)), np.zeros((3, 4))
    arrays = DATA, INDICES[:, None], updates
    expected = gatherum.plan("scatter_nd", *arrays, reduction="add", out=out)
    tensors = [tensor_of(array) for array in arrays]
    result = gatherum.plan("scatter_nd", *tensors, reduction="add", out=tensor_of(out))
    assert result == expected
    turned = gatherum.plan("gather", tensor_of(DATA).T, tensor_of(INDICES))
    assert turned == gatherum.plan("gather", DATA.T, INDICES)


def test_an_explanation_draws_the_values():
    explanation = gatherum.explain("gather", tensor_of(DATA), tensor_of(INDICES))
    expected = gatherum.explain("gather", DATA, INDICES)
    assert (without_route(explanation), explanation.svg()) == (str(expected), expected.svg())
    leaf = tensor_of(DATA).requires_grad_()
    assert without_route(gatherum.explain("gather", leaf, [2, 0, 2])) == str(expected)


def test_a_bad_index_is_explained():
    explanation = gatherum.explain("gather", tensor_of(DATA), torch.tensor([0, 3]))
    assert (
        explanation.refusal == "gather: index 3 is out of bounds for axis 0 of size 3 (indices[1])"
    )
    report = gatherum.index_report("gather", tensor_of(DATA).shape, torch.tensor([0, 3, 0]))
    assert report == gatherum.index_report("gather", (3, 4), [0, 3, 0])


@pytest.mark.parametrize(
    "data",
    [
        torch.zeros(3, 4, dtype=torch.bfloat16),
        torch.zeros(3, 4, dtype=torch.complex64).conj(),
        torch.zeros(3, 4, device="meta"),
    ],
    ids=["bfloat16", "conj", "meta"],
)
def test_tensors_that_numpy_cannot_view_have_a_layout(data):
    indices = torch.tensor([2, 0])
    explanation = gatherum.explain("gather", data, indices)
    assert explanation.data is None
    assert explanation.plan.call.data.dtype.name == str(data.dtype).removeprefix("torch.")
    assert explanation.plan.shape == (2, 4)
    assert explanation.svg().startswith("<svg")


def test_tensors_that_no_call_accepts():
    sentence = r"^gather: `data` must be a dense tensor, got a tensor of layout sparse_coo; write"
    with pytest.raises(TypeError, match=sentence):
        gatherum.explain("gather", torch.zeros(3).to_sparse(), [0])
    with pytest.raises(TypeError, match=r"^gather: `data` must have a dtype of torch that "):
        gatherum.plan("gather", torch.empty(3, dtype=torch.bits8), [0])
