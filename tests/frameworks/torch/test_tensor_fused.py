"""Gradients of products and extremes by the core's fused pass equal plain loops bit for bit."""

import itertools

import numpy as np
import pytest
from tensors import compiled, room, torch

import gatherum
from gatherum._system import native
from gatherum.torch.autograd import fused_gradients
from samples import diagonal

EXTREMES = ("max", "min")


def loops(data, indices, updates, gradient, reduction, include_self):
    """Return both gradients of a scatter of rows, column by column, in the types' own arithmetic.

    Negative indices are skipped.
    """
    of_data, of_updates = gradient.copy(), np.zeros_like(updates)
    for p, c in np.ndindex(data.shape):
        arrived = [j for j, i in enumerate(indices) if i == p]
        if not arrived:
            continue
        values, g = [updates[j, c] for j in arrived], gradient[p, c]
        one = product if reduction == "mul" else extreme
        results = one([data[p, c], *values] if include_self else values, g, reduction)
        of_data[p, c] = results.pop(0) if include_self else 0
        for j, share in zip(arrived, results, strict=True):
            of_updates[j, c] = share
    return of_data, of_updates


def product(values, gradient, _):
    """Multiply the preceding factors, from the left, by the following ones, from the right."""
    results, one = [], type(gradient)(1)
    for k in range(len(values)):
        before, behind = one, one
        for value in values[:k]:
            before = before * value
        for value in reversed(values[k + 1 :]):
            behind = value * behind
        results.append(gradient * np.conj(before * behind))
    return results


def extreme(values, gradient, reduction):
    best = np.max(values) if reduction == "max" else np.min(values)
    equal = [v == best for v in values]
    share = gradient / type(gradient)(sum(equal))
    return [share if same else type(gradient)(0) for same in equal]


def numbers(generator, shape, dtype, reduction):
    results = generator.integers(-3, 4, shape) / (1 if reduction in EXTREMES else 2)
    if dtype.startswith("complex"):
        results = results + 1j * generator.integers(-2, 3, shape)
    return results.astype(dtype)


def gradients(data, indices, updates, gradient, wanted=(True, True), op="scatter_slices", **more):
    """Return the gradients of tensors by autograd."""
    data = data.detach().requires_grad_(wanted[0])
    updates = updates.detach().requires_grad_(wanted[1])
    result = getattr(room, op)(data, indices, updates, **more)
    leaves = [leaf for leaf, asked in zip((data, updates), wanted, strict=True) if asked]
    return torch.autograd.grad(result, leaves, gradient)


FOLDS = [*itertools.product(("mul", *EXTREMES), ("float32", "float64")), ("mul", "complex64"),
         ("mul", "complex128")]  # fmt: skip


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("mode", ["raise", "drop"])
@pytest.mark.parametrize(("reduction", "dtype"), FOLDS)
def test_bits_of_rows(reduction, dtype, mode, include_self):
    generator = np.random.default_rng(3)
    data, updates, gradient = (numbers(generator, (n, 5), dtype, reduction) for n in (7, 30, 7))
    indices = generator.integers(-2 if mode == "drop" else 0, 7, 30)
    more = {"reduction": reduction, "include_self": include_self, "mode": mode, "negative": False}
    tensors = [torch.from_numpy(a) for a in (data, indices, updates, gradient)]
    results = gradients(*tensors, **more)
    expected = loops(data, indices, updates, gradient, reduction, include_self)
    for one, other in zip(results, expected, strict=True):
        assert one.numpy().tobytes() == (other + 0).tobytes() or np.array_equal(one, other)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", ["mul", *EXTREMES])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types_are_rounded_once(dtype, reduction, include_self):
    generator = np.random.default_rng(4)
    data, updates, gradient = (
        torch.from_numpy(numbers(generator, (n, 5), "float32", reduction)).to(getattr(torch, dtype))
        for n in (4, 20, 4)
    )
    indices = torch.from_numpy(generator.integers(0, 4, 20))
    more = {"reduction": reduction, "include_self": include_self}
    results = gradients(data, indices, updates, gradient, **more)
    wide = (t.float() for t in (data, updates, gradient))
    data, updates, gradient = wide
    expected = gradients(data, indices, updates, gradient, **more)
    for one, other in zip(results, expected, strict=True):
        assert torch.equal(one, other.to(one.dtype))


