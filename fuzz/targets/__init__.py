"""Fuzz targets: a target is a module with `run`, which takes bytes and fails by AssertionError.

`seeds` yields a target's first inputs, and `DICTIONARY` lists words for the mutator. Targets do not
depend on the engine that makes the bytes.
"""

from importlib import import_module
from typing import Any

TARGETS = ("calls", "readers", "stores", "descs", "dispatch", "models")


def target(name: str) -> Any:
    """Return the module of a target."""
    return import_module(f"targets.{name}")
