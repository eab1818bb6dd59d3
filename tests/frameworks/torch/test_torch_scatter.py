"""`gatherum.torch.torch_scatter`: every public name of torch_scatter, composites, segments, ties.

The values of the composites are those of torch_scatter's own tests (test/composite, MIT), compared
with torch's functions of each group. `test_segments.py` tests the folds.
"""

import inspect
import math
import warnings

import numpy as np
import pytest
from tensors import compiled, torch
from test_segments import DTYPES, SEGMENTS, same
from torch.autograd import gradcheck, gradgradcheck

import gatherum.torch.torch_scatter as ts
from gatherum.reference import groups as reference

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

FOLDS = ("sum", "add", "mean", "min", "max")
PARAMETERS = {
    "scatter": "src index dim out dim_size reduce",
    "scatter_std": "src index dim out dim_size unbiased",
    "scatter_logsumexp": "src index dim out dim_size eps",
    "scatter_softmax": "src index dim dim_size",
    "scatter_log_softmax": "src index dim eps dim_size",
    "segment_csr": "src indptr out reduce",
    "segment_coo": "src index out dim_size reduce",
    "gather_csr": "src indptr out",
    "gather_coo": "src index out",
    **{f"scatter_{word}": "src index dim out dim_size" for word in (*FOLDS, "mul")},
    **{f"segment_{word}_csr": "src indptr out" for word in FOLDS},
    **{f"segment_{word}_coo": "src index out dim_size" for word in FOLDS},
}
INF = math.inf
SCORES = torch.tensor([0.2, 0.0, 0.2, -2.1, 3.2, 7.0, -1.0, -INF])
PLACES = torch.tensor([0, 1, 0, 1, 1, 2, 4, 4])


def test_every_public_name_is_here_with_its_arguments():
    assert set(ts.__all__) == set(PARAMETERS)
    for name, parameters in PARAMETERS.items():
        assert list(inspect.signature(getattr(ts, name)).parameters) == parameters.split()


def by_place(values, index, function):
    """Apply torch's function to the values of each destination."""
    return {int(g): function(values[index == g]) for g in index.unique()}


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_is_that_of_torch_in_each_place(name):
    result = getattr(ts, f"scatter_{name}")(SCORES, PLACES)
    for place, expected in by_place(SCORES, PLACES, lambda x: getattr(x, name)(0)).items():
        torch.testing.assert_close(result[place == PLACES], expected)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_along_a_dimension(dim):
    src, index = torch.randn(6, 7), torch.randint(0, 3, (6, 7))
    result = ts.scatter_softmax(src, index, dim, dim_size=3)
    total = ts.scatter_sum(result, index, dim, dim_size=3)
    torch.testing.assert_close(total[total > 0], torch.ones(int((total > 0).sum())))
    expected = reference.transform(
        src.numpy(), index.numpy(), "softmax", dim % 2, size=3
    )  # the bits of the oracle
    assert result.numpy().tobytes() == expected.tobytes()


def test_logsumexp_is_that_of_torch_in_each_place():
    values = torch.where(SCORES == -INF, -100.0, SCORES)
    result = ts.scatter_logsumexp(values, PLACES)
    for place, expected in by_place(values, PLACES, lambda x: x.logsumexp(0)).items():
        torch.testing.assert_close(result[place], expected)
    assert result[3] == 0  # empty


def test_logsumexp_includes_old_values():
    out = torch.tensor([1.0, -INF, 3.0, 4.0, 0.0])
    old = out.clone()
    assert ts.scatter_logsumexp(SCORES, PLACES, out=out) is out
    for place in range(5):
        both = torch.cat((old[place, None], SCORES[place == PLACES]))
        torch.testing.assert_close(out[place], both.logsumexp(0))
    assert out[3] == 4


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_deviations_are_those_of_torch(dtype, unbiased):
    src = torch.tensor([[2, 0, 1, 4, 3], [0, 2, 1, 3, 4]], dtype=dtype)
    index = torch.zeros_like(src, dtype=torch.int64)
    result = ts.scatter_std(src, index, dim=-1, unbiased=unbiased)
    torch.testing.assert_close(result, src.std(-1, unbiased=unbiased, keepdim=True))


def test_a_deviation_of_values_far_from_0():
    src = torch.tensor([1e5 - 1, 1e5 + 1]).repeat(10_000)
    index = torch.zeros(len(src), dtype=torch.int64)
    assert torch.equal(ts.scatter_std(src, index, unbiased=False), torch.ones(1))


