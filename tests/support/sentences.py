"""Rows of errors, and a check of one row: the function, the call, and the whole message."""

from typing import Any

import numpy as np
import pytest

import gatherum
from gatherum._model import errors
from gatherum._model.errors import frameworks as framework_errors

ZEROS_2X3 = np.zeros((2, 3), np.float32)
FIRST_ROW = np.zeros((1, 1), np.int64)  # an index tuple
TALL = np.broadcast_to(np.float32(0), (2**40, 2))


def words_of_numpy(value: Any) -> str:
    """Return NumPy's message for a list that is not an array."""
    with pytest.raises(ValueError, match="inhomogeneous") as caught:
        np.asarray(value)
    return str(caught.value)


def each_sentence(rows: list[Any]) -> pytest.MarkDecorator:
    """Run a test for each row. The id of a row has its number and the function of the error."""
    return pytest.mark.parametrize(
        ("function", "caller", "arguments", "attributes", "error_type", "sentence"),
        rows,
        ids=[f"{number}-{row[0]}" for number, row in enumerate(rows)],
    )


def check_sentence(
    monkeypatch: pytest.MonkeyPatch, function: str, caller: str, arguments: Any,
    attributes: Any, error_type: type[Exception], sentence: str,
) -> None:  # fmt: skip
    """Check that a call raises the error that one function of `errors` makes, with its message."""
    raised: list[Exception] = []
    module = errors if hasattr(errors, function) else framework_errors
    original = getattr(module, function)
    monkeypatch.setattr(module, function, lambda *a: raised.append(original(*a)) or raised[-1])
    with pytest.raises(error_type) as caught:
        getattr(gatherum, caller)(*arguments, **attributes)
    assert str(caught.value) == sentence
    assert caught.value is raised[-1]
    assert caught.type is error_type
