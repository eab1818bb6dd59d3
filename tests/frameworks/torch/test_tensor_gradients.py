"""Gradients by finite differences: duplicates, skipped indices, zeros, ties, both modes, twice."""

import itertools

import pytest
from tensors import double, room, torch
from torch.autograd import gradcheck, gradgradcheck

from gatherum._model.reductions import REDUCTIONS
from samples import every

MODES = ("raise", "clip", "wrap", "drop")


def check(function, *operands):
    """Compare derivatives with finite differences, backward and forward, also in batches."""
    gradcheck(function, operands, check_forward_ad=True, check_batched_grad=True,
              check_batched_forward_grad=True)  # fmt: skip
    gradgradcheck(function, operands, check_fwd_over_rev=True, check_rev_over_rev=True)


INDICES = torch.tensor([[0, 2], [2, 2], [1, 0], [0, 0]])
INVALID = torch.tensor([[0, 7], [2, 2], [1, 0], [0, 0]])

GATHERS = {
    "slices": lambda d, mode: room.gather(d, torch.tensor([0, 3, 3, -1]), mode=mode),
    "slices across": lambda d, mode: room.gather(d, torch.tensor([[0, 2], [2, 2]]), 1, mode=mode),
    "elements": lambda d, mode: room.gather_elements(d, INDICES, mode=mode),
    "elements across": lambda d, mode: room.gather_elements(d, INDICES, 1, mode=mode),
    "tuples": lambda d, mode: room.gather_nd(d, [[0, 1], [0, 1], [3, 2]], mode=mode),
    "rows": lambda d, mode: room.gather_nd(d, [[0], [3], [3]], mode=mode),
    "everything": lambda d, mode: room.gather_nd(
        d, torch.zeros(2, 0, dtype=torch.int64), mode=mode
    ),
    "batches": lambda d, mode: room.gather_nd(d, [[0], [2], [2], [0]], 1, mode=mode),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GATHERS)
def test_gathers(name, mode):
    check(lambda d: GATHERS[name](d, mode), double(4, 3))


def test_filled_places_have_no_gradient():
    check(lambda d: room.gather(d, [0, 9, 3, 3], mode="fill", fill_value=3.5), double(4, 3))
    data = double(3)
    room.gather(data, [1, 5, 1], mode="fill", fill_value=2.0).sum().backward()
    assert data.grad.tolist() == [0, 2, 0]


EVERY_FOLD = [
    (reduction, include_self) for reduction in REDUCTIONS for include_self in (True, False)
]


@pytest.mark.parametrize(
    ("reduction", "include_self", "valid"),
    every(3, [(*fold, valid) for fold in EVERY_FOLD for valid in (True, False)]),
)
def test_scatters_of_elements(reduction, include_self, valid):
    """Each fold with valid indices, and in one of the modes for invalid ones."""
    mode = MODES[0 if valid else 1 + (REDUCTIONS.index(reduction) + include_self) % 3]
    indices = INDICES if mode == "raise" else INVALID
    more = {"reduction": reduction, "include_self": include_self, "mode": mode}
    check(lambda d, u: room.scatter_elements(d, indices, u, **more), double(3, 2), double(4, 2))


@pytest.mark.parametrize(
    ("reduction", "include_self", "mode"),
    every(3, [(*fold, mode) for fold in EVERY_FOLD for mode in ("raise", "drop")]),
)
class TestScatters:
    def test_rows(self, reduction, include_self, mode):
        indices = [[0], [2], [2], [0 if mode == "raise" else 7], [1]]
        more = {"reduction": reduction, "include_self": include_self, "mode": mode}
        check(lambda d, u: room.scatter_nd(d, indices, u, **more), double(4, 2), double(5, 2))

    def test_slices_and_broadcast_updates(self, reduction, include_self, mode):
        indices = [[0, 2], [2, 0 if mode == "raise" else -9]]
        more = {"reduction": reduction, "include_self": include_self, "mode": mode}
        function = lambda d, u: room.scatter_slices(d, indices, u, 1, **more)  # noqa: E731
        gradcheck(function, (double(2, 3, 1), double(2, 2, 2, 1)), check_forward_ad=True)
        check(function, double(2, 3, 1), double(2, 1))

    def test_one_update_for_all(self, reduction, include_self, mode):
        more = {"reduction": reduction, "include_self": include_self, "mode": mode}
        function = lambda d, u: room.scatter_elements(d, INDICES, u, **more)  # noqa: E731
        gradcheck(function, (double(3, 2), double()), check_forward_ad=True)


