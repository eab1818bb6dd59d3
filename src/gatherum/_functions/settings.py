"""Show the configuration: versions, levels, threads and settings of this installation."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gatherum._system import native
from gatherum.version import __version__

# Distributions that bring a part of the package to life, by what they are for.
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
    """Print what this installation has and has chosen; `config` returns it.

    Examples
    --------
    >>> gatherum.show_config()  # doctest: +ELLIPSIS
    gatherum ...
    """
    print("\n".join(config_lines(config())))


def config() -> dict[str, Any]:
    """Return what this installation has and has chosen; `show_config` prints it.

    Returns
    -------
    dict
        ``version``, ``python`` and ``numpy``: their versions; ``level``: the instruction-set
        level of the kernels in use; ``available_levels``: those that ``GATHERUM_ISA`` may name
        here, best first; ``threads``; ``output_cache``: a dict of the ``limit`` and the bytes
        ``held`` now; ``optional``: the version of each optional part, None where it is missing.

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


def config_lines(found: dict[str, Any]) -> list[str]:
    """Word a configuration, one line each."""
    cache = found["output_cache"]
    lines = [
        f"gatherum {found['version']}, Python {found['python']}, NumPy {found['numpy']}",
        f"instruction set  {found['level']} (of {', '.join(found['available_levels'])})",
        f"threads          {found['threads']}",
        f"output cache     {cache['held']:,} of at most {cache['limit']:,} bytes held",
    ]
    for name, version in found["optional"].items():
        installed = version or "not installed"
        lines.append(f"{name:<16} {installed} ({OPTIONAL_PARTS[name]})")
    return lines


def _version_of(distribution: str) -> str | None:
    """Return the version of a distribution without importing it."""
    from importlib import metadata  # half of what `import gatherum` took

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
