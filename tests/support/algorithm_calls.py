"""Calls for each algorithm of the core, large enough for several threads."""

from typing import NamedTuple

import numpy as np

import gatherum
from canaries import guarded_copy
from gatherum._model.operators import OPERATORS

__all__ = ["GATHERS", "SCATTERS", "Work"]

RNG = np.random.default_rng(8)


class Work(NamedTuple):
    algorithm: str
    op: str
    data: tuple[int, ...]
    indices: tuple[int, ...]
    size: int  # of the indexed dimension
    dtype: str
    attributes: dict[str, object]

    def operands(self):
        """Make valid operands, with canaries around them."""
        indices = RNG.integers(-self.size, self.size, self.indices).astype(np.int32)
        shapes = [self.data]
        if self.op.startswith("scatter"):
            axis = self.attributes.get("axis", 0)
            shapes.append(OPERATORS[self.op].moved_shape(self.data, self.indices, axis))
        values = [RNG.integers(1, 100, shape).astype(self.dtype) for shape in shapes]
        return [guarded_copy(array) for array in (values[0], indices, *values[1:])]

    def run(self, operands, **more):
        return getattr(gatherum, self.op)(*operands, **self.attributes, **more)


ADD, MEAN, MAX = ({"reduction": name} for name in ("add", "mean", "max"))
SCATTERS = {
    "items, a few": Work("direct", "scatter_nd", (900,), (700, 1), 900, "f4", ADD),
    "items, far apart": Work("direct", "scatter_nd", (700_000,), (40_000, 1), 700_000, "f8", ADD),
    "odd items": Work("direct", "scatter_nd", (5_000,), (90_000, 1), 5_000, "S3", {}),
    "rows": Work("direct", "scatter_nd", (3_000, 40), (9_000, 1), 3_000, "f4", ADD),
    "rows, set": Work("last_updates", "scatter_nd", (3_000, 131), (9_000, 1), 3_000, "f4", {}),
    "one slab": Work("accumulators", "scatter_nd", (3_000,), (300_000, 1), 3_000, "f8", ADD),
    "a far slab": Work("accumulators", "scatter_nd", (600_000,), (400_000, 1), 600_000, "f8", ADD),
    "ranges of a slab": Work(
        "accumulators", "scatter_nd", (300_000,), (400_000, 1), 300_000, "f8", ADD
    ),
    "a counted slab": Work("accumulators", "scatter_nd", (3_000,), (300_000, 1), 3_000, "f4", MEAN),
    "a slab of keys": Work("accumulators", "scatter_nd", (3_000,), (300_000, 1), 3_000, "f8", MAX),
    "keys, without the old values": Work(
        "accumulators",
        "scatter_nd",
        (3_000,),
        (300_000, 1),
        3_000,
        "f2",
        MAX | {"include_self": False},
    ),
    "sums, without the old values": Work(
        "accumulators",
        "scatter_nd",
        (3_000,),
        (300_000, 1),
        3_000,
        "f8",
        ADD | {"include_self": False},
    ),
    "columns": Work("accumulators", "scatter_elements", (900, 300), (900, 300), 900, "f4", ADD),
    "lines": Work(
        "accumulators", "scatter_elements", (300, 900), (300, 900), 900, "f4", ADD | {"axis": 1}
    ),
    "slices that are columns": Work(
        "accumulators", "scatter_slices", (300, 90), (700,), 90, "f4", {"axis": 1}
    ),
    "slices that are rows": Work("direct", "scatter_slices", (300, 90), (70, 9), 300, "f4", ADD),
    "slices, one slab a line": Work(
        "accumulators", "scatter_slices", (300, 90), (700,), 90, "f2", MEAN | {"axis": 1}
    ),
    "slices in groups": Work(
        "by_destination", "scatter_slices", (300, 90), (700,), 300, "f2", MEAN
    ),
    "a partition": Work(
        "partitioned", "scatter_nd", (2_200_000,), (280_000, 1), 2_200_000, "f4", ADD
    ),
    "a counted partition": Work(
        "partitioned", "scatter_nd", (2_200_000,), (280_000, 1), 2_200_000, "f2", MEAN
    ),
    "groups, counted out": Work(
        "by_destination", "scatter_nd", (300, 40), (9_000, 1), 300, "f4", MEAN
    ),
    "groups, sorted": Work(
        "by_destination", "scatter_nd", (900_000,), (9_000, 1), 900_000, "f4", MEAN
    ),
}
GATHERS = {
    "rows": Work("direct", "gather", (3_000, 40), (9_000,), 3_000, "f4", {}),
    "rows of whole lines": Work("streamed", "gather", (3_000, 64), (20_000,), 3_000, "f4", {}),
    "odd rows": Work("direct", "gather", (3_000, 41), (9_000,), 3_000, "S3", {}),
    "items": Work("direct", "gather", (700_000,), (400_000,), 700_000, "f4", {}),
    "stretches": Work(
        "prefetched", "gather_elements", (300, 900), (300, 900), 900, "f4", {"axis": 1}
    ),
    "common stretches": Work("prefetched", "gather", (300, 900), (700,), 900, "u1", {"axis": 1}),
    "packed columns": Work("packed", "gather_elements", (900, 300), (900, 300), 900, "f4", {}),
}
