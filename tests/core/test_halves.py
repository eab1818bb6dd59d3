"""float16 and bfloat16: every value, one by one and in contiguous rows."""

import numpy as np
import pytest

import gatherum
from gatherum._model.reductions import FOLDS

QUIET = {"float16": 0x7E00, "bfloat16": 0x7FC0}
ALL = 1 << 16
# One element per index, in a slab; rows of 64, folded in vectors; rows of 7, less than a vector.
COLUMNS = [1, 64, 7]


def _type(name):
    """Return the NumPy type of that name, and the bits of its canonical NaN."""
    if name == "float16":
        return np.float16, QUIET[name]
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its bfloat16")
    return ml_dtypes.bfloat16, QUIET[name]


def _every_half(dtype):
    """Return all values of a 16-bit type, and partners whose sums are near rounding ties."""
    rng = np.random.default_rng(9)
    values = np.arange(ALL, dtype="u2").view(dtype)
    with np.errstate(all="ignore"):
        half_steps = (np.nextafter(values, dtype(np.inf)).astype("f4") - values.astype("f4")) / 2
        partners = [values[::-1], rng.permutation(values), half_steps.astype(dtype)]
    return [(values, partner.astype(dtype)) for partner in [*partners, -partners[2], -values]]


def _scatter(values, partners, columns, count, **options):
    """Fold each partner into its value `count` times, with rows of `columns` values."""
    rows = ALL // columns
    used = rows * columns
    data, updates = (a[:used].reshape(rows, columns) for a in (values, partners))
    if columns == 1:
        data, updates = data[:, 0], updates[:, 0]
    indices = np.tile(np.arange(rows), count)[:, None]
    result = gatherum.scatter_nd(data, indices, np.concatenate([updates] * count), **options)
    return result.reshape(-1).view("u2"), slice(0, used)


def _same(actual, expected, quiet):
    """Compare bits, except for NaNs, which must be the canonical one."""
    with np.errstate(invalid="ignore"):  # for NaN, on processors that report it
        is_nan = np.isnan(expected.astype("f4"))
    assert np.array_equal(actual[~is_nan], expected.view("u2")[~is_nan])
    assert (actual[is_nan] == quiet).all()


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", QUIET)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_sums_are_rounded_once_and_to_even(name, count, columns):
    dtype, quiet = _type(name)
    for values, partners in _every_half(dtype):
        with np.errstate(all="ignore"):
            wide = values.astype("f4")
            for _ in range(count):
                wide += partners.astype("f4")
            expected = wide.astype(dtype)
        result, used = _scatter(values, partners, columns, count, reduction="add")
        _same(result, expected[used], quiet)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", QUIET)
def test_means_are_rounded_once_and_to_even(name, columns):
    dtype, quiet = _type(name)
    for values, partners in _every_half(dtype):
        with np.errstate(all="ignore"):
            wide = values.astype("f4") + partners.astype("f4") + partners.astype("f4")
            expected = (wide / np.float32(3)).astype(dtype)
        result, used = _scatter(values, partners, columns, 2, reduction="mean")
        _same(result, expected[used], quiet)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", QUIET)
@pytest.mark.parametrize("reduction", ["max", "min"])
def test_the_greatest_and_the_least(name, reduction, columns):
    dtype, quiet = _type(name)
    sign = {"max": 1, "min": -1}[reduction]
    zeros = np.array([0, 0x8000], "u2").view(dtype)
    for values, partners in _every_half(dtype):
        for a, b in ((values, partners), (values, np.tile(zeros, ALL // 2)), (values, values)):
            with np.errstate(invalid="ignore"):
                wide, other = sign * a.astype("f4"), sign * b.astype("f4")
                further = np.signbit(wide) > np.signbit(other)
                greater = (other > wide) | ((other == wide) & further)
                expected = np.where(np.isnan(wide), a, np.where(greater, b, a))
                expected = np.where(np.isnan(other), b, expected)
            result, used = _scatter(a, b, columns, 1, reduction=reduction)
            _same(result, expected[used], quiet)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", QUIET)
@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("include_self", [True, False])
def test_elements_without_updates_keep_their_bits(name, reduction, columns, include_self):
    """So do payloads and signs of NaNs, and a first update without further updates."""
    values = np.arange(ALL, dtype="u2").view(_type(name)[0])
    rows = ALL // columns
    data = values[: rows * columns].reshape(rows, columns)
    indices = np.array([[rows - 1]])
    more = {"reduction": reduction, "include_self": include_self}
    result = gatherum.scatter_nd(data, indices, np.zeros_like(data[:1]), **more)
    assert result[:-1].tobytes() == data[:-1].tobytes()
    if reduction not in ("mean", "fsum", "fmean") and not include_self:
        every = np.arange(rows)[:, None]
        result = gatherum.scatter_nd(np.zeros_like(data), every, data, **more)
        assert result.tobytes() == data.tobytes()
