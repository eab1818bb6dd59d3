"""Read the resources of a DxDispatch model: buffers with their initial values."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gatherum._model.arrays import NumpyArray
from gatherum._system import native
from gatherum._system.regular_files import read_regular

from .members import as_object, number_of, read_data_type, reject_unknown, shortened, text_of
from .types import TensorDataType

_MEMBERS: Final = (
    "type",
    "initialValues",
    "initialValuesDataType",
    "initialValuesOffsetInBytes",
    "sizeInBytes",
)
_LARGEST: Final = 1 << 32  # bytes of a buffer: the limit of DirectML's tensors
_HALF_MAX: Final = 65504  # the largest float16
_SPECIAL: Final = ("nan", "inf", "-inf")  # numbers that JSON lacks


@dataclass(frozen=True)
class Resource:
    """A buffer of a model, and the type and number of its initial values."""

    data_type: TensorDataType
    buffer: npt.NDArray[np.uint8]
    count: int

    def values(self) -> NumpyArray:
        """Return the first `count` elements of the buffer."""
        dtype = self.data_type.dtype
        return self.buffer[: self.count * dtype.itemsize].view(dtype)


def read_resource(source: object, where: str, folder: str) -> Resource:
    """Return a resource of a model in JSON. Look for a file of values in ``folder`` first."""
    members = as_object(source, f"`{where}`")
    reject_unknown(members, _MEMBERS, f"`{where}`")
    resource_type = members.get("type", "buffer")
    if resource_type != "buffer":
        raise ValueError(f"`{where}.type` must be 'buffer', got {shortened(resource_type)}")
    if "initialValues" not in members:
        raise ValueError(f"`{where}.initialValues` is missing: every buffer needs it")
    data_type, member = TensorDataType.UNKNOWN, f"{where}.initialValuesDataType"
    if "initialValuesDataType" in members:
        data_type = _whole_type(members["initialValuesDataType"], member)
    values = _initial_values(members["initialValues"], data_type, where, folder)
    if not values.size:
        raise ValueError(f"`{where}.initialValues` must have values, got none")
    if isinstance(members["initialValues"], Mapping):  # an .npy file has a dtype
        data_type = TensorDataType.from_dtype(values.dtype)
    raw = np.frombuffer(values.tobytes(), np.uint8)
    offset = number_of(members, "initialValuesOffsetInBytes", where, _LARGEST)
    size = number_of(members, "sizeInBytes", where, _LARGEST, -(-raw.size // 4) * 4)
    if offset + raw.size > size:
        raise ValueError(
            f"`{where}.sizeInBytes` must hold the initial values, {offset + raw.size} bytes, "
            f"got {size}"
        )
    buffer = np.zeros(size, np.uint8)
    buffer[offset : offset + raw.size] = raw
    return Resource(data_type, buffer, values.size)


def _whole_type(value: object, where: str) -> TensorDataType:
    """Return a data type, which must have elements of whole bytes or be UNKNOWN."""
    data_type = read_data_type(value, where)
    if data_type.name in ("UINT4", "INT4"):
        raise ValueError(f"`{where}` must have elements of whole bytes, got {data_type.name}")
    return data_type


def _initial_values(
    source: object, data_type: TensorDataType, where: str, folder: str
) -> NumpyArray:
    member = f"{where}.initialValues"
    if isinstance(source, Mapping) and "sourcePath" in source:
        reject_unknown(source, ("sourcePath",), f"`{member}`")
        return _of_file(text_of(source, "sourcePath", member), data_type, member, folder)
    if data_type is TensorDataType.UNKNOWN:
        return _of_several_types(source, member)
    if isinstance(source, list):
        values = [
            typed_number(value, data_type, f"{member}[{i}]") for i, value in enumerate(source)
        ]
        return np.array(values, data_type.dtype)
    return _generated(source, data_type, member)


def _generated(source: object, data_type: TensorDataType, member: str) -> NumpyArray:
    """Return a repeated value, or evenly spaced values."""
    if not isinstance(source, Mapping):
        raise ValueError(f"`{member}` must be a list or an object, got {shortened(source)}")
    names = ("value",) if "value" in source else ("valueStart", "valueDelta")
    reject_unknown(source, ("valueCount", *names), f"`{member}`")
    for name in ("valueCount", *names):
        if name not in source:
            raise ValueError(f"`{member}.{name}` is missing")
    dtype = data_type.dtype
    limit = _LARGEST // dtype.itemsize
    count = number_of(source, "valueCount", member, limit)
    start = typed_number(source[names[0]], data_type, f"{member}.{names[0]}")
    if names == ("value",):
        return np.full(count, start, dtype)
    delta = source["valueDelta"]
    if dtype.kind == "f":
        delta = typed_number(delta, data_type, f"{member}.valueDelta")
        end = float(start) + float(delta) * max(count - 1, 0)
        if math.isfinite(start) and math.isfinite(delta):
            typed_number(end, data_type, f"{member}: the last value")
        with np.errstate(invalid="ignore"), native.FloatMode():  # infinite start or delta
            return (np.arange(count) * float(delta) + float(start)).astype(dtype)
    if isinstance(delta, bool) or not isinstance(delta, int):
        raise ValueError(f"`{member}.valueDelta` must be an integer, got {shortened(delta)}")
    typed_number(int(start) + delta * max(count - 1, 0), data_type, f"{member}: the last value")
    steps = np.arange(count, dtype=np.uint64) * np.uint64(delta % 2**64)  # exact modulo 2^64
    return (steps + np.uint64(int(start) % 2**64)).astype(dtype)


def _of_several_types(source: object, member: str) -> NumpyArray:
    """Return the bytes of values that may each have a different type."""
    if not isinstance(source, Sequence) or isinstance(source, str):
        type_member = f"{member.rpartition('.')[0]}.initialValuesDataType"
        raise ValueError(
            f"`{type_member}` must be a type: `{member}` is not a list of typed values"
        )
    pieces = []
    for i, item in enumerate(source):
        item_member = f"{member}[{i}]"
        typed = as_object(item, f"`{item_member}`, in a buffer of no one type,")
        reject_unknown(typed, ("name", "type", "value"), f"`{item_member}`")
        data_type = _whole_type(typed.get("type"), f"{item_member}.type")
        value = typed_number(typed.get("value"), data_type, f"{item_member}.value")
        pieces.append(np.array([value], data_type.dtype).tobytes())
    return np.frombuffer(b"".join(pieces), np.uint8)


def source_files(resources: Mapping[str, Any], folder: str) -> list[str]:
    """Return the files from which the values of resources were read."""
    values = (members["initialValues"] for members in resources.values())
    paths = (initial.get("sourcePath") for initial in values if isinstance(initial, Mapping))
    return [_source_file(path, folder) for path in paths if path is not None]


def _source_file(path: str, folder: str) -> str:
    joined = os.path.join(folder, path)
    return joined if os.path.exists(joined) else path


def _of_file(path: str, data_type: TensorDataType, member: str, folder: str) -> NumpyArray:
    """Return the array of an .npy file, or the elements of a file of raw bytes."""
    content = read_regular(_source_file(path, folder), _LARGEST)
    if not path.lower().endswith(".npy"):
        if path.lower().endswith((".png", ".jpg")):
            raise ValueError(
                f"`{member}.sourcePath` must be .npy or raw bytes, got {shortened(path)}"
            )
        if data_type is TensorDataType.UNKNOWN:
            raise ValueError(f"`{member}`: raw bytes need `initialValuesDataType`, got none")
        size = data_type.dtype.itemsize
        if len(content) % size:
            raise ValueError(
                f"`{member}.sourcePath` must have whole elements of {size} bytes, "
                f"{shortened(path)} has {len(content)} bytes"
            )
        return np.frombuffer(content, data_type.dtype)
    try:
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        file_type = TensorDataType.from_dtype(array.dtype.newbyteorder("="))
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"`{member}.sourcePath`: {shortened(path)} is not readable: {error}"
        ) from None
    if data_type not in (TensorDataType.UNKNOWN, file_type):
        raise ValueError(
            f"`{member}.sourcePath` must have elements of {data_type.name}, "
            f"{shortened(path)} has {file_type.name}"
        )
    return np.ascontiguousarray(array, file_type.dtype).ravel()


def typed_number(value: object, data_type: TensorDataType, member: str) -> int | float:
    """Return a number if a type can represent it, or raise ValueError."""
    if data_type is TensorDataType.UNKNOWN:
        raise ValueError(f"`{member}` must have a type, got UNKNOWN")
    dtype = data_type.dtype
    if dtype.kind == "f":
        if isinstance(value, str) and value in _SPECIAL:
            return float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(
                f"`{member}` must be a number or one of {', '.join(_SPECIAL)}, "
                f"got {shortened(value)}"
            )
        if not _fits(value, dtype):
            raise ValueError(
                f"`{member}` must be a number of {data_type.name}, got {shortened(value)}"
            )
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    limits: Any = np.iinfo(dtype)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"`{member}` must be an integer, got {shortened(value)}")
    if not limits.min <= value <= limits.max:
        raise ValueError(
            f"`{member}` must be from {limits.min} to {limits.max} for {data_type.name}, "
            f"got {shortened(value)}"
        )
    return value


def _fits(value: float, dtype: np.dtype[Any]) -> bool:
    if abs(value) <= _HALF_MAX:
        return True
    try:
        with np.errstate(over="ignore"):
            return math.isfinite(float(np.float64(value).astype(dtype)))
    except OverflowError:
        return False
