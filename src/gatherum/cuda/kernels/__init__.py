"""The kernels' source, which is compiled when a kernel is first launched."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def sources() -> dict[str, str]:
    """Return the text of every file of the folder by its name: kernels, and what they include."""
    files = sorted((*FOLDER.glob("*.cu"), *FOLDER.glob("*.cuh")))
    return {path.name: path.read_text(encoding="ascii") for path in files}


def names() -> tuple[str, ...]:
    """Return the names of all kernels."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.cu")))
