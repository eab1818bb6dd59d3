"""torch.func and compiled graphs, separately and nested, compared with plain indexing."""

import pytest
from tensors import compiled, room, torch

from gatherum._model.operators import OPERATORS
from samples import every

INDICES = torch.tensor([[0, 2], [2, 2], [1, 0], [0, 0]])
generator = torch.Generator().manual_seed(3)
DATA = torch.randn(3, 2, dtype=torch.float64, generator=generator)
UPDATES = torch.randn(4, 2, dtype=torch.float64, generator=generator)
BATCH = torch.stack([DATA, DATA * 2])
func = torch.func


def folded(combine):
    """Scatter numbers one by one with operations that torch differentiates."""

    def scatter(data, updates):
        rows = [list(row.unbind()) for row in data.unbind()]
        count = [[1] * 2 for _ in rows]
        for j, row in enumerate(updates.unbind()):
            for k, update in enumerate(row.unbind()):
                i = int(INDICES[j, k])
                count[i][k] += 1
                rows[i][k] = combine(rows[i][k], update, count[i][k])
        return torch.stack([torch.stack(row) for row in rows])

    return scatter


COMBINE = {
    "none": lambda old, new, n: new,
    "add": lambda old, new, n: old + new,
    "mul": lambda old, new, n: old * new,
    "max": lambda old, new, n: torch.maximum(old, new),
    "min": lambda old, new, n: torch.minimum(old, new),
    "mean": lambda old, new, n: (old * (n - 1) + new) / n,
}


def ours(reduction):
    def function(data):
        updates = data[:1] * UPDATES
        result = room.scatter_elements(data, INDICES, updates, reduction=reduction)
        return (result**3).sum() + (room.gather_elements(result, INDICES) ** 2).sum()

    return function


def plain(reduction):
    def function(data):
        result = folded(COMBINE[reduction])(data, data[:1] * UPDATES)
        return (result**3).sum() + (torch.gather(result, 0, INDICES) ** 2).sum()

    return function


def cubes(function):
    return lambda x: (func.grad(lambda y: (func.grad(function)(y) ** 2).sum())(x) ** 2).sum()


@pytest.mark.parametrize("zeros", range(5))
def test_third_derivatives_of_products_with_zeros(zeros):
    generator = torch.Generator().manual_seed(9)
    data, weights = (torch.randn(6, dtype=torch.float64, generator=generator) for _ in range(2))
    data[:zeros] = 0
    indices = torch.tensor([0, 1, 0, 0, 0, 0])

    def ours(x):
        return (
            room.scatter_elements(x[:2], indices[2:], x[2:], reduction="mul") * weights[:2]
        ).sum()

    def plain(x):
        return x[0] * x[2] * x[3] * x[4] * x[5] * weights[0] + x[1] * weights[1]

    for transform in (func.grad, func.hessian, lambda f: func.jacrev(func.hessian(f)),
                      lambda f: func.jacfwd(func.hessian(f))):  # fmt: skip
        assert torch.allclose(transform(ours)(data), transform(plain)(data))


def twice(function):
    x = DATA.clone().requires_grad_()
    (first,) = torch.autograd.grad(function(x), x, create_graph=True)
    return torch.autograd.grad((first**2).sum(), x)[0]


TRANSFORMS = {
    "grad": lambda f: func.grad(f)(DATA),
    "vjp": lambda f: func.vjp(f, DATA)[1](torch.ones((), dtype=DATA.dtype))[0],
    "jvp": lambda f: func.jvp(f, (DATA,), (DATA * 2,))[1],
    "jacrev": lambda f: func.jacrev(f)(DATA),
    "jacfwd": lambda f: func.jacfwd(f)(DATA),
    "hessian": lambda f: func.hessian(f)(DATA),
    "jacrev of jacrev": lambda f: func.jacrev(func.jacrev(f))(DATA),
    "jacfwd of jacfwd": lambda f: func.jacfwd(func.jacfwd(f))(DATA),
    "jacrev of jacfwd": lambda f: func.jacrev(func.jacfwd(f))(DATA),
    "jvp of jvp": lambda f: func.jvp(lambda x: func.jvp(f, (x,), (x,))[1], (DATA,), (DATA,))[1],
    "grad of grad of grad": lambda f: func.grad(cubes(f))(DATA),
    "autograd twice": twice,
}
BATCHED = {
    "vmap": lambda f: func.vmap(f)(BATCH),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(BATCH),
    "grad of vmap": lambda f: func.grad(lambda x: func.vmap(f)(x).sum())(BATCH),
    "vmap of jvp": lambda f: func.vmap(lambda x: func.jvp(f, (x,), (x,))[1])(BATCH),
    "jvp of vmap": lambda f: func.jvp(func.vmap(f), (BATCH,), (BATCH * 3,))[1],
    "vmap of hessian": lambda f: func.vmap(func.hessian(f))(BATCH),
    "vmap of vmap": lambda f: func.vmap(func.vmap(f))(torch.stack([BATCH, BATCH + 1])),
}


