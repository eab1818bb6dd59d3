"""Types that a type checker infers for calls on arrays of other libraries."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip("mypy", reason="install mypy to ask a type checker")
pytestmark = [pytest.mark.frameworks, pytest.mark.release]  # mypy reads the whole library
ARRAYS = {
    "jax": ("jax.numpy.zeros(3)", "jax.Array"),
    "torch": ("torch.zeros(3)", "torch.Tensor"),
}


@pytest.mark.parametrize("module", ARRAYS)
def test_a_result_has_the_type_of_the_data(tmp_path, module):
    if find_spec(module) is None:
        pytest.skip(f"install {module} to ask for the type of its arrays")
    expression, type_text = ARRAYS[module]
    lines = [
        "from typing import assert_type",
        f"import gatherum, {module}",
        f"assert_type(gatherum.gather({expression}, [0]), {type_text})",
        f"assert_type(gatherum.scatter_nd({expression}, [[0]], 1.0, reduction='add'), {type_text})",
        f"assert_type(gatherum.groups.reduce({expression}, [0, 1, 0], func='mean'), {type_text})",
        f"assert_type(gatherum.groups.transform({expression}, [0, 1, 0], 'softmax'), {type_text})",
        f"assert_type(gatherum.aggregate({expression}, [0], [0], 1, 'add'), {type_text})",
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
    assert len(errors) == 1 and '"no_such_name"' in errors[0], done.stdout
