"""DirectML's enumerations, with DirectML's names and numbers."""

from __future__ import annotations

import enum
import re
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

UINT32_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1


class TensorDataType(enum.IntEnum):
    """The data type of a tensor: ``DML_TENSOR_DATA_TYPE``.

    The constructor also accepts a short or full name (case is ignored), or a NumPy dtype.

    Examples
    --------
    >>> TensorDataType.FLOAT16.value
    2
    >>> TensorDataType("DML_TENSOR_DATA_TYPE_INT64") is TensorDataType("int64")
    True
    >>> TensorDataType(np.dtype("f4")).name
    'FLOAT32'
    """

    UNKNOWN = 0
    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11
    UINT4 = 12
    INT4 = 13

    @classmethod
    def _missing_(cls, value: object) -> TensorDataType | None:
        if isinstance(value, str):
            return cls.__members__.get(value.upper().removeprefix("DML_TENSOR_DATA_TYPE_"))
        if isinstance(value, type) and issubclass(value, np.generic):
            value = np.dtype(value)
        return cls.from_dtype(value) if isinstance(value, np.dtype) else None

    @classmethod
    def of(cls, data_type: DataTypeLike) -> TensorDataType:
        """Convert a name, DirectML's number, a NumPy dtype or a `TensorDataType`."""
        return cls(data_type)  # type: ignore[arg-type]  # strings reach _missing_

    @classmethod
    def from_dtype(cls, dtype: npt.DTypeLike) -> TensorDataType:
        """Return the DirectML type of a NumPy dtype.

        Parameters
        ----------
        dtype : dtype_like
            A dtype in this machine's byte order.

        Returns
        -------
        TensorDataType

        Raises
        ------
        ValueError
            If DirectML has no such type (bool, bfloat16, complex, byte-swapped, ...).

        Examples
        --------
        >>> TensorDataType.from_dtype("float16").name
        'FLOAT16'
        """
        numpy_dtype = np.dtype(dtype)
        for member in cls:
            if member.name not in _WITHOUT_DTYPE and member.dtype == numpy_dtype:
                return member
        raise ValueError(f"DirectML has no data type for the dtype {numpy_dtype}")

    @property
    def bits(self) -> int:
        """The width of one element in bits, or 0 for ``UNKNOWN``."""
        return _BITS[self.name]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype of one element. UNKNOWN, UINT4 and INT4 raise ValueError."""
        if self.name in _WITHOUT_DTYPE:
            raise ValueError(f"NumPy has no dtype for {self.name}")
        return np.dtype(self.name.lower())

    @property
    def signed(self) -> bool:
        """Whether this is a signed integer type."""
        return self.name.startswith("INT")


_BITS: Final = {name: int("0" + re.sub(r"\D", "", name)) for name in TensorDataType.__members__}
_WITHOUT_DTYPE: Final = frozenset({"UNKNOWN", "UINT4", "INT4"})


class TensorFlags(enum.IntFlag):
    """Options of a tensor: ``DML_TENSOR_FLAGS``.

    ``OWNED_BY_DML``, for inputs only, moves a binding to DirectML's initialization step. This
    package has no such step: it keeps the flag in descs and JSON, and dispatch uses the buffer.
    """

    NONE = 0
    OWNED_BY_DML = 1


class FeatureLevel(enum.IntEnum):
    """A feature level: ``DML_FEATURE_LEVEL``. Levels are ordered and include all earlier levels.

    Examples
    --------
    >>> FeatureLevel("4_1") is FeatureLevel("4.1") is FeatureLevel.LEVEL_4_1
    True
    >>> hex(FeatureLevel("DML_FEATURE_LEVEL_4_1"))
    '0x4100'
    >>> FeatureLevel("3_0") < FeatureLevel("4_1")
    True
    """

    LEVEL_1_0 = 0x1000
    LEVEL_2_0 = 0x2000
    LEVEL_2_1 = 0x2100
    LEVEL_3_0 = 0x3000
    LEVEL_3_1 = 0x3100
    LEVEL_4_0 = 0x4000
    LEVEL_4_1 = 0x4100
    LEVEL_5_0 = 0x5000
    LEVEL_5_1 = 0x5100
    LEVEL_5_2 = 0x5200
    LEVEL_6_0 = 0x6000
    LEVEL_6_1 = 0x6100
    LEVEL_6_2 = 0x6200
    LEVEL_6_3 = 0x6300
    LEVEL_6_4 = 0x6400

    @classmethod
    def _missing_(cls, value: object) -> FeatureLevel:
        if isinstance(value, str):
            member = cls.__members__.get("LEVEL_" + _LEVEL_PREFIX.sub("", value).replace(".", "_"))
            if member is not None:
                return member
        levels = ", ".join(str(level) for level in cls)
        raise ValueError(f"feature level must be one of {levels}, got {value!r}")

    @classmethod
    def of(cls, level: LevelLike) -> FeatureLevel:
        """Convert a string, DirectML's number or a `FeatureLevel`."""
        return cls(level)  # type: ignore[arg-type]  # strings reach _missing_

    def __str__(self) -> str:
        return self.name.removeprefix("LEVEL_")


_LEVEL_PREFIX: Final = re.compile(r"^(DML_FEATURE_)?LEVEL_")

LATEST: Final = FeatureLevel.LEVEL_6_4

#: A data type, its name in any case, DirectML's number for it, or a NumPy dtype.
DataTypeLike: TypeAlias = TensorDataType | str | int | np.dtype[Any] | type[np.generic]

#: A feature level, its string ("4_1", "4.1") or DirectML's number for it (0x4100).
LevelLike: TypeAlias = FeatureLevel | str | int
