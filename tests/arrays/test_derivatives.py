"""The rules of derivatives that every framework shares."""

import pytest

from gatherum._derivatives import derivatives
from gatherum._model.reductions import REDUCTIONS


def test_every_reduction_has_factors():
    assert set(derivatives.FACTORS) == set(REDUCTIONS)


def test_a_reduction_without_factors_is_named():
    with pytest.raises(NotImplementedError, match=r"^no derivative of `reduction` 'median' is def"):
        derivatives.derivative_rule("median")