def test_one_value_or_none_has_no_deviation():
    out = torch.full((3,), 4.0)
    assert torch.equal(ts.scatter_std(torch.tensor([7.0]), [0], dim_size=3), torch.zeros(3))
    assert ts.scatter_std(torch.tensor([7.0, 7.0]), [0, 0], out=out) is out
    assert torch.equal(out, torch.full((3,), 2.0))  # the sum of squares was 4


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("word", FOLDS)
@pytest.mark.parametrize("case", SEGMENTS, ids=range(len(SEGMENTS)))
def test_the_published_segments(case, word, dtype):
    values, indptr = (torch.tensor(each) for each in case["of"])
    values, index = values.to(dtype), torch.tensor(case["back"])
    expected = torch.tensor(case["sum" if word == "add" else word]).to(dtype)
    size = expected.shape[indptr.dim() - 1]
    of_rows = getattr(ts, f"segment_{word}_csr")(values, indptr)
    of_places = getattr(ts, f"segment_{word}_coo")(values, index, dim_size=size)
    if word in ("min", "max"):
        (of_rows, arg), (of_places, other) = of_rows, of_places
        assert same(arg, other)
        empty = arg == values.shape[indptr.dim() - 1]
        assert torch.equal(expected == 0, empty)
        taken = values.gather(indptr.dim() - 1, arg.masked_fill(empty, 0))
        assert torch.equal(taken.masked_fill(empty, 0), expected)
    assert same(of_rows, expected)
    assert same(of_places, expected)
    assert same(ts.segment_csr(values, indptr, reduce=word), expected)
    assert same(ts.segment_coo(values, index, dim_size=size, reduce=word), expected)
    assert same(ts.gather_coo(expected, index), ts.gather_csr(expected, indptr))


def test_out_of_segments():
    src, index, indptr = torch.tensor([1.0, 3, 2]), torch.tensor([0, 0, 2]), [0, 2, 2, 3]
    out = torch.full((3,), -2.0)
    assert ts.segment_coo(src, index, out) is out
    assert torch.equal(out, torch.tensor([2.0, -2, 0]))
    values, arg = ts.segment_max_coo(src, index, torch.full((3,), 2.5))
    assert torch.equal(values, torch.tensor([3.0, 2.5, 2.5]))
    assert torch.equal(arg, torch.tensor([1, 3, 3]))
    values, arg = ts.segment_min_csr(src, indptr, out)
    assert values is out
    assert torch.equal(out, torch.tensor([1.0, 0, 2]))
    assert ts.gather_coo(src, index, out) is out
    assert torch.equal(out, torch.tensor([1.0, 1, 2]))


def test_dimensions_in_front_broadcast():
    src, index = torch.randn(4, 5, 3), torch.tensor([0, 0, 1, 3, 3])
    whole = index.expand(4, 5)
    for name in ("sum", "mean"):
        function = getattr(ts, f"segment_{name}_coo")
        assert torch.equal(function(src, index[None]), function(src, whole))
    assert torch.equal(ts.gather_coo(src[:, :4], index[None]), src[:, index])


COMPOSITES = {
    "scatter_std": lambda src, index: ts.scatter_std(src, index, 0, dim_size=4),
    "scatter_logsumexp": lambda src, index: ts.scatter_logsumexp(src, index, 0, dim_size=4),
    "scatter_softmax": lambda src, index: ts.scatter_softmax(src, index, 0, 4),
    "scatter_log_softmax": lambda src, index: ts.scatter_log_softmax(src, index, 0, dim_size=4),
    "scatter_max": lambda src, index: ts.scatter_max(src, index, 0, dim_size=4)[0],
    "scatter_min": lambda src, index: ts.scatter_min(src, index, 0, dim_size=4)[0],
    "segment_max_coo": lambda src, index: ts.segment_max_coo(src, index, dim_size=4)[0],
    "segment_mean_coo": lambda src, index: ts.segment_mean_coo(src, index, dim_size=4),
    "gather_coo": ts.gather_coo,
}


def source_and_index():
    torch.manual_seed(2)
    src = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    return src, torch.tensor([0, 0, 1, 3, 3, 3])


