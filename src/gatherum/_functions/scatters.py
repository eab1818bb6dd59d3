"""The three scatters: their contracts as docstrings, and one line of code each."""

from __future__ import annotations

from typing import Any, Never, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatherum._frameworks.torch_compile import follow_tensors
from gatherum._model.call_types import Foreign, ReductionName
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum._model.operators import SCATTERS
from gatherum._system.native import accelerate, call

from . import core_hooks as _core_hooks  # noqa: F401  # gives the core its planner

Item = TypeVar("Item", bound=np.generic)


@overload
def scatter_slices(
    data: NDArray[Item],
    indices: ArrayLike,
    updates: ArrayLike,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: NDArray[Item] | None = None,
) -> NDArray[Item]: ...


@overload
def scatter_slices(
    data: Foreign,
    indices: Any,
    updates: Any,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Foreign | None = None,
) -> Foreign: ...


@overload
def scatter_slices(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def scatter_slices(
    data: Any,
    indices: Any,
    updates: Any,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Any | None = None,
    **unknown: Never,
) -> Any:
    """Write, or reduce, slices into an array along one axis, by their numbers: `gather`'s inverse.

    ``out = data; out[a.., indices[i..], s..] op= updates[a.., i.., s..]``, where ``a..`` runs over
    the dimensions before `axis` and ``s..`` over those after it.

    Parameters
    ----------
    data : array_like
        The array to start from, of rank 1 to 64; it is not changed, unless it is `out`. Any dtype
        of a fixed size without objects.
    indices : array_like of int
        The numbers of the slices, of any shape, 0-d included.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    updates : array_like
        Of `data`'s dtype, and of the shape
        ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]``, which `gather` would give, or
        one that broadcasts to it. Plain Python values and lists take `data`'s dtype.
    axis : int, default 0
        The axis along which `indices` counts, in ``[-data.ndim, data.ndim)``.
    reduction : {"none", "add", "mul", "max", "min", "mean", "fsum", "fmean"}, default "none"
        How updates combine with existing values; ``"none"`` replaces them.
    include_self : bool, default True
        Whether the old value takes part in the reduction. If not, a destination starts from its
        first update; one that no update addresses keeps its old value. Without meaning for
        ``"none"``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError before anything is written;
        move to the nearest valid one; wrap around (floor modulo); or drop its update (``"fill"``
        is the same for a scatter).
    negative : bool, default True
        Whether values from -n to -1 count from the end of a dimension of size n. Otherwise they
        are invalid; ``"clip"`` then takes them to 0.
    out : numpy.ndarray, optional
        Where the result goes: of the shape and dtype of `data`, with any strides. If it is
        `data` itself, the scatter happens in place. Otherwise it must share no memory with an
        input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s shape and dtype.

    Raises
    ------
    TypeError
        If `axis` is not an integer, `include_self` or `negative` is not a boolean, `data` holds
        objects, `indices` is not of an integer dtype, `updates` is not of `data`'s dtype, the
        reduction is not defined for it, an operand is not an array, masked, or of another
        framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction`, `mode` or `axis` is not one of its values, the shapes do not fit, or
        `out` has another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. It names the first one in row-major order of `indices`; `data` and
        `out` are then as they were.

    See Also
    --------
    scatter_nd : Slices by tuples of indices.
    scatter_elements : One element for every index.
    gather : The inverse.
    index_report : Whether indices are invalid or address something twice.

    Notes
    -----
    Updates meet each destination in row-major order of `indices`, for any number of threads:
    with ``"none"`` the last one wins, and a floating-point sum has the same bits everywhere.

    Integers wrap around. float16 and bfloat16 are reduced in float32 and rounded once at the end;
    the other floats in their own type. A float32 sum of ones stops growing at 2**24, where adding 1
    rounds back, so the mean of 2 * 10**7 ones is 0.84: for so many updates of one destination use
    float64, or reduce groups of equal size first and then their sums or means. ``"fsum"`` is the
    exact sum, rounded once, and ``"fmean"`` that sum over the count: no order of the updates
    changes their bits, and a NaN, even alone, gives the canonical one. A NaN wins in ``"max"`` and
    ``"min"``, where -0 is less than +0, and a NaN that a reduction makes is the canonical quiet
    one. ``"mean"`` of integers rounds toward minus infinity. With ``"none"``
    elements move as bytes: every dtype works, NaN payloads and signed zeros survive. Reductions are
    defined for bool (not ``"mean"``), integers of 8 to 64 bits, float16, bfloat16, float32,
    float64, and complex numbers of these (not ``"max"`` and ``"min"``), in native byte order;
    ``"fsum"`` and ``"fmean"`` for floats and complex numbers alone.

    Neither ONNX nor DirectML has it. PyTorch's relatives are ``index_copy``, ``index_add`` and
    ``index_reduce``.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> table = np.zeros((3, 2), np.int64)
    >>> gatherum.scatter_slices(table, [2, 0], [[5, 6], [1, 2]])
    array([[1, 2],
           [0, 0],
           [5, 6]])
    >>> gatherum.scatter_slices(table, [1, 1, 0], [[1, 2, 3]] * 3, axis=1, reduction="add")
    array([[3, 3],
           [3, 3],
           [3, 3]])
    >>> gatherum.scatter_slices(table, 1, [7, 8])
    array([[0, 0],
           [7, 8],
           [0, 0]])
    """
    if unknown:
        raise unknown_argument("scatter_slices", unknown)
    return call("scatter_slices", data, indices, updates, axis, reduction, include_self, mode,
                negative, 0, out)  # fmt: skip


@overload
def scatter_elements(
    data: NDArray[Item],
    indices: ArrayLike,
    updates: ArrayLike,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: NDArray[Item] | None = None,
) -> NDArray[Item]: ...


@overload
def scatter_elements(
    data: Foreign,
    indices: Any,
    updates: Any,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Foreign | None = None,
) -> Foreign: ...


@overload
def scatter_elements(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def scatter_elements(
    data: Any,
    indices: Any,
    updates: Any,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Any | None = None,
    **unknown: Never,
) -> Any:
    """Write, or reduce, one element into an array for every index.

    ``out = data; out[i, indices[i, j, k], k] op= updates[i, j, k]`` for three dimensions and axis
    1: the index replaces the position on `axis`, and the others stay.

    Parameters
    ----------
    data : array_like
        The array to start from, of rank 1 to 64; it is not changed, unless it is `out`. Any dtype
        of a fixed size without objects.
    indices : array_like of int
        Positions on `axis`, of `data`'s rank. Off the axis it may be smaller than `data`, and then
        addresses the leading part; nothing broadcasts.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    updates : array_like
        Of `data`'s dtype, and of ``indices.shape`` or a shape that broadcasts to it. Plain
        Python values and lists take `data`'s dtype; what is finite must stay so there.
    axis : int, default 0
        The axis along which `indices` counts, in ``[-data.ndim, data.ndim)``.
    reduction : {"none", "add", "mul", "max", "min", "mean", "fsum", "fmean"}, default "none"
        How updates combine with existing values; ``"none"`` replaces them.
    include_self : bool, default True
        Whether the old value takes part in the reduction. If not, a destination starts from its
        first update; one that no update addresses keeps its old value. Without meaning for
        ``"none"``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError before anything is written;
        move to the nearest valid one; wrap around (floor modulo); or drop its update (``"fill"``
        is the same for a scatter).
    negative : bool, default True
        Whether values from -n to -1 count from the end of a dimension of size n. Otherwise they
        are invalid; ``"clip"`` then takes them to 0.
    out : numpy.ndarray, optional
        Where the result goes: of the shape and dtype of `data`, with any strides. If it is
        `data` itself, the scatter happens in place. Otherwise it must share no memory with an
        input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s shape and dtype.

    Raises
    ------
    TypeError
        If `axis` is not an integer, `include_self` or `negative` is not a boolean, `data` holds
        objects, `indices` is not of an integer dtype, `updates` is not of `data`'s dtype, the
        reduction is not defined for it, an operand is not an array, masked, or of another
        framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction`, `mode` or `axis` is not one of its values, the shapes do not fit, or
        `out` has another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. It names the first one in row-major order of `indices`; `data` and
        `out` are then as they were.

    See Also
    --------
    scatter_slices : Slices along one axis.
    scatter_nd : Slices by tuples of indices.
    gather_elements : The inverse.
    index_report : Whether indices are invalid or address something twice.

    Notes
    -----
    Updates meet each destination in row-major order of `indices`, for any number of threads:
    with ``"none"`` the last one wins, and a floating-point sum has the same bits everywhere.

    Integers wrap around. float16 and bfloat16 are reduced in float32 and rounded once at the end;
    the other floats in their own type. A float32 sum of ones stops growing at 2**24, where adding 1
    rounds back, so the mean of 2 * 10**7 ones is 0.84: for so many updates of one destination use
    float64, or reduce groups of equal size first and then their sums or means. ``"fsum"`` is the
    exact sum, rounded once, and ``"fmean"`` that sum over the count: no order of the updates
    changes their bits, and a NaN, even alone, gives the canonical one. A NaN wins in ``"max"`` and
    ``"min"``, where -0 is less than +0, and a NaN that a reduction makes is the canonical quiet
    one. ``"mean"`` of integers rounds toward minus infinity. With ``"none"``
    elements move as bytes: every dtype works, NaN payloads and signed zeros survive. Reductions are
    defined for bool (not ``"mean"``), integers of 8 to 64 bits, float16, bfloat16, float32,
    float64, and complex numbers of these (not ``"max"`` and ``"min"``), in native byte order;
    ``"fsum"`` and ``"fmean"`` for floats and complex numbers alone.

    The counterparts are ONNX's ScatterElements (version 18,
    https://onnx.ai/onnx/operators/onnx__ScatterElements.html; it has no ``"mean"``) and
    DirectML's SCATTER (DML_SCATTER_OPERATOR_DESC, see `gatherum.directml`; it has no reductions).

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> grid = np.zeros((2, 3), np.int64)
    >>> gatherum.scatter_elements(grid, [[2], [0]], [[7], [8]], axis=1)
    array([[0, 0, 7],
           [8, 0, 0]])
    >>> gatherum.scatter_elements([10, 20], [0, 1, 0], [1, 2, 3], reduction="add")
    array([14, 22])
    >>> gatherum.scatter_elements([10, 20], [0, 0], [1, 2], reduction="max", include_self=False)
    array([ 2, 20])
    """
    if unknown:
        raise unknown_argument("scatter_elements", unknown)
    return call("scatter_elements", data, indices, updates, axis, reduction, include_self, mode,
                negative, 0, out)  # fmt: skip


@overload
def scatter_nd(
    data: NDArray[Item],
    indices: ArrayLike,
    updates: ArrayLike,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: NDArray[Item] | None = None,
) -> NDArray[Item]: ...


@overload
def scatter_nd(
    data: Foreign,
    indices: Any,
    updates: Any,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Foreign | None = None,
) -> Foreign: ...


@overload
def scatter_nd(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def scatter_nd(
    data: Any,
    indices: Any,
    updates: Any,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Any | None = None,
    **unknown: Never,
) -> Any:
    """Write, or reduce, elements or slices into an array by tuples of indices.

    ``out = data; out[b.., *indices[b.., i.., :], s..] op= updates[b.., i.., s..]``, where ``b..``
    runs over the batch dimensions and ``s..`` over those that no component of a tuple addresses.

    Parameters
    ----------
    data : array_like
        The array to start from, of rank up to 64; it is not changed, unless it is `out`. Any dtype
        of a fixed size without objects.
    indices : array_like of int
        Tuples along the last dimension, of ``k = indices.shape[-1]`` components, each for one
        dimension of `data` after the batch dimensions. Tuples of no component address all of them.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    updates : array_like
        Of `data`'s dtype, and of the shape
        ``indices.shape[:-1] + data.shape[batch_dims + k:]`` or one that broadcasts to it. Plain
        Python values and lists take `data`'s dtype; what is finite must stay so there.
    batch_dims : int, default 0
        How many leading dimensions `data` and `indices` share, in ``[0, indices.ndim)``.
    reduction : {"none", "add", "mul", "max", "min", "mean", "fsum", "fmean"}, default "none"
        How updates combine with existing values; ``"none"`` replaces them.
    include_self : bool, default True
        Whether the old value takes part in the reduction. If not, a destination starts from its
        first update; one that no update addresses keeps its old value. Without meaning for
        ``"none"``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError before anything is written;
        move to the nearest valid one; wrap around (floor modulo); or drop its update (``"fill"``
        is the same for a scatter).
    negative : bool, default True
        Whether values from -n to -1 count from the end of a dimension of size n. Otherwise they
        are invalid; ``"clip"`` then takes them to 0.
    out : numpy.ndarray, optional
        Where the result goes: of the shape and dtype of `data`, with any strides. If it is
        `data` itself, the scatter happens in place. Otherwise it must share no memory with an
        input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s shape and dtype.

    Raises
    ------
    TypeError
        If `batch_dims` is not an integer, `include_self` or `negative` is not a boolean, `data`
        holds objects, `indices` is not of an integer dtype, `updates` is not of `data`'s dtype, the
        reduction is not defined for it, an operand is not an array, masked, or of another
        framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction`, `mode` or `batch_dims` is not one of its values, the shapes do not fit, or
        `out` has another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. It names the first one in row-major order of `indices`; `data` and
        `out` are then as they were.

    See Also
    --------
    scatter_slices : Slices along one axis.
    scatter_elements : One element for every index.
    gather_nd : The inverse.
    index_report : Whether indices are invalid or address something twice.

    Notes
    -----
    Updates meet each destination in row-major order of `indices`, for any number of threads:
    with ``"none"`` the last one wins, and a floating-point sum has the same bits everywhere.

    Integers wrap around. float16 and bfloat16 are reduced in float32 and rounded once at the end;
    the other floats in their own type. A float32 sum of ones stops growing at 2**24, where adding 1
    rounds back, so the mean of 2 * 10**7 ones is 0.84: for so many updates of one destination use
    float64, or reduce groups of equal size first and then their sums or means. ``"fsum"`` is the
    exact sum, rounded once, and ``"fmean"`` that sum over the count: no order of the updates
    changes their bits, and a NaN, even alone, gives the canonical one. A NaN wins in ``"max"`` and
    ``"min"``, where -0 is less than +0, and a NaN that a reduction makes is the canonical quiet
    one. ``"mean"`` of integers rounds toward minus infinity. With ``"none"``
    elements move as bytes: every dtype works, NaN payloads and signed zeros survive. Reductions are
    defined for bool (not ``"mean"``), integers of 8 to 64 bits, float16, bfloat16, float32,
    float64, and complex numbers of these (not ``"max"`` and ``"min"``), in native byte order;
    ``"fsum"`` and ``"fmean"`` for floats and complex numbers alone.

    The counterparts are ONNX's ScatterND (version 18,
    https://onnx.ai/onnx/operators/onnx__ScatterND.html; it has neither ``"mean"`` nor
    `batch_dims`) and DirectML's SCATTER_ND (DML_SCATTER_ND_OPERATOR_DESC, see
    `gatherum.directml`; it has no reductions).

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> table = np.zeros((3, 2), np.int64)
    >>> gatherum.scatter_nd(table, [[2], [0]], [[5, 6], [1, 2]])
    array([[1, 2],
           [0, 0],
           [5, 6]])
    >>> gatherum.scatter_nd(table, [[0, 1], [0, 1], [2, 0]], 1, reduction="add")
    array([[0, 2],
           [0, 0],
           [1, 0]])
    >>> gatherum.scatter_nd(table, [[1], [0], [1]], [7, 8, 9], batch_dims=1)
    array([[0, 7],
           [8, 0],
           [0, 9]])
    """
    if unknown:
        raise unknown_argument("scatter_nd", unknown, has_axis=False)
    return call("scatter_nd", data, indices, updates, batch_dims, reduction, include_self, mode,
                negative, 0, out)  # fmt: skip


for _name in SCATTERS:  # a row of the table without a function is a KeyError
    accelerate(globals()[_name])
    follow_tensors(globals()[_name])
