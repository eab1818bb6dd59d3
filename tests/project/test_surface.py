"""The public API: its names, their signatures, and the cost of importing it."""

import doctest
import functools
import importlib
import inspect
import operator
import pickle
import pydoc
import re
import subprocess
import sys
import typing
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import gatherum
from gatherum._exports.counterparts import COUNTERPARTS
from gatherum._model.operators import OPERATORS
from source import ROOT

GATHER = "(data, indices, {}=0, *, mode='raise', negative=True, fill_value=0, out=None)"
SCATTER = (
    "(data, indices, updates, {}=0, *, reduction='none', include_self=True, mode='raise', "
    "negative=True, out=None)"
)
SIGNATURES = {
    row.name: (SCATTER if row.scatters else GATHER).format(row.attribute)
    for row in OPERATORS.values()
}
SIGNATURES |= {
    "aggregate": (
        "(data, gather_indices, scatter_indices, size, reduction, weights=None, *, indptr=None, "
        "fill_value=None, axis=0, mode='raise', negative=True, out=None)"
    ),
    "gather_quantized": (
        "(data, indices, scales, zero_points=None, *, axis=0, quantize_axis=-1, block_size, "
        "bits=None, dtype='float32', mode='raise', negative=True)"
    ),
    "prepare": "(op, data_like, indices, /, **attributes)",
    "set_num_threads": "(n)",
    "get_include": "()",
    "get_library": "()",
    "get_num_threads": "()",
    "config": "()",
    "show_config": "()",
    "set_output_cache_limit": "(nbytes)",
    "get_output_cache_limit": "()",
    "clear_output_cache": "()",
    "plan": "(op, data, indices, updates=None, /, **attributes)",
    "explain": "(op, data=None, indices=None, updates=None, /, **attributes)",
    "index_report": "(op, data, indices, /, **attributes)",
    "vectors": (
        "(format='npz', op=None, dtype=None, rule=None, seed=0, *, opset=None, feature_level=None)"
    ),
}
OTHERS = {"Accumulator", "Explanation", "IndexReport", "Plan", "Prepared", "__version__"}
PACKAGE = Path(gatherum.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if path.stem not in ("__init__", "__main__")
)
MOVED = ("call", "verify")  # they warn
NEEDED = {"_command": "click", "dask": "dask", "jax": "jax", "onnx": "onnx", "torch": "torch"}
FRAMEWORKS = ("dask", "jax", "torch")


def marked(names: Iterable[str], *marks: pytest.MarkDecorator) -> list[object]:
    """Return the names as parameters, with the marks on names in packages of frameworks."""
    return [
        pytest.param(name, marks=marks if name.partition(".")[0] in FRAMEWORKS else ())
        for name in names
    ]


def bare(signature: inspect.Signature) -> str:
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def test_the_public_names() -> None:
    assert gatherum.__all__ == sorted(gatherum.__all__)
    assert set(gatherum.__all__) == set(SIGNATURES) | OTHERS


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    assert bare(inspect.signature(getattr(gatherum, name))) == SIGNATURES[name]


@pytest.mark.parametrize(
    "op", [name for name in SIGNATURES if name.startswith(("gat", "sca", "agg"))]
)
def test_the_oracle_takes_the_same_arguments_but_out(op: str) -> None:
    reference = importlib.import_module("gatherum.reference")
    expected = SIGNATURES[op].replace(", out=None", "")
    assert bare(inspect.signature(getattr(reference, op))) == expected


