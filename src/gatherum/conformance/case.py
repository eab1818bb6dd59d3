"""A case: one call, the answer of the oracle, and the rule that it tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatherum import reference

Array = NDArray[Any]


class RuleCall(NamedTuple):
    """One call of an operator, as a rule makes it."""

    operator: str
    attributes: Mapping[str, Any]
    operands: Mapping[str, Array]


class Case(NamedTuple):
    """One call of an operator and what must come of it.

    Attributes
    ----------
    name : str
        Lower case letters, digits and underscores; no two cases share one.
    operator : str
        The operator's name.
    attributes : dict
        Its arguments other than arrays.
    operands : dict
        ``data``, ``indices`` and, of a scatter, ``updates``: arrays of NumPy. In cases of the rule
        ``"far_sizes"``, `data` is a `VirtualArray`.
    expected : numpy.ndarray or VirtualArray or None
        The result, bit for bit; None where the call must be refused.
    error : str
        The kind of exception that refuses it, as ``"IndexError"``; otherwise empty.
    rule : str
        The rule that the case tests.
    source : str
        The page and section of the documentation that publishes the rule.
    """

    name: str
    operator: str
    attributes: Mapping[str, Any]
    operands: Mapping[str, Any]
    expected: Any
    error: str
    rule: str
    source: str


def answer(call: RuleCall) -> tuple[Array | None, str]:
    """Return what the oracle gives: a result, or the kind of exception that it raises."""
    run: Callable[..., Array] = getattr(reference, call.operator)
    try:
        with np.errstate(all="ignore"):
            return run(*call.operands.values(), **call.attributes), ""
    except (TypeError, ValueError, IndexError) as error:
        return None, type(error).__name__