@pytest.mark.parametrize(
    ("zeros", "include_self"), every(3, itertools.product(range(5), [True, False]))
)
def test_products_with_zeros(zeros, include_self):
    data, updates = double(3, 2), double(4, 2)
    with torch.no_grad():
        for place in [(updates, 0), (updates, 3), (data, 0), (updates, 2)][:zeros]:
            place[0][place[1], 0] = 0
    more = {"reduction": "mul", "include_self": include_self}
    check(lambda d, u: room.scatter_elements(d, INDICES, u, **more), data, updates)


@pytest.mark.parametrize(
    ("reduction", "include_self"),
    every(3, itertools.product(["none", "add", "mul", "mean"], [True, False])),
)
def test_complex_numbers(reduction, include_self):
    data, updates = (torch.randn(n, 2, dtype=torch.complex128, requires_grad=True) for n in (3, 4))
    more = {"reduction": reduction, "include_self": include_self}
    check(lambda d, u: room.scatter_elements(d, INDICES, u, **more), data, updates)
    check(lambda d: room.gather_elements(d, INDICES), data)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", ["max", "min"])
def test_all_that_attain_the_result_share(reduction, include_self):
    data = torch.tensor([1.0, 1.0, 5.0, float("nan")], requires_grad=True)
    updates = torch.tensor([1.0, 1.0, 0.0, 2.0, 3.0], requires_grad=True)
    result = room.scatter_elements(
        data, [0, 0, 1, 3, 3], updates, reduction=reduction, include_self=include_self
    )
    torch.autograd.backward(result, torch.tensor([6.0, 2.0, 3.0, 8.0]))
    low = reduction == "min"
    if include_self:
        assert data.grad.tolist() == [2, 0 if low else 2, 3, 8]
        assert updates.grad.tolist() == [2, 2, 2 if low else 0, 0, 0]
    else:
        assert data.grad.tolist() == [0, 0, 3, 0]
        assert updates.grad.tolist() == [3, 3, 2, 8 if low else 0, 0 if low else 8]


def test_the_last_update_has_the_gradient():
    data = torch.zeros(3, requires_grad=True)
    updates = torch.ones(4, requires_grad=True)
    result = room.scatter_elements(data, [2, 0, 2, 0], updates)
    torch.autograd.backward(result, torch.tensor([5.0, 6.0, 7.0]))
    assert data.grad.tolist() == [0, 6, 0]
    assert updates.grad.tolist() == [0, 0, 7, 5]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_replaced_and_skipped_values_have_no_gradient(bad):
    for reduction, include_self in itertools.product(REDUCTIONS, (True, False)):
        data = torch.tensor([2.0, bad, 4.0], requires_grad=True)
        updates = torch.tensor([2.0, bad, bad], requires_grad=True)
        result = room.scatter_elements(
            data, [0, 9, -9], updates, reduction=reduction, include_self=include_self, mode="drop"
        )
        torch.autograd.backward(result, torch.tensor([1.0, 3.0, bad]))
        assert updates.grad[1:].tolist() == [0, 0]
        assert data.grad[1] == 3
    data, updates = torch.zeros(1, requires_grad=True), torch.ones(2, requires_grad=True)
    result = room.scatter_elements(data, [0, 0], updates)
    torch.autograd.backward(result, torch.tensor([bad]))
    assert data.grad.tolist() == [0]
    assert updates.grad[0] == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_types_are_differentiated_in_float32(dtype):
    dtype = getattr(torch, dtype)
    count = 70_000  # more than float16 can count
    updates = torch.ones(count, dtype=dtype, requires_grad=True)
    data = torch.zeros(1, dtype=dtype, requires_grad=True)
    indices = torch.zeros(count, dtype=torch.int64)
    room.scatter_elements(data, indices, updates, reduction="mean").sum().backward()
    assert updates.grad.unique().tolist() == [torch.tensor(1 / (count + 1)).to(dtype).item()]
    small = torch.full((3,), 2e-4, dtype=dtype, requires_grad=True)
    room.scatter_elements(torch.ones(1, dtype=dtype), [0, 0, 0], small,
                          reduction="mul").sum().backward()  # fmt: skip
    expected = (small.detach()[0].double() ** 2).to(dtype)
    assert torch.allclose(small.grad, expected.expand(3))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_types_that_only_move_are_added_up_in_float32(dtype):
    dtype = getattr(torch, dtype)
    data = torch.tensor([1.0, 2.0, 3.0]).to(dtype).requires_grad_()
    result = room.gather(data, [2, 0, 2])
    torch.autograd.backward(result, torch.tensor([1.0, 2.0, 4.0]).to(dtype))
    assert data.grad.float().tolist() == [2, 0, 5]


