"""Write rows in a second thread while the next rows are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Writer:
    """Runs jobs in order, in a dedicated thread, on two buffers of rows that are filled in turn."""

    def __init__(self, width: int, dtype: np.dtype[Any]) -> None:
        self.width, self.dtype = width, dtype
        self._buffers = [np.empty((0, width), dtype) for _ in range(2)]
        self._thread = ThreadPoolExecutor(1)
        self._jobs = deque[tuple[int, Future[object]]]()
        self._turn, self._failed = 0, False

    def rows(self, count: int) -> NDArray[Any]:
        """Return memory for rows, to fill and pass to `run_later`.

        Two buffers are used in turn, because new memory costs more than a copy.
        """
        self._turn += 1
        while self._jobs and self._jobs[0][0] < self._turn - 1:
            self._jobs.popleft()[1].result()
        buffer_number = self._turn % 2
        if len(self._buffers[buffer_number]) < count:
            self._buffers[buffer_number] = np.empty((0, self.width), self.dtype)
            self._buffers[buffer_number] = np.empty((count, self.width), self.dtype)
        return self._buffers[buffer_number][:count]

    def run_later(self, job: Callable[..., object], *arguments: Any) -> None:
        """Run a job after all previous ones. A later call raises the job's error."""
        self._jobs.append((self._turn, self._thread.submit(self._do, job, *arguments)))

    def _do(self, job: Callable[..., object], *arguments: Any) -> None:
        if self._failed:
            return  # later jobs must not record a part that was not written
        self._failed = True
        job(*arguments)
        self._failed = False

    def drain(self) -> None:
        """Wait for all jobs."""
        while self._jobs:
            self._jobs.popleft()[1].result()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error_type is None:
                self.drain()
        finally:
            self._thread.shutdown(cancel_futures=True)
