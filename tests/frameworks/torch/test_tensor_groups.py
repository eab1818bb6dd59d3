"""Functions over groups of tensors: the oracle's bits, derivatives, batches, graphs, errors."""

import re
import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest
from tensors import array_of, compiled, tensor_of, torch
from torch.autograd import gradcheck, gradgradcheck

from gatherum.groups import functions, reduce, transform
from gatherum.groups import namespace as of_numpy
from gatherum.groups.rows import Method
from gatherum.reference import groups as reference
from gatherum.torch import namespace
from gatherum.torch.functions import cumulative, elementary
from group_calls import call, defined_pairs, has_derivatives, near_ties, outcome, run, values_of
from samples import every
from strategies import DATA_DTYPES, same_bits

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
]
DTYPES = [dtype for dtype in DATA_DTYPES if dtype.isnative and dtype.name not in ("int4", "uint4")
          and hasattr(torch, dtype.name)]  # fmt: skip
ALL = (*functions.REDUCES, *functions.TRANSFORMS)
SMOOTH = [name for name in ALL if has_derivatives(name)]


@pytest.mark.parametrize(("dtype", "func"), defined_pairs(DTYPES, ALL, 3))
def test_the_bits_of_the_oracle(dtype, func):
    rng = np.random.default_rng([*func.encode(), *str(dtype).encode()])
    for _ in range(3):
        shape, groups, more = call(rng)
        groups = groups.astype(groups.dtype.newbyteorder("="))
        more |= {"func": func, "ddof": int(rng.integers(3))}
        if rng.random() < 0.4:
            more["fill_value"] = bool(rng.random() < 0.5)
        values = values_of(rng, dtype, shape)
        expected = outcome(run, values, groups, module=reference, **more)
        result = outcome(run, tensor_of(values), tensor_of(groups), **more)
        if isinstance(expected, type):
            assert result is expected
        else:
            assert same_bits(array_of(result, expected.dtype), expected)


def _given(func, whole=False):
    torch.manual_seed(3)
    values = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    groups = torch.randint(0, 3, (6, 2)) if whole else torch.tensor([0, 2, 0, 2, 1, 2])
    if func == "normalize":  # a single value becomes NaN
        groups = torch.tensor([[0, 2], [2, 2], [0, 0], [2, 0], [0, 2], [2, 0]])
        groups = groups if whole else groups[:, 0]
    return values, groups, lambda values, groups: run(values, groups, func, size=3, fill_value=0)


@pytest.mark.parametrize(("func", "whole"), every(7, product(SMOOTH, [False, True])))
def test_derivatives(func, whole):
    values, groups, function = _given(func, whole)
    assert gradcheck(lambda values: function(values, groups), values, check_forward_ad=True)
    assert gradgradcheck(lambda values: function(values, groups), values)


@pytest.mark.parametrize("func", ALL)
def test_batches(func):
    _, _, function = _given(func)
    values, groups = torch.randn(3, 6, 2), torch.randint(0, 3, (3, 6))
    alone = [function(*each) for each in zip(values, groups, strict=True)]
    result = torch.func.vmap(function)(values, groups)
    torch.testing.assert_close(result, torch.stack(alone), rtol=0, atol=0, equal_nan=True)


def test_derivatives_of_derivatives_in_transforms():
    values, groups, function = _given("logsumexp")
    values = values.detach()
    gradient = torch.func.hessian(lambda values: function(values, groups).sum())(values)
    softmax = transform(values, groups, "softmax")
    diagonal = gradient.reshape(12, 12).diagonal().reshape(6, 2)
    torch.testing.assert_close(diagonal, softmax * (1 - softmax))


@pytest.mark.parametrize("func", every(7, ALL))
def test_compiled(func):
    values, groups, function = _given(func)
    graph = compiled(function)
    expected = function(values, groups)
    assert torch.equal(graph(values, groups), expected)
    if func in SMOOTH:
        weights = torch.randn_like(expected)
        grads = [torch.autograd.grad(f(values, groups), values, weights)[0]
                 for f in (graph, function)]  # fmt: skip
        torch.testing.assert_close(*grads)


@pytest.mark.parametrize(
    "func", every(2, ["mean", "std", "argmax", "nanmax", "logsumexp", "softmax"])
)
def test_exported_for_any_number_of_values(func):
    values, groups, function = _given(func)

    class Model(torch.nn.Module):
        def forward(self, values, groups):
            return function(values, groups)

    n = torch.export.Dim("n")
    exported = torch.export.export(
        Model(), (values.detach(), groups), dynamic_shapes=({0: n}, {0: n})
    ).module()
    for count in (6, 4):
        arguments = values.detach()[:count], groups[:count]
        assert torch.equal(exported(*arguments), function(*arguments))


