"""Types that checkers infer for calls: mypy and pyright check this file, nothing runs it.

A line that must be an error has an ignore of exactly the expected error; both checkers report
unused ignores.
"""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import gatherum

floats: NDArray[np.float32] = np.zeros((4, 4), np.float32)
dates: NDArray[np.datetime64] = np.zeros((4, 4), "M8[s]")
unknown: NDArray[Any] = floats

# A result has the dtype of `data`.
assert_type(gatherum.gather(floats, [0, 1]), NDArray[np.float32])
assert_type(gatherum.gather(dates, 0, axis=1, mode="clip"), NDArray[np.datetime64])
assert_type(gatherum.gather_elements(floats, [[0]], 1, out=floats), NDArray[np.float32])
assert_type(gatherum.gather_nd(floats, [[0]], batch_dims=0), NDArray[np.float32])
assert_type(
    gatherum.scatter_elements(floats, [[0]], [[1.0]], 0, reduction="add"), NDArray[np.float32]
)
assert_type(gatherum.scatter_slices(floats, 0, 1.0, axis=1), NDArray[np.float32])
assert_type(gatherum.scatter_nd(dates, [[0]], dates[:1]), NDArray[np.datetime64])

# An operand that is converted to an array may have any dtype.
assert_type(gatherum.gather([1, 2], 0), NDArray[Any])
assert_type(gatherum.gather(unknown, 0), NDArray[Any])
assert_type(gatherum.scatter_nd([1, 2], [[0]], [3]), NDArray[Any])

# The types of the rest.
assert_type(gatherum.plan(gatherum.gather, floats, [0]).shape, tuple[int, ...])
assert_type(gatherum.plan("gather", floats, [0]).shape, tuple[int, ...])
assert_type(gatherum.plan("gather-nd", floats, [0], batch_dims=0, mode="fill").bytes, int)
assert_type(gatherum.explain("gather", floats, [0], axis=1, fill_value=0.5).loops, str)
assert_type(gatherum.plan("gather", floats, [0]).run(floats, dates), NDArray[Any])
assert_type(gatherum.index_report("gather", (4, 4), [0]).invalid, int)
assert_type(gatherum.index_report("gather", (floats.shape, "f4"), [0], fill_value=1).invalid, int)
assert_type(gatherum.plan("gather", floats, [0], mode="fill", fill_value=0.5).bytes, int)
assert_type(gatherum.show_config(), None)
assert_type(gatherum.config(), dict[str, Any])
assert_type(gatherum.get_num_threads(), int)

# The modules of frameworks and files are attributes of the package.
assert_type(gatherum.files.gather_file("a.npy", "i.npy", "o.npy").rows, int)
assert_type(gatherum.files.gather_file("a.npy", floats), NDArray[Any])
assert_type(gatherum.files.scatter_nd_file("a.npy", "i.npy", floats, in_place=False), NDArray[Any])
assert_type(gatherum.directml.FeatureLevel.of("4_1"), gatherum.directml.FeatureLevel)


class Matrix:
    """A matrix with the attributes of SciPy's."""

    format = "csr"

    def tocsr(self) -> "Matrix":
        return self


assert_type(gatherum.aggregate(floats, [0], [0], 1, "add"), NDArray[np.float32])
assert_type(gatherum.aggregate(floats, Matrix(), None, None, "add"), NDArray[np.float32])
assert_type(gatherum.aggregate([1.0], [0], None, None, "add", indptr=[0, 1]), NDArray[Any])
assert_type(gatherum.groups.reduce(floats, [0, 1], 3, "max", fill_value=0), NDArray[Any])
assert_type(
    gatherum.groups.reduce(floats, [0, 1], func=["sum", "nanmean"], weights=floats),
    dict[str, NDArray[Any]],
)
assert_type(gatherum.groups.reduce([1.0], [0], func=["max"]), dict[str, NDArray[Any]])
assert_type(gatherum.groups.transform([1.0], [0], "centre"), NDArray[Any])
assert_type(gatherum.groups.aggregate([0, 1], 1, np.sum, order="F"), NDArray[Any])

desc = gatherum.directml.BufferTensorDesc("float32", [2, 3])
assert_type(gatherum.directml.BufferTensorDesc(floats.dtype, (2, 3)).dimension_count, int)
assert_type(desc.data_type, gatherum.directml.TensorDataType)

# Errors without running.
print(gatherum.nonsense)  # type: ignore[attr-defined]
gatherum.files.gather_file("a.npy", "i.npy", "o.npy", mode="ignore")  # type: ignore[call-overload]
gatherum.gather(floats, [0], mode="ignore")  # type: ignore[call-overload]
gatherum.scatter_slices(floats, 0, 1.0, reduction="sum")  # type: ignore[call-overload]
gatherum.Accumulator(floats, "sum")  # type: ignore[arg-type]
gatherum.plan("take", floats, [0])  # type: ignore[arg-type]
gatherum.plan("gather", floats, [0], mode="ignore")  # type: ignore[arg-type]
gatherum.plan("gather", floats, [0], axes=1)  # type: ignore[call-arg]
gatherum.explain("gather_nd", floats, [0], batch_dims="0")  # type: ignore[arg-type]
gatherum.index_report("gather", (4, 4), [0], reduction="add")  # type: ignore[call-arg]
gatherum.gather(floats, [0], out=[0.0])  # type: ignore[call-overload]
gatherum.gather(floats, [0], axis="0")  # type: ignore[call-overload]
gatherum.gather(floats, [0], 0, "clip")  # type: ignore[call-overload]
gatherum.scatter_nd(floats, [[0]], floats, 0, "add")  # type: ignore[call-overload]
gatherum.scatter_nd(floats, [[0]])  # type: ignore[call-overload]
gatherum.scatter_elements(floats, [[0]], [[1.0]], include_self="no")  # type: ignore[call-overload]
gatherum.groups.reduce(floats, [0], func="softmax")  # type: ignore[call-overload]
gatherum.groups.transform(floats, [0], "sum")  # type: ignore[call-overload]
assert_type(gatherum.gather_quantized(floats, 0, [1.0], block_size=4), NDArray[Any])
