"""The three scatters: docstrings that define their behaviour, and one line of code each.

`tools/signatures` copies the parameters of these functions to generated modules, and the shared
parts of the first docstring to the docstrings of the other functions.
"""

from __future__ import annotations

from typing import Any, Never

from gatherum._model.call_types import ReductionName, typed_as
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum._model.operators import SCATTERS
from gatherum._system.native import dispatch_call

from . import callbacks as _callbacks  # noqa: F401  # sets the core's callbacks
from . import overloads
from .core_entries import connect


@typed_as(overloads.scatter_slices)
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
    """Write or reduce slices into an array along one axis, by index: the inverse of `gather`.

    ``out = data; out[a.., indices[i..], s..] op= updates[a.., i.., s..]``, where ``a..`` runs over
    the dimensions before `axis` and ``s..`` over the dimensions after `axis`.

    Parameters
    ----------
    data : array_like
        The array to start from, of rank 1 to 64. Any fixed-size dtype without objects. It is not
        changed unless it is also `out`.
    indices : array_like of int
        Positions of the slices on `axis`, of any shape, including 0-d.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    updates : array_like
        Values of `data`'s dtype, in the shape that `gather` returns,
        ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]``, or in a shape that broadcasts
        to it. Python scalars and lists are converted to `data`'s dtype.
    axis : int, default 0
        The axis that `indices` addresses, in ``[-data.ndim, data.ndim)``.
    reduction : {"none", "add", "mul", "max", "min", "mean", "fsum", "fmean"}, default "none"
        How updates combine with existing values; ``"none"`` replaces the existing values.
    include_self : bool, default True
        If True, the existing value takes part in the reduction. If False, each destination starts
        from its first update, and a destination without updates keeps its value. Ignored for
        ``"none"``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError before anything is written, clip to
        the nearest valid index, wrap around (floor modulo), or drop the update. For a scatter,
        ``"fill"`` is the same as ``"drop"``.
    negative : bool, default True
        If True, indices from -n to -1 count from the end of a dimension of size n. If False, they
        are invalid, and ``"clip"`` clips them to 0.
    out : numpy.ndarray, optional
        The array to store the result in, of `data`'s shape and dtype, with any strides. If it is
        `data` itself, the scatter happens in place. Otherwise it must not share memory with an
        input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s shape and dtype.

    Raises
    ------
    TypeError
        If `axis` is not an integer, `include_self` or `negative` is not a boolean, `data` holds
        objects, `indices` has a non-integer dtype, `updates` has another dtype than `data`, the
        reduction is not defined for the dtype, an operand is not an array, is masked or belongs to
        another framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction`, `mode` or `axis` has an invalid value, the shapes do not match, or
        `out` has another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. The message names the first invalid index in row-major order; `data`
        and `out` are unchanged.

    See Also
    --------
    scatter_nd : Write slices by index tuples.
    scatter_elements : Write one element for each index.
    gather : The inverse.
    index_report : Count invalid and duplicate indices.

    Notes
    -----
    With any number of threads, each destination receives its updates in row-major order of
    `indices`: ``"none"`` keeps the last update, and a floating-point sum has the same bits on every
    machine.

    Integers wrap around. float16 and bfloat16 accumulate in float32 and round once at the end;
    other floats accumulate in their own type. A float32 sum of ones stops growing at 2**24, because
    2**24 + 1 rounds to 2**24; the mean of 2 * 10**7 ones is therefore 0.84. If one destination has
    that many updates, use float64, or divide the updates into groups of equal size, reduce each
    group, and reduce the results.

    ``"fsum"`` is the exact sum, and ``"fmean"`` is the exact sum divided by the count; both are
    rounded once. Their bits do not depend on the order of the updates. If a value is NaN, the
    result is the canonical quiet NaN, even if there is only one value. ``"max"`` and ``"min"``
    propagate NaN and order -0 below +0. A NaN that a reduction creates is the canonical quiet NaN.
    ``"mean"`` of integers rounds toward minus infinity.

    ``"none"`` copies elements as bytes, so it supports every dtype and preserves NaN payloads and
    signed zeros. The other reductions are defined for bool, integers of 8 to 64 bits, float16,
    bfloat16, float32, float64, complex64 and complex128 in native byte order. ``"mean"`` does not
    support bool, ``"max"`` and ``"min"`` do not support complex numbers, and ``"fsum"`` and
    ``"fmean"`` support only floats and complex numbers.

    Neither ONNX nor DirectML has this operator. Related functions of PyTorch are ``index_copy``,
    ``index_add`` and ``index_reduce``.

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
    return dispatch_call("scatter_slices", data, indices, updates, axis, reduction,
                         include_self, mode, negative, 0, out)  # fmt: skip


@typed_as(overloads.scatter_elements)
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
    """Write or reduce one element into an array for each index.

    ``out = data; out[i, indices[i, j, k], k] op= updates[i, j, k]`` for three dimensions and axis
    1: the index replaces the position on `axis`, and the other positions are unchanged.

    Parameters
    ----------
    data : array_like
        The array to start from, of rank 1 to 64. Any fixed-size dtype without objects. It is not
        changed unless it is also `out`.
    indices : array_like of int
        Positions on `axis`, of `data`'s rank. In the other dimensions, `indices` may be smaller
        than `data`; only the leading part of `data` is then addressed. Indices are not broadcast.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    updates : array_like
        Values of `data`'s dtype, in the shape of `indices` or a shape that broadcasts to it. Python
        scalars and lists are converted to `data`'s dtype, where finite values must remain finite.
    axis : int, default 0
        The axis that `indices` addresses, in ``[-data.ndim, data.ndim)``.
    reduction : {"none", "add", "mul", "max", "min", "mean", "fsum", "fmean"}, default "none"
        How updates combine with existing values; ``"none"`` replaces the existing values.
    include_self : bool, default True
        If True, the existing value takes part in the reduction. If False, each destination starts
        from its first update, and a destination without updates keeps its value. Ignored for
        ``"none"``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError before anything is written, clip to
        the nearest valid index, wrap around (floor modulo), or drop the update. For a scatter,
        ``"fill"`` is the same as ``"drop"``.
    negative : bool, default True
        If True, indices from -n to -1 count from the end of a dimension of size n. If False, they
        are invalid, and ``"clip"`` clips them to 0.
    out : numpy.ndarray, optional
        The array to store the result in, of `data`'s shape and dtype, with any strides. If it is
        `data` itself, the scatter happens in place. Otherwise it must not share memory with an
        input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s shape and dtype.

    Raises
    ------
    TypeError
        If `axis` is not an integer, `include_self` or `negative` is not a boolean, `data` holds
        objects, `indices` has a non-integer dtype, `updates` has another dtype than `data`, the
        reduction is not defined for the dtype, an operand is not an array, is masked or belongs to
        another framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction`, `mode` or `axis` has an invalid value, the shapes do not match, or `out` has
        another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. The message names the first invalid index in row-major order; `data`
        and `out` are unchanged.

    See Also
    --------
    scatter_slices : Write slices along one axis.
    scatter_nd : Write slices by index tuples.
    gather_elements : The inverse.
    index_report : Count invalid and duplicate indices.

    Notes
    -----
    With any number of threads, each destination receives its updates in row-major order of
    `indices`: ``"none"`` keeps the last update, and a floating-point sum has the same bits on every
    machine.

    Integers wrap around. float16 and bfloat16 accumulate in float32 and round once at the end;
    other floats accumulate in their own type. A float32 sum of ones stops growing at 2**24, because
    2**24 + 1 rounds to 2**24; the mean of 2 * 10**7 ones is therefore 0.84. If one destination has
    that many updates, use float64, or divide the updates into groups of equal size, reduce each
    group, and reduce the results.

    ``"fsum"`` is the exact sum, and ``"fmean"`` is the exact sum divided by the count; both are
    rounded once. Their bits do not depend on the order of the updates. If a value is NaN, the
    result is the canonical quiet NaN, even if there is only one value. ``"max"`` and ``"min"``
    propagate NaN and order -0 below +0. A NaN that a reduction creates is the canonical quiet NaN.
    ``"mean"`` of integers rounds toward minus infinity.

    ``"none"`` copies elements as bytes, so it supports every dtype and preserves NaN payloads and
    signed zeros. The other reductions are defined for bool, integers of 8 to 64 bits, float16,
    bfloat16, float32, float64, complex64 and complex128 in native byte order. ``"mean"`` does not
    support bool, ``"max"`` and ``"min"`` do not support complex numbers, and ``"fsum"`` and
    ``"fmean"`` support only floats and complex numbers.

    The counterparts are ScatterElements in ONNX (version 18, without ``"mean"``,
    https://onnx.ai/onnx/operators/onnx__ScatterElements.html) and SCATTER in DirectML
    (DML_SCATTER_OPERATOR_DESC, without reductions, see `gatherum.directml`).

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
    return dispatch_call("scatter_elements", data, indices, updates, axis, reduction,
                         include_self, mode, negative, 0, out)  # fmt: skip


@typed_as(overloads.scatter_nd)
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
    """Write or reduce elements or slices into an array by index tuples.

    ``out = data; out[b.., *indices[b.., i.., :], s..] op= updates[b.., i.., s..]``, where ``b..``
    runs over the batch dimensions and ``s..`` over the trailing dimensions that the tuples do not
    address.

    Parameters
    ----------
    data : array_like
        The array to start from, of rank up to 64. Any fixed-size dtype without objects. It is not
        changed unless it is also `out`.
    indices : array_like of int
        Index tuples along the last dimension, of ``k = indices.shape[-1]`` components, one for each
        of the first k dimensions of `data` after the batch dimensions. If k is 0, a tuple addresses
        the whole sub-array of its batch.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    updates : array_like
        Values of `data`'s dtype, in the shape ``indices.shape[:-1] + data.shape[batch_dims + k:]``
        or a shape that broadcasts to it. Python scalars and lists are converted to `data`'s dtype,
        where finite values must remain finite.
    batch_dims : int, default 0
        The number of leading dimensions that `data` and `indices` share, in ``[0, indices.ndim)``.
    reduction : {"none", "add", "mul", "max", "min", "mean", "fsum", "fmean"}, default "none"
        How updates combine with existing values; ``"none"`` replaces the existing values.
    include_self : bool, default True
        If True, the existing value takes part in the reduction. If False, each destination starts
        from its first update, and a destination without updates keeps its value. Ignored for
        ``"none"``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError before anything is written, clip to
        the nearest valid index, wrap around (floor modulo), or drop the update. For a scatter,
        ``"fill"`` is the same as ``"drop"``.
    negative : bool, default True
        If True, indices from -n to -1 count from the end of a dimension of size n. If False, they
        are invalid, and ``"clip"`` clips them to 0.
    out : numpy.ndarray, optional
        The array to store the result in, of `data`'s shape and dtype, with any strides. If it is
        `data` itself, the scatter happens in place. Otherwise it must not share memory with an
        input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s shape and dtype.

    Raises
    ------
    TypeError
        If `batch_dims` is not an integer, `include_self` or `negative` is not a boolean, `data`
        holds objects, `indices` has a non-integer dtype, `updates` has another dtype than `data`,
        the reduction is not defined for the dtype, an operand is not an array, is masked or belongs
        to another framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction`, `mode` or `batch_dims` has an invalid value, the shapes do not match, or
        `out` has another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. The message names the first invalid index in row-major order; `data`
        and `out` are unchanged.

    See Also
    --------
    scatter_slices : Write slices along one axis.
    scatter_elements : Write one element for each index.
    gather_nd : The inverse.
    index_report : Count invalid and duplicate indices.

    Notes
    -----
    With any number of threads, each destination receives its updates in row-major order of
    `indices`: ``"none"`` keeps the last update, and a floating-point sum has the same bits on every
    machine.

    Integers wrap around. float16 and bfloat16 accumulate in float32 and round once at the end;
    other floats accumulate in their own type. A float32 sum of ones stops growing at 2**24, because
    2**24 + 1 rounds to 2**24; the mean of 2 * 10**7 ones is therefore 0.84. If one destination has
    that many updates, use float64, or divide the updates into groups of equal size, reduce each
    group, and reduce the results.

    ``"fsum"`` is the exact sum, and ``"fmean"`` is the exact sum divided by the count; both are
    rounded once. Their bits do not depend on the order of the updates. If a value is NaN, the
    result is the canonical quiet NaN, even if there is only one value. ``"max"`` and ``"min"``
    propagate NaN and order -0 below +0. A NaN that a reduction creates is the canonical quiet NaN.
    ``"mean"`` of integers rounds toward minus infinity.

    ``"none"`` copies elements as bytes, so it supports every dtype and preserves NaN payloads and
    signed zeros. The other reductions are defined for bool, integers of 8 to 64 bits, float16,
    bfloat16, float32, float64, complex64 and complex128 in native byte order. ``"mean"`` does not
    support bool, ``"max"`` and ``"min"`` do not support complex numbers, and ``"fsum"`` and
    ``"fmean"`` support only floats and complex numbers.

    The counterparts are ScatterND in ONNX (version 18, without ``"mean"`` and `batch_dims`,
    https://onnx.ai/onnx/operators/onnx__ScatterND.html) and SCATTER_ND in DirectML
    (DML_SCATTER_ND_OPERATOR_DESC, without reductions, see `gatherum.directml`).

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
    return dispatch_call("scatter_nd", data, indices, updates, batch_dims, reduction,
                         include_self, mode, negative, 0, out)  # fmt: skip


connect(SCATTERS, globals(), __name__)