def test_inductor():
    values, groups, function = _given("softmax")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = compiled(function, backend="inductor")
        assert torch.equal(graph(values, groups), function(values, groups))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_in_one_op(name):
    """It saves only its result. In a transform, where it is composed, the result is the same."""
    values, groups, function = _given(name)
    result = function(values, groups)
    assert result.grad_fn is not None
    assert "Softmax" in type(result.grad_fn).__name__
    assert torch.equal(torch.func.functionalize(function)(values.detach(), groups), result)
    weights = torch.randn_like(result)
    of_steps = torch.func.vjp(lambda values: function(values, groups), values.detach())[1](weights)
    torch.testing.assert_close(torch.autograd.grad(result, values, weights), of_steps)
    call = values, groups, name, 3, "scatter_slices", 0, "raise", False
    torch.library.opcheck(torch.ops.gatherum.group_softmax, call)
    left_out = transform(torch.ones(3), [0, 7, 0], name, size=1, mode="drop")
    assert left_out.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_variances_of_plain_tensors_in_one_call(name, monkeypatch):
    """Tensors with a gradient, of a subclass, or in a transform use the composition."""
    calls, kernel = [], namespace.squares_and_counts

    def squares(*arguments):
        calls.append(kernel(*arguments) is not None)
        return kernel(*arguments)

    monkeypatch.setattr(namespace, "squares_and_counts", squares)
    values, groups = torch.randn(900, dtype=getattr(torch, name)), torch.arange(900) % 7

    def function(values):
        return reduce(values, groups, 7, "var")

    class Sub(torch.Tensor):
        pass

    results = (
        function(values),
        function(values.clone().requires_grad_()).detach(),
        torch.func.vmap(function)(values.expand(2, -1))[1],
        torch.func.functionalize(function)(values),
        function(values.as_subclass(Sub)).as_subclass(torch.Tensor),
    )
    assert calls == [True, False, False, False, False]
    for result in results[1:]:
        assert torch.equal(result, results[0])


def test_groups_may_be_lists_and_arrays():
    values = torch.tensor([1.0, 2.0, 4.0])
    for groups in ([1, 1, 0], np.array([1, 1, 0], "u1"), torch.tensor([1, 1, 0])):
        assert torch.equal(reduce(values, groups), torch.tensor([4.0, 3.0]))
    graph = compiled(lambda values: reduce(values, [1, 1, 0], 2))
    assert torch.equal(graph(values), torch.tensor([4.0, 3.0]))


def test_a_deviation_of_equal_values_has_a_gradient_of_zero():
    values = torch.tensor([2.0, 2.0, 5.0], requires_grad=True)
    reduce(values, [0, 0, 1], func="std").sum().backward()
    assert torch.equal(values.grad, torch.zeros(3))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_half_is_rounded_once(name):
    dtype = next(dtype for dtype in DTYPES if dtype.name == name)
    values = near_ties(np.random.default_rng(6), dtype)
    with np.errstate(all="ignore"):
        expected = of_numpy.rounded(values.copy(), dtype)
    result = namespace.rounded(torch.from_numpy(values), getattr(torch, name))
    assert same_bits(array_of(result, dtype), expected)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_rounding_makes_every_nan_canonical_and_keeps_the_other_bits(name, monkeypatch):
    dtype = getattr(torch, name)
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    least = torch.iinfo(integer).min
    codes = torch.cat([torch.arange(-100, 100), least + torch.arange(100)]).to(integer)
    special = torch.tensor([torch.inf, -torch.inf, torch.finfo(dtype).max], dtype=dtype)
    values = torch.cat([codes.view(dtype), special])
    expected = torch.where(torch.isnan(values), torch.nan, values).view(integer)
    monkeypatch.setattr(torch, "where", lambda *_: pytest.fail("two operations"))
    assert torch.equal(namespace.rounded(values, dtype).view(integer), expected)


def test_the_derivative_of_rounding_at_infinity_is_one():
    values = torch.tensor([torch.inf, 1.0, -torch.inf], requires_grad=True)
    namespace.rounded(values, torch.float32).sum().backward()
    assert values.grad.tolist() == [1, 1, 1]
    rounded = partial(namespace.rounded, target=torch.float32)
    _, tangent = torch.func.jvp(rounded, (values.detach(),), (torch.ones(3),))
    assert tangent.tolist() == [1, 1, 1]


