"""Show the configuration of this installation: versions, levels, threads and settings."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

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
            "limit": native.get_output_cache_limit(),
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


def _version_of(distribution: str) -> str | None:
    """Return the version of a distribution without importing it."""
    from importlib import metadata  # it took half of the time of `import gatherum`

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
