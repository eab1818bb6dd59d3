"""Sizes from which on each algorithm is chosen, changed so that small calls reach them all."""

from collections.abc import Iterator
from contextlib import contextmanager

from gatherum._system import native

__all__ = ["BY_EIGHTS", "SIZES", "chosen_from", "family"]

# Whether this level looks at eight indices at a time.
BY_EIGHTS = native.level() in ("v3", "v4")

SIZES: tuple[dict[str, int], ...] = (
    {},
    {"small": 0, "own": 0, "columns": 128},
    {"small": 0, "many": 1, "far": 0},
    {"small": 0, "many": 1, "tables": 0},
    {"small": 0, "cache": 1 << 9, "stretch": 1 << 4, "stream": 0},
)


@contextmanager
def chosen_from(sizes: dict[str, int]) -> Iterator[None]:
    """Let algorithms be chosen at other sizes; plans made so are forgotten."""
    kept = native.thresholds()
    native.clear_plans()
    try:
        native.set_thresholds(kept | sizes)
        yield
    finally:
        native.set_thresholds(kept)
        native.clear_plans()


FAMILIES = {
    "uncounted_slabs": "slabs",
    "one_slab": "slabs",
    "private_slabs": "slabs",
    "shared_slabs": "slabs",
    "owned": "units",
    "columns": "units",
}
FAMILIES |= {"counted_groups": "grouped", "sorted_groups": "grouped"}


def family(algorithm: str) -> str:
    """Name an algorithm without what depends on the number of threads or destinations."""
    return FAMILIES.get(algorithm, algorithm)
