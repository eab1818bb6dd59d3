"""Each algorithm has the name of its file, whose first line names the kernel."""

import re

import pytest

from gatherum._system import native
from source import ROOT

CORE = ROOT / "src" / "core"


@pytest.mark.parametrize("name", sorted(set(native.algorithm_names())))
def test_an_algorithm_has_a_file_that_names_its_kernel(name):
    files = list((CORE / "algorithms").glob(f"*/{name}.cpp"))
    assert files, f"give {name} a file in src/core/algorithms/gather or scatter"
    for file in files:
        first = file.read_text().partition("\n")[0]
        kernels = re.findall(r"kernels/\w+\.hpp", first)
        assert first.startswith("// Kernel: ") and kernels, file
        assert all((CORE / kernel).is_file() for kernel in kernels), file
