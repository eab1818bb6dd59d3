"""Nulls of pyarrow, polars and pandas: each operand's error advises how to continue."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gatherum
from gatherum import files

TABLE = np.arange(12.0).reshape(4, 3)
ADVICE = {
    "pyarrow": ("{0}.fill_null(value) or {0}.drop_null()", "numpy.asarray({0})"),
    "pyarrow table": ("{0}.drop_null()", "numpy.asarray({0})"),
    "polars": ("{0}.fill_null(value) or {0}.drop_nulls()", "{0}.to_numpy()"),
    "pandas": ("{0}.fillna(value) or {0}.dropna()", "{0}.to_numpy(float, na_value=numpy.nan)"),
}
INTEGERS = ("indices", "groups", "gather_indices", "scatter_indices", "indptr")
VALUES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "pyarrow.Int64Array": ("pyarrow", lambda lib: lib.array([1, None, 0])),
    "pyarrow.DoubleArray": ("pyarrow", lambda lib: lib.array([1.0, None, 0.0])),
    "pyarrow.ChunkedArray": ("pyarrow", lambda lib: lib.chunked_array([[1], [None, 0]])),
    "pyarrow.Table": ("pyarrow table", lambda lib: lib.table({"a": [1, None, 0]})),
    "pyarrow.RecordBatch": ("pyarrow table", lambda lib: lib.record_batch({"a": [1, None, 0]})),
    "polars.Series": ("polars", lambda lib: lib.Series([1, None, 0])),
    "polars.Series of floats": ("polars", lambda lib: lib.Series([1.0, None, 0.0])),
    "polars.Series of arrays": (
        "polars", lambda lib: lib.Series([[1, 2], [3, None], [0, 0]], dtype=lib.Array(lib.Int64, 2))
    ),
    "polars.DataFrame": ("polars", lambda lib: lib.DataFrame({"a": [1, None, 0]})),
    "pandas.Series": ("pandas", lambda lib: lib.Series([1, None, 0], dtype="Int64")),
    "pandas.Series of floats": ("pandas", lambda lib: lib.Series([1, None, 0], dtype="Float64")),
    "pandas.IntegerArray": ("pandas", lambda lib: lib.array([1, None, 0], dtype="Int64")),
    "pandas.Index": ("pandas", lambda lib: lib.Index([1, None, 0], dtype="Int64")),
    "pandas.DataFrame": (
        "pandas",
        lambda lib: lib.DataFrame({"a": [1.0, 2.0, 3.0], "b": lib.array([1, None, 0], "Int64")}),
    ),
}  # fmt: skip
THREE, FOUR = np.ones(3), np.zeros(4)
ENDS = np.array([0, 1, 2])
CALLS: dict[str, tuple[str, str, Callable[[Any], object]]] = {
    "gather data": ("gather", "data", lambda x: gatherum.gather(x, [0])),
    "gather indices": ("gather", "indices", lambda x: gatherum.gather(TABLE, x)),
    "gather fill": (
        "gather", "fill_value", lambda x: gatherum.gather(TABLE, [9], mode="fill", fill_value=x)
    ),
    "gather_nd indices": ("gather_nd", "indices", lambda x: gatherum.gather_nd(TABLE, x)),
    "gather_elements data": (
        "gather_elements", "data", lambda x: gatherum.gather_elements(x, [0])
    ),
    "scatter data": ("scatter_nd", "data", lambda x: gatherum.scatter_nd(x, [[0]], [1])),
    "scatter updates": (
        "scatter_slices", "updates", lambda x: gatherum.scatter_slices(FOUR, ENDS, x)
    ),
    "groups values": ("groups.reduce", "values", lambda x: gatherum.groups.reduce(x, ENDS)),
    "groups groups": ("groups.reduce", "groups", lambda x: gatherum.groups.reduce(THREE, x)),
    "transform": (
        "groups.transform", "values", lambda x: gatherum.groups.transform(x, ENDS, "softmax")
    ),
    "aggregate data": (
        "aggregate", "data", lambda x: gatherum.aggregate(x, ENDS, ENDS, 4, "add")
    ),
    "aggregate sources": (
        "aggregate", "gather_indices",
        lambda x: gatherum.aggregate(TABLE, x, ENDS, 4, "add"),
    ),
    "aggregate targets": (
        "aggregate", "scatter_indices",
        lambda x: gatherum.aggregate(TABLE, ENDS, x, 4, "add"),
    ),
    "aggregate weights": (
        "aggregate", "weights",
        lambda x: gatherum.aggregate(TABLE, ENDS, ENDS, 4, "add", x),
    ),
    "aggregate pointers": (
        "aggregate", "indptr",
        lambda x: gatherum.aggregate(TABLE, ENDS, None, None, "add", indptr=x),
    ),
    "quantized data": (
        "gather_quantized", "data",
        lambda x: gatherum.gather_quantized(x, [0], np.ones(1, "f4"), block_size=2),
    ),
    "quantized scales": (
        "gather_quantized", "scales",
        lambda x: gatherum.gather_quantized(np.ones((2, 2), "i1"), [0], x, block_size=2),
    ),
    "prepare": ("gather", "indices", lambda x: gatherum.prepare("gather", TABLE, x)),
    "report": ("gather", "indices", lambda x: gatherum.index_report("gather", TABLE, x)),
    "accumulator": ("Accumulator", "data", lambda x: gatherum.Accumulator(x, "add")),
    "file table": ("gather", "data", lambda x: files.gather_file(x, [0])),
    "file indices": ("gather", "indices", lambda x: files.gather_file(TABLE, x)),
    "file updates": (
        "scatter_slices", "updates", lambda x: files.scatter_slices_file(FOUR, ENDS, x)
    ),
    "file values": ("reduce_file", "values", lambda x: files.reduce_file(x, ENDS)),
    "file groups": ("reduce_file", "groups", lambda x: files.reduce_file(THREE, x)),
    "open": ("open", "data", files.open),
    "table indices": ("gather", "indices", lambda x: files.open(TABLE).gather(x)),
    "table rows": ("gather", "indices", lambda x: list(files.open(TABLE).rows([x]))),
}  # fmt: skip


def advice(library: str, operand: str, name: str) -> str:
    without, as_nan = ADVICE[library]
    nan = "" if operand in INTEGERS else f", or {as_nan} for NaN"
    return f"write {without}{nan}".format(name)


@pytest.mark.frameworks
@pytest.mark.parametrize("name", VALUES)
def test_nulls(name: str) -> None:
    library, make = VALUES[name]
    package = pytest.importorskip(library.split()[0], reason=f"install {library.split()[0]}")
    value, type_name = make(package), name.partition(" ")[0]
    for op, operand, call in CALLS.values():
        with pytest.raises(TypeError) as caught:
            call(value)
        assert str(caught.value) == (
            f"{op}: `{operand}` must be without nulls, got a {type_name} with "
            f"nulls; {advice(library, operand, operand)}"
        )
    with pytest.raises(TypeError) as caught:
        gatherum.gather([value, value], [0])
    assert str(caught.value) == (
        f"gather: `data` must be without nulls, got a list of {type_name} objects "
        f"with nulls; {advice(library, 'data', 'item')}"
    )


@pytest.mark.frameworks
def test_the_advice_helps() -> None:
    pyarrow, polars, pandas = map(pytest.importorskip, ("pyarrow", "polars", "pandas"))
    for value, ways in (
        (pyarrow.array([1, None, 0]), ("fill_null(2)", "drop_null()")),
        (pyarrow.chunked_array([[1], [None, 0]]), ("fill_null(2)", "drop_null()")),
        (pyarrow.table({"a": [1, None, 0]}), ("drop_null()",)),
        (polars.Series([1, None, 0]), ("fill_null(2)", "drop_nulls()")),
        (polars.DataFrame({"a": [1, None, 0]}), ("fill_null(2)", "drop_nulls()")),
        (pandas.Series([1, None, 0], dtype="Int64"), ("fillna(2)", "dropna()")),
        (pandas.Index([1, None, 0], dtype="Int64"), ("fillna(2)", "dropna()")),
        (pandas.DataFrame({"a": pandas.array([1, None, 0], "Int64")}), ("fillna(2)", "dropna()")),
    ):
        for way in ways:
            plain = eval(f"value.{way}", {"value": value})
            expected = [1, 2, 0] if "fill" in way else [1, 0]
            result = gatherum.gather(plain, np.arange(len(expected)))
            assert result.ravel().tolist() == expected
    for value, way in (
        (pyarrow.array([1, None]), "numpy.asarray(value)"),
        (pyarrow.table({"a": [1, None]}), "numpy.asarray(value)"),
        (polars.Series([1, None]), "value.to_numpy()"),
        (polars.DataFrame({"a": [1, None]}), "value.to_numpy()"),
        (pandas.Series([1, None], dtype="Int64"), "value.to_numpy(float, na_value=numpy.nan)"),
        (pandas.array([1, None], dtype="Int64"), "value.to_numpy(float, na_value=numpy.nan)"),
    ):
        plain = eval(way, {"value": value, "numpy": np})
        np.testing.assert_array_equal(gatherum.gather(plain, [1, 0]).ravel(), [np.nan, 1.0])


@pytest.mark.frameworks
def test_data_without_nulls_are_operands() -> None:
    pyarrow, polars, pandas = map(pytest.importorskip, ("pyarrow", "polars", "pandas"))
    for value in (
        pyarrow.array([1, 2]), pyarrow.table({"a": [1, 2]}), polars.Series([1, 2]),
        polars.Series([[1, 1], [2, 2]], dtype=polars.Array(polars.Int64, 2)),
        polars.DataFrame({"a": [1, 2]}), pandas.Series([1, 2], dtype="Int64"),
        pandas.DataFrame({"a": pandas.array([1, 2], "Int64")}),
    ):  # fmt: skip
        assert gatherum.gather(value, [1]).ravel()[0] == 2
    floats = gatherum.gather(pandas.DataFrame({"a": [1.0, np.nan]}), [1])
    assert np.isnan(floats).all()
