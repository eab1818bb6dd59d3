"""A Table is a handle of a table that stays open, for one lookup after another."""

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
    storage_options: Mapping[str, Any] | None = None,
) -> Table:
    """Open a table for many lookups.

    Parameters
    ----------
    table : path or array
        As in `gather_file`.
    cache : str or int
        Bytes of memory for the rows that are asked for most, such as ``"256MiB"``; as many again
        for `scales` and for `zero_points`. An array in memory has no such cache.
    readers : int, optional
        How many threads serve `Table.submit`, `Table.gather_async` and `Table.prefetch`; 16 by
        default. They are started when they are needed. With `direct`, as many reads of a call are
        in flight.
    direct : bool
        Whether rows go past the system's page cache (``O_DIRECT``), for a table much larger than
        memory with a row cache of its own. Only files on this machine whose rows lie in one piece
        can be read so, and only by `Table.gather` along the first axis.
    scales : path or array, optional
        The scales of a quantized table, whose rows `Table.gather` then dequantizes as
        `gatherum.gather_quantized` does. Its `shape` is that of the values, its `dtype` that of the
        results, and it has neither `Table.gather_nd` nor `Table.gather_elements`. `zero_points`,
        `quantize_axis`, `block_size`, `bits` and `dtype` are for such a table alone.
    zero_points : path or array, optional
        As in `gatherum.gather_quantized`; so are the following.
    quantize_axis : int, default -1
        The axis whose blocks share a scale.
    block_size : int, optional
        How many values share a scale. It may be left out where the number of scales divides that
        of the values.
    bits : {2, 4, 8}, optional
        How many bits a value has.
    dtype : {"float32", "float16", "bfloat16"}, default "float32"
        The dtype of the results.
    decode : bool
        As in `gather_file`. `Table.dtype` and `Table.nbytes` count decoded numbers.
    storage_options : mapping, optional
        As in `gather_file`.

    Returns
    -------
    Table
        A context manager; its method ``close`` closes the table, too.

    Raises
    ------
    TypeError, ValueError, OSError
        As `gather_file` for its table and `gatherum.gather_quantized` for the others; ValueError
        also for a cache that holds no row.

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
        return Table(table, cache, readers, direct, storage_options, decode)
    from .quantized import QuantizedTable

    how = {"quantize_axis": quantize_axis, "block_size": block_size, "bits": bits, "dtype": dtype}
    plain = table, cache, readers, direct, storage_options, decode
    return QuantizedTable(*plain, scales, zero_points, how)
