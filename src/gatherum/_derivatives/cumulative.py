"""Derivatives of cumulative functions, written once for all frameworks.

A cumulative function has a result for each value of a group, from the values of the group up to
this one. For value i, let p be the previous value of its group, and y the result:

| function | y[i] | y[i] of the first value |
|---|---|---|
| add, mul, max, min | y[p] op x[i] | x[i] |
| recurrence | y[p] * f[i] + x[i], with a factor f[i] for each value | x[i] |
| previous | x[p] | 0 |

Sums, recurrences and previous values are linear in x. Their transposes are the same functions in
reverse order, so the gradient of a sum is the sum of the gradients of this value and all later
ones, a left fold from the last value to the first. The derivative of a product is a recurrence
whose factors are the values. It only multiplies and adds, so 0 and infinity need no special case.
The gradient of a maximum or minimum is divided equally among the values up to its position that
equal it.

All rules consist of differentiable operations, so they are valid for derivatives of any order.
"""

from __future__ import annotations

from typing import NamedTuple

from gatherum._model.arrays import AnyArray

from .array_ops import DerivativeOps
from .derivatives import equal

LINEAR = ("add", "recurrence", "previous")


class Cumulation(NamedTuple):
    """The group numbers of flat values. A number outside [0, group_count) means no group."""

    xp: DerivativeOps
    groups: AnyArray
    group_count: int

    def run(self, function: str, values: AnyArray, factors: AnyArray | None = None) -> AnyArray:
        """Return the results of a function. They are 0 for values without a group."""
        return self.xp.cumulate(function, values, self.groups, self.group_count, factors)

    def run_backward(
        self, function: str, values: AnyArray, factors: AnyArray | None = None
    ) -> AnyArray:
        """Return the results of a function that reads the values from the last to the first."""
        groups, values = self._flipped(self.groups), self._flipped(values)
        factors = None if factors is None else self._flipped(factors)
        return self._flipped(self._replace(groups=groups).run(function, values, factors))

    def transposed(self, function: str, gradient: AnyArray, factors: AnyArray | None) -> AnyArray:
        """Return the transpose of a linear function, applied to a gradient."""
        if factors is not None:
            factors = self.run_backward("previous", factors)
        return self.run_backward(function, gradient, factors)

    def first_values(self, like: AnyArray) -> AnyArray:
        """Return a mask of the first value of each group, and of the values without a group."""
        xp = self.xp
        ones = xp.full(tuple(self.groups.shape), 1, xp.derivative_dtype(like.dtype), like)
        return self.run("previous", ones) == 0

    def has_group(self) -> AnyArray:
        """Return a mask of the values with a group."""
        return (self.groups >= 0) & (self.groups < self.group_count)

    def _flipped(self, x: AnyArray) -> AnyArray:
        return self.xp.flip(x, (0,))


class CumulativeValues(NamedTuple):
    """The operands and the result of a cumulative function."""

    values: AnyArray
    factors: AnyArray | None
    result: AnyArray


def tangent(
    groups: Cumulation,
    function: str,
    operands: CumulativeValues,
    of_values: AnyArray | None,
    of_factors: AnyArray | None = None,
) -> AnyArray:
    """Return the tangent of the result. Tangents of None are zero."""
    xp, factors = groups.xp, operands.factors
    if function in LINEAR:
        if of_factors is not None:
            change = of_factors * groups.run("previous", operands.result)
            of_values = change if of_values is None else of_values + change
        assert of_values is not None
        return groups.run(function, of_values, factors)
    assert of_values is not None
    change = xp.astype(of_values, xp.derivative_dtype(of_values.dtype))
    if function == "mul":
        values = xp.astype(operands.values, change.dtype)
        result = groups.run("recurrence", _earlier_products(groups, values) * change, values)
    else:
        runs, attains, counts = _runs_of_equal_results(groups, operands)
        total = runs.run("add", xp.where(attains, change, 0))
        result = total / xp.astype(counts, change.dtype)
    return xp.astype(result, of_values.dtype)


def cotangents(
    groups: Cumulation,
    function: str,
    operands: CumulativeValues,
    gradient: AnyArray,
    needs_factors: bool = False,
) -> tuple[AnyArray, AnyArray | None]:
    """Return the gradients of the values and, if they are needed, of the factors."""
    xp = groups.xp
    if function in LINEAR:
        of_values = groups.transposed(function, gradient, operands.factors)
        if not needs_factors:
            return of_values, None
        return of_values, of_values * groups.run("previous", operands.result)
    change = xp.astype(gradient, xp.derivative_dtype(gradient.dtype))
    if function == "mul":
        values = xp.astype(operands.values, change.dtype)
        of_values = groups.transposed("recurrence", change, values)
        of_values = _earlier_products(groups, values) * of_values
    else:
        runs, attains, counts = _runs_of_equal_results(groups, operands)
        shares = change / xp.astype(counts, change.dtype)
        of_values = xp.where(attains, runs.transposed("add", shares, None), 0)
    return xp.astype(of_values, gradient.dtype), None


def _earlier_products(groups: Cumulation, values: AnyArray) -> AnyArray:
    """Return the product of the earlier values of the group, or 1 for the first value."""
    products = groups.run("previous", groups.run("mul", values))
    return groups.xp.where(groups.first_values(values), 1, products)


def _runs_of_equal_results(
    groups: Cumulation, operands: CumulativeValues
) -> tuple[Cumulation, AnyArray, AnyArray]:
    """Find the runs of values of a group with the same maximum or minimum.

    Return the runs as groups, a mask of the values that equal their result, and the number of such
    values in the run up to each value, at least 1.
    """
    xp = groups.xp
    values, result = xp.stop_gradient(operands.values), xp.stop_gradient(operands.result)
    attains, wide = (
        equal(xp, values, result),
        xp.astype(result, xp.derivative_dtype(result.dtype)),
    )
    count = result.shape[0]
    positions = xp.arange(0, count, result)
    continues = equal(xp, wide, groups.run("previous", wide)) & ~groups.first_values(wide)
    starts = groups.run("max", xp.where(continues, 0, positions))
    runs = Cumulation(xp, xp.where(groups.has_group(), starts, -1), count)
    counts = runs.run("add", xp.astype(attains, positions.dtype))
    return runs, attains, xp.maximum(counts, 1)
