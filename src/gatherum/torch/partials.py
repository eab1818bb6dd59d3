"""How a scatter's result depends on each operand, entry by entry.

A scatter is ``out[p] = op(data[p], updates that go to p)``. Its derivative has three factors, two
for each destination p and one for each update j:

    d out[p] = B[p] * (D[p] * d data[p] + sum over updates j that go to p of U[j] * d updates[j])

so that the backward pass is ``h = B * g``, ``D * h`` and ``U * gather(h)``, and the forward one a
scatter-add.

| reduction | B | D | U |
|---|---|---|---|
| none | 1 | 1 where nothing arrives | 1 for the update that stays |
| add | 1 | 1 | 1 |
| mean | 1 / count | 1 | 1 |
| max, min | 1 / N | 1 where the old value is the result | 1 for updates that equal the result |
| mul | P | the product of the others, over P | the same |

N is how many attain the result, P the product of all that are not 0. Where the old value takes no
part (`include_self` false), B * D is 1 where nothing arrives and 0 elsewhere. Skipped updates have
no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from .. import native
from ..operators import ELEMENTS, SLICES, Operator
from . import dtypes
from .ops import overload

Times: TypeAlias = Callable[[Tensor], Tensor]

_INVERSE = {
    "gather": "scatter_slices",
    "gather_elements": "scatter_elements",
    "gather_nd": "scatter_nd",
}
_INVERSE |= {scatter: gather for gather, scatter in _INVERSE.items()}


class Partials(NamedTuple):
    """The factors of one scatter: functions that multiply a tensor by them.

    Attributes
    ----------
    both : callable
        Multiplies a tensor of the data's shape by B.
    data : callable
        Multiplies one by D.
    updates : callable
        Multiplies one of the updates' shape by U.
    replaces : bool
        Whether B * D is 1 where nothing arrives, and 0 elsewhere: then `data` is not asked.
    """

    both: Times
    data: Times
    updates: Times
    replaces: bool

    @property
    def plain(self) -> bool:
        """Whether nothing is multiplied, so that no wider type is needed."""
        return self.both is _same


class Places(NamedTuple):
    """The places that the indices of one call address, as a gather and as a scatter.

    Attributes
    ----------
    operator : Operator
        Of the call, a gather or a scatter.
    indices : Tensor
        Its indices.
    shape : tuple of int
        The shape of its data.
    axis : int
        Its dimension attribute, counted from the front.
    mode, negative : str, bool
        As in the call.
    """

    operator: Operator
    indices: Tensor
    shape: tuple[int, ...]
    axis: int
    mode: str
    negative: bool

    @property
    def skips(self) -> bool:
        """Whether invalid indices address nothing."""
        return self.mode in ("fill", "drop")

    def _run(self, scatters: bool, table: Tensor, updates: Tensor | None, reduction: str,
             include_self: bool) -> Tensor:  # fmt: skip
        """Run the operator or its inverse; where nothing is recorded, without torch's dispatcher,
        which takes several times as long as a small call.
        """
        own = self.operator.name
        name = own if self.operator.scatters is scatters else _INVERSE[own]
        fold = (reduction, include_self) if scatters else ()
        operands = (table, self.indices) if updates is None else (table, self.indices, updates)
        if torch.compiler.is_compiling() or (
            torch.is_grad_enabled() and any(operand.requires_grad for operand in operands)
        ):
            call = (*operands, self.axis, *fold, self.mode, self.negative)
            return overload(name)(*call)
        more = self.axis, reduction, include_self, self.mode, self.negative, 0, None
        return native.call(name, table, self.indices, updates, *more)

    def take(self, table: Tensor) -> Tensor:
        """Gather from a tensor of the data's shape; skipped entries take zeros."""
        return self._run(False, table, None, "none", True)

    def put(self, table: Tensor, updates: Tensor, reduction: str = "none",
            include_self: bool = True) -> Tensor:  # fmt: skip
        """Scatter into a tensor of the data's shape."""
        return self._run(True, table, updates, reduction, include_self)

    def total(self, updates: Tensor) -> Tensor:
        """Add updates up in each place, in a type that has sums, and return their own."""
        dtype = updates.dtype
        if not dtypes.has_sums(dtype):
            return self.total(updates.to(dtypes.wide(dtype))).to(dtype)
        zero = updates.new_zeros(()).expand(self.shape)  # one zero, read from everywhere
        return self.put(zero, updates, "add")

    def emptied(self, table: Tensor) -> Tensor:
        """Return a tensor of the data's shape with zeros wherever an index points."""
        return self.put(table, table.new_zeros(()))

    def moved(self) -> tuple[int, ...]:
        """Return the shape that moves: a gather's result, a scatter's updates."""
        return self.operator.moved(self.shape, tuple(self.indices.shape), self.axis)

    # Where whole slices move together, one number a destination is enough.

    def destinations(self) -> Places:
        """Return the same places without the dimensions that move whole."""
        shape, axis = self.operator.space(self.shape, tuple(self.indices.shape), self.axis)
        return Places(self.operator, self.indices, shape, axis, self.mode, self.negative)

    def over_data(self, table: Tensor) -> Tensor:
        """Give a number for each destination the data's rank."""
        if self.operator.addressing is SLICES:
            behind = len(self.shape) - self.axis - 1
            return table.reshape((1,) * self.axis + table.shape + (1,) * behind)
        return table.reshape(table.shape + (1,) * (len(self.shape) - table.dim()))

    def over_updates(self, table: Tensor) -> Tensor:
        """Give a number for each entry the rank of what moves."""
        if self.operator.addressing is ELEMENTS:
            return table
        if self.operator.addressing is SLICES:
            behind = len(self.shape) - self.axis - 1
            return table.reshape((1,) * self.axis + table.shape + (1,) * behind)
        return table.reshape(table.shape + (1,) * (len(self.moved()) - table.dim()))

    def counts(self) -> Tensor:
        """Count the updates that arrive in each destination."""
        at = self.destinations()
        zero = torch.zeros((), dtype=torch.int64, device=self.indices.device)
        return at.put(zero.expand(at.shape), torch.ones_like(zero), "add")

    def untouched(self) -> Tensor:
        """Return where nothing arrives, a truth for each destination, with the data's rank."""
        at = self.destinations()
        true = torch.ones((), dtype=torch.bool, device=self.indices.device)
        return self.over_data(at.put(true.expand(at.shape), torch.zeros_like(true)))

    def arriving(self) -> Tensor:
        """Return which entries are not skipped, with the rank of what moves."""
        at = self.destinations()
        true = torch.ones((), dtype=torch.bool, device=self.indices.device)
        return self.over_updates(at.take(true.expand(at.shape)))

    def staying(self) -> Tensor:
        """Return which entries are the last of their destination, with the rank of what moves.

        Entries are numbered from 1, and the numbers scattered: the last one stays.
        """
        at = self.destinations()
        entries = at.moved()
        number = torch.arange(1, 1 + prod(entries), device=self.indices.device).reshape(entries)
        zero = torch.zeros((), dtype=torch.int64, device=self.indices.device)
        return self.over_updates(at.take(at.put(zero.expand(at.shape), number)) == number)


