"""Statements of docs/jax.md about JAX's own functions."""

import re
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.numpy as jnp  # noqa: E402

import gatherum.jax  # noqa: E402

PAGE = Path(__file__).parents[3] / "docs" / "jax.md"
ROWS = re.findall(r"^\| `([^|]+)` \| `(g\.[^`]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

X = np.random.default_rng(0).standard_normal((5, 4))
I = np.array([[3, 1], [0, 0], [3, 2]])  # noqa: E741
U = np.random.default_rng(1).standard_normal((3, 4))


def operands(theirs):
    if "[i[:, 0]" in theirs:
        return X, I, U[:, 0]
    if "take_along" in theirs:
        return X, np.array([[3, -1]] * 5), U
    if "take" in theirs:
        return X, np.array([3, -1] if "clip" not in theirs else [3, -1, 9]), U
    return X, np.array([3, 0, 4]) if ".set" in theirs else np.array([3, 0, 3]), U


@pytest.mark.parametrize(("theirs", "ours"), ROWS, ids=[row[0] for row in ROWS])
def test_counterparts_agree(theirs, ours):
    x, i, u = map(jnp.asarray, operands(theirs))
    names = {"jnp": jnp, "jax": jax, "x": x, "i": i, "u": u, "n": 5}
    expected = eval(theirs.split("`")[0], names)
    result = eval(ours, names | {"g": gatherum})
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_the_table_was_found():
    assert len(ROWS) >= 8
