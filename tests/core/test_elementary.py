"""exp and log of the core: the published bits, on every level, and their errors."""

import numpy as np
import pytest

import gatherum
from gatherum import _core
from gatherum._derivatives import elementary
from gatherum._system import native
from gatherum.reference import elementary as reference
from strategies import same_bits

FUNCTIONS = ["exp", "log"]
SPECIAL = [
    *(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 2.0**-1022),
    *(709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412, -708.5),
    *(88.72283, 88.72284, -103.97208, -103.97209, -87.4, 1e-45, 1.1754944e-38, 1e300, -1e300),
    *(0.5**0.5, np.nextafter(0.5**0.5, 0), 2.0**0.5, np.nextafter(1, 0), np.nextafter(1, 2)),
]


def samples(dtype, count, seed=0):
    """Return values of arbitrary bits, and values near 0 and 1."""
    rng = np.random.default_rng(seed)
    anything = rng.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    near = rng.normal(0, 30, count), rng.normal(0, 1, count), 1 + rng.normal(0, 0.1, count)
    with np.errstate(all="ignore"):
        return np.concatenate([np.array([*SPECIAL]), anything, *near]).astype(dtype)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_published_bits(function, dtype):
    values = samples(dtype, 3000)
    with np.errstate(all="ignore"):
        expected = np.array([getattr(reference, function)(x) for x in values])
    expected[np.isnan(expected)] = np.nan
    assert same_bits(getattr(elementary, function)(values), expected)


@pytest.fixture
def level():
    """Restore the level."""
    before = native.level()
    yield
    _core.choose_level(before)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_level_and_any_number_of_threads(function, dtype, level, settings_restored):
    values = samples(dtype, 50_000)
    results = []
    for name in native.available_levels():
        _core.choose_level(name)
        for threads in (1, 3):
            gatherum.set_num_threads(threads)
            results.append(getattr(elementary, function)(values))
            results.append(getattr(elementary, function)(values[: values.size - 5]))
            results[-1] = np.concatenate([results[-1], getattr(elementary, function)(values[-5:])])
    assert all(same_bits(one, results[0]) for one in results)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_halves_are_float32_rounded_once(function):
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        expected = getattr(elementary, function)(values.astype(np.float32)).astype(np.float16)
    expected[np.isnan(expected)] = np.nan
    assert same_bits(getattr(elementary, function)(values), expected)


def ulps(actual, exact, dtype):
    """Return the largest error of finite results in units of the last place."""
    near = exact.astype(dtype)
    fine = np.isfinite(near) & np.isfinite(actual) & (near != 0)
    unit = np.spacing(np.abs(near[fine])).astype(exact.dtype)
    return float(np.abs((actual[fine].astype(exact.dtype) - exact[fine]) / unit).max())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_of_float32(function):
    bits = np.arange(0, 1 << 32, 4099, np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    with np.errstate(all="ignore"):
        exact = getattr(np, function)(values.astype(np.float64))
        assert ulps(getattr(elementary, function)(values), exact, np.float32) < 0.51


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="nothing here is more exact than float64"
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_of_float64(function):
    values = samples(np.float64, 200_000)
    with np.errstate(all="ignore"):
        exact = getattr(np, function)(values.astype(np.longdouble))
        assert ulps(getattr(elementary, function)(values), exact, np.float64) < 0.9


def test_shapes_and_values_that_are_not_arrays():
    values = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    assert same_bits(elementary.exp(values), elementary.exp(values.copy()))
    assert elementary.exp(np.float64(1).reshape(())).shape == ()
    assert elementary.log(np.zeros((0, 3))).shape == (0, 3)
    for wrong in (values, [1.0]):
        with pytest.raises(TypeError):
            native.map_items("exp", "float64", wrong, np.empty(24))
    with pytest.raises(ValueError, match="not the arrays"):
        native.map_items("exp", "float64", np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="no such function"):
        native.map_items("sin", "float64", np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="no such function"):
        native.map_items("exp", "int64", np.ones(3), np.ones(3))
