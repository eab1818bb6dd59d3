"""Sizes from which on each algorithm is chosen, changed so that small calls reach them all."""

from collections.abc import Iterator
from contextlib import contextmanager

from gatherum import algorithms, native

__all__ = ["SIZES", "chosen_from"]

SIZES: tuple[dict[str, int], ...] = (
    {},
    {"SMALL": 0, "OWN": 0},
    {"SMALL": 0, "MANY": 1, "FAR": 0},
    {"SMALL": 0, "MANY": 1},
    {"SMALL": 0, "CACHE": 1 << 9, "STRETCH": 1 << 4},
)


@contextmanager
def chosen_from(sizes: dict[str, int]) -> Iterator[None]:
    """Let algorithms be chosen at other sizes; plans made so are forgotten."""
    kept = {name: getattr(algorithms, name) for name in sizes}
    native.clear_plans()
    try:
        for name, size in sizes.items():
            setattr(algorithms, name, size)
        yield
    finally:
        for name, size in kept.items():
            setattr(algorithms, name, size)
        native.clear_plans()