@pytest.mark.parametrize("name", COMPOSITES)
def test_derivatives(name):
    src, index = source_and_index()
    function = COMPOSITES[name]
    assert gradcheck(lambda src: function(src, index), src, check_forward_ad=True)
    assert gradgradcheck(lambda src: function(src, index), src)


@pytest.mark.parametrize("word", ["min", "max"])
def test_derivatives_of_segments(word):
    src, _ = source_and_index()
    indptr = torch.tensor([0, 2, 2, 3, 6])
    function = getattr(ts, f"segment_{word}_csr")
    assert gradcheck(lambda src: function(src, indptr)[0], src, check_forward_ad=True)
    assert gradgradcheck(lambda src: function(src, indptr)[0], src)


def test_derivatives_of_old_values():
    src, index = source_and_index()
    out = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    for name in ("max", "min", "logsumexp", "std"):
        function = getattr(ts, f"scatter_{name}")

        def call(src, out, function=function):
            result = function(src, index, 0, out.abs() + 0.5)
            return result[0] if isinstance(result, tuple) else result

        assert gradcheck(call, (src, out))


@pytest.mark.parametrize("name", COMPOSITES)
def test_graphs_and_batches(name):
    src, index = source_and_index()
    function = COMPOSITES[name]
    expected = function(src, index)
    graph = compiled(function)
    assert torch.equal(graph(src, index), expected)
    grads = [torch.autograd.grad(f(src, index).square().sum(), src)[0] for f in (graph, function)]
    torch.testing.assert_close(*grads)
    many = torch.randn(3, 6, 2, dtype=torch.float64)
    result = torch.func.vmap(lambda src: function(src, index))(many)
    assert torch.equal(result, torch.stack([function(src, index) for src in many]))


@pytest.mark.parametrize("name", COMPOSITES)
def test_exported(name):
    class Model(torch.nn.Module):
        def forward(self, src, index):
            return COMPOSITES[name](src, index)

    src, index = source_and_index()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(Model(), (src.detach(), index)).module()
    assert torch.equal(exported(src, index), COMPOSITES[name](src, index))


@pytest.mark.parametrize("word", ["max", "min"])
def test_the_first_of_equal_values_has_the_gradient(word):
    src = torch.tensor([1.0, 5, 5, 5, 1, 1], requires_grad=True)
    values, arg = getattr(ts, f"scatter_{word}")(src, [0, 1, 1, 1, 0, 0], dim_size=3)
    assert torch.equal(arg, torch.tensor([0, 1, 6]))
    values.sum().backward()
    assert torch.equal(src.grad, torch.tensor([1.0, 1, 0, 0, 0, 0]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("word", ["max", "min"])
def test_a_gradient_changes_no_bits(word, dtype):
    src = torch.tensor([-0.0, 0.0, 0.0, -0.0, -0.0, 0.0, 3.0, math.nan, 2.0, -INF], dtype=dtype)
    index = torch.tensor([0, 0, 1, 1, 2, 3, 5, 5, 6, 6])
    function = getattr(ts, f"scatter_{word}")
    plain = function(src, index)[0]
    recorded = function(src.requires_grad_(), index)[0].detach()
    assert np.array_equal(*(each.float().signbit().numpy() for each in (plain, recorded)))
    assert torch.equal(plain.nan_to_num(7), recorded.nan_to_num(7))


def test_torch_scatter_functions_check_their_arguments():
    with pytest.raises(IndexError, match=r"^scatter_softmax: index 9 is out of bounds"):
        ts.scatter_softmax(torch.ones(2), [0, 9], dim_size=3)
    with pytest.raises(ValueError, match=r"^segment_coo: `index` must have at most 1"):
        ts.segment_coo(torch.ones(2), torch.zeros(1, 2, dtype=torch.int64))
    with pytest.raises(
        TypeError, match=r"^scatter_std: `func` 'std' is not defined for dtype bool"
    ):
        ts.scatter_std(torch.ones(2, dtype=torch.bool), [0, 1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_mean_into_a_tensor_is_rounded_once(dtype):
    values, index = torch.full((3,), 30000.0, dtype=dtype), torch.tensor([0, 0, 0])
    out = torch.zeros(1, dtype=dtype, requires_grad=True)
    result = ts.scatter_mean(values, index, out=out.clone())
    assert torch.equal(result, ts.scatter_mean(values, index))
    (gradient,) = torch.autograd.grad(result, out)
    assert gradient.item() == torch.tensor(1 / 3, dtype=dtype).item()
