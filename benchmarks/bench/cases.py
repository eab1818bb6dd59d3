"""Benchmark cases: calls with their operands, which any peer can run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._model.operators import OPERATORS

Array = NDArray[Any]

FILES = ("data", "indices", "updates")


@dataclass(frozen=True, slots=True)
class Case:
    """One call of an operator with its operands."""

    op: str
    data: Array
    indices: Array
    updates: Array | None = None
    axis: int = 0
    reduction: str = "none"

    @property
    def arguments(self) -> dict[str, object]:
        """The operator's attributes by name, as arguments of the functional API."""
        row = OPERATORS[self.op]
        # ONNX's ScatterND has no attributes.
        named: dict[str, object] = (
            {row.attribute: self.axis} if self.axis or not row.takes_tuples else {}
        )
        return named | ({"reduction": self.reduction} if self.updates is not None else {})

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The operands: data, indices and, for scatters, updates."""
        operands = (self.data, self.indices)
        return operands if self.updates is None else (*operands, self.updates)

    @property
    def call(self) -> tuple[Any, ...]:
        """The data that another process needs to load the case."""
        return ("case", self.op, self.axis, self.reduction)

    @property
    def result_bytes(self) -> int:
        """The size of the result in bytes."""
        return int(np.prod(self.result_shape)) * self.data.itemsize

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        if self.updates is not None:
            return self.data.shape
        return OPERATORS[self.op].moved_shape(self.data.shape, self.indices.shape, self.axis)

    @property
    def may_round(self) -> bool:
        """Whether the bits of the result may depend on the order of the operations."""
        return self.reduction in ("add", "mul", "mean") and self.data.dtype.kind in "fc"

    @property
    def added(self) -> float:
        """The sum of the updates."""
        return 0.0 if self.updates is None else float(np.sum(self.updates, dtype="f8"))

    def whole(self) -> Case:
        """Return the same case on small whole numbers, whose float sums are exact in any order."""
        if self.updates is None:
            return self
        return replace(self, data=np.rint(self.data * 8), updates=np.rint(self.updates * 8))

    def save(self, folder: Path) -> None:
        """Write the operands to files that other processes can read."""
        for name, array in zip(FILES, self.arrays, strict=False):
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def load(cls, folder: Path, op: str, axis: int, reduction: str) -> Case:
        """Read the operands into the memory of this process (possibly huge pages)."""
        names = FILES if OPERATORS[op].scatters else FILES[:2]
        arrays = [np.load(folder / f"{name}.npy") for name in names]
        updates = arrays[2] if len(arrays) > 2 else None
        return cls(op, arrays[0], arrays[1], updates, axis, reduction)
