"""Stage chunks next to a Zarr array, in a separate directory for each run.

A task of an earlier run may still be running on a worker that could not be stopped. Such a task
writes to the directory of the earlier run, which is not read again.
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

from gatherum._model.arrays import NumpyArray
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
# The number of retries, and the interval between them in seconds: a task may still be writing when
# a run ends.
_ATTEMPTS, _PAUSE = 50, 0.1


class Staging:
    """The directory of a run, until the run is complete."""

    def __init__(self, build: Build) -> None:
        self.build = build
        os.makedirs(build.working, exist_ok=True)
        self.folder = os.path.join(build.working, uuid4().hex)

    def like(self, path: str, shape: Shape, dtype: DType) -> Shape:
        """Create an empty array, as the file commands do, and return its chunks."""
        return create_like(self.folder, path, shape, dtype)

    def copy(self, table: ZarrArray, *, whole: bool) -> None:
        """Copy the metadata of a table, and its chunks too if `whole`."""
        copy_array(table.path, self.folder, self.build.meter, whole=whole)

    def fill(self, tasks: Sequence[Any], compute: Compute) -> None:
        """Compute tasks that write the chunks, then rename the directory to the build's output."""
        compute(tasks)
        remove_cut_off(self.folder)
        remove_path(self.build.partial)
        os.rename(self.folder, self.build.partial)


@contextmanager
def discarded_when_failed(build: Build, *, resumable: bool) -> Iterator[None]:
    """Remove all staged chunks if a run fails; keep a complete set if `resumable`."""
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
            build.remove_files()
            return
        except OSError as error:  # a task has just written or removed a file
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT) or attempt == _ATTEMPTS - 1:
                raise
        time.sleep(_PAUSE)


def write(folder: str, box: Box, values: NumpyArray) -> None:
    """Write a box of whole chunks. If the run has ended, remove the chunks again."""
    try:
        ZarrArray(folder, Meter(), writable=True, watched=False).write_box(box, values)
    finally:
        if metadata_name(folder) is None:  # zarr has created the directories again
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # other tasks may still write there
                os.rmdir(os.path.dirname(folder))


def remove_cut_off(folder: str) -> None:
    """Remove the partial files of killed zarr writers, which first write to a temporary file."""
    for within, _, names in os.walk(folder):
        for name in names:
            if ".partial" in name:
                os.unlink(os.path.join(within, name))
