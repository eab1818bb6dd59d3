"""The cache of rows that are asked for most, in bounded memory; the core has it."""

from gatherum import native

__all__ = ["cache_of"]

SET = 8  # rows that share places
NOTED = 9  # bytes that are kept of a row besides its own


def cache_of(nbytes: int, extent: int, item: int) -> native.RowCache:
    """Return a cache for the rows of a table.

    Parameters
    ----------
    nbytes : int
        The memory that it may take.
    extent : int
        How many rows the table has.
    item : int
        The bytes of a row.

    Raises
    ------
    ValueError
        Not one row fits.
    """
    places = min(nbytes // (item + NOTED), extent + SET)
    if places < 1:
        raise ValueError(
            f"cache must hold at least one row, {item + NOTED} bytes, got {nbytes} bytes"
        )
    return native.make_row_cache(places, extent, item)
