"""A Table is a handle of a table that stays open for many lookups."""

from collections.abc import Mapping
from typing import Any

from gatherum.files.arguments.operands import Operand

from .counts import TableStats
from .table import Table

__all__ = ["Table", "TableStats", "open"]


def open(
    table: Operand,
    *,
    cache: str | int = "0",
    readers: int | None = None,
    direct: bool = False,
    scales: Operand | None = None,
    zero_points: Operand | None = None,
    quantize_axis: int = -1,
    block_size: int | None = None,
    bits: int | None = None,
    dtype: Any = "float32",
    decode: bool = True,
    follow: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Table:
    """Open a table for many lookups.

    Parameters
    ----------
    table : path or array
        As in `gather_file`.
    cache : str or int
        The amount of memory for the most requested rows, such as ``"256MiB"``. `scales` and
        `zero_points` each use the same amount. An array in memory is not cached.
    readers : int, optional
        The number of threads for `Table.submit`, `Table.gather_async` and `Table.prefetch`.
        Default: 16. They are started on demand. With `direct`, also the number of concurrent reads
        of a call.
    direct : bool
        Whether to read rows without the system's page cache (``O_DIRECT``), for a table much larger
        than memory with a row cache. It is supported for local files with contiguous rows, and only
        for `Table.gather` along the first axis.
    scales : path or array, optional
        The scales of a quantized table, whose rows `Table.gather` dequantizes like
        `gatherum.gather_quantized`. `shape` is then the shape of the values, and `dtype` the dtype
        of the results. `Table.gather_nd` and `Table.gather_elements` are not supported.
        `zero_points`, `quantize_axis`, `block_size`, `bits` and `dtype` require `scales`.
    zero_points : path or array, optional
        As in `gatherum.gather_quantized`, like the next four parameters.
    quantize_axis : int, default -1
        The axis whose blocks share a scale.
    block_size : int, optional
        The number of values that share a scale. Required unless the number of scales divides the
        number of values.
    bits : {2, 4, 8}, optional
        The number of bits of a value.
    dtype : {"float32", "float16", "bfloat16"}, default "float32"
        The dtype of the results.
    decode : bool
        As in `gather_file`. `Table.dtype` and `Table.nbytes` describe decoded numbers.
    follow : bool
        Whether to continue with the new file when the table's file is replaced or removed, for
        example by ``os.replace``. Calls use the old file until the new one can be opened, and
        `Table.version` counts the changes. A file that is written in place still raises OSError.
        Supported for a table in one local file; with `scales`, the old files are used until the new
        ones match.
    storage_options : mapping, optional
        As in `gather_file`.

    Returns
    -------
    Table
        A context manager. Its method ``close`` also closes the table.

    Raises
    ------
    TypeError, ValueError, OSError
        As in `gather_file` for its table, and as in `gatherum.gather_quantized` for the other
        operands. Also ValueError if the cache is smaller than one row.

    Examples
    --------
    >>> import numpy as np
    >>> with open(np.arange(8.0).reshape(4, 2)) as table:
    ...     print(table.gather([3, 0]).tolist())
    [[6.0, 7.0], [0.0, 1.0]]
    """
    if scales is None:
        for name, value, default in (
            ("zero_points", zero_points, None), ("quantize_axis", quantize_axis, -1),
            ("block_size", block_size, None), ("bits", bits, None), ("dtype", dtype, "float32"),
        ):  # fmt: skip
            if not (value is default or (default is not None and value == default)):
                raise ValueError(f"open: `{name}` must be {default} without `scales`")
        return Table(table, cache, readers, direct, storage_options, decode, follow)
    from .quantized import QuantizedTable

    attributes = {
        "quantize_axis": quantize_axis,
        "block_size": block_size,
        "bits": bits,
        "dtype": dtype,
    }
    plain = table, cache, readers, direct, storage_options, decode, follow
    return QuantizedTable(*plain, scales, zero_points, attributes)
