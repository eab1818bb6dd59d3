"""Rows of an open table as tensors of a device."""

import sys

import numpy as np
import pytest
from tensors import torch

from gatherum import files
from gatherum.files.open_table.tensors import TensorTarget

TABLE = np.random.default_rng(0).random((40, 6)).astype(np.float32)


@pytest.fixture
def table(tmp_path):
    np.save(tmp_path / "t.npy", TABLE)
    with files.open(tmp_path / "t.npy") as opened:
        yield opened


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_rows_are_tensors(table, device, tmp_path):
    np.save(tmp_path / "i.npy", np.array([3, 1]))
    for indices, options in (
        ([3, -1], {}), (torch.tensor([[2], [0]]), {}), (5, {}), ([], {}), ([1, 0], {"axis": 1}),
        (np.array([1, 99]), {"mode": "fill"}), (tmp_path / "i.npy", {}),
    ):  # fmt: skip
        expected = table.gather(indices, **options)
        for result in (
            table.gather(indices, device=device, **options),
            table.submit(indices, device=device, **options).result(),
        ):
            assert result.dtype == torch.float32
            assert result.numpy().tobytes() == expected.tobytes()
            assert result.shape == expected.shape
    batches = list(table.rows([[1], [2, 3]], device=device))
    assert [batch.tolist() for batch in batches] == [TABLE[[1]].tolist(), TABLE[[2, 3]].tolist()]


@pytest.mark.parametrize(
    "torch_dtype", [torch.bfloat16, torch.float8_e5m2, torch.uint16, torch.bool]
)
def test_dtypes(tmp_path, torch_dtype):
    safetensors = pytest.importorskip("safetensors.torch", reason="install safetensors")
    stored = torch.arange(256, dtype=torch.uint8).view(torch_dtype).reshape(8, -1)
    stored = (
        stored.view(torch.uint8).clamp(max=1).view(torch_dtype)
        if torch_dtype == torch.bool
        else stored
    )
    safetensors.save_file({"t": stored}, tmp_path / "t.safetensors")
    with files.open(tmp_path / "t.safetensors") as table:
        result = table.gather([7, 2], device="cpu")
    assert result.dtype == torch_dtype
    assert torch.equal(result.view(torch.uint8), stored[[7, 2]].view(torch.uint8))


@pytest.mark.parametrize("torch_dtype", [torch.bfloat16, torch.float8_e5m2])
def test_rows_of_dtypes_that_numpy_lacks_are_written(tmp_path, torch_dtype):
    safetensors = pytest.importorskip("safetensors.torch", reason="install safetensors")
    path = str(tmp_path / "t.safetensors")
    safetensors.save_file({"t": torch.zeros(4, 2, dtype=torch_dtype)}, path)
    rows = torch.tensor([[1.5, -2.0], [0.5, 3.0]]).to(torch_dtype)
    with files.open(path) as table:
        table.write([3, 1], rows)
        table.write([0], rows.T[:1])
    expected = torch.stack([rows[:, 0], rows[1], torch.zeros_like(rows[0]), rows[0]])
    assert torch.equal(safetensors.load_file(path)["t"].float(), expected.float())


def test_quantized_rows():
    codes, scales = np.arange(12, dtype=np.int8).reshape(3, 4), np.ones((3, 2), np.float32)
    with files.open(codes, scales=scales, dtype="bfloat16") as table:
        result = table.gather([2], device="cpu")
    assert result.dtype == torch.bfloat16
    assert result.tolist() == [[8, 9, 10, 11]]


def test_rows_for_cuda_are_read_into_pinned_memory(table, monkeypatch):
    memories, sent = [], []

    def pinned(target, shape):
        memories.append(torch.empty(shape, dtype=target.dtype))
        return memories[-1]

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(TensorTarget, "pinned", pinned)
    monkeypatch.setattr(TensorTarget, "sent", lambda _, memory: sent.append(memory) or memory)
    for indices, options in (([[3], [1]], {}), ([2, 0], {"axis": 1})):
        result = table.gather(indices, device="cuda:1", **options)
        assert result is memories[-1] is sent[-1]
        assert result.numpy().tobytes() == table.gather(indices, **options).tobytes()
    with pytest.raises(IndexError, match="index 40 is out of bounds"):
        table.gather([40], device="cuda")
    assert len(sent) == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cuda_device(table):
    for _ in range(20):
        result = table.gather([[3], [1]], device="cuda")
        assert result.device.type == "cuda"
        assert result.cpu().numpy().tobytes() == TABLE[[[3], [1]]].tobytes()
    assert next(table.rows([[5]], device="cuda")).cpu().tolist() == TABLE[[5]].tolist()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"device": "nonsense"}, ValueError,
         "gather: `device` must be a device of PyTorch, such as 'cuda', got 'nonsense'"),
        ({"device": "cpu", "out": np.empty((1, 6), np.float32)}, ValueError,
         "gather: pass either `out` or `device`, not both"),
        ({"device": "cpu", "dim": 0}, TypeError, "gather: unknown argument 'dim'; write axis="),
    ],
)  # fmt: skip
def test_invalid_arguments(table, options, error, message):
    with pytest.raises(error) as caught:
        table.gather([0], **options)
    assert str(caught.value) == message


def test_without_a_device_or_a_dtype_or_torch(table, monkeypatch):
    with files.open(TABLE.astype(">f4")) as other, pytest.raises(TypeError) as caught:
        other.gather([0], device="cpu")
    assert str(caught.value) == "gather: `device` needs a dtype that PyTorch has, got >f4"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError) as refused:
        table.gather([0], device="cuda")
    assert str(refused.value) == "gather: `device` is 'cuda', but PyTorch finds no CUDA device"
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError) as missing:
        table.gather([0], device="cpu")
    assert str(missing.value) == "gather: `device` needs PyTorch: pip install torch"
