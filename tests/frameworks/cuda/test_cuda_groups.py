"""Functions over groups of CUDA tensors, run on tensors in host memory."""

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", minversion="2.10", reason="install torch to test tensors: pip install 'torch>=2.10'"
)
pytestmark = pytest.mark.frameworks

import gatherum  # noqa: E402
from gatherum.torch import cuda  # noqa: E402
from gatherum.torch.functions import elementary  # noqa: E402
from strategies import same_bits  # noqa: E402

SIZE = 5


def operands(dtype=torch.float32):
    """Return values and their groups; one group is empty, and one has NaN."""
    rng = torch.Generator().manual_seed(3)
    values = (4 * torch.randn(40, 3, generator=rng, dtype=torch.float64)).to(dtype)
    groups = torch.randint(0, SIZE - 1, (40,), generator=rng)
    values[groups == 0, 1] = torch.nan
    return values, groups


def bits(tensor):
    return tensor.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.itemsize]).numpy()


def computed(func, values, groups):
    if func in ("logsumexp", "var", "std"):
        return gatherum.groups.reduce(values, groups, SIZE, func)
    return gatherum.groups.transform(values, groups, func, size=SIZE)


@pytest.mark.parametrize(
    "func", ["softmax", "log_softmax", "logsumexp", "var", "std", "centre", "normalize"]
)
@pytest.mark.parametrize(
    "dtype", [torch.float32, *(pytest.param(getattr(torch, each), marks=pytest.mark.slow)
                               for each in ("float64", "float16", "bfloat16"))],
)  # fmt: skip
def test_the_bits_are_those_of_the_processor(on_shim, request, monkeypatch, func, dtype):
    arguments = operands(dtype)
    # torch rounds square roots correctly on a GPU, but not on every processor.
    monkeypatch.setattr(torch.Tensor, "sqrt", lambda x: torch.from_numpy(np.sqrt(x.numpy())))
    expected = computed(func, *arguments)
    ran = request.getfixturevalue("as_cuda")
    assert same_bits(bits(computed(func, *arguments)), bits(expected))
    assert "scatter_slices" in ran or "scatter_elements" in ran


@pytest.mark.parametrize("func", ["softmax", "log_softmax", "logsumexp"])
def test_gradients(on_core, as_cuda, monkeypatch, func):
    monkeypatch.setattr(cuda, "map_values", elementary._on_cpu)
    values, _ = operands(torch.float64)
    values, groups = values.nan_to_num()[:10].requires_grad_(), torch.arange(10) % SIZE
    assert torch.autograd.gradcheck(lambda x: computed(func, x, groups), (values,))


def test_unsupported_arrays_raise(as_cuda, monkeypatch):
    for wrong in (torch.arange(3), torch.ones(3).to(torch.float8_e5m2)):
        with pytest.raises(TypeError, match=r"^exp: `x` must be of floats, got "):
            elementary._on_cuda("exp", wrong)
    assert elementary._on_cuda("sqrt", torch.tensor([4.0])).tolist() == [2.0]
    monkeypatch.setattr(torch.version, "hip", "7.1.25424")
    with pytest.raises(TypeError, match=r"^exp: `data` must be on an NVIDIA GPU, got a tensor of"):
        cuda.map_values("exp", torch.ones(3))
