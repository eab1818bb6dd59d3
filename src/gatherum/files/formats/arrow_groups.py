"""Row groups of Parquet files, and batches of Arrow's IPC files and streams, read with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gatherum._model.errors.frameworks import has_nulls
from gatherum.files.formats.format import Location, first_line
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Resources

FEATHER1, STREAM = b"FEA1", b"\xff\xff\xff\xff"  # the first bytes of a file


def groups_of(location: Location, resources: Resources, encoded: str | None = None) -> Groups:
    """Open a file and return its row groups. Strings of the column `encoded` are dictionaries."""
    return groups_in(location, location.open(resources), resources, encoded)


def groups_in(
    location: Location, file: DiskFile, resources: Resources, encoded: str | None = None
) -> Groups:
    """Return the row groups of a file, whose first bytes determine its format."""
    raw = open(file.fd, "rb", closefd=False)  # noqa: SIM115  # closed when the call ends
    resources.at_end(raw.close)
    with plain_errors(f"{location}: cannot be read"):
        head = file.read_bytes(0, 8)
        if head.startswith(FEATHER1):
            raise ValueError("Feather's version 1 is not read; write it anew as version 2")
        if head.startswith(STREAM):
            return StreamGroups(raw)
        named = location.file.lower().endswith(".parquet") and not head.startswith(b"ARROW1")
        parquet = named or head.startswith(b"PAR1")
        return ParquetGroups(raw, encoded) if parquet else ArrowGroups(raw)


class ParquetGroups:
    """One column of the row groups of a Parquet file."""

    batch_bytes = 0

    def __init__(self, raw: Any, encoded: str | None = None) -> None:
        from pyarrow import parquet

        dictionaries = None if encoded is None else [encoded]
        self._file = parquet.ParquetFile(raw, read_dictionary=dictionaries)
        self.schema = self._file.schema_arrow
        self.lengths: list[int] = []

    def choose(self, name: str) -> None:
        """Select a column."""
        self._name, metadata = name, self._file.metadata
        self.lengths = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]

    def read(self, group_number: int) -> Any:
        """Return the column of one group."""
        # this also reads the field "b" of a column "a" if a column is named "a.b"
        return self._file.read_row_group(group_number, columns=[self._name]).column(self._name)


class ArrowGroups:
    """One column of the record batches of an Arrow file."""

    batch_bytes = 0

    def __init__(self, raw: Any) -> None:
        import pyarrow

        self._raw, self._file = raw, pyarrow.ipc.open_file(raw)
        self.schema = self._file.schema
        self.lengths: list[int] = []

    def choose(self, name: str) -> None:
        """Select a column. Other columns are not read."""
        import pyarrow

        options = pyarrow.ipc.IpcReadOptions(included_fields=[self.schema.names.index(name)])
        self._raw.seek(0)
        self._file = pyarrow.ipc.open_file(self._raw, options=options)
        # the length is stored only in the batch
        self.lengths = [len(self.read(i)) for i in range(self._file.num_record_batches)]

    def read(self, group_number: int) -> Any:
        """Return the column of one batch."""
        return _valid(self._file.get_batch(group_number))


class StreamGroups:
    """One column of the record batches of an Arrow stream, which does not list its batches."""

    def __init__(self, raw: Any) -> None:
        import pyarrow

        self._raw = raw
        self.schema = pyarrow.ipc.open_stream(raw).schema
        self.lengths: list[int] = []
        self.batch_bytes = 0  # bytes of the largest batch, which is read with all its columns

    def choose(self, name: str) -> None:
        """Select a column, and find the end of each batch."""
        import pyarrow

        fields = [self.schema.names.index(name)]
        self._options = pyarrow.ipc.IpcReadOptions(included_fields=fields)
        self._begin = 0  # of the first batch, after the schema and the dictionaries
        self._raw.seek(0)
        for message in pyarrow.ipc.MessageReader.open_stream(self._raw):
            if message.type == "record batch":
                break
            self._begin = self._raw.tell()
        self._raw.seek(0)
        self._ends = [self._begin]
        for batch in pyarrow.ipc.open_stream(self._raw, options=self._options):
            self.lengths.append(len(batch))
            self._ends.append(self._raw.tell())
            self.batch_bytes = max(self.batch_bytes, self._ends[-1] - self._ends[-2])

    def read(self, group_number: int) -> Any:
        """Return the column of one batch. The batch is read as a stream of only that batch."""
        import pyarrow

        buffers = []
        for start, stop in (
            (0, self._begin),
            (self._ends[group_number], self._ends[group_number + 1]),
        ):
            self._raw.seek(start)
            buffers.append(self._raw.read(stop - start))
        stream = pyarrow.ipc.open_stream(b"".join(buffers), options=self._options)
        return _valid(stream.read_next_batch())


Groups = ParquetGroups | ArrowGroups | StreamGroups


def _valid(batch: Any) -> Any:
    """Return the only column of a batch. Check that its offsets stay within its buffers."""
    batch.validate(full=True)
    return batch.column(0)


class NullsError(Exception):
    """A column has nulls."""


@contextmanager
def plain_errors(where: str) -> Iterator[None]:
    """Convert pyarrow's exceptions for damaged files to a one-line ValueError.

    Raise TypeError for nulls, as for nulls in memory.
    """
    import pyarrow

    try:
        yield
    except NullsError:
        advice = "write it anew after pyarrow's fill_null or drop_null"
        raise has_nulls(where, "some", advice) from None
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise ValueError(f"{where}: {first_line(error)}") from None
