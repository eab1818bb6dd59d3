"""The support table: the operators, data types and dimension counts of each feature level.

`SUPPORT` is the only copy; `check`, its messages and the documentation page use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from .types import FeatureLevel, TensorDataType

_FLOATS_TO_32: Final = ("FLOAT32", "FLOAT16")
_INTEGERS_TO_32: Final = ("INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8")

# Rows apply until a later level replaces them; names are in the order of DirectML's pages.
_DATA_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "1_0": _FLOATS_TO_32,
    "2_1": (*_FLOATS_TO_32, *_INTEGERS_TO_32),
    "4_1": (
        *("FLOAT64", "FLOAT32", "FLOAT16", "INT64", "INT32", "INT16", "INT8"),
        *("UINT64", "UINT32", "UINT16", "UINT8"),
    ),
}
_INDEX_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "1_0": ("UINT32",),
    "3_0": ("INT64", "INT32", "UINT64", "UINT32"),
}
_DIMENSION_COUNTS: Final[dict[str, tuple[int, ...]]] = {"1_0": (4,), "3_0": tuple(range(1, 9))}


@dataclass(frozen=True)
class LevelOperator:
    """One operator: its name without ``DML_OPERATOR_``, its first level, and its tensors."""

    name: str
    introduced: FeatureLevel
    operands: tuple[str, ...]
    introduction: str
    claim: str = ""


_GATHERS: Final = ("InputTensor", "IndicesTensor", "OutputTensor")
_SCATTERS: Final = ("InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor")


def _operator(name: str, level: FeatureLevel, operands: tuple[str, ...]) -> LevelOperator:
    return LevelOperator(name, level, operands, f"DML_{name}_OPERATOR_DESC, Availability")


OPERATORS: Final[Mapping[str, LevelOperator]] = {
    operator.name: operator
    for operator in (
        _operator("GATHER", FeatureLevel.LEVEL_1_0, _GATHERS),
        _operator("GATHER_ELEMENTS", FeatureLevel.LEVEL_2_1, _GATHERS),
        _operator("GATHER_ND", FeatureLevel.LEVEL_2_1, _GATHERS),
        _operator("GATHER_ND1", FeatureLevel.LEVEL_3_0, _GATHERS),
        LevelOperator(
            "SCATTER",
            FeatureLevel.LEVEL_2_0,
            _SCATTERS,
            "DirectML.h, DML_TARGET_VERSION 0x2000; DirectML feature level history; erratum 7",
            claim="DML_SCATTER_OPERATOR_DESC claims 1_0, which its header contradicts",
        ),
        _operator("SCATTER_ND", FeatureLevel.LEVEL_2_1, _SCATTERS),
    )
}


@dataclass(frozen=True)
class SupportRow:
    """The types and dimension counts that a level accepts for one tensor of an operator."""

    level: FeatureLevel
    operator: str
    operand: str
    data_types: tuple[TensorDataType, ...]
    dimension_counts: tuple[int, ...]

    @cached_property
    def type_names(self) -> str:
        """The names of the data types, separated by commas."""
        return ", ".join(data_type.name for data_type in self.data_types)


def _rows() -> dict[tuple[FeatureLevel, str, str], SupportRow]:
    rows = {}
    data, indices, counts = _DATA_TYPES["1_0"], _INDEX_TYPES["1_0"], _DIMENSION_COUNTS["1_0"]
    for level in FeatureLevel:
        data = _DATA_TYPES.get(str(level), data)
        indices = _INDEX_TYPES.get(str(level), indices)
        counts = _DIMENSION_COUNTS.get(str(level), counts)
        for operator in OPERATORS.values():
            for operand in operator.operands if level >= operator.introduced else ():
                names = indices if operand == "IndicesTensor" else data
                types = tuple(TensorDataType[name] for name in names)
                row = SupportRow(level, operator.name, operand, types, counts)
                rows[level, operator.name, operand] = row
    return rows


#: Rows by (level, operator, operand). A key is missing if the level does not have the operator.
SUPPORT: Final[Mapping[tuple[FeatureLevel, str, str], SupportRow]] = _rows()


def first_level(
    operator: str, operand: str, accepts: Callable[[SupportRow], bool]
) -> FeatureLevel | None:
    """Return the first level whose row for an operand satisfies ``accepts``, or None.

    Examples
    --------
    >>> first_level("SCATTER", "InputTensor", lambda row: 5 in row.dimension_counts).name
    'LEVEL_3_0'
    """
    for level in FeatureLevel:
        row = SUPPORT.get((level, operator, operand))
        if row is not None and accepts(row):
            return level
    return None
