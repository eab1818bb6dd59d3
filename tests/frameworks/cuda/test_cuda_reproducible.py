"""Torch's operators inside `reproducible` on the path for CUDA tensors, without a GPU."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip(
    "torch", reason="install torch to test tensors: pip install 'torch>=2.10'"
)
pytestmark = pytest.mark.frameworks

import gatherum.torch as room  # noqa: E402
from gatherum.torch.overrides import kernels, scatter_calls  # noqa: E402

sys.path.append(str(Path(__file__).parent.parent / "torch"))
from reproducible_calls import bits, calls, operands, run  # noqa: E402

CALLS = calls(60, 7)


@pytest.fixture
def on_device(on_core, as_cuda, monkeypatch):
    """Send the scatters of `reproducible` to the path for CUDA tensors."""
    monkeypatch.setattr(kernels.private, "cpu_keys", None)  # the core would run calls on the host
    monkeypatch.setattr(scatter_calls, "private", SimpleNamespace(exchange=None))
    monkeypatch.setattr(scatter_calls, "dlpack", SimpleNamespace(run=scatter_calls._on_device))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)


@pytest.fixture
def on_host():
    """Return the bits of a call on the CPU."""

    def answer(name):
        with room.reproducible():
            return bits(run(CALLS[name], *operands(60, 7)))

    return {name: answer(name) for name in CALLS if "two" not in name and "mask" not in name}


def test_the_device_returns_the_bits_of_the_host(on_host, on_device):
    for name, expected in on_host.items():
        with room.reproducible() as context:
            assert bits(run(CALLS[name], *operands(60, 7))) == expected, name
        assert context.report().gatherum


def test_an_invalid_index_does_not_reach_the_device(on_device):
    index_copy = next(row for row in kernels.ROWS if row.new == "index_copy")
    complete = kernels._Overload(index_copy, "index_copy").complete
    kernel = kernels._kernel("index_copy", complete, None, True)
    data = torch.zeros(4, 3)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 of size 4"):
        kernel(None, data, 0, torch.tensor([0, 4]), torch.ones(2, 3))
    with pytest.raises(AttributeError):  # torch's kernel, which this test lacks
        kernel(None, data, 0, torch.tensor([0, 1]), torch.ones(3, 3))


def test_a_capture_drops_invalid_indices(on_device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    data = torch.zeros(4)
    operands = data, torch.tensor([0, 4]), torch.ones(2)
    scatter_calls.run(scatter_calls.Scatter("scatter_slices", *operands, 0, "add"), data)
    assert data.tolist() == [1, 0, 0, 0]
