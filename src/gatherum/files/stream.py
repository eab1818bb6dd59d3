"""Rows of a table for one batch of indices after another, the next one read ahead."""

import math
import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.batches import Batches
from gatherum.files.budget import Budget
from gatherum.files.disk import PAGE
from gatherum.files.formats.format import Location, Opening
from gatherum.files.formats.storage import Source
from gatherum.files.inputs import Inputs
from gatherum.files.operands import Held, Operand, Path, find, open_all
from gatherum.files.remote import checked_options
from gatherum.files.results import gathered
from gatherum.files.stats import Meter
from gatherum.files.tables.table import ahead
from gatherum.names import ModeName

__all__ = ["rows"]

PAUSE = 1.0  # seconds between two looks at whether the table is still the same
SHARE = 32  # of the memory, for the rows of small batches that one call gathers
CACHED = 2 << 20  # bytes, where rows of a page and more share no page with others


def rows(
    table: Operand,
    batches: Iterable[Any],
    axis: int = 0,
    *,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    spill_dir: Path | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Generator[NDArray[Any], None, None]:
    """Yield the slices of a table that each batch of indices names, the next batch read ahead.

    ``yield gather(table, batch, axis)`` for each `batch`, with the table opened once

    Parameters
    ----------
    table : path or array
        As in `gather_file`.
    batches : iterable
        Index arrays, each of any shape; the next ones are asked for in a thread of their own,
        while the caller works with the rows of the one before them. Small ones are asked for
        further ahead, and those that have come by then, up to 1024, are read at once.
    axis, memory, mode, negative, fill_value, spill_dir, storage_options
        As in `gather_file`.

    Yields
    ------
    ndarray
        The rows of one batch, in memory of its own.

    Raises
    ------
    TypeError, ValueError, IndexError
        As `gatherum.gather`, when the batch's turn comes; those before it have been yielded.
    OSError
        The table cannot be read, or changed under way.

    Notes
    -----
    Beside ``memory`` two batches are held at a time, or small ones of an eighth of ``memory``
    together, and the indices of the next. A generator that is not used up is closed, with the
    table, when it is deleted or by its method ``close``, as soon as the batch that is being asked
    for has come.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.arange(8.0).reshape(4, 2)
    >>> for batch in rows(table, [[3, 0], [1]]):
    ...     print(batch.tolist())
    [[6.0, 7.0], [0.0, 1.0]]
    [[2.0, 3.0]]
    """
    budget, directory = Budget.parse(memory), os.fspath(spill_dir or tempfile.gettempdir())
    if not os.path.isdir(directory):
        raise FileNotFoundError(f"{directory}: there is no such directory")
    attributes = {"axis": axis, "mode": mode, "negative": negative}
    where = find("table", table)
    if isinstance(where, Location):
        where.require()
    options = checked_options(storage_options)
    return _opened(where, batches, attributes, fill_value, (budget, directory, options))


def _opened(
    where: Location | Held, batches: Iterable[Any], attributes: dict[str, Any], fill_value: object,
    means: tuple[Budget, str, dict[str, Any]],
) -> Generator[NDArray[Any], None, None]:  # fmt: skip
    """Open the table, and yield the rows of each batch."""
    with ExitStack() as stack:
        budget, spill_dir, options = means
        opening = Opening(Meter(), budget, spill_dir, stack.callback, storage_options=options)
        table = open_all({"table": where}, opening)["table"]
        nbytes, most = _bytes_of_a_row(table, attributes["axis"]), budget.total // SHARE
        if nbytes >= PAGE:
            most = min(most, CACHED)
        with Batches(iter(batches), nbytes, most) as asked:

            def stop() -> None:
                asked.stop()
                table.opened.stop()

            made = _gathered(table, asked, attributes, fill_value, opening)
            with closing(ahead(made, stop)) as found:
                for rows_of_some in found:
                    yield from rows_of_some
        table.opened.check_unchanged()


def _gathered(
    table: Source, batches: Batches, attributes: dict[str, Any], fill_value: object,
    opening: Opening,
) -> Iterator[list[NDArray[Any]]]:  # fmt: skip
    """Gather one group of batches after another."""
    looked = time.monotonic()
    inputs: Inputs | None = None

    def gather(indices: NDArray[Any]) -> NDArray[Any]:
        nonlocal inputs
        with ExitStack() as stack:  # what a call opens is closed with it
            own = replace(opening, at_end=stack.callback)
            sources = {"table": table, **open_all({"indices": find("indices", indices)}, own)}
            if inputs is not None and inputs.is_like(sources["indices"]):
                inputs = inputs.again(sources, own)
            else:
                inputs = Inputs("gather", sources, attributes, fill_value, own)
            return gathered(inputs)

    for group in batches.groups():
        yield from _taken(group, gather, attributes["axis"])
        if time.monotonic() - looked > PAUSE:
            table.opened.check_unchanged()
            looked = time.monotonic()


def _bytes_of_a_row(table: Source, axis: int) -> int:
    """Return what one index takes; an axis that the table has not is left to the call to refuse."""
    shape = list(table.shape)
    with suppress(IndexError, TypeError):
        del shape[axis]
    return math.prod(shape) * table.dtype.itemsize


def _taken(
    group: list[NDArray[Any]], gather: Callable[[NDArray[Any]], NDArray[Any]], axis: int
) -> Iterator[list[NDArray[Any]]]:
    """Yield the rows of a group: of all batches at once, or, where one is refused, of each."""
    if len(group) > 1:
        try:
            rows = gather(np.concatenate([indices.reshape(-1) for indices in group]))
        except Exception:  # the batch that caused it says so when its turn comes
            pass
        else:
            yield _cut(rows, group, range(rows.ndim)[axis])
            return
    for indices in group:
        yield [gather(indices)]


def _cut(rows: NDArray[Any], group: list[NDArray[Any]], axis: int) -> list[NDArray[Any]]:
    """Return the rows of each batch, in memory of its own."""
    before, after = rows.shape[:axis], rows.shape[axis + 1 :]
    ends = list(accumulate(indices.size for indices in group))
    # As bytes: NumPy copies records field by field, without what lies between them.
    raw = rows.view(np.dtype((np.void, rows.itemsize))) if rows.dtype.names else rows
    parts = np.split(raw, ends[:-1], axis)
    return [
        np.array(part, order="C").view(rows.dtype).reshape(before + indices.shape + after)
        for part, indices in zip(parts, group, strict=True)
    ]
