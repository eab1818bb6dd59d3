"""Rows of a table for one batch of indices after another, the next one read ahead."""

import os
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from gatherum.arguments import as_indices
from gatherum.files.budget import Budget
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
        Index arrays, each of any shape; the next one is asked for in a thread of its own, while
        the caller works with the rows of the one before it.
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
    Two batches are in memory at a time, beside ``memory``. A generator that is not used up is
    closed, with the table, when it is deleted or by its method ``close``.

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
        made = _gathered(table, iter(batches), attributes, fill_value, opening)
        with closing(ahead(made, table.opened.stop)) as found:
            yield from found
        table.opened.check_unchanged()


def _gathered(
    table: Source, batches: Iterator[Any], attributes: dict[str, Any], fill_value: object,
    opening: Opening,
) -> Iterator[NDArray[Any]]:  # fmt: skip
    """Gather one batch after another."""
    looked = time.monotonic()
    inputs: Inputs | None = None
    for batch in batches:
        with ExitStack() as stack:  # what a batch opens is closed with it
            own = replace(opening, at_end=stack.callback)
            held = {"indices": find("indices", as_indices("gather", batch))}
            sources = {"table": table, **open_all(held, own)}
            if inputs is not None and inputs.is_like(sources["indices"]):
                inputs = inputs.again(sources, own)
            else:
                inputs = Inputs("gather", sources, attributes, fill_value, own)
            result = gathered(inputs)
        if time.monotonic() - looked > PAUSE:
            table.opened.check_unchanged()
            looked = time.monotonic()
        yield result
