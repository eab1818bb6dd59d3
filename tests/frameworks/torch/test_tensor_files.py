"""Functions on files accept tensors in host memory."""

import numpy as np
import pytest

from gatherum import files

torch = pytest.importorskip("torch", reason="install torch to test tensors")


def test_tensors_are_operands_of_files(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(12.0).reshape(4, 3))
    path, indices = tmp_path / "t.npy", torch.tensor([3, 1])
    assert files.gather_file(path, indices)[:, 0].tolist() == [9, 3]
    updates = torch.ones(3, dtype=torch.float64, requires_grad=True)
    assert files.scatter_slices_file(path, indices, updates)[1].tolist() == [1, 1, 1]
    strided = torch.arange(24).reshape(6, 4).T
    assert files.gather_file(strided, indices).tolist() == strided[indices].tolist()


def test_a_tensor_elsewhere_is_refused(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(12.0))
    with pytest.raises(
        TypeError, match="gather: the indices must be a path, an array in memory, or"
    ):
        files.gather_file(tmp_path / "t.npy", torch.ones(3, dtype=torch.int64, device="meta"))


DTYPES = ("float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "complex64", "bool")


@pytest.mark.parametrize("cache", ["0", "64KiB"])
@pytest.mark.parametrize("name", DTYPES)
def test_rows_land_in_tensors(tmp_path, name, cache):
    package = pytest.importorskip("safetensors.torch", reason="install safetensors")
    wanted = torch.arange(48).reshape(8, 6).to(getattr(torch, name))
    package.save_file({"w": wanted}, tmp_path / "m.safetensors")
    table = files.open(f"{tmp_path / 'm.safetensors'}:w", cache=cache)
    for indices in (torch.tensor([3, 1]), [3, 1], np.array([3, 1])):
        out = torch.zeros((2, 6), dtype=wanted.dtype)
        assert table.gather(indices, out=out) is out
        assert torch.equal(out.view(torch.uint8), wanted[[3, 1]].view(torch.uint8))
    one = torch.zeros((), dtype=wanted.dtype)
    assert table.gather_nd(torch.tensor([2, 4]), out=one) is one
    assert torch.equal(one, wanted[2, 4])
    with pytest.raises((TypeError, ValueError), match="gather: `out`"):
        table.gather([3], out=torch.zeros((2, 6), dtype=wanted.dtype))
    with pytest.raises((TypeError, ValueError), match="gather: `out`"):
        table.gather([3], out=torch.zeros((1, 6), dtype=torch.float64))


def test_tensors_that_cannot_receive_rows(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(12, dtype="f4").reshape(4, 3))
    table = files.open(tmp_path / "t.npy")
    with pytest.raises(ValueError, match=r"`out` must not require a gradient; write out\.detach"):
        table.gather([1], out=torch.zeros((1, 3), requires_grad=True))
    with pytest.raises(TypeError, match=r"`out` must be a numpy\.ndarray, got Tensor"):
        table.gather([1], out=torch.zeros((1, 3), device="meta"))
    out = torch.zeros((3, 2)).T
    table.gather([1, 3], out=out)
    assert out.tolist() == [[3, 4, 5], [9, 10, 11]]
