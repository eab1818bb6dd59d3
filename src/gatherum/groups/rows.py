"""The properties of a function over groups. `functions` contains the tables of all functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from gatherum._model.arrays import AnyArray
from gatherum._model.dtypes import AnyDType, neutral_item

from .grouping import Grouping

# A function of the values, the grouping, the result of empty groups, and `ddof`.
Composition: TypeAlias = Callable[[AnyArray, Grouping, AnyArray, int], AnyArray]
# The same for the values that are not NaN; it returns None if the framework has no single call. For
# positions, the result of empty groups may be None: the call then returns None if a group is empty.
SkippingCall: TypeAlias = Callable[[AnyArray, Grouping, AnyArray, int], AnyArray | None]

Argument: TypeAlias = Literal["dtype", "q"]


class Method(Enum):
    """How a function reads the values of a group."""

    FOLD = "one fold of the values; for transforms, one result for each step"
    EXTREME = "one fold that selects the largest or the smallest value"
    POSITION = "the position of a value"
    SELECTION = "a copy of one value"
    COUNT = "one fold of ones"
    TRUTH = "one fold of `values != 0`"
    SORT = "all values of a group, sorted"
    COMPOSITION = "several scatters and gathers"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedForm:
    """A function of values with weights, which broadcast to the values."""

    compose: Callable[
        [AnyArray, AnyArray, Grouping, AnyArray, int], AnyArray
    ]  # the weights are first
    result: Callable[[AnyDType], AnyDType]  # maps the dtype of the values to the result's dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """The properties of one function. Only `skips_nan` has a default, so each row is complete."""

    name: str  # of the function; that of its nan form without the prefix ``nan``
    compose: Composition  # the function, as a composition of the operators
    composes: str  # a one-line description of `compose`, for the documentation
    accepts: Callable[[AnyDType], bool]  # whether it is defined for a dtype
    result: Callable[[AnyDType], AnyDType]  # maps the dtype of the values to the result's dtype
    # The result of an empty group. None means NaN if the result's dtype has NaN, and otherwise an
    # error.
    empty: float | None
    ties: str  # which of several equal values is selected, for the documentation; "" if irrelevant
    # The reduction, if the function is one scatter of the values, of ones or of truth values.
    reduction: str | None
    method: Method
    takes: tuple[Argument, ...]  # the arguments that only some functions take, without `weights`
    weighted: WeightedForm | None  # the function with the argument `weights`, None if it has none
    skip_nan: SkippingCall | None  # runs the nan form in one call; None if it needs several
    # Whether it needs converted copies of values of a dtype.
    copies: Callable[[AnyDType], bool]
    skips_nan: bool = False  # True in the row of the nan form, which `functions` adds

    @property
    def full_name(self) -> str:
        """The name that callers use."""
        return f"nan{self.name}" if self.skips_nan else self.name

    @property
    def locates(self) -> bool:
        """Whether the result contains positions, which are never negative."""
        return self.method is Method.POSITION

    @property
    def compares(self) -> bool:
        """Whether the result is the largest or the smallest value."""
        return self.method is Method.EXTREME

    @property
    def folds(self) -> bool:
        """Whether the function is one fold of the values."""
        return self.method in (Method.FOLD, Method.EXTREME)

    @property
    def is_one_scatter(self) -> bool:
        """Whether the function is one scatter of all values, or of ones, without a conversion."""
        changes_values = self.skips_nan or self.method is Method.TRUTH
        return self.reduction is not None and not changes_values

    @property
    def sorts(self) -> bool:
        """Whether the function needs all values of a group in one call."""
        return self.method is Method.SORT

    def sentinel(self, dtype: AnyDType) -> int | None:
        """Return a result that no group has, or, for maxima and minima, that few groups have."""
        if self.locates:
            return -1
        if not self.compares or dtype.kind not in "iu":
            return None
        assert self.reduction is not None
        item = neutral_item(dtype, self.reduction)
        assert item is not None
        return int(np.frombuffer(item, dtype)[0])  # type: ignore[arg-type]  # NumPy has all integers

    def with_weights(self, weights: AnyArray) -> FunctionRow:
        """Return the row of the weighted form, for these weights."""
        form = self.weighted
        if form is None:
            raise KeyError(f"groups: {self.name} has no weighted form")
        return replace(
            self, compose=partial(form.compose, weights), result=form.result, skip_nan=None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformRow:
    """The properties of one function whose result has the shape of the values."""

    name: str
    compose: Callable[[AnyArray, Grouping, Any], AnyArray]  # to a dtype of the framework
    composes: str
    accepts: Callable[[AnyDType], bool]
    result: Callable[[AnyDType], AnyDType]  # maps the dtype of the values to the result's dtype

    method: Method

    @property
    def sorts(self) -> bool:
        """Whether the function needs all values of a group in one call."""
        return self.method in (Method.FOLD, Method.SORT)