# Each with rows for one thread and for several: counted destinations, sorted destinations, many
# units, rows of several parts.
SIZES = {
    "counted": ("scatter_slices", (500, 70), (20_000,), (20_000, 70), 0),
    "sorted": ("scatter_slices", (5000, 256), (4000,), (4000, 256), 0),
    "columns": ("scatter_elements", (300, 900), (800, 900), (800, 900), 0),
    "lines": ("scatter_elements", (900, 300), (900, 800), (900, 800), 1),
    "batches": ("scatter_nd", (6, 50, 300), (6, 700, 1), (6, 700, 300), 1),
    "middle": ("scatter_slices", (20, 40, 300), (90,), (20, 90, 300), 1),
}


@pytest.mark.parametrize(("name", "reduction"), diagonal(2, list(SIZES), ["mul", "max"]))
def test_bits_on_any_threads_and_as_composed(name, reduction, settings_restored, monkeypatch):
    op, shape, where, moved, axis = SIZES[name]
    generator = torch.Generator().manual_seed(5)
    data, gradient = (torch.randint(1, 5, shape, generator=generator) / 4 for _ in range(2))
    updates = torch.randint(3, 6, moved, generator=generator) / 4
    indices = torch.randint(shape[axis], where, generator=generator)
    more = {"op": op, "reduction": reduction}
    more["batch_dims" if op == "scatter_nd" else "axis"] = axis
    monkeypatch.setattr(fused_gradients, "is_preferred", lambda *_: True)
    results = []
    for threads in (1, 2, 3, 7):
        gatherum.set_num_threads(threads)
        results.append(gradients(data, indices, updates, gradient, **more))
    assert all(
        torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True)
    )
    monkeypatch.setattr(fused_gradients, "is_preferred", lambda *_: False)
    for one, other in zip(
        results[0], gradients(data, indices, updates, gradient, **more), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("reduction", ["mul", *EXTREMES])
@pytest.mark.parametrize("include_self", [True, False])
def test_operands_of_any_strides(reduction, include_self):
    generator = torch.Generator().manual_seed(6)
    whole = torch.randint(-2, 3, (12, 8), generator=generator).float()
    indices = torch.tensor([0, 9, 3, 9, 3, 9, 3, 1])[::2]
    more = {"reduction": reduction, "include_self": include_self}
    for data, updates, gradient in [
        (whole[:, ::2], whole.t()[::2, :4], torch.ones(()).expand(12, 4)),
        (torch.ones(()).expand(12, 4), whole[:4, :1], whole[:, 4:]),
        (whole[:, :4], torch.tensor(3.0), whole[:, 4:]),
        (whole[::2, :4], whole[:4, 4:], whole[6:, :4]),
    ]:
        where = indices % data.shape[0]
        results = gradients(data, where, updates, gradient, **more)
        plain = [t.contiguous() for t in (data, updates.expand(4, 4), gradient)]
        expected = list(gradients(plain[0], where, *plain[1:], **more))
        expected[1] = expected[1].sum_to_size(updates.shape)
        for one, other in zip(results, expected, strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("reduction", ["mul", *EXTREMES])
def test_a_single_gradient(reduction):
    data, updates = torch.tensor([[1.0, 2], [3, 4]]), torch.tensor([[2.0, 2], [1, 5], [2, 2]])
    indices, gradient = torch.tensor([0, 0, 0]), torch.tensor([[1.0, 2], [3, 4]])
    for include_self in (True, False):
        more = {"reduction": reduction, "include_self": include_self}
        both = gradients(data, indices, updates, gradient, **more)
        of_data = gradients(data, indices, updates, gradient, (True, False), **more)
        of_updates = gradients(data, indices, updates, gradient, (False, True), **more)
        assert torch.equal(both[0], *of_data)
        assert torch.equal(both[1], *of_updates)


def test_factors_that_are_not_finite():
    inf = float("inf")
    updates = torch.tensor([[inf, 2.0], [3, 0], [2, inf]])
    one, indices = torch.ones(1, 2), torch.zeros(3, dtype=torch.int64)
    results = gradients(one, indices, updates, one, reduction="mul")
    assert results[1][:, 0].tolist() == [6, inf, inf]
    assert results[1][1:, 1].tolist() == [inf, 0]
    assert results[1][0, 1].isnan()


def test_nothing_to_differentiate():
    for of_data, of_updates in (((3, 0), (2, 0)), ((3, 2), (0, 2)), ((0, 2), (2, 2))):
        data, updates = torch.ones(of_data), torch.ones(of_updates)
        indices = torch.zeros(len(updates), dtype=torch.int64)
        for reduction in ("mul", "max"):
            results = gradients(data, indices, updates, torch.ones_like(data), reduction=reduction,
                                mode="drop")  # fmt: skip
            assert torch.equal(results[0], torch.ones_like(data))
            assert torch.equal(results[1], torch.zeros_like(updates))


def test_indices_that_became_invalid_are_refused():
    array = np.array([0, 1, 1])
    data = torch.ones(2, 3, requires_grad=True)
    result = room.scatter_slices(data, array, torch.ones(3, 3), reduction="mul")
    array[1] = 7
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 of size 2"):
        result.sum().backward()


@pytest.mark.parametrize("reduction", ["mul", "max"])
def test_a_compiled_backward_is_one_op(reduction):
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def function(data, indices, updates):
        return room.scatter_slices(data, indices, updates, reduction=reduction)

    data, updates, indices = torch.rand(3, 4), torch.rand(5, 4), torch.tensor([0, 2, 2, 0, 0])
    results = []
    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep)
    for call in (function, compiled(function, backend=backend)):
        leaves = [t.clone().requires_grad_() for t in (data, updates)]
        results.append(torch.autograd.grad(call(leaves[0], indices, leaves[1]).sum(), leaves))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert "gatherum.gradients" in str(graphs[-1].code)


def test_opcheck():
    data, updates = torch.rand(3, 4), torch.rand(5, 4)
    indices = torch.tensor([0, 2, 2, 0, 0])
    for reduction in ("mul", "max"):
        result = room.scatter_slices(data, indices, updates, reduction=reduction)
        where = 0, reduction, True, "raise", True
        operands = "scatter_slices", torch.rand(3, 4), data, indices, updates, result
        for wanted in ((True, True), (False, True)):
            torch.library.opcheck(
                torch.ops.gatherum.gradients.default, (*operands, *where, *wanted)
            )


def differentiate(**changed):
    t = torch.ones(3, 4)
    arguments = {"op": "scatter_slices", "gradient": t, "data": t, "updates": t, "result": t,
                 "indices": torch.tensor([0, 1, 1]), "axis": 0, "reduction": "max",
                 "include_self": True, "mode": "raise", "negative": True,
                 "of_data": True, "of_updates": True}  # fmt: skip
    return native.differentiate(**arguments | changed)


def test_the_core_rejects_operands_that_do_not_match():
    assert differentiate()[0].shape == (3, 4)
    for name in ("gradient", "data", "updates", "result"):
        with pytest.raises(ValueError, match="do not belong together"):
            differentiate(**{name: torch.ones(3, 4).double()})
        with pytest.raises(ValueError, match="do not belong together"):
            differentiate(**{name: torch.ones(4, 3).t()})
    for name in ("data", "result"):
        with pytest.raises(ValueError, match="do not belong together"):
            differentiate(**{name: torch.ones(2, 4)})
        with pytest.raises(ValueError, match="smaller than the program addresses"):
            differentiate(**{name: None})
    for reduction in ("add", "none", "mean"):
        with pytest.raises(ValueError, match="no gradients of this program"):
            differentiate(reduction=reduction)
    whole = dict.fromkeys(("gradient", "data", "updates", "result"), torch.ones(3, 4).int())
    with pytest.raises(ValueError, match="no gradients of this program"):
        differentiate(**whole)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        differentiate(indices=torch.tensor([0, 3, 1]))
    with pytest.raises(ValueError, match="must have shape"):
        differentiate(updates=torch.ones(2, 4))
