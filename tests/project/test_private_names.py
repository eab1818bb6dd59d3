"""Private names of other libraries are used in one module per library, and are optional."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gatherum
from gatherum._system import private_names
from source import SOURCE

PACKAGE = Path(gatherum.__file__).parent
# The modules that use them. `torch_compile` marks functions of ours, before torch is imported.
ALLOWED = {
    *("torch/private.py", "jax/private.py", "dask/private.py"),
    *("files/formats/zarr/private.py", "files/remote/private.py"),
    "_frameworks/torch_compile.py",
}
LIBRARIES = [
    "torch",
    "jax",
    "jaxlib",
    "dask",
    "distributed",
    "zarr",
    "numcodecs",
    "fsspec",
    "numpy",
    "h5py",
    "pyarrow",
    "onnx",
    "cupy",
]
# Documented, in spite of the underscore.
DOCUMENTED = {"_value_", "_replace", "_fields", "_asdict", "_exit", "_repr_html_"}
PATH = re.compile(rf"(?:{'|'.join(LIBRARIES)})(?:\.\w+)*\._[A-Za-z]\w*")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in {"_"}


def own_names(trees: list[ast.Module]) -> set[str]:
    """Return the private names that the package itself defines."""
    results = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            results.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            results.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            results |= {node.attr} if ast.unparse(node.value) == "self" else set()
    return results


def foreign(tree: ast.Module, own: set[str]) -> list[str]:
    """Return the private names of other libraries that a module uses."""
    foreign_names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in own | DOCUMENTED:
            foreign_names += [node.attr] if is_private(node.attr) else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            foreign_names += [node.value] if PATH.fullmatch(node.value) else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("getattr", "hasattr") and isinstance(node.args[1], ast.Constant):
                name = node.args[1].value
                foreign_names += [name] if is_private(name) and name not in own else []
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            stem = getattr(node, "module", None) or ""
            whole = [f"{stem}.{name}".strip(".") for name in names]
            ours = getattr(node, "level", 0) > 0 or stem.split(".")[0] in ("gatherum", "__future__")
            foreign_names += (
                [] if ours else [n for n in whole if any(map(is_private, n.split(".")))]
            )
    return foreign_names


TREES = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def test_private_names_stand_in_one_module_a_library() -> None:
    own = own_names(list(TREES.values()))
    names_by_path = {
        path.relative_to(PACKAGE).as_posix(): foreign(t, own) for path, t in TREES.items()
    }
    assert {
        path: names for path, names in names_by_path.items() if names and path not in ALLOWED
    } == {}
    assert {path for path in ALLOWED if not names_by_path[path]} == {
        "jax/private.py"
    }  # it needs none


@pytest.mark.parametrize(
    "line",
    [
        "torch._C.is_grad_enabled()",
        "getattr(tensor, '_cdata')",
        "from torch import _C",
        "from distributed.shuffle._core import barrier_key",
        "import jax._src.core",
        "find_name('zarr.core._info')",
        "filesystem._strip_protocol(url)",
    ],
)
def test_the_rule_finds_them(line: str) -> None:
    assert foreign(ast.parse(line), {"_mine"}) != []
    assert (
        foreign(ast.parse("from . import _core; self._mine; point._replace(x=1)"), {"_mine"}) == []
    )


def test_a_name_that_is_missing_is_none() -> None:
    assert private_names.find_name("os.path.join") is os.path.join
    for name in ("no_such_library.name", "os.no_such_module.name", "os.path.no_such_name"):
        assert private_names.find_name(name) is None
    assert private_names.missing({"os.path": "", "os.no": ""}) == ["os.no"]
    assert private_names.lacking("torch", "3.0", "2.13", "torch._a", "torch._b") == (
        "torch 3.0 lacks torch._a, torch._b; gatherum was tested with torch 2.13"
    )


HIDDEN = """
import sys
from gatherum._system import private_names
find_name = private_names.find_name
private_names.find_name = lambda name: None if name in sys.argv[3:] else find_name(name)
import numpy as np
from gatherum import files
try:
    print(files.gather_file(sys.argv[1], np.array([1, 0])))
except ImportError as error:
    print(error)
print(files.gather_file(sys.argv[2], np.array([1, 0])))
"""


def test_zarr_arrays_without_a_private_name(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="install zarr")
    np = pytest.importorskip("numpy")
    from gatherum.files.formats.zarr import private

    flat, stored = str(tmp_path / "t.npy"), str(tmp_path / "t.zarr")
    np.save(flat, np.arange(3))
    zarr.save(stored, np.arange(3))
    assert private_names.missing(private.NAMES) == []
    for name, without in private.NAMES.items():
        done = subprocess.run(
            [sys.executable, "-c", HIDDEN, stored, flat, name], capture_output=True, text=True,
            check=False, timeout=120, env=os.environ | {"PYTHONPATH": SOURCE},
        )  # fmt: skip
        refused = "refused" in without or private_names.find_name("zarr.buffer") is None
        lacking = private_names.lacking("zarr", zarr.__version__, private.TESTED, name)
        first = f"Zarr arrays cannot be kept within bounds: {lacking}" if refused else "[1 0]"
        assert done.stdout == f"{first}\n[1 0]\n", done.stderr
