"""Arithmetic outside the core does not depend on the floating-point mode of the calling thread."""

import ml_dtypes
import numpy as np
import pytest

import gatherum
from float_modes import another_float_mode
from gatherum import groups
from gatherum._system import native

rng = np.random.default_rng(0)
GROUPS = rng.integers(0, 40, 300)
# Values near the smallest normal number: their differences and quotients are subnormal.
SMALL = {
    dtype: (rng.standard_normal(300) * 8 * float(ml_dtypes.finfo(dtype).tiny)).astype(dtype)
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
}
ROOTS = np.sqrt(np.abs(SMALL[np.float64])) * 64  # with subnormal squares
SUBNORMAL = SMALL[np.float32] / 64


def fold_in_batches():
    data = SMALL[np.float16]
    return gatherum.Accumulator(data[:40], "mean").scatter_nd(GROUPS[:, None], data).finish()


CALLS = {
    "var": lambda: groups.reduce(ROOTS, GROUPS, func="var"),
    "std": lambda: groups.reduce(SMALL[np.float32], GROUPS, func="std"),
    "all": lambda: groups.reduce(SUBNORMAL, GROUPS, func="all"),
    "centre": lambda: groups.transform(SMALL[np.float64], GROUPS, "centre"),
    "normalize": lambda: groups.transform(SMALL[np.float64], GROUPS, "normalize"),
    "softmax": lambda: groups.transform(np.array([0.0, -720.0]), [0, 0], "softmax"),
    "logsumexp": lambda: groups.reduce(SUBNORMAL[:1], [0], func="logsumexp"),
    "numpy_groupies": lambda: groups.aggregate(GROUPS, SMALL[np.float32], "mean"),
    "half precision in batches": fold_in_batches,
    "fill value": lambda: gatherum.gather(SMALL[np.float32], [900], mode="fill", fill_value=1e-40),
    "updates": lambda: gatherum.scatter_slices(SMALL[np.float32], [0], 1e-40),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_the_mode(name):
    expected = CALLS[name]()
    with another_float_mode():
        actual = CALLS[name]()
    assert actual.tobytes() == expected.tobytes()


def test_the_mode_is_restored_after_an_error():
    tiny = np.array([1e-38])
    with another_float_mode():
        with pytest.raises(KeyError), native.FloatMode():
            assert (tiny.astype(np.float32) != 0).all()
            raise KeyError
        assert (tiny.astype(np.float32) == 0).all()
