"""The same bits for any number of threads and any duplicates, from 1,000 to 30 million updates."""

import hashlib

import numpy as np
import pytest

import gatherum
from samples import every

pytestmark = pytest.mark.slow

PATTERNS = {
    "one hot": lambda rng, n, m: np.full(m, n // 3, np.int32),
    "Zipf": lambda rng, n, m: (rng.zipf(1.2, m) % n).astype(np.int32),
    "sorted": lambda rng, n, m: np.sort(rng.integers(0, n, m, np.int32)),
    "reversed": lambda rng, n, m: np.sort(rng.integers(0, n, m, np.int32))[::-1],
}


@pytest.fixture(autouse=True)
def _restore_threads():
    before = gatherum.get_num_threads()
    yield
    gatherum.set_num_threads(before)
    gatherum.clear_output_cache()


SIZES = [(100, 1_000), (1_000, 100_000), (200_000, 3_000_000), (20_000_000, 30_000_000)]


@pytest.mark.parametrize(
    ("n", "m", "pattern"), every(3, [(*size, pattern) for size in SIZES for pattern in PATTERNS])
)
def test_a_float_sum_has_the_same_bits_on_any_number_of_threads(pattern, n, m):
    rng = np.random.default_rng(m)
    indices = PATTERNS[pattern](rng, n, m)
    updates = rng.standard_normal(m, np.float32)
    data = np.zeros(n, np.float32)
    expected = data.copy()
    np.add.at(expected, indices, updates)
    for threads in (1, 2, 3, 7):
        gatherum.set_num_threads(threads)
        result = gatherum.scatter_nd(data, indices[:, None], updates, reduction="add")
        assert hashlib.sha256(result).digest() == hashlib.sha256(expected).digest(), threads


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("reduction", ["none", "mul", "max", "mean"])
def test_rows_have_the_same_bits_on_any_number_of_threads(pattern, reduction):
    n, m, width = 5_000, 60_000, 40
    rng = np.random.default_rng(7)
    indices = PATTERNS[pattern](rng, n, m)[:, None]
    updates = rng.standard_normal((m, width), np.float32)
    data = rng.standard_normal((n, width), np.float32)
    gatherum.set_num_threads(1)
    expected = gatherum.scatter_nd(data, indices, updates, reduction=reduction).tobytes()
    for threads in (2, 3, 7):
        gatherum.set_num_threads(threads)
        result = gatherum.scatter_nd(data, indices, updates, reduction=reduction)
        assert result.tobytes() == expected, threads
