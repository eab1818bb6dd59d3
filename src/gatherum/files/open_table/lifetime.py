"""A Handle manages an open table from `open` to `close`, including threads, pickles and forks."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from gatherum._arguments.plain_values import as_boolean, as_integer
from gatherum._system import native
from gatherum.files.arguments.operands import ArrayOperand, Operand, find_operand
from gatherum.files.formats.format import Location
from gatherum.files.resources.resources import checked_options, size_of

from .state import RELOAD, Settings, State

T = TypeVar("T")
READERS = 16
MOST_READERS = 1024
RETRY = 0.1  # seconds between two attempts to open a new file


class Handle:
    """An open or closed table: the base of `Table`, without the lookups."""

    def __init__(
        self,
        table: Operand,
        cache: str | int,
        readers: int | None,
        direct: bool,
        storage_options: Mapping[str, Any] | None,
        decode: bool = True,
        follow: bool = False,
    ) -> None:
        self._where, self._original = anchored("table", table)
        options = checked_options("open", storage_options)
        nbytes = size_of("open", "cache", cache)
        count = READERS if readers is None else as_integer("open", "readers", readers)
        if not 1 <= count <= MOST_READERS:
            raise ValueError(f"open: `readers` must be from 1 to {MOST_READERS}, got {count}")
        past, decode = as_boolean("open", "direct", direct), as_boolean("open", "decode", decode)
        follow = as_boolean("open", "follow", follow)
        if follow:
            _check_followed(self._where)
        self._settings = Settings(nbytes, count, past, options, decode, follow)
        self._version = 0
        self._following, self._retry = threading.Lock(), 0.0
        self._counts, self._lock = native.make_request_counts(), threading.Lock()
        self._writing = threading.RLock()  # no `reload` opens a file that is being written
        self._pool: ThreadPoolExecutor | None = None
        self._readers: set[int] = set()  # the threads of the pool
        self._closing = False
        self._before: Any = None  # in a child process, the version that the parent has opened
        self._state: State | None = self._new_state()
        TABLES.add(self)

    def _new_state(self) -> State:
        return State(self._where, self._settings)

    # ------------------------------------------------------------ properties

    @property
    def shape(self) -> tuple[int, ...]:
        """The table's shape."""
        return self._opened("shape").shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements."""
        return self._opened("dtype").dtype

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self._opened("nbytes").table.nbytes

    @property
    def version(self) -> int:
        """The number of times that `reload` or `follow` opened a new file."""
        return self._version

    @property
    def path(self) -> str:
        """The file's absolute path."""
        return self._where.file if isinstance(self._where, Location) else ""

    def __repr__(self) -> str:
        state = self._state
        if state is None:
            return f"<closed Table {self._where}>"
        return f"<Table {self._where}: {state.dtype} {state.shape}>"

    def _start(
        self, call: Callable[..., T], *arguments: Any, called: str = "submit", **options: Any
    ) -> Future[T]:
        with self._lock:
            if self._closing:
                raise self._closed(called)
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    self._settings.readers, "gatherum-reader", _note_thread, (self._readers,)
                )
            return self._pool.submit(call, *arguments, **options)

    def _opened(self, name: str) -> State:
        if (state := self._state) is None:
            state = self._opened_again(name)
        return self._followed(state) if state.is_replaced else state

    def _followed(self, state: State) -> State:
        """Return the table that replaced an open one, or the old one until that can be opened."""
        if not self._following.acquire(blocking=False):
            return state  # another call is opening it
        try:
            current, now = self._state, time.monotonic()
            if current is not state or now < self._retry:
                return current or state
            self._retry = now + RETRY
            try:
                new = self._new_state()
            except (OSError, TypeError, ValueError, RuntimeError):
                return state  # missing or incomplete: try again later
            with self._lock:
                if self._state is not state:
                    return state  # closed or reloaded in the meantime
                self._state, self._retry = new, 0.0
                self._version += 1
            return new
        finally:
            self._following.release()

    def _closed(self, name: str) -> ValueError:
        return ValueError(f"{name}: the table {self._where} is closed")

    def _opened_again(self, name: str) -> State:
        """Open the parent's table in a child process. Raise ValueError if the table is closed."""
        if self._before is None:
            raise self._closed(name)
        state = reason = None
        try:
            state = self._new_state()
        except (TypeError, ValueError, RuntimeError) as error:  # the parent was able to open it
            reason = error
        except FileNotFoundError as error:
            error.add_note(RELOAD)
            raise
        if state is None or (state.version() != self._before and not self._settings.follow):
            changed = OSError(f"{self._where}: changed since the parent process opened it")
            changed.add_note(RELOAD)
            raise changed from reason
        self._state, self._before = state, None
        return state

    def reload(self) -> None:
        """Open the table again in its current state, with an empty row cache.

        Calls that run in other threads finish with the old table, or raise its error.

        Raises
        ------
        TypeError, ValueError, OSError
            As in `open`. The table is then unchanged.
        """
        if self._before is None:
            self._opened("reload")
        with self._writing:
            state = self._new_state()
            with self._lock:
                if self._closing:
                    raise self._closed("reload")
                self._state, self._before = state, None
                self._version += 1

    def close(self) -> None:
        """Wait for submitted calls, and close the table. Further calls do nothing.

        A future's callback may run in a thread that serves submitted calls, and cannot wait for
        these calls. In such a thread, `close` returns immediately, and the table is closed after
        the calls.
        """
        with self._lock:
            if self._closing:
                return
            self._closing = True
            pool, self._pool = self._pool, None
        if threading.get_ident() in self._readers:
            threading.Thread(target=self._end, args=(pool,), name="gatherum-close").start()
        else:
            self._end(pool)

    def _end(self, pool: ThreadPoolExecutor | None) -> None:
        try:
            if pool is not None:
                pool.shutdown()
        finally:
            self._state = self._before = None

    def __enter__(self) -> Self:
        self._opened("with")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the arguments of `open`, including `storage_options` and the password of a URL."""
        self._opened("pickle")
        return type(self), (self._original, *self._settings)

    def _after_fork(self) -> None:
        """Reset threads and locks, which a child process does not inherit from its parent."""
        self._lock, self._pool, self._readers = threading.Lock(), None, set()
        self._following, self._writing = threading.Lock(), threading.RLock()
        self._counts = native.make_request_counts()
        if self._state is not None:
            self._before, self._state = self._state.version(), None


TABLES = weakref.WeakSet[Handle]()


def anchored(role: str, operand: Operand) -> tuple[Location | ArrayOperand, Operand]:
    """Return the location of an operand of `open`, and an operand that opens it in another process.

    Neither depends on the current directory.
    """
    where = find_operand(role, operand, "open")
    if isinstance(where, ArrayOperand):
        return where, operand
    where.require()
    if where.remote is not None:
        return where, os.fspath(operand)
    file = str(Path(where.file).absolute())
    return replace(where, file=file), file + where.text[len(where.file) :]


def _check_followed(where: Location | ArrayOperand) -> None:
    if isinstance(where, ArrayOperand) or where.remote is not None or os.path.isdir(where.file):
        raise ValueError(f"open: `follow` needs a table in one local file, got {where}")


def _note_thread(threads: set[int]) -> None:
    threads.add(threading.get_ident())


def _after_fork() -> None:
    for table in list(TABLES):
        table._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
