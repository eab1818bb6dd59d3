"""What this installation has and has chosen."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import native
from .version import __version__

# Distributions that bring a part of the package to life, by what they are for.
OPTIONAL_PARTS = {
    "click": "command line",
    "rich": "progress on the command line",
    "onnx": "gatherum.onnx",
    "zarr": "Zarr arrays in gatherum.files",
    "safetensors": "gatherum.files reads its files without it",
    "ml_dtypes": "bfloat16, float8 and int4 arrays",
}


def show_config() -> dict[str, Any]:
    """Print what this installation has and has chosen, and return it.

    Returns
    -------
    dict
        ``version``, ``python`` and ``numpy``: their versions; ``level``: the instruction-set
        level of the kernels in use; ``available_levels``: those that ``GATHERUM_ISA`` may name
        here, best first; ``threads``; ``output_cache``: a dict of the ``limit`` and the bytes
        ``held`` now; ``optional``: the version of each optional part, None where it is missing.

    Examples
    --------
    >>> config = gatherum.show_config()  # doctest: +ELLIPSIS
    gatherum ...
    >>> config["level"] in config["available_levels"]
    True
    """
    config = read_config()
    print("\n".join(config_lines(config)))
    return config


def read_config() -> dict[str, Any]:
    """Return what `show_config` prints."""
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


def config_lines(config: dict[str, Any]) -> list[str]:
    """Word a configuration, one line each."""
    cache = config["output_cache"]
    lines = [
        f"gatherum {config['version']}, Python {config['python']}, NumPy {config['numpy']}",
        f"instruction set  {config['level']} (of {', '.join(config['available_levels'])})",
        f"threads          {config['threads']}",
        f"output cache     {cache['held']:,} of at most {cache['limit']:,} bytes held",
    ]
    for name, version in config["optional"].items():
        found = version or "not installed"
        lines.append(f"{name:<16} {found} ({OPTIONAL_PARTS[name]})")
    return lines


def _version_of(distribution: str) -> str | None:
    """Return the version of a distribution without importing it."""
    from importlib import metadata  # half of what `import gatherum` took

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
