"""The three gathers: docstrings that define their behaviour, and one line of code each.

From CPython 3.12 on, the core binds the arguments of a call, and the body of the function runs
only for arguments that do not fit the signature. In a function that `torch.compile` traces, a copy
of the body runs for arrays other than tensors. Before CPython 3.12 and on PyPy, the body always
runs. docs/decisions/vectorcall.md explains why.

The core looks up the plan of a call in its cache and runs it. `plan` describes plans and the checks
of calls. `tools/signatures` copies the parameters of these functions to generated modules, such as
`overloads`, which tells type checkers that a result has the dtype of `data`. It also copies the
shared parts of the first docstring to the docstrings of the other functions.
"""

from __future__ import annotations

from typing import Any, Never

from gatherum._model.call_types import typed_as
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum._model.operators import GATHERS
from gatherum._system.native import dispatch_call

from . import callbacks as _callbacks  # noqa: F401  # sets the core's callbacks
from . import overloads
from .core_entries import connect


@typed_as(overloads.gather)
def gather(
    data: Any,
    indices: Any,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
    out: Any | None = None,
    **unknown: Never,
) -> Any:
    """Take slices from an array along one axis, by index.

    ``out[a.., i.., s..] = data[a.., indices[i..], s..]``, where ``a..`` runs over the dimensions
    before `axis`, ``s..`` over the dimensions after `axis`, and ``i..`` over the dimensions of
    `indices`.

    Parameters
    ----------
    data : array_like
        The array to take from, of rank 1 to 64. Any fixed-size dtype without objects.
    indices : array_like of int
        Positions of the slices on `axis`, of any shape, including 0-d.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    axis : int, default 0
        The axis that `indices` addresses, in ``[-data.ndim, data.ndim)``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError, clip to the nearest valid index,
        wrap around (floor modulo), or return `fill_value`. For a gather, ``"drop"`` is the same
        as ``"fill"``.
    negative : bool, default True
        If True, indices from -n to -1 count from the end of a dimension of size n. If False, they
        are invalid, and ``"clip"`` clips them to 0.
    fill_value : scalar, default 0
        The value that ``"fill"`` and ``"drop"`` return. A Python number is rounded to `data`'s
        dtype; any other value must convert exactly. For any dtype, 0 is the item whose bytes are
        all zero. Other modes ignore it.
    out : numpy.ndarray, optional
        The array to store the result in, of the result's shape and dtype, with any strides. It
        must not share memory with an input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s dtype and the shape
        ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]``.

    Raises
    ------
    TypeError
        If `axis` is not an integer, `negative` is not a boolean, `data` holds objects, `indices`
        has a non-integer dtype, an operand is not an array, is masked or belongs to another
        framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `mode`, `axis` or `fill_value` has an invalid value, the shapes do not match,
        or `out` has another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. The message names the first invalid index in row-major order.

    See Also
    --------
    gather_elements : Take one element for each index.
    gather_nd : Take slices by index tuples.
    scatter_slices : The inverse.

    Notes
    -----
    Elements are copied as bytes, so NaN payloads, signed zeros and the padding of records are
    preserved, also for half-precision types. An index may occur any number of times. Every index is
    checked, even if the result is empty. After an IndexError the contents of `out` are unspecified.

    The counterparts are Gather in ONNX (version 13,
    https://onnx.ai/onnx/operators/onnx__Gather.html), GATHER in DirectML
    (https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_gather_operator_desc,
    see `gatherum.directml`) and `numpy.take`.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> table = np.array([[1, 2], [3, 4], [5, 6]])
    >>> gatherum.gather(table, [2, 0, 2])
    array([[5, 6],
           [1, 2],
           [5, 6]])
    >>> gatherum.gather(table, -1, axis=1)
    array([2, 4, 6])
    >>> gatherum.gather(table, [0, 3], mode="fill", fill_value=-1)
    array([[ 1,  2],
           [-1, -1]])
    >>> gatherum.gather(table, [0, 3])
    Traceback (most recent call last):
    IndexError: gather: index 3 is out of bounds for axis 0 of size 3 (indices[1])
    """
    if unknown:
        raise unknown_argument("gather", unknown)
    return dispatch_call(
        "gather", data, indices, None, axis, "none", True, mode, negative, fill_value, out
    )


