"""Calls of torch_scatter's functions that the core runs directly, because it knows their plan."""

import pytest
from tensors import torch

import gatherum
import gatherum.torch.torch_scatter as ts
from gatherum._model.modes import MODES
from gatherum._system import native
from gatherum.torch.torch_scatter import scatter_arguments, segments

WORDS = ("sum", "add", "mul", "mean", "min", "max", "any")
INDEX = torch.tensor([4, 0, 4, 1, 1, 4, 2, 0])
POINTER = torch.tensor([1, 3, 3, 7])


def values(dtype, *shape):
    numbers = torch.arange(1, 1 + torch.Size(shape).numel()).remainder(7).reshape(shape)
    return numbers.to(dtype)


@pytest.fixture
def counted(monkeypatch):
    """Record the results of the core's fast path, None for calls that it declined."""
    results = []

    def scatter_into_zeros(*call):
        results.append(native._core.scatter_into_zeros(*call))
        return results[-1]

    monkeypatch.setattr(native, "scatter_into_zeros", scatter_into_zeros)
    return results


def slowly(monkeypatch, call):
    with monkeypatch.context() as patch:
        patch.setattr(native, "scatter_into_zeros", lambda *call: None)
        return call()


CALLS = {
    "scatter": lambda src, word: ts.scatter(src, INDEX, 0, dim_size=6, reduce=word),
    "least": lambda src, word: ts.scatter(src, INDEX.int(), 0, reduce=word),
    "last": lambda src, word: ts.scatter(src.T, INDEX, dim_size=6, reduce=word),
    "coo": lambda src, word: ts.segment_coo(src, INDEX, dim_size=7, reduce=word),
    "csr": lambda src, word: ts.segment_csr(src, POINTER, reduce=word),
    "csr int32": lambda src, word: ts.segment_csr(src, POINTER.int()[:3], reduce=word),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int16])
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", CALLS)
def test_a_plain_scatter_has_the_same_bits(monkeypatch, counted, name, word, dtype):
    src = values(dtype, 8, 3)
    expected = slowly(monkeypatch, lambda: CALLS[name](src, word))
    counted.clear()
    result = CALLS[name](src, word)
    assert torch.equal(result, expected) and result.dtype == expected.dtype
    assert result.stride() == expected.stride()
    ran = [one for one in counted if one is not None]
    assert len(ran) == (word != "mul")  # whose empty destinations hold 1


@pytest.mark.parametrize("name", CALLS)
def test_its_gradient_is_the_same(monkeypatch, counted, name):
    def gradients(src):
        taken = CALLS[name](src, "sum")
        weights = values(torch.float32, *taken.shape)
        (first,) = torch.autograd.grad((taken * taken * weights).sum(), src, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), src)
        return taken.detach(), first.detach(), second

    src = values(torch.float32, 8, 3).requires_grad_()
    expected = slowly(monkeypatch, lambda: gradients(src))
    counted.clear()
    for gradient, one in zip(gradients(src), expected, strict=True):
        assert torch.equal(gradient, one)
    assert any(one is not None and one.requires_grad for one in counted)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ts.scatter(values(torch.float32, 8, 2), INDEX, 0, dim_size=4),
         r"^scatter: index 4 is out of bounds .*\(index\[0\]\)"),
        (lambda: ts.scatter(values(torch.float32, 8, 2), INDEX - 1, 0, dim_size=5),
         r"^scatter: index -1 is out of bounds .*\(index\[1\]\)"),
        (lambda: ts.scatter(values(torch.float32, 8, 2), INDEX - 1, 0), r"^scatter: index -1 is"),
        (lambda: ts.segment_csr(values(torch.float32, 8), POINTER.flip(0)), r"^segment_csr: `indp"),
        (lambda: ts.segment_csr(values(torch.float32, 6), POINTER), r"^segment_csr: `indptr` .* 7"),
        (lambda: ts.scatter(values(torch.float32, 7, 2), INDEX, 0), "^scatter: `index` must have"),
        (lambda: ts.scatter(values(torch.float32, 8), INDEX, 0, dim_size=-1), "^scatter: `dim_siz"),
        (lambda: ts.scatter(values(torch.float32, 8), INDEX, 2), "^scatter: `dim` must be in"),
        (lambda: ts.scatter(values(torch.float32, 8), INDEX, 0, reduce=[]), "^scatter: `reduce` m"),
        (lambda: ts.gather_coo(values(torch.float32, 3, 2), INDEX),
         r"^gather_coo: index 4 is out of bounds for axis 0 of size 3 \(index\[0\]\)"),
        (lambda: ts.gather_coo(values(torch.float32, 3), INDEX > 1), "^gather_coo: `index` must"),
    ],
)  # fmt: skip
def test_messages_do_not_depend_on_known_plans(call, text):
    for _ in range(2):
        with pytest.raises((IndexError, TypeError, ValueError), match=text):
            call()


