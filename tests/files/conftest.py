"""What the tests on files share."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture
def quick_sync(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the disk out of tests that are about values: forcing files to it takes most time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    yield
