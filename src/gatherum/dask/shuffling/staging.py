"""Tasks stage chunks beside a Zarr array, in a directory of their run alone.

A task of an earlier run may still be working on a worker that could not be stopped. What it writes
goes to the directory of that run, which nobody reads.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias
from uuid import uuid4

from gatherum._model.call import Array
from gatherum._model.dtypes import DType
from gatherum._model.errors import Shape
from gatherum.files.durable.build import Build, remove_path
from gatherum.files.formats.zarr import create_like
from gatherum.files.formats.zarr.arrays import ZarrArray
from gatherum.files.formats.zarr.nodes import metadata_name
from gatherum.files.formats.zarr.stores import copy_array
from gatherum.files.resources.stats import Meter

Box: TypeAlias = tuple[slice, ...]
# Computes tasks, and returns when all are done.
Compute: TypeAlias = Callable[[Sequence[Any]], object]
# A writer that is working when a run ends needs a moment to notice.
_ATTEMPTS, _PAUSE = 50, 0.1


class Staging:
    """The directory of a run, from its beginning until it is whole."""

    def __init__(self, build: Build) -> None:
        self.build = build
        os.makedirs(build.working, exist_ok=True)
        self.folder = os.path.join(build.working, uuid4().hex)

    def like(self, path: str, shape: Shape, dtype: DType) -> Shape:
        """Begin with an empty array, such as the file commands make; return its chunks."""
        return create_like(self.folder, path, shape, dtype)

    def copy(self, table: ZarrArray, *, whole: bool) -> None:
        """Begin with the metadata of a table, and its chunks if the result is to be whole."""
        copy_array(table.path, self.folder, self.build.meter, whole=whole)

    def fill(self, tasks: Sequence[Any], compute: Compute) -> None:
        """Let tasks write their chunks, then make the directory the build's complete output."""
        compute(tasks)
        remove_cut_off(self.folder)
        remove_path(self.build.partial)
        os.rename(self.folder, self.build.partial)


@contextmanager
def discarded_when_failed(build: Build, *, resumable: bool) -> Iterator[None]:
    """Remove all that was staged when a run fails; a whole patch is kept for a resume."""
    try:
        yield
    except (Exception, KeyboardInterrupt):
        if not (resumable and build.replacing):
            _discard(build)
        raise
    finally:
        build.close()


def _discard(build: Build) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            build.clear()
            return
        except OSError as error:  # a task has just written into it, or removed what it wrote
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT) or attempt == _ATTEMPTS - 1:
                raise
        time.sleep(_PAUSE)


def write(folder: str, box: Box, values: Array) -> None:
    """Write a box of whole chunks; where the run has ended meanwhile, leave nothing behind."""
    try:
        ZarrArray(folder, Meter(), writable=True, watched=False).write_box(box, values)
    finally:
        if metadata_name(folder) is None:  # zarr has made the directories anew
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # other tasks may still write there
                os.rmdir(os.path.dirname(folder))


def remove_cut_off(folder: str) -> None:
    """Remove what zarr's writers leave that are killed: each writes a file of its own first."""
    for within, _, names in os.walk(folder):
        for name in names:
            if ".partial" in name:
                os.unlink(os.path.join(within, name))