def keeps(reduction: str) -> bool:
    """Whether a derivative depends on the values of the operands."""
    return reduction in ("mul", "max", "min")


def partials(
    places: Places,
    reduction: str,
    include_self: bool,
    data: Tensor | None,
    updates: Tensor | None,
    result: Tensor | None,
    onward: bool = True,
) -> Partials:
    """Return the factors of one scatter; what they depend on is given where it `keeps` values.
    Whether derivatives of the factors may be asked for is `onward`.
    """
    replaces = reduction == "none" or not include_self
    if reduction == "none":
        return Partials(_same, _same, _where(places.staying()), replaces)
    if reduction == "add":
        return Partials(_same, _same, _same, replaces)
    if reduction == "mean":
        counts = places.counts() + 1 if include_self else places.counts().clamp(min=1)
        return Partials(_over(places.over_data(counts)), _same, _same, replaces)
    if data is None or updates is None or result is None:
        raise AssertionError("the operands of this reduction are kept")
    updates = updates.expand(places.moved())
    if reduction == "mul":
        return _product(places, include_self, data, updates, onward)
    return _extreme(places, include_self, data.detach(), updates.detach(), result.detach())


def _same(value: Tensor) -> Tensor:
    return value


def _over(counts: Tensor) -> Times:
    return lambda value: value / counts


