"""Errors of calls and plans: their tests are complete, and a refused call has no effect."""

import ast
import builtins
import re
from pathlib import Path

import numpy as np
import pytest

import gatherum
from arrays.test_call_errors import SENTENCES as CALL_SENTENCES
from arrays.test_index_errors import SENTENCES as INDEX_SENTENCES
from arrays.test_shape_errors import SENTENCES as SHAPE_SENTENCES
from gatherum._model import callers, errors, operators
from sentences import ZEROS_2X3
from source import ROOT

PLANNED = gatherum.plan("gather", ZEROS_2X3, ((1,), "i8"))


def test_a_plan_names_the_operand_that_differs():
    with pytest.raises(ValueError, match="plan") as caught:
        PLANNED.run(ZEROS_2X3, np.zeros(2, int))
    assert str(caught.value) == (
        "gather: the plan was made for `indices` int64 (1,), got int64 (2,)"
    )
    with pytest.raises(ValueError, match="plan") as caught:
        PLANNED.run(ZEROS_2X3.T, np.zeros(1, int))
    assert str(caught.value) == (
        "gather: the plan was made for `data` float32 (2, 3), got float32 (3, 2), strides (4, 12)"
    )


@pytest.mark.parametrize("operands", [(None, None), (None, [0]), (ZEROS_2X3, None)])
def test_a_plan_is_run_on_operands(operands):
    with pytest.raises((TypeError, ValueError)) as caught:
        gatherum.plan("gather", ZEROS_2X3, np.zeros(1, int)).run(*operands)
    assert (
        str(caught.value)
        == {
            (True, True): "gather: the plan was made for `data` float32 (2, 3), got None",
            (True, False): "gather: the plan was made for `data` float32 (2, 3), got None",
            (False, True): "gather: the plan was made for `indices` int64 (1,), got None",
        }[operands[0] is None, operands[1] is None]
    )


def test_indices_that_change_during_the_call():
    error = errors.index_out_of_bounds("gather", 0, 0, 2, None, "raise")
    assert str(error) == ("gather: an index was invalid, but `indices` changed during the call")


def literals(*nodes):
    """Return the string constants in syntax trees, including the constant parts of f-strings."""
    constants = (node for top in nodes for node in ast.walk(top) if isinstance(node, ast.Constant))
    return [node.value for node in constants if isinstance(node.value, str)]


def error_functions():
    """Return the name of each function that makes an error or a sentence, and its constants."""
    package = Path(errors.__file__).parents[2]
    paths = {*package.rglob("*errors.py"), *package.glob("_model/errors/*.py")}
    helpers = {package / "_model" / "errors" / name for name in ("audience.py", "texts.py")}
    for path in sorted(paths - helpers):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                returned = getattr(builtins, ast.unparse(node.returns), None)
                if isinstance(returned, type) and issubclass(returned, (Exception, str)):
                    described = ast.get_docstring(node) is not None
                    yield node.name, literals(*node.body[described:])


# In messages of an operator, the name of an operand is in backticks or in an expression, so that
# `callers.renamed` can replace it. These messages also have it as an ordinary word: advice about
# masks, which is created only for `indices`, and advice that means the operand `updates`.
ORDINARY = {"not_an_index_dtype", "not_reducible"}


def test_names_of_operands_are_no_ordinary_words():
    word = re.compile(r"(?<![`\w.(])(?:data|indices|updates)(?![`\w.\[=:])")
    path = Path(errors.__file__)
    found = set()
    for module in ("calls.py", "shapes.py"):
        for node in ast.parse((path.parent / module).read_text()).body:
            if isinstance(node, ast.FunctionDef):
                body = node.body[ast.get_docstring(node) is not None :]
                parts = (
                    part for part in literals(*body) if part not in {"data", "indices", "updates"}
                )
                found |= {node.name for part in parts if word.search(part)}
    assert found == ORDINARY


