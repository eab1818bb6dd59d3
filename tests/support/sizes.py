"""Thresholds of the choice of algorithms, lowered so that small calls reach every algorithm."""

from collections.abc import Iterator
from contextlib import contextmanager

from gatherum._system import native

__all__ = ["BY_EIGHTS", "SIZES", "chosen_from", "family"]

# True if this level processes eight indices at a time.
BY_EIGHTS = native.level() in ("v3", "v4")

SIZES: tuple[dict[str, int], ...] = (
    {},
    {"small_call_bytes": 0, "private_cache_bytes": 0, "least_column_bytes": 128},
    {"small_call_bytes": 0, "many_updates": 1, "far_bytes": 0},
    {"small_call_bytes": 0, "many_updates": 1, "updates_per_table_word": 0},
    {
        "small_call_bytes": 0,
        "shared_cache_bytes": 1 << 9,
        "stretch_bytes": 1 << 4,
        "streamed_bytes": 0,
    },
)


@contextmanager
def chosen_from(sizes: dict[str, int]) -> Iterator[None]:
    """Change the thresholds of algorithms, and drop plans that were made with others."""
    kept = native.thresholds()
    native.clear_plans()
    try:
        native.set_thresholds(kept | sizes)
        yield
    finally:
        native.set_thresholds(kept)
        native.clear_plans()


FAMILIES = {
    "uncounted_accumulators": "accumulators",
    "private_accumulators": "accumulators",
    "in_rounds": "accumulators",
    "divided_accumulators": "accumulators",
    "serial_accumulators": "accumulators",
    "batch_accumulators": "accumulators",
    "by_range": "direct",
    "by_column": "direct",
}


def family(algorithm: str) -> str:
    """Return an algorithm's name without its numbers of threads and destinations."""
    return FAMILIES.get(algorithm, algorithm)
