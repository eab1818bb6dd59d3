"""Results on files equal those in memory bit for bit, for all formats, budgets and chunks."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from files.storage import FORMATS, bits, choose_pass, get, leftovers, put, put_zarr
from gatherum import files
from gatherum._model.dtypes import is_reducible
from gatherum._model.reductions import REDUCTIONS
from gatherum._plans.plans import apply
from gatherum.files.resources.resources import Budget
from gatherum.files.row_access import partition
from gatherum.files.strategies import table_pass

pytestmark = pytest.mark.usefixtures("quick_sync")

SMALL = "64KiB"
FUNCTIONS = {
    "gather": files.gather_file,
    "gather_elements": files.gather_elements_file,
    "gather_nd": files.gather_nd_file,
    "scatter_slices": files.scatter_slices_file,
    "scatter_elements": files.scatter_elements_file,
    "scatter_nd": files.scatter_nd_file,
}
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return values whose sums round, with some NaN and negative zeros among them."""
    values = np.asarray(rng.integers(-50, 50, shape) / 7)
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return np.asarray(np.abs(rng.integers(-50, 50, shape)), dtype)
    if dtype.kind == "c":
        return (values + 1j * rng.integers(-9, 9, shape)).astype(dtype)
    values[rng.random(shape) < 0.02] = np.nan
    values[rng.random(shape) < 0.02] = -0.0
    return values.astype(dtype)


def check(
    folder: Path, op: str, operands: list[NDArray[Any]], forms: list[str], out: str, **call: Any
) -> files.Stats:
    """Run an operator on files, and compare with the operator in memory."""
    memory = call.pop("memory", SMALL)
    names = ("table", "indices", "updates")
    paths = [
        put(folder, name, array, file_format)
        for name, array, file_format in zip(names, operands, forms, strict=False)
    ]
    loaded = [get(path) if ".npz:" not in path else array
              for path, array in zip(paths, operands, strict=True)]  # fmt: skip
    target = paths[0] if out == "in place" else str(folder / out)
    extra = {"in_place": True} if out == "in place" else {}
    stats = FUNCTIONS[op](*paths, target, memory=memory, **call, **extra)
    assert bits(get(target)) == bits(apply(op, *loaded, **call))
    assert leftovers(folder) == []
    return stats


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("out", ["out.npy", "out.safetensors:rows", "out.zarr", "out.h5:rows"])
def test_gather_rows_from_every_format_to_every_format(
    tmp_path: Path, file_format: str, out: str
) -> None:
    rng = np.random.default_rng(1)
    if file_format == "big-endian" and out in ("out.safetensors:rows", "out.zarr"):
        pytest.skip("safetensors and Zarr 3 keep no byte order of their own")
    table = numbers(rng, (900, 37), "float32")
    indices = rng.integers(-900, 900, (50, 21))
    stats = check(tmp_path, "gather", [table, indices], [file_format, "npy"], out)
    assert stats.rows == 1050


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    "out", ["out.npy", "out.safetensors:t", "out.zarr", "out.h5:t", "in place"]
)
def test_scatter_add_into_every_format(tmp_path: Path, file_format: str, out: str) -> None:
    rng = np.random.default_rng(2)
    if out == "in place" and file_format in ("npz", "deflated"):
        pytest.skip(".npz files are read only")
    if out == "in place" and file_format == "hdf5 chunks":
        pytest.skip("datasets in chunks are not changed in place")
    if file_format == "big-endian":
        pytest.skip("byte-swapped data cannot be reduced")
    table, updates = numbers(rng, (700, 30), "float32"), numbers(rng, (3000, 30), "float32")
    operands = [table, rng.integers(-700, 700, (3000, 1)), updates]
    check(tmp_path, "scatter_nd", operands, [file_format, "npy", "npy"], out, reduction="add")