def _by(factor: Tensor) -> Times:
    return lambda value: value * factor


def _where(mask: Tensor) -> Times:
    """Zero outside of a mask, also what is infinite or NaN."""
    return lambda value: torch.where(mask, value, 0)


def _extreme(
    places: Places, include_self: bool, data: Tensor, updates: Tensor, result: Tensor
) -> Partials:
    attained = places.take(result)
    mine = (updates == attained) | (updates.isnan() & attained.isnan())
    olds = (data == result) | (data.isnan() & result.isnan())
    # Counts of as few bytes as hold them: they are as many as the updates.
    whole = torch.int32 if places.indices.numel() < 1 << 31 else torch.int64
    among = olds.to(whole) if include_self else _zeros(places, whole)
    number = places.put(among, mine.to(whole), "add")
    return Partials(_over(number.clamp(min=1)), _where(olds), _where(mine), not include_self)


def _zeros(places: Places, dtype: torch.dtype) -> Tensor:
    """Return zeros of the data's shape, one in memory."""
    return places.indices.new_zeros((), dtype=dtype).expand(places.shape)


def _product(
    places: Places, include_self: bool, data: Tensor, updates: Tensor, onward: bool
) -> Partials:
    """Return the factors of a product, which may be 0 for one factor or for several.

    P is the product of what is not 0, and Z how many are 0. Seen from a factor, the others that are
    0 have the product 1 where there is none, and else 0. Its derivatives are those of the
    elementary symmetric polynomials of the zeros, from their sums of powers S1 and S2, as far as
    second derivatives of the factors ask for them: third derivatives of the product.
    """
    wide = dtypes.wide(data.dtype)
    data, updates = data.to(wide), updates.to(wide)
    none_d, none_u = data == 0, updates == 0
    product = places.put(
        data.masked_fill(none_d, 1), updates.masked_fill(none_u, 1), "mul", include_self
    )

    def total(of_data: Tensor, of_updates: Tensor) -> Tensor:
        first = of_data if include_self else _zeros(places, of_data.dtype)
        return places.put(first, of_updates, "add")

    count = total(none_d.to(torch.int64), none_u.to(torch.int64))
    sums: tuple[Tensor, ...] = ()
    if onward:
        low_d, low_u = torch.where(none_d, data, 0), torch.where(none_u, updates, 0)
        sums = total(low_d, low_u), total(low_d * low_d, low_u * low_u)
    rest = _of_zeros(count, *sums).to(wide)

    def share(value: Tensor, none: Tensor, rest: Tensor, count: Tensor, *sums: Tensor) -> Tensor:
        if sums:  # of the others
            sums = sums[0] - value, sums[1] - value * value
        of_zero = _of_zeros(count - 1, *sums)
        return torch.where(none, of_zero, rest / value.masked_fill(none, 1))

    taken = [places.take(table) for table in (rest, count, *sums)]
    of_updates = _by(share(updates, none_u, *taken))
    if places.skips:
        of_updates = _inside(places.arriving(), of_updates)
    alone = places.untouched()
    of_data = torch.where(alone, 1, share(data, none_d, rest, count, *sums))
    return Partials(_by(torch.where(alone, 1, product)), _by(of_data), of_updates, not include_self)


def _of_zeros(count: Tensor, *sums: Tensor) -> Tensor:
    """Return the product of so many zeros: 1 of none, else 0, with derivatives where sums are given
    of the zeros and of their squares.
    """
    if not sums:
        return (count == 0).to(torch.float32)
    one, two = sums
    both = (one * one - two) / 2
    return torch.where(
        count == 0, 1, torch.where(count == 1, one, torch.where(count == 2, both, 0))
    )


def _inside(mask: Tensor, times: Times) -> Times:
    return lambda value: torch.where(mask, times(value), 0)
