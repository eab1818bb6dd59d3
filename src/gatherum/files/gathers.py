"""The three gathers run on files."""

from collections.abc import Mapping
from typing import Any, Never, Unpack, overload

from numpy.typing import NDArray

from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum.files.arguments.operands import Operand, Path
from gatherum.files.file_call import FileCall, RunSettings
from gatherum.files.options import GatherOptions, TupleOptions
from gatherum.files.resources.stats import Progress, Stats
from gatherum.files.strategies.reordered import Axes

__all__ = ["gather_elements_file", "gather_file", "gather_nd_file"]


@overload
def gather_file(
    table: Operand,
    indices: Operand,
    out: None = None,
    axis: int = 0,
    **options: Unpack[GatherOptions],
) -> NDArray[Any]: ...
@overload
def gather_file(
    table: Operand, indices: Operand, out: Path, axis: int = 0, **options: Unpack[GatherOptions]
) -> Stats: ...
def gather_file(
    table: Operand,
    indices: Operand,
    out: Path | None = None,
    axis: int = 0,
    *,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    spill_dir: Path | None = None,
    resume: bool = False,
    overwrite: bool = True,
    progress: Progress | bool | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Stats | NDArray[Any]:
    """Take slices of a table in a file along `axis`, and write them to a file.

    ``out[a.., i.., s..] = table[a.., indices[i..], s..]``

    Parameters
    ----------
    table, indices : path or array
        ``x.npy``, ``x.npz:name``, ``model.safetensors:tensor``, ``x.h5:dataset``,
        ``x.parquet:column`` or a Zarr directory; a URL of one, such as ``https://host/x.npy``; or
        what `gatherum.gather` takes, in this processor's memory; or an array of Zarr or h5py.
    out : path, optional
        ``x.npy``, ``x.safetensors:tensor``, ``x.h5:dataset`` or a Zarr directory. It appears, or
        replaces the old one, only when it is complete. Without it, the result is returned.
    axis : int
        The dimension of the table that is indexed.
    memory : str or int
        Bytes that the run may use, such as ``"1GiB"``.
    mode, negative, fill_value
        As in `gatherum.gather`.
    spill_dir : path, optional
        Where to put scratch data; default: beside `out`.
    resume : bool
        Whether to go on where a killed run stopped.
    overwrite : bool
        Whether to replace an output that exists before the run.
    progress : callable or bool, optional
        Called with the bytes moved so far and the bytes expected. True shows a bar on standard
        error, or a line a second where rich is not installed.
    decode : bool
        Whether packed numbers of netCDF and Zarr are decoded as `xarray.open_dataset` decodes them:
        ``_FillValue`` and ``missing_value`` become NaN, ``scale_factor`` and ``add_offset`` apply,
        and ``_Unsigned`` counts. Times are not decoded. False reads the stored numbers.
    storage_options : mapping, optional
        What fsspec's filesystem takes for the URLs among the operands, such as credentials.

    Returns
    -------
    Stats or ndarray
        Rows, bytes, chunks, seconds and memory; the result itself where `out` is None.

    Raises
    ------
    TypeError, ValueError, IndexError
        As `gatherum.gather`; ValueError also for a file that is not what it claims to be.
    OSError
        A file cannot be read or written, or changed during the run; a server does not answer.

    Examples
    --------
    >>> gather_file("table.npy", "rows.npy", "picked.npy", memory="256MiB")  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("gather", unknown)
    operands = {"table": table, "indices": indices}
    attributes = {"axis": axis, "mode": mode, "negative": negative}
    how = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, decode=decode
    )
    return FileCall("gather", operands, out, attributes, how, fill_value).run()


@overload
def gather_elements_file(
    table: Operand,
    indices: Operand,
    out: None = None,
    axis: int = 0,
    **options: Unpack[GatherOptions],
) -> NDArray[Any]: ...
@overload
def gather_elements_file(
    table: Operand, indices: Operand, out: Path, axis: int = 0, **options: Unpack[GatherOptions]
) -> Stats: ...
def gather_elements_file(
    table: Operand,
    indices: Operand,
    out: Path | None = None,
    axis: int = 0,
    *,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    spill_dir: Path | None = None,
    resume: bool = False,
    overwrite: bool = True,
    progress: Progress | bool | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Stats | NDArray[Any]:
    """Take one element of a table in a file for each element of `indices`.

    ``out[i, j, k] = table[i, indices[i, j, k], k]`` (`axis` 1 shown)

    Parameters
    ----------
    table, indices, out, axis, memory, spill_dir, resume, overwrite, progress, decode,
    storage_options
        As in `gather_file`.
    mode, negative, fill_value
        As in `gatherum.gather_elements`.

    Returns
    -------
    Stats or ndarray
        Rows (elements here), bytes, chunks, seconds and memory; or the result.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As `gatherum.gather_elements` and `gather_file`.

    Examples
    --------
    >>> gather_elements_file("x.npy", "order.npy", "sorted.npy", axis=-1)  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("gather_elements", unknown)
    operands = {"table": table, "indices": indices}
    attributes = {"axis": axis, "mode": mode, "negative": negative}
    how = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, decode=decode
    )
    return FileCall("gather_elements", operands, out, attributes, how, fill_value).run()


@overload
def gather_nd_file(
    table: Operand,
    indices: Operand,
    out: None = None,
    batch_dims: int = 0,
    **options: Unpack[TupleOptions],
) -> NDArray[Any]: ...
@overload
def gather_nd_file(
    table: Operand,
    indices: Operand,
    out: Path,
    batch_dims: int = 0,
    **options: Unpack[TupleOptions],
) -> Stats: ...
def gather_nd_file(
    table: Operand,
    indices: Operand,
    out: Path | None = None,
    batch_dims: int = 0,
    *,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    spill_dir: Path | None = None,
    resume: bool = False,
    overwrite: bool = True,
    progress: Progress | bool | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    axes: Axes | None = None,
    **unknown: Never,
) -> Stats | NDArray[Any]:
    """Take the sub-array of a table in a file that each index tuple names.

    ``out[b.., i.., s..] = table[b.., *indices[b.., i.., :], s..]``

    Parameters
    ----------
    table, indices, out, memory, spill_dir, resume, overwrite, progress, decode,
    storage_options
        As in `gather_file`.
    batch_dims : int
        Leading dimensions that table and indices share.
    mode, negative, fill_value
        As in `gatherum.gather_nd`.
    axes : sequence of int or str, optional
        The dimensions of the table that the components of a tuple address, in their order: numbers,
        or names where the table has some (netCDF, HDF5, Zarr, xarray). By default the first behind
        the batch dimensions. The result is that of the table with these in front, but parts of the
        table where no tuple points are not read.

    Returns
    -------
    Stats or ndarray
        Rows (tuples here), bytes, chunks, seconds and memory; or the result.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As `gatherum.gather_nd` and `gather_file`.

    Examples
    --------
    >>> gather_nd_file("volume.zarr", "points.npy", "values.npy")  # doctest: +SKIP
    >>> gather_nd_file("cube.nc:t", "stations.npy", axes=("lat", "lon"))  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("gather_nd", unknown, has_axis=False)
    operands = {"table": table, "indices": indices}
    attributes = {"batch_dims": batch_dims, "mode": mode, "negative": negative}
    how = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, decode=decode
    )
    return FileCall("gather_nd", operands, out, attributes, how, fill_value, axes).run()