@pytest.mark.parametrize("func", ["var", "std", "centre"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_derivatives_of_narrow_values(name, func):
    """The derivatives are computed in float64, and rounded."""
    values = torch.linspace(99, 101, 12).view(6, 2).to(getattr(torch, name)).requires_grad_()
    groups = torch.tensor([0, 2, 0, 2, 1, 2])
    run(values, groups, func, size=3).nan_to_num().square().sum().backward()
    wide = values.detach().double().requires_grad_()
    run(wide, groups, func, size=3).nan_to_num().square().sum().backward()
    torch.testing.assert_close(values.grad.double(), wide.grad, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt"])
def test_elementary_functions(name):
    op = getattr(torch.ops.gatherum, name)
    values = (torch.rand(5, 3, dtype=torch.float64) + 0.5).requires_grad_()
    assert gradcheck(op, values, check_forward_ad=True)
    assert gradgradcheck(op, values)
    torch.testing.assert_close(op(values.T), getattr(torch, name)(values.T))
    assert op(values.T.detach()).is_contiguous()
    torch.library.opcheck(op, (values,))
    with pytest.raises(TypeError, match=f"^{name}: `x` must be of floats, got int64$"):
        op(torch.arange(3))
    with pytest.raises(TypeError, match="must be a dense tensor, got a tensor of layout"):
        op(torch.ones(3).to_sparse())
    with pytest.raises(NotImplementedError) as caught:
        elementary._refuse_device(name, torch.ones(3, device="meta"))
    assert str(caught.value) == (
        f"{name}: tensors must be on the CPU or on a CUDA device, got meta; write data.cpu()"
    )


@pytest.mark.parametrize("func", sorted(set(functions.TRANSFORMS) & set(SMOOTH)))
def test_a_dropped_value_of_a_transform_has_the_gradient_0(func):
    def gradient(values, groups, weights):
        values = values.requires_grad_()
        result = transform(values, groups, func, size=1, mode="drop")
        (result * weights)[groups == 0].sum().backward()
        return values.grad

    values, groups = torch.tensor([1.0, torch.nan, 3.0, 5.0]), torch.tensor([0, 9, 0, 0])
    weights, kept = torch.tensor([1.0, 9.0, 2.0, 5.0]), torch.tensor([0, 2, 3])
    alone = gradient(values[kept], groups[kept], weights[kept])
    whole = gradient(values, groups, weights)
    assert torch.equal(whole[kept], alone)
    assert whole[1] == 0


@pytest.mark.parametrize(
    ("call", "error_type", "message"),
    [
        (lambda: reduce(torch.ones(3), [0, 1, 5], 3), IndexError,
         "groups.reduce: group 5 is not in [0, 3) (groups[2])"),
        (lambda: reduce(torch.ones(3), [0, 1]), ValueError,
         "groups.reduce: `groups` must have shape (3,), got (2,)"),
        (lambda: reduce(torch.ones(3), torch.ones(3)), TypeError,
         "groups.reduce: `groups` must have an integer dtype, got float32"),
        (lambda: reduce(torch.ones(3).to_sparse(), [0, 1, 2]), TypeError,
         "groups.reduce: `values` must be a dense tensor, got a tensor of layout sparse_coo; "
         "write values.to_dense()"),
        (lambda: reduce(torch.arange(3), [0, 0, 2], func="max"), ValueError,
         "groups.reduce: `fill_value` must be given for 'max' of dtype int64, which has no value "
         "for an empty group: group 1 is empty"),
        (lambda: reduce(torch.tensor([1, torch.nan]), [0, 0], dtype=torch.int32), ValueError,
         "groups.reduce: numbers must be in the range of `dtype`, int32, got nan (values[1])"),
        (lambda: transform(torch.ones(3, dtype=torch.bool), [0, 0, 0], "centre"), TypeError,
         "groups.transform: `func` 'centre' is not defined for dtype bool"),
        (lambda: torch.func.vmap(lambda v, g: reduce(v, g, 1, "argmax"))(
            torch.ones(2, 2), torch.zeros(2, 2, dtype=int)), RuntimeError,
         "groups.reduce: `fill_value` must be given for arrays of Dask, and where JAX or torch "
         "traces a call, because it is not known there which groups are empty"),
        (lambda: torch.func.vmap(reduce)(
            torch.ones(2, 2), torch.zeros(2, 2, dtype=int)), RuntimeError,
         "groups.reduce: the values of `groups` cannot be read inside torch.func.vmap; give "
         "`size`"),
    ],
)  # fmt: skip
def test_reduce_and_transform_check_the_arguments_of_tensors(call, error_type, message):
    with pytest.raises(error_type, match=re.escape(message)):
        call()


LEFT_OUT = ["var", "std", "logsumexp", "nanvar", "nanlogsumexp", "sum", "max"]


@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize(
    ("func", "weight"),
    [*((func, None) for func in LEFT_OUT), *product(["sum", "mean", "nanvar"], [1.0, torch.nan])],
)
def test_a_dropped_number_has_the_gradient_0(func, weight, number):
    values = torch.tensor([number, 1.0, 3.0], requires_grad=True)
    weights = None if weight is None else torch.tensor([weight, 2.0, 3.0], requires_grad=True)
    groups = torch.tensor([9, 0, 0])
    reduce(values, groups, 1, func, mode="drop", weights=weights).sum().backward()
    for operand in (values, weights):
        if operand is not None:
            assert operand.grad[0] == 0
            assert operand.grad.isfinite().all()


def test_entries_of_uint64_beyond_int64_count():
    """Without `size`, the largest entry decides it, though torch compares only int64."""
    entries = np.array([0, 1, 0, 2**63], np.uint64)
    message = "`size` must be given for 4 values in 9223372036854775809 groups"
    for values, groups in (
        (np.arange(4.0), entries),
        (torch.arange(4.0, dtype=torch.float64), tensor_of(entries)),
    ):
        for mode in ("fill", "clip", "raise"):
            with pytest.raises(ValueError, match=message):
                reduce(values, groups, func="sum", mode=mode)


@pytest.mark.parametrize("func", ["sum", "mean", "var", "std"])
@pytest.mark.parametrize("name", ["float32", "bfloat16", "int32", "uint16", "complex64"])
def test_weights(name, func):
    rng = np.random.default_rng(7)
    dtype = next(dtype for dtype in DTYPES if dtype.name == name)
    values, weights = values_of(rng, dtype, (9, 2)), rng.integers(1, 9, 9).astype("f4")
    groups = rng.integers(0, 3, 9)
    expected = reference.reduce(values, groups, 3, func, weights=weights, fill_value=0)
    for each in (weights, torch.from_numpy(weights)):
        result = reduce(tensor_of(values), groups, 3, func, weights=each, fill_value=0)
        assert same_bits(array_of(result, expected.dtype), expected)


@pytest.mark.parametrize("func", ["sum", "mean", "var", "std"])
def test_derivatives_of_weights(func):
    values, groups, _ = _given(func)
    weights = torch.rand(6, dtype=torch.float64, requires_grad=True)

    def function(values, weights):
        return reduce(values, groups, 3, func, weights=weights, fill_value=0)

    assert gradcheck(function, (values, weights), check_forward_ad=True)


def test_several_functions_in_a_graph():
    values, groups, _ = _given("sum")

    def function(values, weights):
        return reduce(values, groups, 3, func=["sum", "nanmean"], weights=weights, fill_value=0)

    results = compiled(function)(values, torch.ones(6, dtype=torch.float64))
    assert same_bits(reference.reduce(values.detach().numpy(), groups.numpy(), 3), array_of(
        results["sum"].detach(), np.dtype("f8")))  # fmt: skip
    assert list(results) == ["sum", "nanmean"]


FOLDS = [name for name, row in functions.TRANSFORMS.items() if row.method is Method.FOLD]


@pytest.mark.parametrize("func", FOLDS)
def test_cumulative_folds_are_for_the_cpu(func):
    with pytest.raises(NotImplementedError) as caught:
        cumulative._refuse_device(torch.ones(2, device="meta"), None, 1, None, func[3:])
    assert str(caught.value) == (
        f"groups.transform: '{func}' is implemented for values on the CPU, got meta; write "
        "values.cpu()"
    )


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_the_gradient_of_a_cumulative_sum_is_a_left_fold_in_reverse_order(name):
    rng, dtype = np.random.default_rng(8), getattr(torch, name)
    values = torch.ones(90, 2, dtype=dtype, requires_grad=True)
    groups = torch.from_numpy(rng.integers(0, 7, 90))
    weights = torch.from_numpy(rng.standard_normal((90, 2))).to(dtype)
    (transform(values, groups, "cumsum") * weights).sum().backward()
    expected = transform(weights.flip(0), groups.flip(0), "cumsum").flip(0)
    assert same_bits(*(array_of(x, np.dtype(name)) for x in (values.grad, expected)))


@pytest.mark.parametrize("zeros", [(), (2,), (0, 5), (1, 2, 4)])
def test_the_gradient_of_a_cumulative_product_with_zeros(zeros):
    values = torch.linspace(-2, 3, 7, dtype=torch.float64)
    values[list(zeros)] = 0
    ours, torchs = (values.clone().requires_grad_() for _ in range(2))
    weights = torch.linspace(1, 2, 7, dtype=torch.float64)
    (transform(ours, [0] * 7, "cumprod") * weights).sum().backward()
    (torchs.cumprod(0) * weights).sum().backward()
    torch.testing.assert_close(ours.grad, torchs.grad)
    assert gradcheck(lambda x: transform(x, [0] * 7, "cumprod"), ours, check_forward_ad=True)
    assert gradgradcheck(lambda x: transform(x, [0] * 7, "cumprod"), ours)


def test_the_gradient_of_a_cumulative_product_needs_no_division():
    """Here, the product is 0, but no value is."""
    values = torch.full((2,), 2.0**-100, requires_grad=True)
    result = transform(values, [0, 0], "cumprod")
    result[1].backward()
    assert result[1] == 0
    assert values.grad.tolist() == [2.0**-100] * 2


@pytest.mark.parametrize("func", ["cummax", "cummin"])
def test_equal_values_share_the_gradient_of_a_cumulative_extreme(func):
    sign = 1.0 if func == "cummax" else -1.0
    values = sign * torch.tensor([2.0, 1.0, 2.0, 5.0, 2.0, 5.0], dtype=torch.float64)
    values.requires_grad_()
    transform(values, [0, 0, 0, 0, 1, 0], func).sum().backward()
    assert values.grad.tolist() == [2.5, 0, 0.5, 1.5, 1, 0.5]
    nan = torch.tensor([1.0, torch.nan, 3.0, torch.nan], requires_grad=True)
    transform(nan, [0, 0, 0, 0], func).sum().backward()
    assert nan.grad.tolist() == [1, 2.5, 0, 0.5]


@pytest.mark.parametrize("func", FOLDS)
def test_cumulative_folds_of_strided_tensors(func):
    values = torch.randn(5, 8, dtype=torch.float64).T[1::2]
    groups = torch.tensor([0, 1, 9, 0])
    expected = transform(values.numpy(), groups.numpy(), func, size=2, mode="drop")
    for layout in (values, values.conj(), values.clone(), torch._neg_view(-values)):
        result = transform(layout, groups, func, size=2, mode="drop")
        assert same_bits(array_of(result, np.dtype("f8")), expected)
        assert result.is_contiguous()


@pytest.mark.parametrize("func", FOLDS)
def test_the_op_of_cumulative_folds(func):
    values = torch.rand(6, dtype=torch.float64, requires_grad=True)
    call = values, torch.tensor([0, 1, 0, 2, 7, -1]), 3, None, {
        "cumsum": "add", "cumprod": "mul"}.get(func, func[3:])  # fmt: skip
    torch.library.opcheck(torch.ops.gatherum.cumulate, call)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "logsumexp"])
def test_gradients_of_values_that_are_left_out(name, weighted):
    if weighted and name == "logsumexp":
        return
    for func, value, groups in ((name, 1e3, [-1, 0, 0]), (f"nan{name}", np.nan, [0, 0, 0])):
        values = torch.tensor([value, 1, 3], dtype=torch.float64, requires_grad=True)
        weights = torch.tensor([1.0, 2, 3], dtype=torch.float64, requires_grad=True)
        options = {"weights": weights} if weighted else {}
        result = reduce(values, torch.tensor(groups), 1, func, mode="drop", **options)
        leaves = (values, weights) if weighted else (values,)
        for gradient in torch.autograd.grad(result.sum(), leaves):
            assert gradient[0] == 0 and not gradient.isnan().any()


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]
)
def test_the_core_orders_tensors_in_memory(dtype):
    rng = np.random.default_rng(7)
    values = torch.from_numpy(rng.integers(0, 90, 5000)).to(getattr(torch, dtype))
    if values.is_floating_point():
        values[::7], values[::5], values[::3] = float("nan"), -0.0, 0.0
    if dtype == "float32":
        values = torch.imag(torch.complex(values, values).conj())  # negated when it is read
    groups = torch.from_numpy(rng.integers(0, 40, 5000))
    keys = values.float() if dtype == "bfloat16" else values.resolve_neg()
    by_value = np.argsort(keys.numpy(), kind="stable")
    by_group = groups.numpy()[by_value].argsort(kind="stable")
    assert np.array_equal(namespace.sorted_order(values, groups), by_value[by_group])
    assert np.array_equal(namespace.sorted_order(None, groups), groups.argsort(stable=True))
