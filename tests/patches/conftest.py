"""The copy of the tree that tests of several recipes share."""

from pathlib import Path

import pytest

from recipes import built_tree


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with the recipes of `recipes.BUILT`, built without optimization."""
    return built_tree(tmp_path_factory)
