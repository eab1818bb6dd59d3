"""Types that checkers infer for calls on arrays of other libraries that need not be installed."""

from typing import Any, assert_type

import numpy as np

import gatherum


class OnDevice:
    """An array with the attributes that PyTorch, JAX and CuPy share."""

    def __dlpack__(self, *, stream: int | None = None, max_version: Any = None) -> object:
        raise NotImplementedError

    def detach(self) -> "OnDevice":
        raise NotImplementedError


class Lazy:
    """An array with the attributes of Dask's."""

    def __dask_graph__(self) -> dict[str, object]:
        raise NotImplementedError


tensor, lazy = OnDevice(), Lazy()
assert_type(gatherum.gather(tensor, [0]).detach(), OnDevice)
assert_type(gatherum.gather(tensor, tensor, 1, mode="clip", out=tensor), OnDevice)
assert_type(gatherum.gather_elements(tensor, [[0]], axis=1), OnDevice)
assert_type(gatherum.gather_nd(lazy, np.zeros((1, 1), int), batch_dims=0), Lazy)
assert_type(gatherum.scatter_slices(tensor, tensor, 1.0, axis=1), OnDevice)
assert_type(gatherum.scatter_elements(tensor, tensor, tensor, reduction="add"), OnDevice)
assert_type(gatherum.scatter_nd(lazy, lazy, lazy), Lazy)

assert_type(gatherum.aggregate(tensor, tensor, tensor, 3, "add", tensor, out=tensor), OnDevice)
assert_type(gatherum.aggregate(tensor, [0], None, None, "mean", indptr=[0, 1]), OnDevice)
assert_type(gatherum.groups.reduce(tensor, [0], 3, "max", 1, fill_value=0), OnDevice)
assert_type(gatherum.groups.reduce(tensor, [0], func=["max"]), dict[str, OnDevice])
assert_type(gatherum.groups.reduce(lazy, np.zeros(3, int), func="nanmean"), Lazy)
assert_type(gatherum.groups.transform(tensor, tensor, "softmax", size=3).detach(), OnDevice)
assert_type(gatherum.groups.transform(lazy, lazy, "centre"), Lazy)
assert_type(gatherum.gather_quantized(tensor, [0], tensor, block_size=4), OnDevice)
