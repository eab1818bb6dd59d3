"""Shared fixtures of the tests on files."""

import os
from collections.abc import Iterator

import pytest

from gatherum.files.open_table import state


@pytest.fixture
def quick_sync(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Skip fsync in tests of values: forcing files to the disk takes most of their time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    yield


@pytest.fixture
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the file of an open table after every call."""
    monkeypatch.setattr(state, "NEAR", -1.0)
