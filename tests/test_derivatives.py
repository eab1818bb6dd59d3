"""The rules of derivatives that every framework shares."""

import pytest

from gatherum import derivatives
from gatherum.dtypes import REDUCTIONS


def test_every_reduction_has_a_rule():
    assert set(derivatives.RULES) == set(REDUCTIONS)


def test_a_reduction_without_a_rule_is_named():
    with pytest.raises(NotImplementedError, match=r"^no derivative of `reduction` 'absmax' is def"):
        derivatives.rule("absmax")
