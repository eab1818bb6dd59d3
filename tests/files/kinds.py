"""A dtype of every kind with items of a fixed size, and arrays of arbitrary bits."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["DTYPES", "filled", "values"]

NUMBERS = ["i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
PLAIN: list[DTypeLike] = [
    "?", "i1", "u1", *(order + name for name in NUMBERS for order in "<>"),
    np.longdouble, np.clongdouble, np.dtype("g").newbyteorder("S"),
    "<M8[ns]", ">M8[ns]", "<M8[D]", "<M8[7D]", "<m8[s]", ">m8[25us]", "<M8", "<m8",
    "S1", "S5", "<U3", ">U3", "V1", "V7",
]  # fmt: skip
ADDED = [
    "bfloat16", "complex32", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "int2", "int4", "uint2", "uint4",
]  # fmt: skip
FOUND = [np.dtype(getattr(ml_dtypes, name)) for name in ADDED if hasattr(ml_dtypes, name)]
INNER = np.dtype([("x", ">i2"), ("y", "u1")])
RECORDS: dict[str, DTypeLike] = {
    "native": [("flux", "<f4"), ("mask", "<i4")],
    "big-endian": [("flux", ">f4"), ("mask", ">i4")],
    "both orders": [("a", "<f4"), ("b", ">i2"), ("c", ">M8[s]"), ("d", ">c8")],
    "nested": [("p", INNER), ("q", "<f8")],
    "padded": np.dtype([("a", "u1"), ("b", ">f8"), ("c", "u1")], align=True),
    "nested padded": np.dtype(
        [("a", "u1"), ("p", np.dtype([("x", "u1"), ("y", ">i4")], align=True))], align=True
    ),
    "offsets": {"names": ["a", "b"], "formats": ["<i2", ">i4"], "offsets": [4, 8], "itemsize": 16},
    "out of order": {"names": ["a", "b"], "formats": ["<i2", ">i4"], "offsets": [4, 0]},
    "overlapping": {"names": ["a", "b"], "formats": ["<i4", "<i2"], "offsets": [0, 2]},
    "subarrays": [("a", ">f4", (2, 3)), ("b", "i1")],
    "arrays of records": [("a", INNER, (2,)), ("b", "i1")],
    "texts": [("s", "S3"), ("u", ">U2")],
    "bools": [("t", "?"), ("h", ">f2")],
    "titles": [(("a title", "a"), ">f4"), ("b", "<i4")],
    "longdouble": [("g", np.longdouble), ("h", ">f2")],
    "bytes": [("v", "V3"), ("h", ">f2")],
    "added": [("a", np.dtype(ml_dtypes.bfloat16)), ("b", np.dtype(ml_dtypes.float8_e5m2))],
    "empty": [],
}
DTYPES: dict[str, np.dtype[Any]] = {
    **{np.dtype(dtype).str: np.dtype(dtype) for dtype in PLAIN},
    **{dtype.name: dtype for dtype in FOUND},
    "swapped bfloat16": np.dtype(ml_dtypes.bfloat16).newbyteorder("S"),
    **{f"records: {name}": np.dtype(dtype) for name, dtype in RECORDS.items()},
}


def filled(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    """Return an array of arbitrary bits, padding included. Bools and texts are valid."""
    random, count = np.random.default_rng(seed), int(np.prod(shape))
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    array = np.frombuffer(random.bytes(count * dtype.itemsize), dtype).copy()
    _make_valid(array, random)
    return array.reshape(shape)


def _make_valid(array: NDArray[Any], random: np.random.Generator) -> None:
    if array.dtype.names is not None:
        for name in array.dtype.names:
            _make_valid(array[name], random)
    elif array.dtype.kind == "b":
        array[...] = random.integers(2, size=array.shape)
    elif array.dtype.kind == "U":
        array[...] = random.choice(["", "é", "ab", "xyz"], array.shape)


def values(array: NDArray[Any]) -> Any:
    """Return the field names and bits of an array's values, ignoring byte order and padding."""
    if array.dtype.names is not None:
        return [(name, values(array[name])) for name in array.dtype.names]
    native = array.astype(array.dtype.newbyteorder("="))
    return array.shape, native.dtype.str, native.tobytes()
