"""The three gathers on files."""

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
        A path: ``x.npy``, ``x.npz:name``, ``model.safetensors:tensor``, ``x.h5:dataset``,
        ``x.parquet:column`` or a Zarr directory. Or a URL of one, such as ``https://host/x.npy``.
        Or an operand of `gatherum.gather` in CPU memory, or an array of Zarr or h5py.
    out : path, optional
        ``x.npy``, ``x.safetensors:tensor``, ``x.h5:dataset`` or a Zarr directory. The file appears,
        or replaces an old one, only when it is complete. Without `out`, the result is returned.
    axis : int
        The dimension of the table that is indexed.
    memory : str or int
        The bytes that the run may use, such as ``"1GiB"``.
    mode, negative, fill_value
        As in `gatherum.gather`.
    spill_dir : path, optional
        The folder for scratch data. Default: the folder of `out`.
    resume : bool
        Whether to continue where a killed run stopped.
    overwrite : bool
        Whether to replace an output that exists before the run.
    progress : callable or bool, optional
        Called with the bytes moved so far and the bytes expected. True shows a bar on standard
        error, or a line a second if rich is not installed.
    decode : bool
        Whether to decode packed numbers of netCDF and Zarr like ``xarray.open_dataset``:
        ``_FillValue`` and ``missing_value`` become NaN, ``scale_factor`` and ``add_offset`` apply,
        and so does ``_Unsigned``. Times are not decoded. False reads the stored numbers.
    storage_options : mapping, optional
        Options of fsspec's filesystem for the URLs among the operands, such as credentials.

    Returns
    -------
    Stats or ndarray
        Rows, bytes, chunks, seconds and memory, or the result itself if `out` is None.

    Raises
    ------
    TypeError, ValueError, IndexError
        As in `gatherum.gather`. ValueError also if a file does not have its claimed format.
    OSError
        A file cannot be read or written, or changed during the run, or a server does not answer.

    Examples
    --------
    >>> gather_file("table.npy", "rows.npy", "picked.npy", memory="256MiB")  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("gather", unknown)
    operands = {"table": table, "indices": indices}
    attributes = {"axis": axis, "mode": mode, "negative": negative}
    settings = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, decode=decode
    )
    return FileCall("gather", operands, out, attributes, settings, fill_value).run()


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
        As in `gatherum.gather_elements` and `gather_file`.

    Examples
    --------
    >>> gather_elements_file("x.npy", "order.npy", "sorted.npy", axis=-1)  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("gather_elements", unknown)
    operands = {"table": table, "indices": indices}
    attributes = {"axis": axis, "mode": mode, "negative": negative}
    settings = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, decode=decode
    )
    return FileCall("gather_elements", operands, out, attributes, settings, fill_value).run()


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
    """Take the sub-array of a table in a file that each index tuple addresses.

    ``out[b.., i.., s..] = table[b.., *indices[b.., i.., :], s..]``

    Parameters
    ----------
    table, indices, out, memory, spill_dir, resume, overwrite, progress, decode,
    storage_options
        As in `gather_file`.
    batch_dims : int
        The number of leading dimensions that table and indices share.
    mode, negative, fill_value
        As in `gatherum.gather_nd`.
    axes : sequence of int or str, optional
        The dimensions of the table that the components of a tuple address, in this order. Each is a
        number, or a name if the table has names (netCDF, HDF5, Zarr, xarray). Default: the first
        dimensions after the batch dimensions. The result is the same as for a table with these
        dimensions moved to the front, but parts of the table that no tuple addresses are not read.

    Returns
    -------
    Stats or ndarray
        Rows (tuples here), bytes, chunks, seconds and memory; or the result.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As in `gatherum.gather_nd` and `gather_file`.

    Examples
    --------
    >>> gather_nd_file("volume.zarr", "points.npy", "values.npy")  # doctest: +SKIP
    >>> gather_nd_file("cube.nc:t", "stations.npy", axes=("lat", "lon"))  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("gather_nd", unknown, has_axis=False)
    operands = {"table": table, "indices": indices}
    attributes = {"batch_dims": batch_dims, "mode": mode, "negative": negative}
    settings = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, decode=decode
    )
    return FileCall("gather_nd", operands, out, attributes, settings, fill_value, axes).run()