@pytest.mark.parametrize("file_format", FORMATS)
def test_indices_and_updates_from_every_format(tmp_path: Path, file_format: str) -> None:
    rng = np.random.default_rng(3)
    updates_format = "npy" if file_format == "big-endian" else file_format
    operands = [
        numbers(rng, (40, 300), "float64"),
        rng.integers(0, 300, (31, 500)),
        numbers(rng, (31, 500), "float64"),
    ]
    check(
        tmp_path, "scatter_elements", operands, ["npy", file_format, updates_format], "o.npy",
        axis=1, reduction="max",
    )  # fmt: skip


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16])
@pytest.mark.parametrize("turn", [0, 1])
def test_a_fold_in_slices_is_the_fold_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reduction: str,
    dtype: Any,
    turn: int,
) -> None:
    # Combine tiles and the old value in one of the two turns of each dtype and reduction.
    tiled = bool(turn)
    include_self = (
        [*DTYPES, ml_dtypes.bfloat16].index(dtype) + REDUCTIONS.index(reduction)
    ) % 2 == turn
    # four hot rows have far more updates than fit in memory; others have one or none
    if tiled:  # fifty rows share a bucket, and a few elements at a time have accumulators
        monkeypatch.setattr(partition, "MOST_BINS", 8)
        monkeypatch.setattr(Budget, "fold", 288 if include_self else 100)  # rows, or columns
    rng = np.random.default_rng(4)
    if reduction != "none" and not is_reducible(np.dtype(dtype), reduction):
        pytest.skip("not defined")
    hot = rng.choice([3, 5, 11, 399], 3000)
    indices = np.where(rng.random(3000) < 0.97, hot, rng.integers(0, 400, 3000))[:, None]
    operands = [numbers(rng, (400, 6), dtype), indices, numbers(rng, (3000, 6), dtype)]
    call = {"reduction": reduction, "include_self": include_self}
    file_format = "safetensors" if np.dtype(dtype) == ml_dtypes.bfloat16 else "npy"
    out = "o.safetensors:t" if file_format == "safetensors" else "o.npy"
    check(tmp_path, "scatter_nd", operands, [file_format, "npy", file_format], out, **call)


def test_an_update_that_is_the_only_one_keeps_its_payload(tmp_path: Path) -> None:
    # other rows of its bucket are folded slice by slice
    indices = np.r_[0, np.ones(20_000, int)][:, None]
    updates = np.ones((20_001, 1), np.float16)
    updates.view(np.uint16)[0] = 0xFE37
    operands = [np.zeros((2, 1), np.float16), indices, updates]
    call = {"reduction": "add", "include_self": False}
    check(tmp_path, "scatter_nd", operands, ["npy", "npy", "npy"], "o.npy", **call)


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("gap", [1, 20_000, 64 << 20])
@pytest.mark.parametrize("mode", ["raise", "fill"])
def test_both_ways_of_a_gather_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: bool, gap: int, mode: str
) -> None:
    choose_pass(monkeypatch, passes)
    monkeypatch.setattr(table_pass, "GAP_BYTES", gap)
    rng = np.random.default_rng(5)
    beyond = 0 if mode == "raise" else 40
    indices = rng.integers(-2000 - beyond, 2000 + beyond, 9000)
    operands = [numbers(rng, (2000, 8), "float32"), indices]
    call = {"mode": mode, "fill_value": 3} if mode == "fill" else {"mode": mode}
    check(tmp_path, "gather", operands, ["npy", "npy"], "o.npy", **call)


@pytest.mark.parametrize("mode", ["clip", "wrap", "fill", "drop"])
@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("dtype", ["int8", "int64", ">i4", "uint64"])
def test_modes_resolve_indices_as_in_memory(
    tmp_path: Path, mode: str, negative: bool, dtype: str
) -> None:
    rng = np.random.default_rng(6)
    info = np.iinfo(dtype)
    extreme = np.array([info.min, info.max, 0, 36, 37], dtype)
    indices = np.concatenate([rng.integers(0, 100, 200).astype(dtype), extreme])
    operands = [numbers(rng, (37, 5), "int32"), indices]
    check(
        tmp_path, "gather", operands, ["npy", "npy"], "o.npy", mode=mode, negative=negative,
        fill_value=9,
    )  # fmt: skip


@pytest.mark.parametrize("op", ["gather_nd", "scatter_nd"])
@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("file_format", ["npy", "fortran", "zarr3"])
def test_batches_and_tuples(
    tmp_path: Path, op: str, batch: int, depth: int, file_format: str
) -> None:
    rng = np.random.default_rng(7)
    shape = (6, 5, 7, 8)
    lead = (*shape[:batch], 90)
    parts = [rng.integers(-n, n, lead) for n in shape[batch : batch + depth]]
    indices = np.stack(parts, -1) if parts else np.zeros((*lead, 0), int)
    operands = [numbers(rng, shape, "float32"), indices]
    if op == "scatter_nd":
        operands.append(numbers(rng, lead + shape[batch + depth :], "float32"))
    forms = [file_format, "npy", "npy"]
    check(tmp_path, op, operands, forms, "o.npy", batch_dims=batch)


@pytest.mark.parametrize("op", ["gather_nd", "scatter_nd"])
@pytest.mark.parametrize("batch", [1, 2])
def test_one_tuple_for_each_batch(tmp_path: Path, op: str, batch: int) -> None:
    rng = np.random.default_rng(13)
    shape = (40, 30, 7)
    indices = rng.integers(-shape[batch], shape[batch], (*shape[:batch], 1))
    operands = [numbers(rng, shape, "float32"), indices]
    if op == "scatter_nd":
        operands.append(numbers(rng, shape[:batch] + shape[batch + 1 :], "float32"))
    check(tmp_path, op, operands, ["npy"] * 3, "o.npy", batch_dims=batch)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("file_format", ["npy", "fortran", "shards"])
