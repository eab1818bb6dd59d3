"""How the six functions bind their arguments: as Python does, whoever does it."""

import inspect
import pickle
import sys

import numpy as np
import pytest

import gatherum
from gatherum import gathers, scatters

DATA = np.arange(12.0).reshape(4, 3)
ROWS = np.array([2, -1, 0])
CALLS = {
    "gather": (DATA, ROWS),
    "gather_elements": (DATA, np.array([[1, 0, 3], [-1, 2, 2]])),
    "gather_nd": (DATA, ROWS[:, None]),
    "scatter_slices": (DATA, ROWS, DATA[:3]),
    "scatter_elements": (DATA, np.array([[1, 0, 3], [-1, 2, 2]]), DATA[:2]),
    "scatter_nd": (DATA, ROWS[:, None], DATA[:3]),
}
# Each attribute, and what else it needs to make a difference.
SETTINGS = {
    "mode": {"mode": "clip"},
    "negative": {"negative": False, "mode": "fill"},
    "fill_value": {"fill_value": 7, "negative": False, "mode": "fill"},
    "reduction": {"reduction": "add"},
    "include_self": {"include_self": False, "reduction": "mean"},
}
needs_answers = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python runs the functions' bodies before CPython 3.12"
)


def parameters(op):
    return list(inspect.signature(getattr(gatherum, op)).parameters.values())


def body(op):
    """What Python makes of a function's code, without the core's answer."""
    function = getattr(gatherum, op)
    plain = type(function)(function.__code__, function.__globals__, op, function.__defaults__)
    plain.__kwdefaults__ = function.__kwdefaults__
    return plain


def said(function, operands, named):
    with pytest.raises(TypeError) as error:
        function(*operands, **named)
    return str(error.value)


@pytest.mark.parametrize("op", CALLS)
def test_operands_by_place_and_by_name(op):
    function, operands = getattr(gatherum, op), CALLS[op]
    expected = function(*operands).tobytes()
    names = [one.name for one in parameters(op)]
    for placed in range(len(operands)):
        named = dict(zip(names[placed:], operands[placed:], strict=False))
        assert function(*operands[:placed], **named).tobytes() == expected
        backwards = dict(reversed(named.items()))
        assert function(*operands[:placed], **backwards).tobytes() == expected
    assert function(*operands, 0).tobytes() == expected
    defaults = {one.name: one.default for one in parameters(op)[len(operands) :]}
    assert function(*operands, **defaults).tobytes() == expected


@pytest.mark.parametrize("op", CALLS)
def test_every_attribute_reaches_its_parameter(op):
    function, (data, indices, *updates) = getattr(gatherum, op), CALLS[op]
    for name in {one.name for one in parameters(op)} & SETTINGS.keys():
        given = indices + 5 if name == "mode" else indices
        named = SETTINGS[name]
        answer = function(data, given, *updates, **named).tobytes()
        assert answer == body(op)(data, given, *updates, **named).tobytes()
        others = {other: value for other, value in named.items() if other != name}
        assert answer != function(data, indices, *updates, **others).tobytes()
    out = function(data, indices, *updates)
    assert function(data, indices, *updates, out=out) is out


@pytest.mark.parametrize("op", CALLS)
def test_wrong_arguments_are_told_as_python_tells_them(op):
    function, operands = getattr(gatherum, op), CALLS[op]
    wrong = [
        ((), {}),
        (operands[:-1], {}),
        ((*operands, 0, "raise"), {}),
        (operands, {"modus": "raise"}),
        (operands, {"data": DATA}),
        (operands[:1], {"mode": "raise"}),
    ]
    for given, named in wrong:
        assert said(function, given, named) == said(body(op), given, named)


def test_names_that_are_not_interned():
    name = "".join(["mo", "de"])
    assert gatherum.gather(DATA, [5], **{name: "wrap"}).tolist() == [[3.0, 4.0, 5.0]]


@needs_answers
@pytest.mark.parametrize("op", CALLS)
def test_the_core_answers_without_the_body(op, monkeypatch):
    function = getattr(gatherum, op)
    expected = function(*CALLS[op]).tobytes()
    module = gathers if hasattr(gathers, op) else scatters

    def refuse(*arguments):
        raise AssertionError

    monkeypatch.setattr(module, f"_{op}", refuse)
    assert function(*CALLS[op]).tobytes() == expected
    named = dict(zip(inspect.signature(function).parameters, CALLS[op], strict=False))
    assert function(**named).tobytes() == expected
    with pytest.raises(AssertionError):
        body(op)(*CALLS[op])


@pytest.mark.parametrize("op", CALLS)
def test_they_are_functions_of_python(op):
    function = getattr(gatherum, op)
    assert inspect.isfunction(function)
    assert inspect.getsource(function).startswith("def ")
    assert pickle.loads(pickle.dumps(function)) is function


@needs_answers
def test_the_core_answers_no_other_function():
    with pytest.raises(TypeError, match="not a function that the core answers"):
        gatherum.native.answer_calls_of(len, False)
