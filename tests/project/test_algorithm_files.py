"""Each algorithm has the name of its file, whose first line names the kernels, as the map does."""

import re
from pathlib import Path

import pytest

from gatherum._system import native
from source import ROOT

CORE = ROOT / "src" / "core"


def kernels_of(file: Path) -> list[str]:
    """Return the kernels that the first line of an algorithm's file names."""
    first = file.read_text().partition("\n")[0]
    return re.findall(r"kernels/(\w+\.hpp)", first) if first.startswith("// Kernel: ") else []


@pytest.mark.parametrize("name", sorted(set(native.algorithm_names())))
def test_an_algorithm_has_a_file_that_names_its_kernel(name):
    files = list((CORE / "algorithms").glob(f"*/{name}.cpp"))
    assert files, f"give {name} a file in src/core/algorithms/gather or scatter"
    for file in files:
        kernels = kernels_of(file)
        assert kernels, file
        assert all((CORE / "kernels" / kernel).is_file() for kernel in kernels), file


def test_the_map_lists_the_kernels_of_each_algorithm():
    row = re.compile(r"\| `((?:gather|scatter)/(\w+)\.cpp)` \| (.*) \|")
    rows = row.findall((CORE / "README.md").read_text())
    assert [name for _, name, _ in rows] == native.algorithm_names()
    for file, _, listed in rows:
        assert re.findall(r"`([^`]*)`", listed) == kernels_of(CORE / "algorithms" / file), file
