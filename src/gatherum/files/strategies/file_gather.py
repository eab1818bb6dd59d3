"""A gather, which chooses the cheaper of two strategies."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.durable.context import Context
from gatherum.files.resources.disk import PAGE
from gatherum.files.row_access.flat import FlatArray
from gatherum.files.row_access.partition import Buckets
from gatherum.files.row_access.table import Panel, RowTable
from gatherum.files.row_access.writer import Writer

from .table_pass import TablePass
from .windows import Windows, valid

__all__ = ["FileGather"]

Ints = NDArray[np.int64]
CHECKED = 1 << 16  # indices checked together, few enough to stay in the cache
SPILLED = 3  # cost of parking an output byte and reading it again, in bytes read
PARKED = 128  # cost of parking a row, which is ordered twice


@dataclass
class Survey:
    """The result of checking all indices: their distribution. All of them are valid."""

    buckets: Buckets
    windowed_bytes: int
    passed_bytes: int
    cached: float  # the share of the wanted rows in the page cache


class FileGather:
    """One gather of `table` rows to `out`, through windows of the output.

    Two strategies produce the same bytes: window by window, or one pass over the table if windows
    would read the same rows repeatedly from the disk.
    """

    def __init__(
        self,
        context: Context,
        table: RowTable,
        out: FlatArray,
        panel: Panel,
        fill: NDArray[Any],
    ) -> None:
        self.context, self.table = context, table
        self.requests = context.requests
        self.windows = Windows(context, table, out, panel, fill)

    def run(self) -> None:
        """Check every index, then gather."""
        survey = self.survey()
        self.context.meter.expect(self.requests.count * self.windows.row_bytes)
        with Writer(self.table.width, self.table.dtype) as writer:
            if self._passes(survey):
                TablePass(self.windows, survey.buckets, writer).run()
            else:
                self.windows.run(survey.cached, writer)

    def _passes(self, survey: Survey) -> bool:
        """Return True if one pass over the table is cheaper. A resumed run keeps its strategy."""
        if self.windows.number == 1 or not self.windows.whole:
            return False
        if records := self.context.build.records():
            return any("passed" in record for record in records)
        parked = self.requests.count * (SPILLED * self.windows.row_bytes + PARKED)
        return (survey.windowed_bytes - survey.passed_bytes) * (1 - survey.cached) > parked

    def survey(self) -> Survey:
        """Check every index once, before anything is written."""
        buckets = Buckets(self.table.extent, self.table.quantum)
        if self.windows.number == 1:
            numbers = self.windows.keep_numbers()
            return Survey(buckets, 0, 0, self.table.cached_share(numbers))
        cached = self.table.cached_share(self.windows.numbers(0, self.windows.length)[0])
        # rows in the page cache are never parked, so counting is not needed
        settled = cached == 1 and SPILLED > 0 and not self.context.build.records()
        windowed = 0
        for start, stop in self.requests.windows(CHECKED if settled else self.windows.length):
            numbers, invalid = self.windows.numbers(start, stop)
            if not settled:
                windowed += self._cost(buckets, buckets.count(valid(numbers, invalid)))
        return Survey(buckets, windowed, self._cost(buckets, buckets.counts), cached)

    def _cost(self, buckets: Buckets, counts: Ints) -> int:
        """Estimate the bytes to read the counted rows of each bin."""
        row, table = self.windows.row_bytes, self.table
        each = row * table.quantum if table.chunked else row + PAGE  # chunks are read whole
        return int(np.minimum(counts * each, buckets.bin_rows * row).sum())