@pytest.mark.parametrize("op", ["gather", "gather_elements", "scatter_slices", "scatter_elements"])
def test_every_axis(tmp_path: Path, axis: int, file_format: str, op: str) -> None:
    rng = np.random.default_rng(8)
    shape = (14, 30, 22)
    lead = list(shape)
    lead[axis] = 40
    lead[axis - 1] -= 3  # the table is addressed through its leading part
    size = shape[axis]
    slices = op in ("gather", "scatter_slices")
    indices = rng.integers(-size, size, (33, 2) if slices else lead)
    operands = [numbers(rng, shape, "float64"), indices]
    call: dict[str, Any] = {"axis": axis}
    if op == "scatter_elements":
        operands.append(numbers(rng, tuple(lead), "float64"))
        call["reduction"] = "add"
    if op == "scatter_slices":
        axis %= 3
        moved = (*shape[:axis], 33, 2, *shape[axis + 1 :])
        operands.append(numbers(rng, moved, "float64"))
        call["reduction"] = "mean"
    check(tmp_path, op, operands, [file_format, "npy", "npy"], "o.npy", **call)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (4000, 1), (1, 5), (4000, 5)])
def test_updates_that_broadcast(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(9)
    operands = [
        numbers(rng, (300, 5), "int32"),
        rng.integers(0, 300, (4000, 1)),
        numbers(rng, shape, "int32"),
    ]
    check(tmp_path, "scatter_nd", operands, ["npy"] * 3, "o.npy", reduction="add")


def test_one_row_of_all_dimensions_that_broadcasts(tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    operands = [
        numbers(rng, (1,) * 63 + (7,), "int32"),
        np.zeros(0, np.int64),
        numbers(rng, (), "int32"),
    ]
    check(tmp_path, "scatter_nd", operands, ["npy"] * 3, "o.npy", reduction="add")


def test_rows_larger_than_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    table = numbers(rng, (5, 3, 20_000), "float32")
    call = {"memory": SMALL}
    check(tmp_path, "gather", [table, np.array([4, 0, -1])], ["npy"] * 2, "a.npy", **call)
    operands = [table, np.array([[1], [1], [3]]), numbers(rng, (3, 1, 20_000), "float32")]
    check(tmp_path, "scatter_nd", operands, ["npy"] * 3, "b.npy", reduction="mul", **call)


def test_rows_larger_than_memory_scattered_into_memory() -> None:
    rng = np.random.default_rng(12)
    table, indices = rng.random((4, 9000)), np.array([3, 1])
    updates = rng.random((2, 9000))
    result = files.scatter_slices_file(table, indices, updates, memory=SMALL)
    assert bits(result) == bits(apply("scatter_slices", table, indices, updates))


def test_zarr_rows_cut_by_chunks_larger_than_memory_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    table = numbers(rng, (40, 3000), "float32")
    path = put_zarr(str(tmp_path / "t.zarr"), table, chunks=(16, 400))
    np.save(tmp_path / "i.npy", rng.integers(0, 40, 100))
    files.gather_file(path, tmp_path / "i.npy", tmp_path / "o.npy", memory=SMALL)
    expected = table[np.load(tmp_path / "i.npy")]
    assert bits(np.load(tmp_path / "o.npy")) == bits(expected)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,)])
@pytest.mark.parametrize("file_format", ["npy", "zarr3", "safetensors"])
def test_empty_tables(tmp_path: Path, shape: tuple[int, ...], file_format: str) -> None:
    table, nothing = np.zeros(shape, np.float32), np.zeros(0, np.int64)
    check(tmp_path, "gather", [table, nothing], [file_format, "npy"], "a.npy")
    check(tmp_path, "gather", [table, np.array([1, 0])], [file_format, "npy"], "b.npy", mode="fill")
    operands = [table, np.array([[1]]), np.zeros((1, *shape[1:]), np.float32)]
    check(tmp_path, "scatter_nd", operands, [file_format, "npy", "npy"], "c.npy", mode="drop")


def test_structured_items_move_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    table = np.zeros(500, np.dtype([("a", "u1"), ("b", "f8"), ("c", "S3")], align=True))
    table.view(np.uint8)[:] = rng.integers(0, 256, table.nbytes)
    np.save(tmp_path / "t.npy", table)
    table = np.load(tmp_path / "t.npy")
    np.save(tmp_path / "i.npy", rng.integers(0, 500, 900))
    files.gather_file(tmp_path / "t.npy", tmp_path / "i.npy", tmp_path / "o.npy", memory=SMALL)
    rows = table.view(np.uint8).reshape(500, -1)  # indexing structured items loses padding
    picked = np.load(tmp_path / "o.npy")
    assert picked.tobytes() == rows[np.load(tmp_path / "i.npy")].tobytes()
