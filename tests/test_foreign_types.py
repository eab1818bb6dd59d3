"""What a type checker infers of calls on arrays of other libraries."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="install mypy to ask a type checker")
ARRAYS = {
    "torch": ("torch", "torch.zeros(3)", "torch.Tensor"),
    "jax": ("jax", "jax.numpy.zeros(3)", "jax.Array"),
}


@pytest.mark.parametrize("library", ARRAYS)
def test_a_result_has_the_type_of_the_data(library, tmp_path):
    module, made, kind = ARRAYS[library]
    pytest.importorskip(module, reason=f"install {module} to ask for its types")
    program = tmp_path / "program.py"
    program.write_text(
        f"from typing import assert_type\nimport {module}\nimport gatherum\n"
        f"assert_type(gatherum.gather({made}, [0]), {kind})\n"
        f"assert_type(gatherum.scatter_nd({made}, [[0]], 1.0, reduction='add'), {kind})\n"
        f"assert_type(gatherum.groups.reduce({made}, [0, 1, 0], func='mean'), {kind})\n"
        f"assert_type(gatherum.groups.transform({made}, [0, 1, 0], 'softmax'), {kind})\n"
        f"assert_type(gatherum.aggregate({made}, [0], [0], 1, 'add'), {kind})\n"
        f"gatherum.gather({made}, [0]).no_such_name\n"
    )
    options = ["--follow-imports=silent", "--no-error-summary", f"--cache-dir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.count("error") == 1 and '"no_such_name"' in done.stdout, done.stdout