def test_an_error_names_the_calling_function_and_its_operands():
    names = {"data": "indices", "indices": "index", "updates": "src", "updates.x": "y"}
    error = callers.renamed(
        TypeError("gather: `data` updates.x (indices[0]) updates. data_x"), "mine", names
    )
    assert (type(error), str(error)) == (TypeError, "mine: `indices` y (index[0]) src. data_x")
    assert str(callers.renamed(IndexError("gather: index 3"), "mine", {})) == "mine: index 3"


def test_values_in_a_message_are_not_renamed():
    error = errors.not_an_integer("gather", "data", ["data", 'a "data"', "updates"])
    assert str(callers.renamed(error, "mine", {"data": "src", "updates": "other"})) == (
        "mine: `src` must be an integer, got ['data', 'a \"data\"', 'updates']"
    )


def test_errors_of_other_functions_keep_their_names():
    assert callers.renamed(TypeError("mine: `data`"), "other", {"data": "src"}) is None
    assert callers.renamed(TypeError("no colon"), "other", {}) is None
    error = callers.renamed(TypeError("mine: `data`"), "other", {"data": "src"}, of=("mine",))
    assert str(error) == "other: `src`"


def test_no_two_functions_that_make_errors_have_the_same_name():
    names = [name for name, _ in error_functions()]
    assert {name for name in names if names.count(name) > 1} == set()


# They have no words: a helper of other sentences, and errors that other functions word.
WORDLESS = {"invalid_index", "is_or_are", "not_groups"}
LONG = 20  # characters; words of this length are in one message only, or in a few alike


def test_every_message_is_tested():
    """Tests have the words of every message; whether all of them, each test decides."""
    files = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]
    text = "\0".join(
        re.sub(r"\\(.)", r"\1", part) for file in files for part in literals(ast.parse(file))
    )
    functions = list(error_functions())
    assert len(functions) > 190
    assert {row[0] for row in CALL_SENTENCES + INDEX_SENTENCES + SHAPE_SENTENCES} <= {
        name for name, _ in functions
    }
    untested = {name for name, parts in functions if not is_in(text, parts)}
    assert untested == WORDLESS, "add a test with the whole message"


def is_in(text, parts):
    """Return True if 20 characters of a long part, or all short parts, are in a text."""
    parts = [part.strip(" :") for part in parts]
    long = [part for part in parts if len(part) >= LONG]
    short = [part for part in parts if 6 <= len(part) < LONG]
    if not long:
        return bool(short) and all(part in text for part in short)
    return any(part[i : i + LONG] in text for part in long for i in range(len(part) - LONG + 1))


@pytest.mark.parametrize("op", operators.SCATTERS)
def test_a_refused_scatter_has_written_nothing(op):
    data = np.arange(6.0).reshape(2, 3)
    indices = np.array([[0], [5]])
    before = data.copy()
    for out in (None, data, np.full((2, 3), 7.0)):
        kept = None if out is None else out.copy()
        with pytest.raises(IndexError) as caught:
            getattr(gatherum, op)(data, indices, 9.0, out=out)
        assert str(caught.value) == (
            f"{op}: index 5 is out of bounds for axis 0 of size 2 (indices[1, 0])"
        )
        assert data.tobytes() == before.tobytes()
        assert out is None or out.tobytes() == kept.tobytes()


def test_the_first_bad_index_counts_in_every_layout():
    indices = np.zeros((40, 50), np.int16)
    indices[7, 30:] = 11
    indices[7, 31] = 12
    indices[8:, 3] = 13
    for laid in (indices, np.asfortranarray(indices), indices[:, ::-1].copy()[:, ::-1]):
        with pytest.raises(IndexError) as caught:
            gatherum.gather(np.zeros(10), laid)
        assert str(caught.value) == (
            "gather: index 11 is out of bounds for axis 0 of size 10 (indices[7, 30])"
        )
