"""The six operators on files."""

import os
from typing import Any

from gatherum.files.run import Call
from gatherum.files.stats import Progress, Stats
from gatherum.names import ModeName, ReductionName

__all__ = [
    "gather_elements_file",
    "gather_file",
    "gather_nd_file",
    "scatter_elements_file",
    "scatter_nd_file",
    "scatter_slices_file",
]

Path = str | os.PathLike[str]


def gather_file(
    table: Path,
    indices: Path,
    out: Path,
    axis: int = 0,
    *,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    spill_dir: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Stats:
    """Take slices of a table in a file along `axis`, and write them to a file.

    ``out[a.., i.., s..] = table[a.., indices[i..], s..]``

    Parameters
    ----------
    table, indices : path
        ``x.npy``, ``x.npz:name``, ``model.safetensors:tensor``, or a Zarr directory.
    out : path
        ``x.npy``, ``x.safetensors:tensor`` or a Zarr directory. It appears, or replaces the old
        one, only when it is complete.
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
    progress : callable, optional
        Called with the bytes moved so far and the bytes expected.

    Returns
    -------
    Stats
        Rows, bytes, chunks, seconds and memory.

    Raises
    ------
    TypeError, ValueError, IndexError
        As `gatherum.gather`; ValueError also for a file that is not what it claims to be.
    OSError
        A file cannot be read or written, or changed under way.

    Examples
    --------
    >>> gather_file("table.npy", "rows.npy", "picked.npy", memory="256MiB")  # doctest: +SKIP
    """
    return Call(
        "gather",
        {"table": table, "indices": indices},
        out,
        {"axis": axis, "mode": mode, "negative": negative},
        fill_value,
        memory,
        spill_dir,
        resume,
        progress=progress,
    ).run()


def gather_elements_file(
    table: Path,
    indices: Path,
    out: Path,
    axis: int = 0,
    *,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    spill_dir: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Stats:
    """Take one element of a table in a file for each element of `indices`.

    ``out[i, j, k] = table[i, indices[i, j, k], k]`` (`axis` 1 shown)

    Parameters
    ----------
    table, indices, out, axis, memory, spill_dir, resume, progress
        As in `gather_file`.
    mode, negative, fill_value
        As in `gatherum.gather_elements`.

    Returns
    -------
    Stats
        Rows (elements here), bytes, chunks, seconds and memory.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As `gatherum.gather_elements` and `gather_file`.

    Examples
    --------
    >>> gather_elements_file("x.npy", "order.npy", "sorted.npy", axis=-1)  # doctest: +SKIP
    """
    return Call(
        "gather_elements",
        {"table": table, "indices": indices},
        out,
        {"axis": axis, "mode": mode, "negative": negative},
        fill_value,
        memory,
        spill_dir,
        resume,
        progress=progress,
    ).run()


def gather_nd_file(
    table: Path,
    indices: Path,
    out: Path,
    batch_dims: int = 0,
    *,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    spill_dir: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Stats:
    """Take the sub-array of a table in a file that each index tuple names.

    ``out[b.., i.., s..] = table[b.., *indices[b.., i.., :], s..]``

    Parameters
    ----------
    table, indices, out, memory, spill_dir, resume, progress
        As in `gather_file`.
    batch_dims : int
        Leading dimensions that table and indices share.
    mode, negative, fill_value
        As in `gatherum.gather_nd`.

    Returns
    -------
    Stats
        Rows (tuples here), bytes, chunks, seconds and memory.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As `gatherum.gather_nd` and `gather_file`.

    Examples
    --------
    >>> gather_nd_file("volume.zarr", "points.npy", "values.npy")  # doctest: +SKIP
    """
    return Call(
        "gather_nd",
        {"table": table, "indices": indices},
        out,
        {"batch_dims": batch_dims, "mode": mode, "negative": negative},
        fill_value,
        memory,
        spill_dir,
        resume,
        progress=progress,
    ).run()


def scatter_slices_file(
    table: Path,
    indices: Path,
    updates: Path,
    out: Path,
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
    progress: Progress | None = None,
) -> Stats:
    """Write a table with the slices along `axis` changed that `indices` names.

    ``out = table; out[a.., indices[i..], s..] op= updates[a.., i.., s..]``

    Parameters
    ----------
    table, indices, axis, memory, spill_dir, resume, progress
        As in `gather_file`.
    updates : path
        An array of shape ``table.shape[:axis] + indices.shape + table.shape[axis+1:]``, or one that
        broadcasts to it.
    out, in_place
        As in `scatter_elements_file`.
    reduction, include_self, mode, negative
        As in `gatherum.scatter_slices`.

    Returns
    -------
    Stats
        Rows, bytes, chunks, seconds and memory.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As `gatherum.scatter_slices` and `gather_file`.

    Examples
    --------
    >>> scatter_slices_file("x.npy", "rows.npy", "new.npy", "y.npy", 1)  # doctest: +SKIP
    """
    return Call(
        "scatter_slices",
        {"table": table, "indices": indices, "updates": updates},
        out,
        {
            "axis": axis,
            "reduction": reduction,
            "include_self": include_self,
            "mode": mode,
            "negative": negative,
        },
        0,
        memory,
        spill_dir,
        resume,
        in_place,
        progress,
    ).run()


def scatter_elements_file(
    table: Path,
    indices: Path,
    updates: Path,
    out: Path,
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
    progress: Progress | None = None,
) -> Stats:
    """Write a table with one element changed for each element of `indices`.

    ``out = table; out[i, indices[i, j, k], k] op= updates[i, j, k]`` (`axis` 1 shown)

    Parameters
    ----------
    table, indices, axis, memory, spill_dir, resume, progress
        As in `gather_file`.
    updates : path
        An array of the shape of `indices`, or one that broadcasts to it.
    out : path
        As in `gather_file`; with `in_place` the table itself.
    reduction, include_self, mode, negative
        As in `gatherum.scatter_elements`.
    in_place : bool
        Whether to change the table itself. All changes are logged beside it before the first is
        made, so a run that is killed leaves the table as it was, or can be completed with
        `resume`.

    Returns
    -------
    Stats
        Rows (elements here), bytes, chunks, seconds and memory.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As `gatherum.scatter_elements` and `gather_file`.

    Examples
    --------
    >>> scatter_elements_file("x.npy", "i.npy", "u.npy", "y.npy", 1)  # doctest: +SKIP
    """
    return Call(
        "scatter_elements",
        {"table": table, "indices": indices, "updates": updates},
        out,
        {
            "axis": axis,
            "reduction": reduction,
            "include_self": include_self,
            "mode": mode,
            "negative": negative,
        },
        0,
        memory,
        spill_dir,
        resume,
        in_place,
        progress,
    ).run()


def scatter_nd_file(
    table: Path,
    indices: Path,
    updates: Path,
    out: Path,
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
    progress: Progress | None = None,
) -> Stats:
    """Write a table with the sub-array changed that each index tuple names.

    ``out = table; out[b.., *indices[b.., i.., :], s..] op= updates[b.., i.., s..]``

    Parameters
    ----------
    table, indices, memory, spill_dir, resume, progress
        As in `gather_file`.
    updates : path
        An array of shape ``indices.shape[:-1] + table.shape[b+k:]``, or one that broadcasts to it.
    out, in_place
        As in `scatter_elements_file`.
    batch_dims : int
        Leading dimensions that table and indices share.
    reduction, include_self, mode, negative
        As in `gatherum.scatter_nd`.

    Returns
    -------
    Stats
        Rows (tuples here), bytes, chunks, seconds and memory.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As `gatherum.scatter_nd` and `gather_file`.

    Examples
    --------
    >>> scatter_nd_file("t.npy", "rows.npy", "new.npy", "t.npy", in_place=True)  # doctest: +SKIP
    """
    return Call(
        "scatter_nd",
        {"table": table, "indices": indices, "updates": updates},
        out,
        {
            "batch_dims": batch_dims,
            "reduction": reduction,
            "include_self": include_self,
            "mode": mode,
            "negative": negative,
        },
        0,
        memory,
        spill_dir,
        resume,
        in_place,
        progress,
    ).run()
