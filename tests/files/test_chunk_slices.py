"""Gathers along a later axis of an array in chunks take slices out of each chunk."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import MISSING, bits, put
from gatherum import files
from gatherum.files.row_access.grid import GridRows

TABLE = np.arange(70 * 53 * 3, dtype=">i4").reshape(70, 53, 3)
INDICES = np.array([[52, 3, -1], [3, 70, 0]])
CHUNKS = (16, 20, 2)


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    """Write a dataset that has an incomplete last chunk along each dimension."""
    h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
    with h5py.File(tmp_path / "t.h5", "w") as file:
        made = file.create_dataset("t", TABLE.shape, ">i4", chunks=CHUNKS, compression="gzip",
                                   shuffle=True, fillvalue=5)  # fmt: skip
        made[:, :40] = TABLE[:, :40]  # the other chunks are never written
        made[16:, 40:] = TABLE[16:, 40:]
    return f"{tmp_path / 't.h5'}:t"


def stored() -> Any:
    table = TABLE.copy()
    table[:16, 40:] = 5
    return table


@pytest.mark.parametrize("mode", ["fill", "clip", "wrap"])
@pytest.mark.parametrize("axis", [1, 2])
def test_results_are_those_of_the_array(
    dataset: str, tmp_path: Path, mode: Any, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(*_: object, **__: object) -> int:
        raise AssertionError("one request for each element")

    monkeypatch.setattr(GridRows, "fetch", fetch)
    fill: Any = {"fill_value": 7} if mode == "fill" else {}
    expected = gatherum.gather(stored(), INDICES, axis=axis, mode=mode, **fill)
    assert bits(files.gather_file(dataset, INDICES, axis=axis, mode=mode, **fill)) == bits(expected)
    out = tmp_path / "o.npy"
    files.gather_file(dataset, INDICES, out, axis=axis, mode=mode, **fill)
    assert bits(np.load(out)) == bits(expected)
    with files.open(dataset) as table:
        assert bits(table.gather(INDICES, axis=axis, mode=mode, **fill)) == bits(expected)
        assert bits(next(table.rows([np.arange(53)], 1))) == bits(stored())
    whole = np.asfortranarray(stored())[:, ::-1]
    assert bits(files.gather_file(whole, INDICES, axis=axis, mode=mode, **fill)) == bits(
        gatherum.gather(whole, INDICES, axis=axis, mode=mode, **fill)
    )


def test_an_invalid_index_is_named(dataset: str, tmp_path: Path) -> None:
    out = np.zeros((70, 2, 3, 3), ">i4")
    for call in (
        lambda: files.gather_file(dataset, INDICES, tmp_path / "o.npy", axis=1),
        lambda: files.open(dataset).gather(INDICES, axis=1, out=out),
    ):
        with pytest.raises(IndexError) as caught:
            call()
        assert str(caught.value) == (
            "gather: index 70 is out of bounds for axis 1 of size 53 (indices[1, 1])"
        )
    assert not out.any()
    assert not (tmp_path / "o.npy").exists()


def test_each_chunk_is_inflated_once(dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import h5py

    boxes = []
    original = h5py.Dataset.__getitem__

    def read(self: Any, box: Any, **more: Any) -> Any:
        boxes.append(box)
        return original(self, box, **more)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", read)
    assert bits(files.gather_file(dataset, [1, 45], axis=1)) == bits(stored()[:, [1, 45]])
    assert boxes == [(slice(0, 16), slice(40, 53), part) for part in (slice(0, 2), slice(2, 3))]


@pytest.mark.parametrize("options", [
    {"shuffle": True}, {"compression": 4}, {"compression": 4, "shuffle": True},
    {"compression": 4, "fletcher32": True},
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["?", "i1", "<f8", "S3", [("a", "u1"), ("b", ">f4")]])
def test_filters_and_dtypes(tmp_path: Path, options: dict[str, Any], dtype: Any) -> None:
    h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
    values = np.random.default_rng(0).integers(0, 2, 40 * np.dtype(dtype).itemsize, np.uint8)
    table = values.view(dtype).reshape(10, 4)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_dataset("t", data=table, chunks=(3, 3), **options)
    assert bits(files.gather_file(tmp_path / "t.h5", [9, 0])) == bits(table[[9, 0]])
    assert bits(files.gather_file(tmp_path / "t.h5", [3, 0, 3], axis=1)) == bits(
        table[:, [3, 0, 3]]
    )


def test_zarr(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE.astype("i4"), "zarr3")
    assert bits(files.gather_file(path, [5, 1], axis=1)) == bits(TABLE.astype("i4")[:, [5, 1]])
