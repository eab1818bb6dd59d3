"""The dimension attribute is checked against its range before dtypes are, if it has one."""

import numpy as np
import pytest

import gatherum

HALVES, WHOLES = np.full((2, 1), 0.5), np.zeros((2, 1), int)


@pytest.mark.parametrize(
    ("data", "indices", "error"),
    [
        (np.zeros(()), HALVES, ValueError),  # indices bound `batch_dims`
        (np.zeros(3), HALVES, ValueError),
        (np.zeros(3), HALVES[0, 0], TypeError),  # without dimensions no value is valid
        (np.zeros(3, object), WHOLES, ValueError),
        (np.zeros(3, object), WHOLES[0, 0], TypeError),
    ],
)
def test_batch_dims_are_checked_against_the_indices(data, indices, error):
    with pytest.raises(error, match="batch_dims" if error is ValueError else "dtype"):
        gatherum.gather_nd(data, indices, batch_dims=5)


@pytest.mark.parametrize(
    ("data", "indices", "error"),
    [
        (np.zeros(3), HALVES, ValueError),
        (np.zeros(3), HALVES[0, 0], ValueError),
        (np.zeros(()), HALVES, TypeError),
    ],
)
def test_an_axis_is_checked_against_the_data(data, indices, error):
    with pytest.raises(error, match="axis" if error is ValueError else "dtype"):
        gatherum.gather(data, indices, axis=5)
