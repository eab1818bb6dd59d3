"""An `Inspection` collects and words the violations that `check` reports."""

from __future__ import annotations

from dataclasses import dataclass
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
        the erratum if what is printed there is wrong.
    message : str
        A message with the expectation and the value.
    expected, found : str
        The expectation and the value by themselves.
    first_level : FeatureLevel or None
        For what depends on the level: the first one that accepts it, None if none does.
    """

    field: str
    rule: str
    message: str
    expected: str
    found: str
    first_level: FeatureLevel | None = None

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]"


class Inspection:
    """Collects the violations of one operator desc.

    Parameters
    ----------
    operator : str
        Name without prefix, such as ``"GATHER"``; it opens every message.
    """

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.violations: list[Violation] = []

    @property
    def page(self) -> str:
        """Name of the operator's own page."""
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
        """Record a violation unless ``holds``, which is returned."""
        if not holds:
            got = written_integer(found) if isinstance(found, int) else str(found)
            message = f"{self.operator}: `{field}` must {expected}, got {got}{remark}"
            self.violations.append(Violation(field, rule, message, expected, got, first_level))
        return holds


def listing(numbers: tuple[int, ...]) -> str:
    """Return sizes as DirectML's pages write them, such as ``{1,4,6}``; long lists are cut."""
    shown = [written_integer(n) for n in numbers[:_MOST_LISTED]]
    more = [f"... {len(numbers)} in all"] if len(numbers) > _MOST_LISTED else []
    return "{" + ",".join(shown + more) + "}"


def written_integer(n: int) -> str:
    """Return an integer in digits, as long as a reader can do something with them."""
    return str(n) if n.bit_length() <= _MOST_BITS else f"an integer of {n.bit_length()} bits"
