"""Torch's own warnings are not failures of these tests."""

from pathlib import Path

import pytest

OF_TORCH = (
    r"ignore:`torch\.jit\.script:DeprecationWarning",  # torch's own forward mode uses it
    "ignore:There is a performance drop:UserWarning",  # vmap, if an op of torch has no rule
)


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for warning in OF_TORCH:
                item.add_marker(pytest.mark.filterwarnings(warning))
