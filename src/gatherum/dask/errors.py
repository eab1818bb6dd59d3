"""Errors that only Dask arrays and clusters raise; `_model.errors` contains the shared ones."""


def unknown_sizes(op: str, operand: str, shape: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must have chunks of known sizes, got shape {shape}; write "
        f"{operand}.compute_chunk_sizes()"
    )


def not_numpy_chunks(op: str, operand: str, found: type) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have chunks that are NumPy arrays, got {found.__module__}."
        f"{found.__name__}"
    )


def other_block(op: str, operand: str, declared: object, found: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have chunks of the dtype that its array declares, {declared}, got "
        f"{found}"
    )


def mixed_blocks(first: object, second: object) -> TypeError:
    return TypeError(
        f"gatherum.dask: the chunks of an array must have one dtype, got {first} and {second}"
    )


def no_dask_out(op: str) -> TypeError:
    return TypeError(
        f"{op}: `out` must be None for Dask arrays, which nothing can write to; write "
        "result.to_zarr, or gatherum.dask.scatter_nd_into and its sisters"
    )


def not_a_store(op: str, store: object) -> TypeError:
    return TypeError(
        f"{op}_into: `store` must be a Zarr array in a directory, or its path, got "
        f"{type(store).__name__}"
    )


def no_zarr_output(op: str, out: object) -> ValueError:
    return ValueError(
        f"{op}: the output {out} cannot be written on a cluster, whose workers write Zarr "
        "directories such as 'x.zarr'"
    )


def no_scheduler(address: str, seconds: int, error: BaseException) -> ConnectionError:
    why = str(error) or "it does not say what it is"
    return ConnectionError(
        f"no scheduler of Dask answers at {address} within {seconds} seconds ({why})"
    )


def no_workers(address: str) -> ConnectionError:
    return ConnectionError(f"the scheduler at {address} has no workers")


def lost_scheduler() -> ConnectionError:
    return ConnectionError(
        "gatherum.dask: the scheduler went away before all tasks were done; start the call again "
        "on one that runs"
    )


def dead_workers(count: int) -> OSError:
    return OSError(
        f"gatherum.dask: every worker that ran one of the tasks died, {count} in all, most likely "
        "for want of memory; give workers more of it, or arrays smaller chunks"
    )


def full_disk(error: OSError) -> OSError:
    return OSError(
        f"gatherum.dask: a worker's disk does not take the rows that it receives ({error}); give "
        "its local_directory more space"
    )


def compressed_member(location: object) -> ValueError:
    return ValueError(
        f"from_file: {location} is compressed, so that no part of it can be read alone; write it "
        "with np.savez or np.save"
    )


def uncomputed_size(op: str, operand: str) -> TypeError:
    return TypeError(
        f"{op}: `size` must be given for arrays of Dask, because the values of `{operand}` are not "
        f"known yet; write size=int({operand}.max()) + 1"
    )


def needs_whole_axis(op: str, func: str, axis: int) -> NotImplementedError:
    return NotImplementedError(
        f"{op}: {func!r} of a Dask array needs all values of a group in one chunk; write "
        f"values.rechunk({{{axis}: -1}})"
    )
