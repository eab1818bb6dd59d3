"""A case: one call, the oracle's result, and the rule that it tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gatherum import reference
from gatherum._model.arrays import NumpyArray


class RuleCall(NamedTuple):
    """One call to an operator that a rule yields."""

    operator: str
    attributes: Mapping[str, Any]
    operands: Mapping[str, NumpyArray]


class Case(NamedTuple):
    """One call to an operator, and its expected result or error.

    Attributes
    ----------
    name : str
        A unique name that consists of lower-case letters, digits and underscores.
    operator : str
        The operator's name.
    attributes : dict
        The arguments that are not arrays.
    operands : dict
        ``data``, ``indices`` and, for a scatter, ``updates``, as NumPy arrays. In cases of the rule
        ``"far_sizes"``, `data` is a `VirtualArray`.
    expected : numpy.ndarray or VirtualArray or None
        The expected result, bit for bit; None if the call must raise.
    error : str
        The type of the expected exception, such as ``"IndexError"``; otherwise empty.
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


def run_oracle(call: RuleCall) -> tuple[NumpyArray | None, str]:
    """Run the oracle. Return its result and "", or None and the type of its exception."""
    run: Callable[..., NumpyArray] = getattr(reference, call.operator)
    try:
        with np.errstate(all="ignore"):
            return run(*call.operands.values(), **call.attributes), ""
    except (TypeError, ValueError, IndexError) as error:
        return None, type(error).__name__
