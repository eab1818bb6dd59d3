"""Check the operators in a JSON file: the command ``gatherum check FILE.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

from gatherum._system.regular_files import read_regular

from .check import check
from .descs import OperatorDesc
from .dxdispatch import from_json, operator_of
from .jsontext import LONGEST, parse_json
from .members import as_object
from .types import LATEST, FeatureLevel, LevelLike

_MOST_NAMES: Final = 8  # in a message


class NothingToCheckError(ValueError):
    """A model has no gather or scatter operator; `operators` lists the names of its operators."""

    def __init__(self, what: str, operators: Sequence[str]) -> None:
        self.operators = tuple(operators)
        shown = ", ".join(self.operators[:_MOST_NAMES]) + (
            ", ..." if len(self.operators) > _MOST_NAMES else ""
        )
        super().__init__(f"the model has no gather or scatter {what}: it has {shown or 'none'}")


@dataclass(frozen=True)
class CheckReport:
    """Whether all operators are accepted, and the report's lines with the reasons."""

    accepted: bool
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def check_file(path: str | PathLike[str], feature_level: LevelLike = LATEST) -> CheckReport:
    """Check an operator desc, or every one in a DxDispatch model, in a JSON file.

    Parameters
    ----------
    path : path-like
    feature_level : FeatureLevel, str or int, optional
        The latest by default.

    Returns
    -------
    CheckReport

    Raises
    ------
    OSError
        If the file cannot be read, is not a regular file, or is larger than 64 MiB.
    ValueError
        If it is not an operator desc in JSON, or the feature level is unknown.
    """
    return check_text(read_regular(path, LONGEST), feature_level)


def check_text(text: str | bytes, feature_level: LevelLike = LATEST) -> CheckReport:
    """Check an operator desc, or every one in a DxDispatch model, given as JSON text.

    Parameters
    ----------
    text : str or bytes
        One operator desc, or a model with ``dispatchables``. A model's dispatchables other
        than the six operators are listed but not checked.
    feature_level : FeatureLevel, str or int, optional
        The latest by default.

    Returns
    -------
    CheckReport

    Raises
    ------
    ValueError
        If the text is neither, there is nothing to check, or the feature level is unknown.

    Examples
    --------
    >>> print(check_text('''{"type": "GATHER_ELEMENTS", "Axis": 0,
    ...     "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 3, 3]},
    ...     "IndicesTensor": {"DataType": "INT32", "Sizes": [1, 1, 3, 3]},
    ...     "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 3, 3]}}''', "2_1"))
    GATHER_ELEMENTS: rejected by feature level 2_1, 1 reason
      `IndicesTensor.DataType` must be UINT32 at feature level 2_1, got INT32; first accepted \
at 3_0 [DML_GATHER_ELEMENTS_OPERATOR_DESC, Tensor support]
    """
    level = FeatureLevel.of(feature_level)
    source = parse_json(text)
    if not isinstance(source, Mapping) or "dispatchables" not in source:
        return _check_one(from_json(text), level, "")
    dispatchables = as_object(source["dispatchables"], "`dispatchables`")
    reports = [_check_dispatchable(source, name, level) for name in dispatchables]
    if not any(operator_of(dispatchable) for dispatchable in dispatchables.values()):
        names = [
            f"{name} ({_type_of(dispatchable)})" for name, dispatchable in dispatchables.items()
        ]
        raise NothingToCheckError("operator", names)
    lines = tuple(line for report in reports for line in report.lines)
    return CheckReport(all(report.accepted for report in reports), lines)


def _check_dispatchable(model: Mapping[str, Any], name: str, level: FeatureLevel) -> CheckReport:
    dispatchable = as_object(model["dispatchables"][name], f"`dispatchables.{name}`")
    if operator_of(dispatchable) is None:
        line = f"{name}: not checked, {_type_of(dispatchable)} is not a gather or scatter operator"
        return CheckReport(True, (line,))
    return _check_one(from_json(model, name), level, f"{name}: ")


def _type_of(dispatchable: Mapping[str, Any]) -> str:
    name = dispatchable.get("Type", dispatchable.get("type"))
    return name if isinstance(name, str) else "without a type"


def _check_one(desc: OperatorDesc, level: FeatureLevel, prefix: str) -> CheckReport:
    violations = check(desc, level)
    title = f"{prefix}{desc.operator}"
    if not violations:
        return CheckReport(True, (f"{title}: accepted by feature level {level}",))
    count = f"{len(violations)} reason{'s' if len(violations) > 1 else ''}"
    reasons = (f"  {violation.reason} [{violation.rule}]" for violation in violations)
    return CheckReport(False, (f"{title}: rejected by feature level {level}, {count}", *reasons))
