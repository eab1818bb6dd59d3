"""Products and their derivatives, known exactly, for tests of every framework with gradients."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
INF = float("inf")


@dataclass(frozen=True)
class Product:
    """Products of the entries of one vector: first `places` old values, then updates.

    An index of -1 is invalid: its update is skipped in the mode "drop".
    """

    values: tuple[float, ...]
    places: int
    indices: tuple[int, ...]
    include_self: bool
    dtype: str = "float64"

    @property
    def vector(self) -> Array:
        return np.array(self.values, self.dtype)

    def groups(self) -> list[list[int]]:
        """Return the entries whose product each destination holds, in order."""
        groups = []
        for place in range(self.places):
            arrived = [self.places + j for j, i in enumerate(self.indices) if i == place]
            keeps = self.include_self or not arrived
            groups.append([place, *arrived] if keeps else arrived)
        return groups

    def derivative(self, weights: Array, order: int) -> Array:
        """Return all derivatives of one order of the weighted sum of the products.

        A derivative with respect to different entries of a group is the product of its other
        entries. With respect to the same entry twice, or to entries of two groups, it is 0.
        """
        x = self.vector
        result = np.zeros((x.size,) * order)
        for weight, group in zip(weights, self.groups(), strict=True):
            for chosen in itertools.permutations(group, order):
                result[chosen] = weight * np.prod([x[i] for i in group if i not in chosen])
        return result

    def along(self, weights: Array, order: int, direction: Array) -> Array:
        """Return the gradient of the derivative of one order less along a direction."""
        result = self.derivative(weights, order)
        for _ in range(order - 1):
            result = result @ direction
        return result

    def gradient(self) -> Array:
        """Return the gradient of the sum of the products in the vector's own type.

        It is the product of the preceding factors, from the left, by the product of the following
        ones, from the right.
        """
        x, wide = self.vector, np.float32 if self.dtype == "float16" else self.dtype
        result = np.zeros(x.size, wide)
        with np.errstate(all="ignore"):
            for group in self.groups():
                for k, at in enumerate(group):
                    front = behind = np.ones((), wide)
                    for i in group[:k]:
                        front = front * x[i].astype(wide)
                    for i in reversed(group[k + 1 :]):
                        behind = x[i].astype(wide) * behind
                    result[at] = front * behind
            return result.astype(self.dtype)

    def tangent(self) -> Array:
        """Return the tangent of the products if every entry has the tangent 1."""
        gradient = self.gradient().astype(self.dtype)
        with np.errstate(all="ignore"):
            return np.array([gradient[group].sum() for group in self.groups()])


# Two destinations, one with up to six factors of which some are 0; small integers, so all is exact.
ZEROS = {
    f"{zeros} zeros of {len(order)}{'' if include_self else ', updates alone'}": Product(
        tuple(
            0.0 if i in order[:zeros] else float(v)
            for i, v in enumerate([2, 3, 5, 7, -2, 3, -1])
        ),
        2, (0, 1, 0, 0, 0), include_self,
    )
    for include_self, order in ((True, (4, 0, 6, 2, 5)), (False, (4, 6, 2, 5)))
    for zeros in range(5)
}  # fmt: skip


def _alone(*updates: float, dtype: str = "float32") -> Product:
    """Return the product of 1 and updates."""
    return Product((1.0, *updates), 1, (0,) * len(updates), True, dtype)


WEIGHTS = np.array([3.0, -2.0])
DIRECTION = np.array([1.0, 2, -1, 3, 1, -2, 2])

# Products that under- or overflow, or have factors that are 0 or infinite.
EDGES = {
    "underflow": _alone(1e-30, 1e-30),
    "overflow": _alone(1e30, 1e30),
    "underflow of float64": _alone(1e-200, 1e-200, dtype="float64"),
    "overflow of float64": _alone(-1e200, 1e200, dtype="float64"),
    "overflow of float16": _alone(300.0, 300.0, dtype="float16"),
    "overflow of three": _alone(1e20, 1e20, 1e-10),
    "underflow of three": _alone(1e-18, 1e-18, 1e-18),
    "far apart": _alone(2e-38, 1e38, 3e38),
    "infinite": _alone(INF, 2.0),
    "infinite and others": _alone(3.0, -INF, 2.0),
    "infinite and zero": _alone(INF, 0.0),
    "two infinite": _alone(INF, INF),
    "one zero": _alone(0.0, 2.0, 3.0),
    "two zeros": _alone(0.0, 2.0, 0.0),
    "three zeros": _alone(0.0, 0.0, 0.0),
    "many": _alone(*(1.0 + 2.0**-k for k in range(1, 8)), dtype="float64"),
    "skipped": Product((1.0, 2.0, 1e30, INF, 1e30, 0.0), 2, (0, -1, 0, 1), True, "float32"),
    "updates alone": Product((0.0, INF, 1e30, 3.0, 1e30), 2, (0, 1, 0), False, "float32"),
}
# XLA flushes these to 0 in every multiplication.
SUBNORMAL = {"subnormal": _alone(1e-40, 2.0)}
