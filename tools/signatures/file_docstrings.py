"""The docstrings of the functions on files, which `python tools/signatures` writes."""


def gather_file() -> None:
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
        The bytes that the run may use, such as ``"512MiB"``.
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


def gather_elements_file() -> None:
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


def gather_nd_file() -> None:
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


def scatter_slices_file() -> None:
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


def scatter_elements_file() -> None:
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


def scatter_nd_file() -> None:
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
