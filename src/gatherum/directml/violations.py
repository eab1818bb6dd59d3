"""Collect the violations that `check` reports, and format their messages."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final

from .types import FeatureLevel

TENSOR_PAGE: Final = "DML_BUFFER_TENSOR_DESC"

_MOST_LISTED: Final = 16
_MOST_BITS: Final = 512


@dataclass(frozen=True)
class Violation:
    """One reason why a desc is not accepted.

    Attributes
    ----------
    field : str
        DirectML's name of the field at fault, such as ``"IndicesTensor.DataType"``.
    rule : str
        Where the rule is published: a page or header, and its section; with the number of
        the erratum if the page is wrong.
    message : str
        A message with the expected and the actual value.
    expected, found : str
        The expected and the actual value.
    first_level : FeatureLevel or None
        For a violation that depends on the level: the first level that accepts the value. None
        for other violations, or if no level accepts it.
    reason : str
        The message without the name of the operator.
    """

    field: str
    rule: str
    message: str
    expected: str
    found: str
    first_level: FeatureLevel | None = None
    reason: str = dataclass_field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]"


class Inspection:
    """Collects the violations of one operator desc.

    Parameters
    ----------
    operator : str
        Name without prefix, such as ``"GATHER"``; every message starts with it.
    """

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.violations: list[Violation] = []

    @property
    def page(self) -> str:
        """The name of the operator's page."""
        return f"DML_{self.operator}_OPERATOR_DESC"

    def require(
        self,
        holds: bool,
        field: str,
        expected: str,
        found: object,
        rule: str,
        *,
        first_level: FeatureLevel | None = None,
        remark: str = "",
    ) -> bool:
        """Record a violation unless ``holds``, and return ``holds``."""
        if not holds:
            got = written_integer(found) if isinstance(found, int) else str(found)
            reason = f"`{field}` must {expected}, got {got}{remark}"
            message = f"{self.operator}: {reason}"
            self.violations.append(
                Violation(field, rule, message, expected, got, first_level, reason)
            )
        return holds


def listing(integers: tuple[int, ...]) -> str:
    """Format sizes as DirectML's pages do, such as ``{1,4,6}``; shorten long lists."""
    shown = [written_integer(n) for n in integers[:_MOST_LISTED]]
    ending = [f"... {len(integers)} in all"] if len(integers) > _MOST_LISTED else []
    return "{" + ",".join(shown + ending) + "}"


def written_integer(n: int) -> str:
    """Format an integer in digits, or describe one that is too long to read."""
    return str(n) if n.bit_length() <= _MOST_BITS else f"an integer of {n.bit_length()} bits"