def test_a_storage_that_was_made_smaller_is_not_read():
    for make in (lambda: values(torch.float32, 8), INDEX.clone):
        tensor = make()
        ts.scatter(values(torch.float32, 8), INDEX, 0, dim_size=6)
        tensor.untyped_storage().resize_(0)
        src, index = (tensor, INDEX) if tensor.is_floating_point() else (make().float(), tensor)
        with pytest.raises(ValueError, match="its storage"):
            ts.scatter(src, index, 0, dim_size=6)


def test_transforms_take_their_own_path():
    src = values(torch.float32, 8, 3)

    def total(x):
        return (ts.segment_csr(x, POINTER) * ts.scatter(x, INDEX, 0, dim_size=3 + 2)[:3]).sum()

    gradient = torch.func.grad(total)(src)
    leaf = src.clone().requires_grad_()
    total(leaf).backward()
    assert torch.equal(leaf.grad, gradient)
    many = torch.func.vmap(torch.func.grad(total))(torch.stack((src, src + 1)))
    assert torch.equal(many[0], gradient)
    value, tangent = torch.func.jvp(total, (src,), (torch.ones_like(src),))
    assert torch.allclose(tangent, gradient.sum()) and torch.equal(value, total(src))


def test_values_that_a_transform_needs_are_read():
    src, groups = values(torch.float32, 8, 3), torch.tensor([0, 1, 0, 1, 1, 0, 2, 2])
    for call in (
        lambda x: x.sum() * gatherum.groups.reduce(x, groups, 3, "argmax").sum(),
        lambda x: gatherum.aggregate(x, INDEX, None, 3, "add", indptr=torch.tensor([0, 2, 2, 8])),
    ):
        value, tangent = torch.func.jvp(call, (src,), (src,))
        assert torch.equal(value, call(src)) and torch.equal(tangent, value)


def test_a_backward_pass_over_many_gradients():
    src = values(torch.float32, 8, 3).requires_grad_()
    for result in (ts.scatter(src, INDEX, 0, dim_size=6), gatherum.gather(src, INDEX)):
        coming = torch.stack([values(torch.float32, *result.shape), torch.ones_like(result)])
        (at_once,) = torch.autograd.grad(result, src, coming, True, is_grads_batched=True)
        for one, gradient in zip(at_once, coming, strict=True):
            assert torch.equal(one, torch.autograd.grad(result, src, gradient, True)[0])


def test_compiled_functions_see_no_call_of_the_core():
    def call(x):
        return (
            ts.segment_csr(x, POINTER),
            ts.scatter(x, INDEX, 0, dim_size=6),
            ts.gather_coo(x, INDEX),
        )

    src = values(torch.float32, 8, 3)
    call(src)
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    for one, other in zip(compiled(src), call(src), strict=True):
        assert torch.equal(one, other)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_compiled_autograd():
    src = values(torch.float32, 8, 3).requires_grad_()

    def gradient():
        src.grad = None
        (ts.scatter(src, INDEX, 0, dim_size=6) ** 2).sum().backward()
        gatherum.gather(src, INDEX).square().sum().backward()
        return src.grad

    expected = gradient()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
        assert torch.equal(gradient(), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_gradient_of_a_known_gather(monkeypatch, mode, axis):
    src = values(torch.float32, 5, 6).requires_grad_()
    index = torch.tensor([[0, -1, 3], [3, 3, -2]])

    def gradient():
        weights = values(torch.float32, *gatherum.gather(src, index, axis, mode=mode).shape)
        return torch.autograd.grad(
            (gatherum.gather(src, index, axis, mode=mode) * weights).sum(), src
        )

    expected = slowly(monkeypatch, gradient)
    for _ in range(2):
        assert torch.equal(gradient()[0], expected[0])


def test_arguments_of_other_types():
    src = values(torch.float32, 8)
    expected = ts.scatter(src, INDEX, 0, dim_size=6)
    assert torch.equal(ts.scatter(src, INDEX.tolist(), True - 1, dim_size=6), expected)
    assert torch.equal(ts.scatter(src, INDEX.to(torch.uint8), 0, dim_size=6), expected)
    assert torch.equal(ts.scatter(torch.nn.Parameter(src), INDEX, 0, dim_size=6), expected)
    assert torch.equal(
        ts.scatter(src.flip(0).as_strided((8,), (1,)), INDEX, 0, dim_size=6),
        ts.scatter(src.flip(0), INDEX, 0, dim_size=6),
    )
    assert ts.segment_csr(src, POINTER[:1]).shape == (0,)
    assert ts.scatter(src[:0], INDEX[:0], 0).shape == (0,)
    with torch.inference_mode():
        assert torch.equal(ts.scatter(src, INDEX, 0, dim_size=6), expected)
    assert scatter_arguments.plain_scatter(src, INDEX, 0, 6, "nothing", "raise", False) is None
    assert segments.plain_scatter is scatter_arguments.plain_scatter
