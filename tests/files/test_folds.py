"""Folds in slices that need care: NaNs that are copied, and threads that round differently."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from files.storage import bits, get, leftovers, put
from float_modes import another_float_mode
from gatherum import files
from gatherum._model.reductions import REDUCTIONS
from gatherum._plans.plans import apply

pytestmark = pytest.mark.usefixtures("quick_sync")

HALVES = (np.float16, ml_dtypes.bfloat16)
BUDGETS = ("64KiB", "1GiB")
ROWS = 100_000  # enough that rows share a bucket, which is then folded in slices


def scattered(folder: Path, operands: list[NDArray[Any]], memory: str, **call: Any) -> Any:
    """Scatter with files and in memory. Return the bits of both results."""
    file_format, out = ("safetensors", "o.safetensors:t")
    names, forms = ("table", "indices", "updates"), (file_format, "npy", file_format)
    paths = [put(folder, *part) for part in zip(names, operands, forms, strict=True)]
    files.scatter_nd_file(*paths, folder / out, memory=memory, **call)
    assert leftovers(folder) == []
    return bits(get(str(folder / out))), bits(apply("scatter_nd", *operands, **call))


@pytest.mark.parametrize("memory", BUDGETS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    ("dtype", "payload"),
    [
        *((np.float16, bits) for bits in (0x7E55, 0xFE55, 0x7D01)),
        *((ml_dtypes.bfloat16, bits) for bits in (0x7F85, 0xFF81)),
    ],
)
def test_a_nan_that_is_copied_keeps_its_payload(
    tmp_path: Path, memory: str, dtype: Any, reduction: str, include_self: bool, payload: int
) -> None:
    # row 1 has one update and row 2 none; row 0 has first a NaN, then more updates than fit in
    # memory
    indices = np.r_[1, 0, np.zeros(20_000, int), 3][:, None]
    updates = np.ones((20_003, 1), dtype)
    updates.view(np.uint16)[[0, 1, -1]] = payload
    table = np.ones((ROWS, 1), dtype)
    table.view(np.uint16)[2] = payload
    call = {"reduction": reduction, "include_self": include_self}
    actual, expected = scattered(tmp_path, [table, indices, updates], memory, **call)
    assert actual == expected


@pytest.mark.parametrize("memory", BUDGETS)
@pytest.mark.parametrize("flush", [True, False])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [*HALVES, np.float32, np.float64, np.complex64])
def test_a_mean_does_not_depend_on_the_float_mode(
    tmp_path: Path, memory: str, flush: bool, include_self: bool, dtype: Any
) -> None:
    if flush and dtype not in (np.float32, np.float64):
        pytest.skip("the quotients are normal numbers of the wider type")
    rng = np.random.default_rng(0)
    # two of 40 rows get most updates; each other row gets a few
    hot = rng.random(20_000) < 0.9
    rows = np.where(hot, rng.integers(0, 2, 20_000), rng.integers(2, 40, 20_000))
    indices = np.r_[rows[rows != 3], 3][:, None]
    scale = np.finfo(dtype).tiny * 64 if flush else 1
    updates = (rng.standard_normal((len(indices), 3)) * scale).astype(dtype)
    table = (rng.standard_normal((ROWS, 3)) * scale).astype(dtype)
    table[2], updates[indices[:, 0] == 2] = -0.0, -0.0
    call = {"reduction": "mean", "include_self": include_self}
    with another_float_mode(flush):
        actual, expected = scattered(tmp_path, [table, indices, updates], memory, **call)
    assert actual == expected
    assert expected == bits(apply("scatter_nd", table, indices, updates, **call))


@pytest.mark.parametrize("reduction", ["none", "add", "mean", "max"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_table_that_fits_in_memory_is_reduced_there(
    tmp_path: Path, reduction: str, dtype: type
) -> None:
    """Each file is read once, nothing is spilled, and the result equals that of many buckets."""
    rng = np.random.default_rng(3)
    table = rng.random((50, 2)).astype(dtype)
    indices = rng.integers(-50, 50, (20_000, 1))
    updates = rng.random((20_000, 2)).astype(dtype)
    paths = put(tmp_path, "t", table), put(tmp_path, "i", indices), put(tmp_path, "u", updates)
    whole, parts = tmp_path / "whole.npy", tmp_path / "parts.npy"
    stats = files.scatter_nd_file(*paths, whole, memory="4MiB", reduction=reduction)
    assert stats.rows == 20_000
    assert stats.bytes_written == whole.stat().st_size
    read = sum(Path(path).stat().st_size for path in paths)
    assert read <= stats.bytes_read <= read + 1000  # parts of headers are read twice
    files.scatter_nd_file(*paths, parts, memory="64KiB", reduction=reduction)
    assert whole.read_bytes() == parts.read_bytes()
    actual = files.scatter_nd_file(*paths, memory="4MiB", reduction=reduction)
    assert actual.tobytes() == np.load(whole).tobytes()


@pytest.mark.parametrize("reduction", ["none", "add", "mean", "max"])
@pytest.mark.parametrize("row", [(), (3,), (2, 2)])
def test_a_table_smaller_than_its_updates_is_changed_in_memory(
    tmp_path: Path, reduction: str, row: tuple[int, ...]
) -> None:
    """Each file is read once, unchanged rows are not written, and the bits are those of buckets."""
    rng = np.random.default_rng(3)
    table = rng.random((400, *row)).astype(np.float16)
    indices = rng.choice(np.r_[3, 10:20, 399], (20_000, 1))
    updates = 1 + rng.random((20_000, *row)).astype(np.float16)
    whole, parts = put(tmp_path, "whole", table), put(tmp_path, "parts", table)
    others = put(tmp_path, "i", indices), put(tmp_path, "u", updates)
    read = sum(Path(path).stat().st_size for path in (whole, *others))
    call: dict[str, Any] = {"reduction": reduction, "in_place": True}
    stats = files.scatter_nd_file(whole, *others, whole, memory="4MiB", **call)
    assert stats.rows == 20_000
    assert stats.bytes_read <= read + 2000  # parts of headers are read twice, and the log
    assert stats.bytes_written <= 2 * 12 * table[0].nbytes + 100  # the log, and the table
    files.scatter_nd_file(parts, *others, parts, memory="64KiB", **call)
    assert Path(whole).read_bytes() == Path(parts).read_bytes()


def test_few_updates_do_not_read_a_large_table(tmp_path: Path) -> None:
    path = put(tmp_path, "t", np.zeros((100_000, 2)))
    stats = files.scatter_slices_file(path, np.array([7]), np.ones((1, 2)), path, in_place=True)
    assert stats.bytes_read < 100_000
    assert np.load(path)[7].tolist() == [1, 1]


def test_an_invalid_index_leaves_no_files(tmp_path: Path) -> None:
    paths = put(tmp_path, "t", np.zeros(3)), put(tmp_path, "i", np.array([[1], [3]]))
    out = tmp_path / "o.npy"
    with pytest.raises(
        IndexError, match=r"scatter_nd: index 3 is out of bounds .* \(indices\[1, 0"
    ):
        files.scatter_nd_file(*paths, 1.0, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i.npy", "t.npy"]
