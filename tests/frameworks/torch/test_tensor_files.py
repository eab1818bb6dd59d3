"""Functions on files take tensors in this processor's memory."""

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
    with pytest.raises(TypeError, match="the indices must be a path, an array in memory, or"):
        files.gather_file(tmp_path / "t.npy", torch.ones(3, dtype=torch.int64, device="meta"))
