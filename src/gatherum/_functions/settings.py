"""Show the configuration of this installation and change its settings: threads, output cache."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gatherum._arguments.plain_values import as_integer
from gatherum._model.errors import out_of_range
from gatherum._system import native
from gatherum.version import __version__

# Optional distributions, and the feature that each one enables.
OPTIONAL_PARTS = {
    "click": "command line",
    "rich": "progress on the command line",
    "torch": "gatherum.torch",
    "jax": "gatherum.jax",
    "dask": "gatherum.dask",
    "distributed": "rows moved between workers in gatherum.dask",
    "cuda-bindings": "gatherum.cuda",
    "onnx": "gatherum.onnx",
    "zarr": "Zarr arrays in gatherum.files",
    "h5py": "HDF5 datasets in gatherum.files",
    "pyarrow": "Parquet and Arrow columns in gatherum.files",
    "fsspec": "URLs in gatherum.files",
    "safetensors": "gatherum.files reads its files without it",
    "ml_dtypes": "bfloat16, float8 and int4 arrays",
}


def show_config() -> None:
    """Print the configuration of this installation, which `config` returns.

    Examples
    --------
    >>> gatherum.show_config()  # doctest: +ELLIPSIS
    gatherum ...
    """
    print("\n".join(config_lines(config())))


def config() -> dict[str, Any]:
    """Return the configuration of this installation, which `show_config` prints.

    Returns
    -------
    dict
        ``version``, ``python`` and ``numpy``: the versions; ``level``: the instruction-set
        level of the kernels in use; ``available_levels``: the levels that ``GATHERUM_ISA`` can
        select on this machine, best first; ``threads``: the number of threads; ``output_cache``: a
        dict of the ``limit`` and the bytes ``held`` now; ``optional``: the version of each
        optional distribution, None if it is not installed.

    Examples
    --------
    >>> found = gatherum.config()
    >>> found["level"] in found["available_levels"]
    True
    """
    return {
        "version": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": np.__version__,
        "level": native.level(),
        "available_levels": native.available_levels(),
        "threads": native.get_num_threads(),
        "output_cache": {
            "limit": native.get_cache_limit(),
            "held": native.cached_output_bytes(),
        },
        "optional": {name: _version_of(name) for name in OPTIONAL_PARTS},
    }


def config_lines(values: dict[str, Any]) -> list[str]:
    """Format a configuration as lines of text."""
    cache = values["output_cache"]
    lines = [
        f"gatherum {values['version']}, Python {values['python']}, NumPy {values['numpy']}",
        f"instruction set  {values['level']} (of {', '.join(values['available_levels'])})",
        f"threads          {values['threads']}",
        f"output cache     {cache['held']:,} of at most {cache['limit']:,} bytes held",
    ]
    for name, version in values["optional"].items():
        installed = version or "not installed"
        lines.append(f"{name:<16} {installed} ({OPTIONAL_PARTS[name]})")
    return lines


def set_num_threads(n: int) -> None:
    """Set the number of threads that a call may use.

    Results do not depend on the number of threads. The default is the environment variable
    ``GATHERUM_NUM_THREADS`` if set; otherwise, it is the number of processors that this process may
    use.

    Parameters
    ----------
    n : int
        At least 1, at most 1024.

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` is out of range.

    Examples
    --------
    >>> import gatherum
    >>> before = gatherum.get_num_threads()
    >>> gatherum.set_num_threads(1)
    >>> gatherum.get_num_threads()
    1
    >>> gatherum.set_num_threads(before)
    """
    native.set_threads(_in_range("set_num_threads", "n", n, 1, native.MOST_THREADS + 1))


def get_num_threads() -> int:
    """Return the number of threads that a call may use.

    Returns
    -------
    int
        The number set by `set_num_threads` or by the environment.
    """
    return native.get_num_threads()


def set_output_cache_limit(nbytes: int) -> None:
    """Set the number of bytes of freed large results that are cached for reuse.

    The first access to fresh memory costs more than a gather into it, so the memory of results of 2
    MiB or more is recycled. The default is the environment variable ``GATHERUM_OUTPUT_CACHE`` (in
    bytes) if set; otherwise, it is 512 MiB. On systems with ``MADV_FREE`` (Linux, macOS), the
    system may reclaim cached memory as soon as it needs memory.

    Parameters
    ----------
    nbytes : int
        The limit in bytes; 0 disables the cache.

    Raises
    ------
    TypeError
        If `nbytes` is not an integer.
    ValueError
        If `nbytes` is negative, or 2**62 or more.
    """
    limit = _in_range("set_output_cache_limit", "nbytes", nbytes, 0, native.CACHE_END)
    native.set_cache_limit(limit)


def get_output_cache_limit() -> int:
    """Return the limit of the output cache in bytes.

    Returns
    -------
    int
        The limit set by `set_output_cache_limit` or by the environment.
    """
    return native.get_cache_limit()


def clear_output_cache() -> None:
    """Return all cached memory to the system."""
    native.clear_cache()


def _in_range(op: str, name: str, value: object, low: int, high: int) -> int:
    """Return an integer in ``[low, high)``, or raise TypeError or ValueError."""
    number = as_integer(op, name, value)
    if not low <= number < high:
        raise out_of_range(op, name, number, low, high)
    return number


def _version_of(distribution: str) -> str | None:
    """Return the version of a distribution without importing it."""
    from importlib import metadata  # it took half of the time of `import gatherum`

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
