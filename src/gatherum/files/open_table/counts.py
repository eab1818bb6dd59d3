"""Statistics of the requests to an open table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gatherum._system import native
from gatherum.files.resources.stats import size_text


@dataclass(frozen=True, repr=False)
class TableStats:
    """Statistics of an open table.

    Attributes
    ----------
    requests, rows : int
        The number of calls of the gathers, and of their indices (or index tuples).
    bytes : int
        The number of bytes that these calls returned.
    bytes_read : int
        The number of bytes read from the table's file or requested from its server.
    hits, misses : int
        The rows found and not found in the row cache; both 0 without a cache.
    cached_bytes : int
        The size in bytes of the rows in the cache.
    p50, p90, p99 : float
        The seconds within which 50%, 90% and 99% of the last 8192 calls finished; 0.0 before the
        first call.
    """

    requests: int
    rows: int
    bytes: int
    bytes_read: int
    hits: int
    misses: int
    cached_bytes: int
    p50: float
    p90: float
    p99: float

    def __str__(self) -> str:
        looked_up = self.hits + self.misses
        cached = f", {self.hits / looked_up:.1%} of the rows cached" if looked_up else ""
        requests = f"{self.requests:,} request{'s' * (self.requests != 1)}"
        rows = f"{self.rows:,} row{'s' * (self.rows != 1)}"
        return (
            f"{requests} for {rows}, {size_text(self.bytes)}, "
            f"read {size_text(self.bytes_read)}{cached}; p50 {self.p50 * 1e6:,.0f} us, "
            f"p90 {self.p90 * 1e6:,.0f} us, p99 {self.p99 * 1e6:,.0f} us"
        )

    def __repr__(self) -> str:
        return f"<TableStats: {self}>"


def stats_of(
    counts: native.RequestCounts, bytes_read: int, hits: int, misses: int, cached: int
) -> TableStats:
    """Return the current statistics."""
    requests, rows, nbytes, times = counts.totals()
    marks = np.percentile(times, (50, 90, 99)) / 1e9 if times.size else np.zeros(3)
    p50, p90, p99 = marks.tolist()
    return TableStats(requests, rows, nbytes, bytes_read, hits, misses, cached, p50, p90, p99)
