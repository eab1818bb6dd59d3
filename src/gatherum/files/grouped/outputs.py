"""Output files of `reduce_file`: arrays, and tables with named columns."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._model.call import Attributes
from gatherum.files.arguments.operands import Operand, Path, find_operand
from gatherum.files.arguments.outputs import RunSettings, check_absent, check_target
from gatherum.files.durable.file_sets import write_files
from gatherum.files.file_call import FileCall
from gatherum.files.formats import locate, locate_output
from gatherum.files.formats.dtypes import name_of
from gatherum.files.formats.format import Location, first_line
from gatherum.files.resources.stats import Meter, Stats

from . import errors

TABLES = ("parquet", "arrow", "feather", "csv")
Results = dict[str, NDArray[Any]]


def table_suffix(out: Path) -> str | None:
    """Return the suffix of a file that stores a table, or None for other paths."""
    suffix = os.path.splitext(os.fspath(out) if isinstance(out, (str, os.PathLike)) else "")[1]
    suffix = suffix.lower().removeprefix(".")
    return suffix if suffix in TABLES else None


def check_suffix(out: Path) -> None:
    """Raise UnknownFormat for a path that is neither an array nor a table."""
    if table_suffix(out) is None:
        locate_output(out, TABLES)


def check_table(out: Path, operands: Mapping[str, Operand], settings: RunSettings) -> None:
    """Raise if a table cannot be written, or would replace an operand."""
    target = table_target(out)
    if not settings.overwrite:
        check_absent(target, "overwrite=False")
    paths = {
        role: find_operand(role, operand, "reduce_file")
        for role, operand in operands.items()
        if isinstance(operand, (str, os.PathLike, np.ndarray))
    }
    check_target("reduce_file", target, paths, Meter())
    if table_suffix(out) != "csv":
        locate(out).require()


def table_target(out: Path) -> Location:
    """Return the location of a table, which is written as a whole."""
    text = os.fspath(out)
    return Location(text, text, locate("x.npy", "npy").format)


def labelled(labels: Results, results: Results) -> Results:
    """Return labels and results as columns. A result named like a label gets a suffix."""
    named = {f"{name}_" if name in labels else name: result for name, result in results.items()}
    return labels | named


def write_results(results: Results, out: Path, settings: RunSettings, suffix: str | None) -> Stats:
    """Write results to a file, and return the statistics of the write."""
    if suffix is not None:
        for name, result in results.items():
            if result.ndim != 1:
                raise errors.result_of_several_dimensions("reduce_file", out, name, result.shape)
        content = _csv(results) if suffix == "csv" else _arrow(results, out, suffix)
        write_files({os.fspath(out): content})
        return Stats(0, 0, len(content), 0, 0.0, 0, _in_chunks=False)
    array = next(iter(results.values())) if len(results) == 1 else _records(results)
    return replace(write_array(array, out, settings), chunks_touched=0, _in_chunks=False)


def _records(results: Results) -> NDArray[Any]:
    """Return results as one array of records, with one record per group if the shapes differ."""
    shapes = {result.shape for result in results.values()}
    rank = len(shapes.pop()) if len(shapes) == 1 else 1
    fields = [(name, result.dtype, result.shape[rank:]) for name, result in results.items()]
    records = np.empty(next(iter(results.values())).shape[:rank], fields)
    for name, result in results.items():
        records[name] = result
    return records


def write_array(array: NDArray[Any], out: Path, settings: RunSettings) -> Stats:
    """Write an array to a file in a format that `gather_file` writes."""
    updates = np.zeros((0, *array.shape[1:]), array.dtype)
    operands = {"table": array, "indices": np.zeros(0, np.int64), "updates": updates}
    keywords = Attributes("scatter_slices", 0).keywords
    quiet = replace(settings, progress=None)
    return FileCall("scatter_slices", operands, out, keywords, quiet).measured()[1]


def describe_table(out: Path) -> str | None:
    """Return the number of rows in a table and its column names, or None for other files."""
    suffix = table_suffix(out)
    if suffix == "csv":
        with open(out, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            names, shape = next(reader), (sum(1 for _ in reader),)
    elif suffix is not None:
        from pyarrow import ipc, parquet

        opened = parquet.read_table(out) if suffix == "parquet" else ipc.open_file(out).read_all()
        names, shape = opened.column_names, (opened.num_rows,)
    else:
        if os.path.splitext(os.fspath(out))[1].lower() != ".npy":
            return None
        records = np.load(out, mmap_mode="r")
        if records.dtype.names is None:
            return None
        names, shape = records.dtype.names, records.shape
    count = " x ".join(f"{n:,}" for n in shape)
    return f"{count} {'row' if shape == (1,) else 'rows'} of {', '.join(names)}"


def _csv(results: Results) -> bytes:
    """Return a table as text, in which numbers have as many digits as they need."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(results)
    writer.writerows(zip(*map(_texts, results.values()), strict=True))
    return text.getvalue().encode()


def _texts(column: NDArray[Any]) -> list[Any]:
    if column.dtype.kind == "S":
        return [item.decode("utf-8", "backslashreplace") for item in column.tolist()]
    if column.dtype.kind == "O":
        return [f"{item:f}" if isinstance(item, Decimal) else item for item in column]
    texts: list[Any] = (column.astype(str) if column.dtype.kind in "mMfc" else column).tolist()
    return texts


def _arrow(results: Results, out: Path, suffix: str) -> bytes:
    """Return a table in Parquet format or in Arrow's IPC format."""
    import pyarrow
    from pyarrow import parquet

    content = pyarrow.BufferOutputStream()
    try:
        table = pyarrow.table({name: _column(result, out) for name, result in results.items()})
        if suffix == "parquet":
            parquet.write_table(table, content)
        else:
            with pyarrow.ipc.new_file(content, table.schema) as file:
                file.write_table(table)
    except pyarrow.ArrowException as error:
        raise ValueError(f"reduce_file: {out} cannot be written: {first_line(error)}") from None
    return content.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _column(result: NDArray[Any], out: Path) -> Any:
    import pyarrow

    if result.dtype.kind == "O" and result.size and isinstance(result[0], Decimal):
        return _decimal_column(result.tolist())
    try:
        return pyarrow.array(result)
    except (pyarrow.ArrowException, TypeError):
        raise errors.column_of_unknown_dtype("reduce_file", out, name_of(result.dtype)) from None


def _decimal_column(numbers: list[Decimal]) -> Any:
    """Return a column of decimals of 38 digits, or of 76 if a number has more."""
    import pyarrow

    finite = (number for number in numbers if number.is_finite())  # pyarrow rejects NaN, infinity
    scale = max([0, *(-int(number.as_tuple().exponent) for number in finite)])
    try:
        return pyarrow.array(numbers, pyarrow.decimal128(38, scale))
    except pyarrow.ArrowInvalid:
        return pyarrow.array(numbers, pyarrow.decimal256(76, scale))