GROUPS = {
    "aggregate": (
        "(group_idx, a, func='sum', size=None, fill_value=DEFAULT_FILL_VALUE, order='C', "
        "dtype=None, axis=None, ddof=0)"
    ),
    "factorize": "(*keys, sort=True)",
    "reduce": (
        "(values, groups, size=None, func='sum', axis=0, *, weights=None, dtype=None, ddof=0, "
        "q=None, method='linear', fill_value=None, mode='raise', negative=False)"
    ),
    "transform": (
        "(values, groups, func, axis=0, *, size=None, method='average', mode='raise', "
        "negative=False)"
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_functions_over_groups(name: str) -> None:
    module = importlib.import_module("gatherum.groups")
    assert set(GROUPS) == set(module.__all__)
    text = (inspect.getdoc(getattr(module, name)) or "").replace("\n*keys :", "\nkeys :")
    assert bare(inspect.signature(getattr(module, name))) == GROUPS[name]
    assert all(f"\n{one} :" in text for one in inspect.signature(getattr(module, name)).parameters)
    if name != "aggregate":  # it follows numpy_groupies' rules
        oracle = importlib.import_module("gatherum.reference.groups")
        assert bare(inspect.signature(getattr(oracle, name))) == GROUPS[name]


ACCUMULATOR = {
    "__init__": "(self, data, reduction, *, include_self=True, mode='raise', negative=True)",
    "scatter_nd": "(self, indices, updates, batch_dims=0)",
    "scatter_elements": "(self, indices, updates, axis=0)",
    "scatter_slices": "(self, indices, updates, axis=0)",
    "counts": "(self)",
    "merge": "(self, other)",
    "finish": "(self, out=None)",
}


def test_an_accumulator_has_the_documented_methods() -> None:
    methods = vars(gatherum.Accumulator)
    signatures = {name: bare(inspect.signature(methods[name])) for name in ACCUMULATOR}
    assert signatures == ACCUMULATOR
    public = {name for name in methods if not name.startswith("_")} | {"__init__"}
    assert public == set(ACCUMULATOR)


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_public_function_is_documented(name: str) -> None:
    function = getattr(gatherum, name)
    text = inspect.getdoc(function)
    assert text is not None
    assert text.splitlines()[0].endswith(".")
    for parameter in inspect.signature(function).parameters:
        assert parameter in text


# `nox -s docs` runs the examples of frameworks in every run.
@pytest.mark.parametrize("name", marked(MODULES, pytest.mark.frameworks, pytest.mark.release))
def test_examples_in_docstrings(name: str) -> None:
    needed = NEEDED.get(name.split(".", maxsplit=1)[0], "numpy")
    pytest.importorskip(needed, reason=f"install {needed} to run the examples that use it")
    with warnings.catch_warnings():
        if name in MOVED:
            warnings.simplefilter("ignore", DeprecationWarning)
        module = importlib.import_module(f"gatherum.{name}")
    result = doctest.testmod(module, extraglobs={"gatherum": gatherum, "np": np})
    assert result.failed == 0


def test_examples_in_the_readme() -> None:
    page = ROOT / "README.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0
    assert result.attempted >= 8


def test_every_operator_has_an_example() -> None:
    finder = doctest.DocTestFinder()
    for op in SIGNATURES:
        if op.startswith(("gather", "scatter")):
            (test,) = finder.find(getattr(gatherum, op), op)
            assert len(test.examples) >= 4, op


def fresh_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def newly_imported(code: str) -> set[str]:
    return set(
        fresh_python(
            "import sys, importlib.util; before = set(sys.modules)\n"
            f"{code}\nprint(*sorted(set(sys.modules) - before))"
        ).split()
    )


def test_importing_the_package_imports_nothing_else() -> None:
    loaded = newly_imported("import gatherum")
    ours = {name for name in loaded if name.startswith(("gatherum", "numpy"))}
    assert ours == {"gatherum", "gatherum.version"}


def test_a_function_imports_its_modules_on_first_use() -> None:
    heavy = {"click", "rich", "onnx", "zarr", "safetensors", "ml_dtypes", "numpy.ma"}
    heavy |= {"importlib.metadata"}  # took as long as all the rest
    others = "cli cuda dask files groups pictures directml jax onnx reference accumulator prepared"
    heavy |= {f"gatherum.{module}" for module in f"{others} aggregation explanations".split()}
    loaded = newly_imported("import gatherum; gatherum.gather")
    assert "gatherum._plans.plans" in loaded
    assert heavy & loaded == set()


def test_calls_on_arrays_read_no_entry_points() -> None:
    """Reading the list of installed packages takes longer than the calls."""
    calls = (
        "import numpy as np, gatherum as g; x, i = np.ones((4, 2)), np.array([2, 0])",
        'g.prepare("scatter_slices", x, i, reduction="add")(x, x[:2])',
        'g.prepare("gather", ((4, 2), "f8"), [1])(x), g.plan("gather", x, i)',
        'g.aggregate(x, i, i, 3, "add"), g.groups.reduce(x, [0, 0, 2, 1])',
        'g.Accumulator(x, "add").scatter_slices(i, x[:2]).finish(), g.explain("gather", x, i)',
    )
    assert "importlib.metadata" not in newly_imported("; ".join(calls))


def test_the_operators_are_imported_together() -> None:
    """So no other thread imports one in the middle of a fork."""
    code = "import gatherum as g; g.gather\nprint([name for name in g.__all__ if name in vars(g)])"
    operators = ["gather", "gather_elements", "gather_nd"]
    operators += ["scatter_elements", "scatter_nd", "scatter_slices"]
    assert fresh_python(code) == f"{['__version__', *operators]}\n"


def test_every_public_name_has_its_module() -> None:
    names = set(gatherum.__all__) - {"__version__"}
    assert names == set(gatherum._MODULES)
    for name, module in gatherum._MODULES.items():
        result = getattr(gatherum, name)
        assert result is getattr(sys.modules[module], name)
        assert result is vars(gatherum)[name]  # afterwards found without a call


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_a_name_of_another_library_has_its_counterpart_named(name: str) -> None:
    call = COUNTERPARTS[name]
    with pytest.raises(AttributeError) as refusal:
        getattr(gatherum, name)
    expected = f"module 'gatherum' has no attribute {name!r}; its counterpart is gatherum.{call}"
    assert str(refusal.value) == expected
    function, arguments = call.partition(" or ")[0].rstrip(")").split("(")
    names = inspect.signature(operator.attrgetter(function)(gatherum)).parameters
    keywords = [one.partition("=")[0] for one in arguments.split(", ")]
    assert set(keywords) - {"value"} <= set(names)


def test_no_module_has_the_name_of_a_function() -> None:
    """Importing such a module would replace the function."""
    stems = {path.stem for path in Path(gatherum.__file__).parent.glob("*.py")}
    assert stems & set(gatherum.__all__) == set()


@pytest.mark.parametrize(
    "room",
    marked(
        ["dask", "directml", "files", "groups", "jax", "onnx", "reference"], pytest.mark.frameworks
    ),
)
def test_a_room_is_imported_when_it_is_first_used(room: str) -> None:
    pytest.importorskip(NEEDED.get(room, "numpy"))
    code = f"""
import sys, gatherum
assert "gatherum.{room}" not in sys.modules and "{room}" in dir(gatherum)
assert "gatherum.{room}" not in sys.modules
assert gatherum.{room} is sys.modules["gatherum.{room}"]
print(sorted(dir(gatherum.{room})) == sorted(gatherum.{room}.__all__))
"""
    assert fresh_python(code) == "True\n"


def test_dir_shows_public_names_only() -> None:
    rooms = {"dask", "directml", "files", "frameworks", "groups", "jax", "onnx", "reference"}
    rooms |= {"cuda", "torch"}
    assert set(dir(gatherum)) - rooms == set(gatherum.__all__)
    with pytest.raises(AttributeError, match="module 'gatherum' has no attribute 'gathre'"):
        gatherum.gathre  # noqa: B018


def test_a_room_whose_package_is_missing() -> None:
    code = """
import sys
sys.modules["onnx"] = None
import gatherum, importlib.util, pydoc
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "onnx" else find_spec(name)
assert "onnx" not in dir(gatherum)
pydoc.render_doc(gatherum)
try:
    gatherum.onnx
except ImportError as error:
    print(error)
"""
    assert fresh_python(code) == "gatherum.onnx needs onnx: pip install onnx\n"


def test_help_names_the_functions() -> None:
    summary = inspect.getdoc(gatherum)
    assert summary is not None
    assert [name for name in SIGNATURES if f"`{name}`" not in summary] == []


@pytest.mark.parametrize("room", ["", ".directml", ".files", ".groups"])
def test_help_shows_signatures_without_texts_of_annotations(room: str) -> None:
    module = importlib.import_module(f"gatherum{room}")
    text = pydoc.render_doc(module, renderer=pydoc.plaintext)
    described = text.split("\nCLASSES\n" if "\nCLASSES\n" in text else "\nFUNCTIONS\n", 1)[1]
    quoted = re.findall(r"^(?:     \|)? +(\w+\(.*(?:: '|-> ').*)$", described, re.M)
    assert quoted == []


def test_a_base_of_another_package_keeps_its_signatures() -> None:
    pytest.importorskip("onnx", reason="install onnx")
    (evaluator,) = importlib.import_module("gatherum.onnx").Evaluator.__bases__
    assert not evaluator.__module__.startswith("gatherum")
    assert [one for one in vars(evaluator).values() if hasattr(one, "__signature__")] == []


def test_a_function_of_another_package_keeps_its_signature() -> None:
    from gatherum._exports.help_signatures import plain_help

    def wrapped(x: "int") -> "int":
        return x

    @functools.wraps(wrapped)
    def ours(x: int) -> int:
        return wrapped(x)

    ours.__module__ = "gatherum.test"
    wrapped.__module__ = "other"
    kind = type("Kind", (), {"__module__": "gatherum.test", "method": ours})
    plain_help({"__all__": ["kind", "wrapped"], "kind": kind, "wrapped": wrapped})
    assert not hasattr(wrapped, "__signature__")


def test_type_checkers_and_programs_still_find_the_annotations() -> None:
    hints = typing.get_type_hints(gatherum.gather)
    assert hints["axis"] is int
    assert set(hints) == {*inspect.signature(gatherum.gather).parameters, "return"}


@pytest.mark.parametrize("name", ["Accumulator", "Explanation", "IndexReport", "Plan", "Prepared"])
def test_public_classes_are_members_of_the_package(name: str) -> None:
    public = getattr(gatherum, name)
    assert repr(public) == f"<class 'gatherum.{name}'>"
    typing.get_type_hints(public)


def test_pickles_contain_only_public_names() -> None:
    plan = gatherum.plan("gather", ((4, 8), "f4"), ((3,), "i8"))
    for value in (plan, plan.program):
        stored = pickle.dumps(value)
        assert pickle.loads(stored) == value  # written above
        assert b"gatherum._plans" not in stored and b"gatherum._system" not in stored


def test_the_functions_in_older_pickles_still_exist() -> None:
    from gatherum._plans import plans
    from gatherum._system import native

    plan = gatherum.plan("gather", ((4, 8), "f4"), ((3,), "i8"))
    again, arguments = plan.__reduce__()
    assert plans._planned_again == again and plans._planned_again(*arguments) == plan
    assert native.read_program(bytes(plan.program)) == plan.program
