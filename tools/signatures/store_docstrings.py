"""The docstrings of scatters into stores, which `python tools/signatures` writes."""


def scatter_nd_into() -> None:
    """Write elements or slices of a Zarr array in place, by tuples of indices.

    ``store[b.., *indices[b.., i.., :], s..] op= updates[b.., i.., s..]``

    Parameters
    ----------
    store : path or zarr.Array
        A Zarr array in a directory that all workers see under the same name.
    indices, updates : dask.array.Array or array_like
        As for `gatherum.scatter_nd`.
    batch_dims, reduction, include_self, mode, negative
        As for `gatherum.scatter_nd`.
    resume : bool, default False
        Whether to complete a killed run of the same call. A run that had finished is not applied
        again.
    decode : bool, default True
        If True, a packed array raises ValueError, because decoded numbers are not packed again. If
        False, the stored numbers are read and written.

    Raises
    ------
    TypeError, ValueError, IndexError
        As for `gatherum.scatter_nd`; the array is then unchanged. Also TypeError if `store` is not
        a directory, and ValueError if the unfinished run of another call exists.
    OSError
        The array cannot be read or written, the scheduler is lost, or workers died repeatedly. If
        this happens while chunks are staged, the array is unchanged.

    Notes
    -----
    The call is not lazy. It writes every changed chunk, or shard, once, to a directory next to the
    array, and then moves all of them into the array: changed chunks need twice their disk space.
    """


def scatter_elements_into() -> None:
    """Write one element of a Zarr array in place for every index: see `scatter_nd_into`.

    ``store[i, indices[i, j, k], k] op= updates[i, j, k]`` for axis 1.
    """


def scatter_slices_into() -> None:
    """Write slices of a Zarr array in place, by their numbers: see `scatter_nd_into`.

    ``store[a.., indices[i..], s..] op= updates[a.., i.., s..]``
    """