def test_gradients_have_the_same_bits_on_any_threads(settings_restored):
    import gatherum

    generator = torch.Generator().manual_seed(1)
    data = torch.randn(200, 32, generator=generator, requires_grad=True)
    indices = torch.randint(0, 200, (10_000,), generator=generator)
    weights = torch.randn(10_000, 32, generator=generator)
    gradients = []
    for threads in (1, 2, 3, 7):
        gatherum.set_num_threads(threads)
        gradients += torch.autograd.grad((room.gather(data, indices) * weights).sum(), data)
    assert all(torch.equal(gradients[0], other) for other in gradients)
    assert torch.equal(gradients[0], room.scatter_slices(torch.zeros(200, 32), indices, weights,
                                                         reduction="add"))  # fmt: skip


def test_changes_of_saved_tensors_raise():
    data, updates = double(3), double(2)
    indices = torch.tensor([0, 0])
    result = room.scatter_elements(data * 1, indices, updates * 1, reduction="mul")
    indices.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
    product = data * 1
    result = room.scatter_elements(product, [0, 0], updates, reduction="mul")
    room.scatter_elements(product.detach(), [0], 2.0, out=product.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_out_has_no_gradient():
    import gatherum

    data, updates = double(3), double(2)
    sentence = r"^scatter_nd: `out` cannot be given where a gradient is recorded; leave `out` out"
    for out in (torch.zeros(3).double(), data):
        with pytest.raises(RuntimeError, match=sentence):
            gatherum.scatter_nd(data, [[0], [1]], updates, out=out)
    with pytest.raises(RuntimeError, match=sentence):
        gatherum.scatter_nd(data.detach(), [[0], [1]], updates.detach(), out=data)
    with pytest.raises(RuntimeError, match=r"^gather: `out` cannot be given where a gradient is"):
        gatherum.gather(data, [0], out=torch.zeros(1).double())
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.zeros(3), torch.ones(3))
        with pytest.raises(RuntimeError, match=r"^gather: `out` cannot be given where a gradient"):
            gatherum.gather(dual, [0], out=torch.zeros(1))
        gatherum.gather(torch.zeros(3), [0], out=torch.zeros(1))
    with torch.no_grad():
        assert gatherum.scatter_nd(data, [[0], [1]], updates, out=data) is data
    assert torch.equal(data[:2], updates)
    with pytest.raises(
        RuntimeError, match=r"^gather: `out` cannot be given where a gradient is rec"
    ):
        torch.func.grad(lambda d: gatherum.gather(d, [0], out=torch.zeros(1)).sum())(torch.ones(3))


def test_nothing_is_recorded_where_nothing_needs_it():
    data, updates = double(3), double(2)
    with torch.no_grad():
        assert not room.scatter_nd(data, [[0], [1]], updates).requires_grad
    assert room.scatter_nd(data, [[0], [1]], updates.detach()).requires_grad
    assert not room.gather(data.detach(), [0]).requires_grad
    assert not room.gather(torch.tensor([1, 2]), [0]).requires_grad
