"""The six functions bind their arguments as Python does, in Python and in the core."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import gatherum
from gatherum._functions import gathers, scatters
from gatherum._system import native

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
# Each attribute, with the other arguments that make it effective.
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


def copied(function):
    """Return a function of the same code without acceleration."""
    code, names, name = function.__code__, function.__globals__, function.__name__
    plain = type(function)(code, names, name, function.__defaults__, function.__closure__)
    plain.__kwdefaults__ = function.__kwdefaults__
    return plain


def body(op):
    """Return a function that runs only the Python code, without the core's fast path."""
    return copied(getattr(gatherum, op))


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
        operand = indices + 5 if name == "mode" else indices
        named = SETTINGS[name]
        answer = function(data, operand, *updates, **named).tobytes()
        assert answer == body(op)(data, operand, *updates, **named).tobytes()
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
    for arguments, named in wrong:
        assert said(function, arguments, named) == said(body(op), arguments, named)


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

    monkeypatch.setattr(module, "dispatch_call", refuse)
    assert function(*CALLS[op]).tobytes() == expected
    named = dict(zip(inspect.signature(function).parameters, CALLS[op], strict=False))
    assert function(**named).tobytes() == expected
    with pytest.raises(AssertionError):
        body(op)(*CALLS[op])


@pytest.mark.parametrize("op", CALLS)
def test_they_are_functions_of_python(op):
    function = getattr(gatherum, op)
    assert inspect.isfunction(function)
    assert f"\ndef {op}(" in inspect.getsource(function)
    assert pickle.loads(pickle.dumps(function)) is function


def with_other_name(data, index, axis=0, *, mode="raise", negative=True, fill_value=0, out=None):
    return "body"


def with_more(data, indices, axis=0, *more, mode="raise", negative=True, fill_value=0, out=None):
    return "body"


def with_positions(data, indices, /, axis=0, *, mode="raise", negative=True, out=None):
    return "body"


def with_two_axes(data, indices, axis=0, batch_dims=0, *, mode="raise", negative=True, out=None):
    return "body"


def without_mode(data, indices, axis=0, *, negative=True, out=None):
    return "body"


def with_self(self, data, indices=None, axis=0, *, mode="raise", negative=True, out=None):
    return "body"


def with_many(data, indices, a=0, b=0, c=0, d=0, e=0, f=0, g=0, h=0, i=0, j=0, k=0, m=0, n=0):
    return "body"


def without_parameters():
    return "body"


@pytest.mark.parametrize(
    "function",
    [
        with_other_name,
        with_more,
        with_positions,
        with_two_axes,
        without_mode,
        with_self,
        with_many,
    ],
)
def test_other_functions_run_their_bodies(function):
    assert native.accelerate(function) is None
    assert function(DATA, ROWS) == "body"


def test_an_unknown_keyword_runs_the_body():
    with pytest.raises(TypeError, match=r"gather: unknown argument 'dim'; write axis="):
        gatherum.gather(DATA, ROWS, dim=0)


def test_objects_that_cannot_be_accelerated_are_unchanged():
    for value in (None, len, int, without_parameters, gatherum.gather(DATA, ROWS), "gather"):
        assert native.accelerate(value) is None
    assert without_parameters() == "body"

    def generates(data, indices, axis=0, *, mode="raise", negative=True, out=None):
        yield "body"

    native.accelerate(generates)
    assert list(generates(DATA, ROWS)) == ["body"]


def test_any_number_of_functions_in_any_order_of_parameters():
    def gather(*, out=None, fill_value=0, negative=True, mode="clip", axis=0, data, indices):
        attributes = axis, "none", True, mode, negative, fill_value
        return native.dispatch_call("gather", data, indices, None, *attributes, out)

    functions = [copied(gather) for _ in range(200)]
    for function in functions:
        native.accelerate(function)
        native.accelerate(function)  # a second time: the body must remain
    for function in functions:
        assert function(indices=[9], data=DATA).tolist() == [[9.0, 10.0, 11.0]]
        assert said(function, (DATA, ROWS), {}) == said(copied(gather), (DATA, ROWS), {})


def test_functions_whose_addresses_are_used_again():
    for n in range(200):
        function = copied(gatherum.gather)
        function.__defaults__ = (n % 2,)  # another axis
        native.accelerate(function)
        assert function(DATA, [1]).tobytes() == gatherum.gather(DATA, [1], n % 2).tobytes()


RELOADED = """
import importlib, sys, weakref
import numpy as np
import gatherum

def check(package):
    data, rows = np.arange(6.0).reshape(3, 2), np.array([2, 0])
    assert package.gather(data, rows).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    package.scatter_slices  # which imports its module
    assert package._functions.gathers.gather(data, [9], mode="clip").tolist() == [[4.0, 5.0]]
    assert package._functions.scatters.scatter_slices(data, [0], 7, reduction="add")[0, 1] == 8
    assert package.plan("gather", data, rows).run(data, rows).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    try:
        package.gather(data, [9])
    except IndexError as error:
        assert "index 9 is out of bounds" in str(error)
    else:
        raise AssertionError

check(gatherum)
for _ in range(3):
    for name in (
        "_system.native", "_plans.plans", "_functions.callbacks", "_functions.gathers",
        "_functions.scatters",
    ):
        importlib.reload(sys.modules[f"gatherum.{name}"])
        check(gatherum)
before = gatherum
for kept in (["gatherum._core"], [], []):
    for name in [name for name in sys.modules if name.partition(".")[0] == "gatherum"]:
        if name not in kept:
            del sys.modules[name]
    import gatherum
    assert gatherum is not before
    check(gatherum)
    check(before)
print("done")
"""


def test_modules_that_are_imported_again():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RELOADED], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
