"""scatter_max and scatter_min with arg: the core's pass equals torch's operations bit for bit."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="install torch to test tensors")

from gatherum.torch import scatter_max, scatter_min  # noqa: E402
from gatherum.torch.torch_scatter import extremes  # noqa: E402
from gatherum.torch.torch_scatter.scatters import scattered_extreme  # noqa: E402
from strategies import value_bytes  # noqa: E402

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8"]


def _hostile(rng, dtype, shape):
    """Return arbitrary bits and special values, or a few small integers with many ties."""
    numpy_dtype = np.dtype(dtype.replace("bfloat16", "uint16"))
    raw = value_bytes(rng, numpy_dtype, int(np.prod(shape)))
    values = torch.frombuffer(bytearray(raw), dtype=getattr(torch, dtype)).reshape(shape)
    few = torch.from_numpy(rng.integers(0, 4, shape)).to(values.dtype)
    return values if rng.random() < 0.5 else few


def _bits(tensor):
    return tensor.contiguous().view(torch.uint8).tolist()


def _both(monkeypatch, function, *arguments, **more):
    """Call with the core's pass and without. Return both pairs as bits."""
    pairs = []
    for applies in (True, False):
        monkeypatch.setattr(extremes, "is_supported", lambda *_, applies=applies: applies)
        options = {name: one.clone() if torch.is_tensor(one) else one for name, one in more.items()}
        values, arg = function(*arguments, **options)
        assert arg.dtype == torch.int64
        pairs.append((_bits(values), _bits(arg)))
    return pairs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40,), (40, 3), (3, 40, 70), (2, 40)])
def test_both_give_the_same_bits(dtype, shape, monkeypatch):
    rng = np.random.default_rng([*dtype.encode(), *shape])
    dim = shape.index(40)
    for function in (scatter_max, scatter_min):
        for like in {shape, shape[dim : dim + 1], shape[: dim + 1]}:
            src = _hostile(rng, dtype, shape)
            index = torch.from_numpy(rng.integers(0, 6, like))
            more = {"dim": dim, "dim_size": 8}
            one, other = _both(monkeypatch, function, src, index, **more)
            assert one == other
            del more["dim_size"]
            more["out"] = _hostile(rng, dtype, (*shape[:dim], 8, *shape[dim + 1 :]))
            one, other = _both(monkeypatch, function, src, index, **more)
            assert one == other


def test_the_gradient_goes_on_through_the_values():
    src = torch.tensor([1.0, 3.0, 2.0, 3.0], requires_grad=True)
    values, arg = scatter_max(src, torch.tensor([0, 1, 0, 1]))
    assert arg.tolist() == [2, 1]
    values.sum().backward()
    assert src.grad.tolist() == [0, 1, 1, 0]


def test_strides_views_and_nothing_at_all():
    src = torch.arange(24.0).reshape(2, 3, 4).transpose(0, 2)[::2]
    index = torch.tensor([0, 1, 0])[None, :, None].expand(src.shape)
    assert torch.equal(
        scatter_max(src, index, 1)[1], torch.tensor([2, 1])[None, :, None].expand(2, 2, 2)
    )
    values, arg = scatter_max(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), 0, dim_size=2)
    assert values.tolist() == [[0] * 3] * 2
    assert arg.tolist() == [[0] * 3] * 2


def test_errors_name_the_function():
    with pytest.raises(IndexError, match=r"scatter_max: .*index\[1\]"):
        scatter_max(torch.ones(3), torch.tensor([0, 5, 1]), dim_size=3)


def test_transforms_and_graphs():
    src, index = torch.rand(5, 6), torch.tensor([0, 1, 0, 2, 2, 1])
    expected = scattered_extreme("scatter_max", "max", src, index, 1, None, 3)
    for one, other in zip(
        torch.func.vmap(lambda row: scatter_max(row, index, dim_size=3))(src), expected, strict=True
    ):
        assert torch.equal(one, other)
    exported = torch.export.export(_Extremes(), (src, index))
    for one, other in zip(exported.module()(src, index), expected, strict=True):
        assert torch.equal(one, other)


class _Extremes(torch.nn.Module):
    def forward(self, src, index):
        return scatter_max(src, index, 1, dim_size=3)


@pytest.mark.parametrize("extreme", [scatter_max, scatter_min])
def test_results_without_items(extreme):
    none = torch.zeros(0, dtype=torch.int64)
    for src, index, dim in ((torch.zeros(0), none, -1), (torch.zeros(3, 0), none.new_zeros(3), 0)):
        values, positions = extreme(src, index, dim)
        assert values.numel() == positions.numel() == 0
        assert positions.dtype == torch.int64
    with pytest.raises(IndexError, match="index 0 is out of bounds"):
        extreme(torch.zeros(1), none.new_zeros(1), dim_size=0)
