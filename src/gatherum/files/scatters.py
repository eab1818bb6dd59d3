"""The three scatters on files."""

from collections.abc import Mapping
from typing import Any, Never, Unpack, overload

from numpy.typing import NDArray

from gatherum._model.call_types import ReductionName
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum.files.arguments.operands import Operand, Path
from gatherum.files.file_call import FileCall, RunSettings
from gatherum.files.options import ScatterOptions
from gatherum.files.resources.stats import Progress, Stats

__all__ = ["scatter_elements_file", "scatter_nd_file", "scatter_slices_file"]


@overload
def scatter_slices_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: None = None,
    axis: int = 0,
    **options: Unpack[ScatterOptions],
) -> NDArray[Any]: ...
@overload
def scatter_slices_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: Path,
    axis: int = 0,
    **options: Unpack[ScatterOptions],
) -> Stats: ...
def scatter_slices_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: Path | None = None,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    spill_dir: Path | None = None,
    in_place: bool = False,
    resume: bool = False,
    overwrite: bool = True,
    progress: Progress | bool | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Stats | NDArray[Any]:
    """Write a table with changed slices along `axis` at the positions in `indices`.

    ``out = table; out[a.., indices[i..], s..] op= updates[a.., i.., s..]``

    Parameters
    ----------
    table, indices, axis, memory, spill_dir, resume, overwrite, progress, decode,
    storage_options
        As in `gather_file`.
    updates : path or array
        An array of shape ``table.shape[:axis] + indices.shape + table.shape[axis+1:]``, or one that
        broadcasts to it.
    out, in_place
        As in `scatter_elements_file`.
    reduction, include_self, mode, negative
        As in `gatherum.scatter_slices`.

    Returns
    -------
    Stats or ndarray
        Rows, bytes, chunks, seconds and memory, or the result itself if `out` is None.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As in `gatherum.scatter_slices` and `gather_file`.

    Examples
    --------
    >>> scatter_slices_file("x.npy", "rows.npy", "new.npy", "y.npy", 1)  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("scatter_slices", unknown)
    operands = {"table": table, "indices": indices, "updates": updates}
    attributes = {
        "axis": axis,
        "reduction": reduction,
        "include_self": include_self,
        "mode": mode,
        "negative": negative,
    }
    settings = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, in_place, decode
    )
    return FileCall("scatter_slices", operands, out, attributes, settings).run()


@overload
def scatter_elements_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: None = None,
    axis: int = 0,
    **options: Unpack[ScatterOptions],
) -> NDArray[Any]: ...
@overload
def scatter_elements_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: Path,
    axis: int = 0,
    **options: Unpack[ScatterOptions],
) -> Stats: ...
def scatter_elements_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: Path | None = None,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    spill_dir: Path | None = None,
    in_place: bool = False,
    resume: bool = False,
    overwrite: bool = True,
    progress: Progress | bool | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Stats | NDArray[Any]:
    """Write a table with one element changed for each element of `indices`.

    ``out = table; out[i, indices[i, j, k], k] op= updates[i, j, k]`` (`axis` 1 shown)

    Parameters
    ----------
    table, indices, axis, memory, spill_dir, resume, overwrite, progress, decode,
    storage_options
        As in `gather_file`.
    updates : path or array
        An array of the shape of `indices`, or one that broadcasts to it.
    out : path, optional
        As in `gather_file`; with `in_place` the table itself.
    reduction, include_self, mode, negative
        As in `gatherum.scatter_elements`.
    in_place : bool
        Whether to change the table itself. All changes are logged next to the table before the
        first one is made. A killed run leaves the table unchanged, or can be completed with
        `resume`.

    Returns
    -------
    Stats or ndarray
        Rows (elements here), bytes, chunks, seconds and memory; or the result.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As in `gatherum.scatter_elements` and `gather_file`.

    Examples
    --------
    >>> scatter_elements_file("x.npy", "i.npy", "u.npy", "y.npy", 1)  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("scatter_elements", unknown)
    operands = {"table": table, "indices": indices, "updates": updates}
    attributes = {
        "axis": axis,
        "reduction": reduction,
        "include_self": include_self,
        "mode": mode,
        "negative": negative,
    }
    settings = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, in_place, decode
    )
    return FileCall("scatter_elements", operands, out, attributes, settings).run()


@overload
def scatter_nd_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: None = None,
    batch_dims: int = 0,
    **options: Unpack[ScatterOptions],
) -> NDArray[Any]: ...
@overload
def scatter_nd_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: Path,
    batch_dims: int = 0,
    **options: Unpack[ScatterOptions],
) -> Stats: ...
def scatter_nd_file(
    table: Operand,
    indices: Operand,
    updates: Operand,
    out: Path | None = None,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    spill_dir: Path | None = None,
    in_place: bool = False,
    resume: bool = False,
    overwrite: bool = True,
    progress: Progress | bool | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Stats | NDArray[Any]:
    """Write a table with the sub-array changed that each index tuple addresses.

    ``out = table; out[b.., *indices[b.., i.., :], s..] op= updates[b.., i.., s..]``

    Parameters
    ----------
    table, indices, memory, spill_dir, resume, overwrite, progress, decode,
    storage_options
        As in `gather_file`.
    updates : path or array
        An array of shape ``indices.shape[:-1] + table.shape[b+k:]``, or one that broadcasts to it.
    out, in_place
        As in `scatter_elements_file`.
    batch_dims : int
        The number of leading dimensions that table and indices share.
    reduction, include_self, mode, negative
        As in `gatherum.scatter_nd`.

    Returns
    -------
    Stats or ndarray
        Rows (tuples here), bytes, chunks, seconds and memory; or the result.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As in `gatherum.scatter_nd` and `gather_file`.

    Examples
    --------
    >>> scatter_nd_file("t.npy", "rows.npy", "new.npy", "t.npy", in_place=True)  # doctest: +SKIP
    """
    if unknown:
        raise unknown_argument("scatter_nd", unknown, has_axis=False)
    operands = {"table": table, "indices": indices, "updates": updates}
    attributes = {
        "batch_dims": batch_dims,
        "reduction": reduction,
        "include_self": include_self,
        "mode": mode,
        "negative": negative,
    }
    settings = RunSettings(
        memory, spill_dir, resume, overwrite, progress, storage_options, in_place, decode
    )
    return FileCall("scatter_nd", operands, out, attributes, settings).run()