@pytest.mark.parametrize("reduction", COMBINE)
@pytest.mark.parametrize("name", [*TRANSFORMS, *BATCHED])
def test_transforms(name, reduction):
    transform = (TRANSFORMS | BATCHED)[name]
    assert torch.allclose(transform(ours(reduction)), transform(plain(reduction)))


@pytest.mark.parametrize("reduction", every(2, COMBINE))
def test_compiled_transforms(reduction):
    inner = {
        "grad": lambda f, x: func.grad(f)(x),
        "jvp": lambda f, x: func.jvp(f, (x,), (x,))[1],
        "vmap of grad": lambda f, x: func.vmap(func.grad(f))(torch.stack([x, x * 2])),
    }
    chosen = dict([list(inner.items())[list(COMBINE).index(reduction) % 3]])
    for name, transform in (inner if reduction in ("mul", "max") else chosen).items():
        function = compiled(lambda x, t=transform: t(ours(reduction), x))
        assert torch.allclose(function(DATA), transform(plain(reduction), DATA)), name


@pytest.mark.parametrize("reduction", every(2, COMBINE))
def test_compiled_backward(reduction):
    function = compiled(ours(reduction), dynamic=True)
    x = DATA.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(x), x)
    assert torch.allclose(gradient, func.grad(plain(reduction))(DATA))


# --- vmap of each operator, over every choice of operands


BATCHES = {
    "gather": [(2, 4, 3), (2, 2)],
    "gather_elements": [(2, 4, 3), (2, 4, 3)],
    "gather_nd": [(2, 4, 3), (2, 5, 1)],
    "scatter_slices": [(2, 4, 3), (2, 2), (2, 2, 3)],
    "scatter_elements": [(2, 4, 3), (2, 4, 3), (2, 4, 3)],
    "scatter_nd": [(2, 4, 3), (2, 5, 1), (2, 5, 3)],
}


@pytest.mark.parametrize("op", BATCHES)
@pytest.mark.parametrize("where", [0, -1])
def test_vmap_over_some_operands(op, where):
    generator = torch.Generator().manual_seed(5)
    operands = [
        torch.randint(-3, 3, shape, generator=generator)
        if i == 1
        else torch.randn(shape, generator=generator)
        for i, shape in enumerate(BATCHES[op])
    ]
    more = {"reduction": "add"} if len(operands) == 3 else {}
    call = lambda *arguments: getattr(room, op)(*arguments, **more)  # noqa: E731
    for chosen in range(1, 1 << len(operands)):
        dims = [where if chosen >> i & 1 else None for i in range(len(operands))]
        arguments = [
            x[0] if dim is None else x.movedim(0, dim)
            for x, dim in zip(operands, dims, strict=True)
        ]
        expected = torch.stack(
            [
                call(*(x[0] if d is None else x[n] for x, d in zip(operands, dims, strict=True)))
                for n in range(2)
            ]
        )
        assert torch.equal(func.vmap(call, tuple(dims))(*arguments), expected), dims


def test_vmap_stretches_updates_behind_the_batch():
    data, updates = torch.zeros(2, 4, 3), torch.tensor([1.0, 2.0])
    for indices in (torch.tensor([0, 0, 3]), torch.tensor([[0, 0, 3], [1, 1, 1]])):
        dims = (0, None if indices.dim() == 1 else 0, 0)
        result = func.vmap(lambda d, i, u: room.scatter_slices(d, i, u, reduction="add"), dims)(
            data, indices, updates
        )
        for n in range(2):
            one = indices if indices.dim() == 1 else indices[n]
            expected = room.scatter_slices(data[n], one, updates[n], reduction="add")
            assert torch.equal(result[n], expected)


def test_vmap_refuses_out():
    with pytest.raises(
        RuntimeError, match=r"^gather: `out` cannot be given inside torch.func.vmap"
    ):
        func.vmap(lambda d: room.gather(d, [0], out=torch.zeros(1, 3)))(torch.zeros(2, 4, 3))


def test_every_operator_is_batched():
    assert set(BATCHES) == set(OPERATORS)


@pytest.mark.parametrize("reduction", COMBINE)
def test_gradients_of_tangents_without_func(reduction):
    """Forward mode first, then backward through the tangent."""
    x, t = DATA.clone().requires_grad_(), (DATA * 3).requires_grad_()
    gradients = []
    for function in (ours(reduction), plain(reduction)):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, t)
            tangent = torch.autograd.forward_ad.unpack_dual(function(dual)).tangent
            gradients.append(torch.autograd.grad(tangent, (x, t)))
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_skipped_factor_has_no_gradient(bad):
    def product(updates):
        places = torch.tensor([0, 9])
        return room.scatter_slices(
            torch.ones(3), places, updates, reduction="mul", mode="drop"
        ).sum()

    assert torch.func.grad(product)(torch.tensor([2.0, bad])).tolist() == [1.0, 0.0]