@typed_as(overloads.gather_elements)
def gather_elements(
    data: Any,
    indices: Any,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
    out: Any | None = None,
    **unknown: Never,
) -> Any:
    """Take one element from an array for each index.

    ``out[i, j, k] = data[i, indices[i, j, k], k]`` for three dimensions and axis 1: the index
    replaces the position on `axis`, and the other positions are unchanged.

    Parameters
    ----------
    data : array_like
        The array to take from, of rank 1 to 64. Any fixed-size dtype without objects.
    indices : array_like of int
        Positions on `axis`, of `data`'s rank. In the other dimensions, `indices` may be smaller
        than `data`; only the leading part of `data` is then addressed. Indices are not broadcast.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    axis : int, default 0
        The axis that `indices` addresses, in ``[-data.ndim, data.ndim)``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError, clip to the nearest valid index,
        wrap around (floor modulo), or return `fill_value`. For a gather, ``"drop"`` is the same
        as ``"fill"``.
    negative : bool, default True
        If True, indices from -n to -1 count from the end of a dimension of size n. If False, they
        are invalid, and ``"clip"`` clips them to 0.
    fill_value : scalar, default 0
        The value that ``"fill"`` and ``"drop"`` return. A Python number is rounded to `data`'s
        dtype; any other value must convert exactly. For any dtype, 0 is the item whose bytes are
        all zero. Other modes ignore it.
    out : numpy.ndarray, optional
        The array to store the result in, of the result's shape and dtype, with any strides. It
        must not share memory with an input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s dtype and of ``indices.shape``.

    Raises
    ------
    TypeError
        If `axis` is not an integer, `negative` is not a boolean, `data` holds objects, `indices`
        has a non-integer dtype, an operand is not an array, is masked or belongs to another
        framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `mode`, `axis` or `fill_value` has an invalid value, the shapes do not match, or `out`
        has another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. The message names the first invalid index in row-major order.

    See Also
    --------
    gather : Take whole slices along one axis.
    scatter_elements : The inverse.

    Notes
    -----
    Elements are copied as bytes, so NaN payloads, signed zeros and the padding of records are
    preserved, also for half-precision types. An index may occur any number of times. Every index is
    checked, even if the result is empty. After an IndexError the contents of `out` are unspecified.

    The counterparts are GatherElements in ONNX (version 13,
    https://onnx.ai/onnx/operators/onnx__GatherElements.html), GATHER_ELEMENTS in DirectML
    (DML_GATHER_ELEMENTS_OPERATOR_DESC, see `gatherum.directml`), `numpy.take_along_axis` and
    ``torch.gather``. DirectML requires equal sizes in the other dimensions.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> scores = np.array([[3, 1, 2], [9, 8, 7]])
    >>> best_first = np.argsort(-scores, axis=1)
    >>> gatherum.gather_elements(scores, best_first, axis=1)
    array([[3, 2, 1],
           [9, 8, 7]])
    >>> gatherum.gather_elements(scores, [[1, 0, -1]])
    array([[9, 1, 7]])
    """
    if unknown:
        raise unknown_argument("gather_elements", unknown)
    return dispatch_call(
        "gather_elements", data, indices, None, axis, "none", True, mode, negative, fill_value, out
    )


@typed_as(overloads.gather_nd)
def gather_nd(
    data: Any,
    indices: Any,
    batch_dims: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
    out: Any | None = None,
    **unknown: Never,
) -> Any:
    """Take elements or slices from an array by index tuples.

    ``out[b.., i.., s..] = data[b.., *indices[b.., i.., :], s..]``, where ``b..`` runs over the
    batch dimensions and ``s..`` over the trailing dimensions that the tuples do not address.

    Parameters
    ----------
    data : array_like
        The array to take from, of rank up to 64. Any fixed-size dtype without objects.
    indices : array_like of int
        Index tuples along the last dimension, of ``k = indices.shape[-1]`` components, one for each
        of the first k dimensions of `data` after the batch dimensions. If k is 0, a tuple addresses
        the whole sub-array of its batch.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
    batch_dims : int, default 0
        The number of leading dimensions that `data` and `indices` share, in ``[0, indices.ndim)``.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices: raise IndexError, clip to the nearest valid index,
        wrap around (floor modulo), or return `fill_value`. For a gather, ``"drop"`` is the same
        as ``"fill"``.
    negative : bool, default True
        If True, indices from -n to -1 count from the end of a dimension of size n. If False, they
        are invalid, and ``"clip"`` clips them to 0.
    fill_value : scalar, default 0
        The value that ``"fill"`` and ``"drop"`` return. A Python number is rounded to `data`'s
        dtype; any other value must convert exactly. For any dtype, 0 is the item whose bytes are
        all zero. Other modes ignore it.
    out : numpy.ndarray, optional
        The array to store the result in, of the result's shape and dtype, with any strides. It
        must not share memory with an input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of `data`'s dtype and the shape
        ``indices.shape[:-1] + data.shape[batch_dims + k:]``.

    Raises
    ------
    TypeError
        If `batch_dims` is not an integer, `negative` is not a boolean, `data` holds objects,
        `indices` has a non-integer dtype, an operand is not an array, is masked or belongs to
        another framework, or `out` is not an ndarray or has another dtype.
    ValueError
        If `mode`, `batch_dims` or `fill_value` has an invalid value, the shapes do not match, or
        `out` has another shape, is read-only, overlaps itself or shares memory with an input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. The message names the first invalid index in row-major order.

    See Also
    --------
    gather : Take slices along one axis.
    scatter_nd : The inverse.

    Notes
    -----
    Elements are copied as bytes, so NaN payloads, signed zeros and the padding of records are
    preserved, also for half-precision types. An index may occur any number of times. Every index is
    checked, even if the result is empty. After an IndexError the contents of `out` are unspecified.

    Each component of a tuple is checked against the dimension that it addresses. In the modes
    ``"fill"`` and ``"drop"``, one invalid component makes the whole tuple invalid.

    The counterparts are GatherND in ONNX (version 13,
    https://onnx.ai/onnx/operators/onnx__GatherND.html) and GATHER_ND and GATHER_ND1 in DirectML
    (DML_GATHER_ND1_OPERATOR_DESC, see `gatherum.directml`). ONNX and DirectML require ``k`` to be
    at least 1.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> table = np.array([[1, 2], [3, 4], [5, 6]])
    >>> gatherum.gather_nd(table, [[0, 1], [2, 0]])
    array([2, 5])
    >>> gatherum.gather_nd(table, [[2], [0]])
    array([[5, 6],
           [1, 2]])
    >>> gatherum.gather_nd(table, [[1], [0], [1]], batch_dims=1)
    array([2, 3, 6])
    """
    if unknown:
        raise unknown_argument("gather_nd", unknown, has_axis=False)
    return dispatch_call(
        "gather_nd", data, indices, None, batch_dims, "none", True, mode, negative, fill_value, out
    )


connect(GATHERS, globals(), __name__)
