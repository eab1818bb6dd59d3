"""What is fuzzed: a target is a module with `run`, which takes bytes and fails by AssertionError.

`seeds` gives a target's first inputs, `DICTIONARY` the words that help a mutator. Targets know
nothing of the engine that makes the bytes.
"""

from importlib import import_module
from typing import Any

TARGETS = ("calls", "readers", "stores", "descs", "dispatch", "models")


def target(name: str) -> Any:
    """Return the module of a target."""
    return import_module(f"targets.{name}")
