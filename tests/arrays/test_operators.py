"""The table of operators: its content, and that all code uses it for an operator's properties."""

import ast
import functools
import re
from typing import get_args, get_type_hints

import numpy as np
import pytest

import gatherum
from gatherum._model import call_types, modes, operators, reductions
from gatherum._model.operators import OPERATORS
from source import ROOT

TABLE = np.zeros((3, 4), np.float32)
# The oracle and its tests share nothing with the package.
ASKERS = [
    path
    for folder in ("src", "docs", "fuzz", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.parent.name != "reference"
]


def operands(operator):
    entries = [0, 2] if not operator.addressing.shares_back else [[0, 2, 1, 0]]
    indices = np.array(entries)[..., None] if operator.takes_tuples else np.array(entries)
    if not operator.scatters:
        return TABLE, indices
    return TABLE, indices, np.ones(operator.moved_shape(TABLE.shape, indices.shape, 0), np.float32)


def test_every_row_is_a_function_of_the_package():
    assert list(OPERATORS) == [row.name for row in OPERATORS.values()]
    assert set(OPERATORS) <= set(gatherum.__all__)
    for name in gatherum.__all__:
        if name.startswith(("gather", "scatter")) and name != "gather_quantized":
            assert OPERATORS[name].family == name.partition("_")[0]
    assert set(operators.GATHERS) | set(operators.SCATTERS) == set(OPERATORS)


def test_an_operator_without_an_inverse():
    alone = OPERATORS["gather"]._replace(name="take")
    with pytest.raises(NotImplementedError) as caught:
        operators.inverse(alone)
    assert str(caught.value) == ("take: has no derivative, because it has no inverse operator")


def test_rows_are_values():
    assert len(set(OPERATORS.values())) == len(OPERATORS)
    with pytest.raises(AttributeError):
        OPERATORS["gather"].scatters = True


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_a_row_says_how_large_things_are(operator):
    args = operands(operator)
    plan = gatherum.plan(operator.name, *args)
    assert plan.call.operator is operator
    assert getattr(gatherum, operator.name)(*args).shape == plan.shape
    moved_shape = operator.moved_shape(TABLE.shape, args[1].shape, 0)
    assert plan.shape == (TABLE.shape if operator.scatters else moved_shape)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_row_defines_the_roles_of_dimensions(operator, axis):
    """The roles of the dimensions determine the result of a gather."""
    data = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    lead = data.shape[:axis] if operator.addressing.shares_front else ()
    back = data.shape[axis + 1 :] if operator.addressing.shares_back else ()
    entries = (*lead, 5, *back)
    indices = np.random.default_rng(axis).integers(0, data.shape[axis], entries)
    shape = (*entries, 1) if operator.takes_tuples else entries
    roles = operator.dimensions(3, shape, axis)
    moved_shape = operator.moved_shape(data.shape, shape, axis)
    assert roles.choose(data.shape, shape) == moved_shape
    assert [moved_shape[d] for d in roles.moved_entries] == [shape[d] for d in roles.entries]
    assert {*roles.shared, *roles.free, *roles.indexed} == {0, 1, 2}
    assert sorted((*roles.shared, *roles.indexed)) == list(roles.addressed)
    expected = np.empty(moved_shape, data.dtype)
    for place in np.ndindex(moved_shape):
        at = dict(zip((d for d, _ in roles.moved_dimensions), place, strict=True))
        of = dict(zip((e for _, e in roles.moved_dimensions), place, strict=True))
        at[axis] = indices[tuple(of[e] for e in range(len(entries)))]
        expected[place] = data[at[0], at[1], at[2]]
    gather = operators.inverse(operator).name if operator.scatters else operator.name
    attributes = {operator.attribute: axis}
    assert np.array_equal(
        getattr(gatherum, gather)(data, indices.reshape(shape), **attributes), expected
    )


def test_only_the_table_names_an_addressing():
    """No `if` names one `Addressing`: a new one would fall through it."""
    named = r"\b(SLICES|ELEMENTS|TUPLES)\b|\.addressing (is|==|!=|in)\b"
    askers = [path for path in ASKERS if (ROOT / "src") in path.parents]
    names = [path.name for path in askers if re.search(named, path.read_text())]
    assert names == ["operators.py"]


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_every_spelling_of_an_operator(operator):
    args = operands(operator)
    plan = gatherum.plan(operator.name, *args)
    for spelling in (operator.command, getattr(gatherum, operator.name), np.str_(operator.name)):
        assert gatherum.plan(spelling, *args) == plan
        assert gatherum.plan(spelling, *args).call.op == operator.name
        assert gatherum.explain(spelling, *args).plan == plan
        report = gatherum.index_report(spelling, TABLE.shape, args[1])
        assert report == gatherum.index_report(operator.name, TABLE.shape, args[1])


def foreign():
    """Return a function of another package with an operator's name."""

    def gather(data, indices):
        return data[indices]

    return gather


@pytest.mark.parametrize(
    "op",
    [
        "take", "", "gather nd", "Gather", "-gather", b"gather", None, 0, ["gather"], np.take,
        gatherum.plan, gatherum, functools.partial(gatherum.gather, TABLE), str, foreign(),
    ],
    ids=str,
)  # fmt: skip
def test_unknown_operators_raise(op):
    calls = {
        "plan": lambda: gatherum.plan(op, TABLE, [0]),
        "explain": lambda: gatherum.explain(op, TABLE, [0]),
        "index_report": lambda: gatherum.index_report(op, TABLE.shape, [0]),
    }
    for caller, call in calls.items():
        with pytest.raises(ValueError, match="must be one of") as caught:
            call()
        taken = ", ".join(map(repr, OPERATORS))
        text = repr(op) if len(repr(op)) <= 60 else repr(op)[:57] + "..."
        assert str(caught.value) == f"{caller}: `op` must be one of {taken}, got {text}"


def affixes(tree):
    """Yield the places where a file tests the start or end of a name, and the tested text."""
    asking = ("startswith", "endswith", "removeprefix", "removesuffix")
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in asking:
            texts = [inner for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
            yield from ((node.lineno, str(text.value)) for text in texts)


@pytest.mark.parametrize("path", ASKERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_read_off_an_operators_name(path):
    telling = {"gather", "scatter", "Gather", "Scatter", "_nd", "nd", "ND", "_elements"}
    telling |= {"elements", "Elements", "_slices", "slices"}
    affixed = [
        (line, text) for line, text in affixes(ast.parse(path.read_text())) if text in telling
    ]
    assert affixed == []


def test_the_counterparts_are_those_of_the_rooms():
    pytest.importorskip("onnx", reason="install onnx to compare with its operators")
    from gatherum.directml.levels import OPERATORS as LISTED
    from gatherum.onnx.reference_ops import FAMILY

    rows = OPERATORS.values()
    theirs = {name: one.op for name, one in FAMILY.items() if name != "Scatter"}  # its old name
    assert {row.onnx: row.name for row in rows if row.onnx} == theirs
    assert [name for row in rows for name in row.directml] == list(LISTED)


def test_type_checkers_know_the_words():
    """The names of `call_types.py` are those that calls accept, in every spelling."""
    rows = operators.OPERATORS.values()
    assert set(get_args(call_types.OperatorName)) == {
        n for row in rows for n in (row.name, row.command)
    }
    assert get_args(call_types.ModeName) == modes.MODES
    assert get_args(call_types.ReductionName) == reductions.REDUCTIONS
    assert get_args(call_types.FoldName) == reductions.FOLDS
    assert get_type_hints(gatherum.scatter_nd)["reduction"] == call_types.ReductionName
