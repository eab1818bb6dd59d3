"""Types that a type checker infers for calls on arrays of other libraries."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip("mypy", reason="install mypy to ask a type checker")
ARRAYS = {
    "torch": ("torch.zeros(3)", "torch.Tensor"),
    "jax": ("jax.numpy.zeros(3)", "jax.Array"),
}
FOUND = [module for module in ARRAYS if find_spec(module)]


@pytest.mark.skipif(FOUND == [], reason="install torch or jax to ask for their types")
def test_a_result_has_the_type_of_the_data(tmp_path):
    lines = ["from typing import assert_type", "import gatherum"]
    for module in FOUND:
        expression, kind = ARRAYS[module]
        lines += [
            f"import {module}",
            f"assert_type(gatherum.gather({expression}, [0]), {kind})",
            f"assert_type(gatherum.scatter_nd({expression}, [[0]], 1.0, reduction='add'), {kind})",
            f"assert_type(gatherum.groups.reduce({expression}, [0, 1, 0], func='mean'), {kind})",
            f"assert_type(gatherum.groups.transform({expression}, [0, 1, 0], 'softmax'), {kind})",
            f"assert_type(gatherum.aggregate({expression}, [0], [0], 1, 'add'), {kind})",
            f"gatherum.gather({expression}, [0]).no_such_name",
        ]
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines))
    options = ["--follow-imports=silent", "--no-error-summary", f"--cache-dir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if "error" in line]
    assert len(errors) == len(FOUND), done.stdout
    assert all('"no_such_name"' in error for error in errors), done.stdout
