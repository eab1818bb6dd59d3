"""The stub of the compiled core agrees with the core's own signatures."""

import ast
import inspect
from pathlib import Path
from types import BuiltinFunctionType

import pytest

import dtype_stub
import gatherum
from gatherum import _core

TEXT = (Path(gatherum.__file__).parent / "_core.pyi").read_text()
STUB = ast.parse(TEXT)
DECLARED = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name for node in STUB.body if isinstance(node, ast.ClassDef)}
BUILT = {name: getattr(_core, name) for name in dir(_core) if not name.startswith("__")}
FUNCTIONS = {name: value for name, value in BUILT.items() if hasattr(value, "__nb_signature__")}
# Functions with positional-only arguments, without nanobind.
PLAIN = {name: value for name, value in BUILT.items() if isinstance(value, BuiltinFunctionType)}
# Types that nanobind distinguishes; arrays, callables and arrays' owners are objects to it.
EXACT = {"bool", "int", "str", "float", "bytes", "None", "list[str]"}


def of_core(name: str) -> ast.FunctionDef:
    """Return the signature of a function in the core itself."""
    ((text, _, _),) = FUNCTIONS[name].__nb_signature__
    (node,) = ast.parse(text + ": ...").body
    assert isinstance(node, ast.FunctionDef)
    return node


def parameters(node: ast.FunctionDef) -> dict[str, str]:
    return {
        parameter.arg: ast.unparse(parameter.annotation)
        for parameter in [*node.args.posonlyargs, *node.args.args]
        if parameter.annotation is not None
    }


def test_the_stub_has_exactly_the_names_of_the_core() -> None:
    assert set(DECLARED) | CLASSES == set(BUILT)


def test_its_dtypes_are_generated() -> None:
    message = "run python tests/dtype_stub.py --write"
    assert dtype_stub.generated(TEXT, dtype_stub.members_of_core()) == TEXT, message


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_a_plain_function_is_declared_as_it_is(name: str) -> None:
    node, parameters_here = DECLARED[name].args, inspect.signature(PLAIN[name]).parameters.values()
    assert [one.name for one in parameters_here] == [one.arg for one in node.posonlyargs]
    assert {one.kind for one in parameters_here} == {inspect.Parameter.POSITIONAL_ONLY}
    assert not node.args and not node.kwonlyargs
    with pytest.raises(
        TypeError, match=f"^gatherum: {name} takes {len(parameters_here)} arguments here"
    ):
        PLAIN[name]()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_is_declared_as_it_is(name: str) -> None:
    built, declared = of_core(name), DECLARED[name]
    assert list(parameters(built)) == list(parameters(declared))
    pairs = [*zip(parameters(built).values(), parameters(declared).values(), strict=True)]
    assert built.returns is not None and declared.returns is not None
    pairs.append((ast.unparse(built.returns), ast.unparse(declared.returns)))
    for core, stub in pairs:
        if core in EXACT:
            assert core == stub
