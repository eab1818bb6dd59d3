"""`factorize` numbers keys, such as strings, dates or sparse integers, for use as groups."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import plain_values
from gatherum._model.errors import unknown_argument

from . import errors
from .arrow_arrays import as_numpy, as_texts, codes_of

FACTORIZE = "groups.factorize"
GroupNumbers: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[Any]
# The dtype kinds of strings, which Arrow encodes faster than a sort does.
_STRINGS = "UST"
_INTEGERS, _DATES = "iu", "mM"
# For fewer keys, importing Arrow takes longer than sorting them.
_MANY_KEYS = 1 << 20
_SAMPLED = 1 << 12


def factorize(
    *keys: Any, sort: bool = True, **unknown: Any
) -> tuple[GroupNumbers, Labels | tuple[Labels, ...]]:
    """Return the number of each key, for use as groups, and the distinct keys.

    Parameters
    ----------
    *keys : array_like
        One or more arrays of keys of the same shape: strings, bytes, dates, numbers, pandas
        categoricals, or Arrow and Polars columns, which may be dictionary-encoded. Several arrays
        number the distinct tuples.
    sort : bool, default True
        If True, numbers follow the sorted keys, and categoricals the order of their categories. If
        False, numbers follow the first occurrences of the keys.

    Returns
    -------
    numbers : numpy.ndarray
        The int64 number of each key, in an array with the shape of the keys. Missing keys have the
        number -1: None, NaN, NaT, and nulls of Arrow, Polars and pandas. `gatherum.groups.reduce`
        drops them in mode ``"drop"``.
    labels : numpy.ndarray or tuple of numpy.ndarray
        The key of each number; for several arrays of keys, a tuple with one array for each.

    Raises
    ------
    TypeError
        If no keys are given, `sort` is not a boolean, or keys cannot be compared.
    ValueError
        If the shapes of the keys differ.

    See Also
    --------
    reduce : Reduce the values of each group.
    numpy.unique : Return the distinct values of an array, with ``return_inverse=True``.

    Examples
    --------
    >>> import gatherum
    >>> numbers, cities = gatherum.groups.factorize(["Rome", "Oslo", "Rome"])
    >>> numbers
    array([1, 0, 1])
    >>> cities
    array(['Oslo', 'Rome'], dtype='<U4')
    >>> gatherum.groups.reduce([20, 5, 22], numbers, func="max")
    array([ 5, 22])
    >>> gatherum.groups.factorize([10**9, 5, 10**9])[0]
    array([1, 0, 1])
    """
    if unknown:
        raise unknown_argument(FACTORIZE, unknown)
    if not keys:
        raise errors.no_keys(FACTORIZE)
    follows_order = plain_values.as_boolean(FACTORIZE, "sort", sort)
    encoded = [_codes_and_labels(i, key) for i, key in enumerate(keys)]
    shape = encoded[0][0].shape
    for i, (codes, _) in enumerate(encoded):
        if codes.shape != shape:
            raise errors.other_key_shape(FACTORIZE, i, shape, codes.shape)
    flat_keys = [(codes.ravel(), labels) for codes, labels in encoded]
    if len(flat_keys) == 1:
        numbers, label_numbers = _dense_numbers(
            *flat_keys[0][:1], len(flat_keys[0][1]), follows_order
        )
        return numbers.reshape(shape), flat_keys[0][1][label_numbers]
    numbers, positions = _tuple_numbers(flat_keys, follows_order)
    labels_of_numbers = tuple(labels[codes[positions]] for codes, labels in flat_keys)
    return numbers.reshape(shape), labels_of_numbers


def _tuple_numbers(
    keys: list[tuple[GroupNumbers, Labels]], follows_order: bool
) -> tuple[GroupNumbers, GroupNumbers]:
    """Return the numbers of tuples of codes, and the first position of each number."""
    numbers, count = keys[0][0], len(keys[0][1])
    for codes, labels in keys[1:]:
        pairs = np.where((numbers < 0) | (codes < 0), -1, numbers * len(labels) + codes)
        if count * len(labels) > 4 * len(codes) + 1024:  # a table of all pairs would be large
            _, numbers = np.unique(pairs, return_inverse=True)
            numbers = numbers - bool((pairs < 0).any())
            count = len(codes)
        else:
            numbers, count = pairs, count * len(labels)
    numbers, _ = _dense_numbers(numbers, count, follows_order)
    return numbers, _first_positions(numbers, int(numbers.max(initial=-1)) + 1)


def _first_positions(codes: GroupNumbers, count: int) -> GroupNumbers:
    """Return the first position of each code, or the length of `codes` if it does not occur."""
    first = np.full(count + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last write is the first place; -1: extra
    return first[:count]


def _dense_numbers(
    codes: GroupNumbers, code_count: int, follows_order: bool
) -> tuple[GroupNumbers, GroupNumbers]:
    """Assign numbers to the codes, in their order or by first position."""
    first_positions = _first_positions(codes, code_count)
    codes_in_use = np.flatnonzero(first_positions < len(codes))
    if not follows_order:
        codes_in_use = codes_in_use[np.argsort(first_positions[codes_in_use], kind="stable")]
    new_codes = np.full(code_count + 1, -1)
    new_codes[codes_in_use] = np.arange(len(codes_in_use))
    return new_codes[codes], codes_in_use


def _codes_and_labels(position: int, key: Any) -> tuple[GroupNumbers, Labels]:
    """Return a code for each key (-1 for a missing key), and labels in the order of their codes."""
    if (dictionary := _of_pandas(key)) is not None:
        return dictionary
    if (column := _as_arrow(key)) is not None:
        return _of_arrow(column)
    array = np.asarray(key)
    pyarrow = _pyarrow() if array.dtype.kind in _STRINGS and array.size else None
    if pyarrow is not None:
        codes, labels = _of_arrow(pyarrow.array(array.ravel()))
        return codes.reshape(array.shape), labels.astype(array.dtype)
    if array.dtype.kind in _INTEGERS:
        numbers, labels = _of_integers(array.ravel())
        return numbers.reshape(array.shape), labels
    missing = _missing(array)
    known = array[~missing]
    try:
        if array.dtype.kind in _DATES:
            numbers, labels = _of_integers(known.view(f"{known.dtype.byteorder}i8"))
            labels = labels.view(known.dtype)
        else:
            labels, numbers = np.unique(known, return_inverse=True)
    except TypeError as error:
        raise errors.not_ordered(FACTORIZE, position, error) from None
    codes = np.full(array.shape, -1)
    codes[~missing] = numbers.reshape(-1)
    return codes, labels


def _of_integers(keys: Labels) -> tuple[GroupNumbers, Labels]:
    """Return the number of each integer among the distinct integers, which are sorted."""
    least, greatest = (int(keys.min()), int(keys.max())) if keys.size else (0, 0)
    span = greatest - least + 1
    native = keys.astype(keys.dtype.newbyteorder("="), copy=False)
    if span > 4 * keys.size + 1024:  # a table of the range would be larger than the keys
        pyarrow = _pyarrow() if keys.size >= _MANY_KEYS and _repeats(native) else None
        if pyarrow is not None:
            numbers, labels = _of_arrow(pyarrow.array(native))
        else:
            labels, numbers = np.unique(native, return_inverse=True)
        return numbers, labels.astype(keys.dtype, copy=False)
    offset = native.dtype.type(least)  # differences from it are correct modulo 2^n
    differences = (native - offset).view(f"u{native.itemsize}")
    occurs = np.zeros(span, np.bool_)
    occurs[differences] = True
    numbers = (np.cumsum(occurs) - 1)[differences]
    labels = np.flatnonzero(occurs).astype(native.dtype) + offset
    return numbers, labels.astype(keys.dtype, copy=False)


def _repeats(keys: Labels) -> bool:
    """Return True if a sample shows that Arrow's hash table is faster than a sort.

    It is faster for at most about 100,000 distinct keys, and slower if most keys are distinct.
    """
    sample = keys[:: max(1, keys.size // _SAMPLED)]
    return bool(len(np.unique(sample)) < 0.98 * len(sample))


def _missing(array: Labels) -> NDArray[np.bool_]:
    if array.dtype.kind == "O":
        missing = [item is None or item != item for item in array.flat]  # noqa: PLR0124  # NaN
        return np.array(missing, bool).reshape(array.shape)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    return np.not_equal(array, array) if array.dtype.kind in "fcV" else np.zeros(array.shape, bool)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:  # optional: NumPy sorts the strings
        return None
    return pyarrow


def _of_pandas(key: Any) -> tuple[GroupNumbers, Labels] | None:
    """Return the codes of a pandas categorical, with labels in the order of its categories."""
    if "pandas" not in sys.modules:
        return None
    categorical = getattr(key, "array", key)
    codes, categories = (getattr(categorical, name, None) for name in ("codes", "categories"))
    if codes is None or categories is None:
        return None
    return np.asarray(codes, np.int64), np.asarray(categories)


def _as_arrow(key: Any) -> Any:
    """Return an Arrow or Polars column as an Arrow array, or None for anything else."""
    if type(key).__module__.startswith("polars"):
        key = key.to_arrow()
    return key if type(key).__module__.startswith("pyarrow") else None


def _of_arrow(column: Any) -> tuple[GroupNumbers, Labels]:
    """Return the codes of an Arrow column, with sorted labels."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):  # some versions return one
            column = pyarrow.concat_arrays(column.chunks)
    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    labels = _as_numpy(column.dictionary)
    codes = codes_of(column)
    missing = _missing(labels)
    order = np.argsort(labels, kind="stable")
    order = order[~missing[order]]
    distinct = np.ones(len(order), bool)  # a dictionary may repeat a value
    distinct[1:] = labels[order[1:]] != labels[order[:-1]]
    new_codes = np.full(len(labels) + 1, -1)
    new_codes[order] = np.cumsum(distinct) - 1
    return new_codes[codes], labels[order[distinct]]


def _as_numpy(column: Any) -> Labels:
    """Return Arrow values as an array; strings have NumPy's fixed width."""
    if (texts := as_texts(column)) is not None:
        return texts
    array: Labels = as_numpy(column)
    if array.dtype.kind != "O":
        return array
    for text_type in (str, bytes):
        if array.size and all(isinstance(item, text_type) for item in array):
            return array.astype(text_type)
    return array
