"""Shared fixtures of the tests on files."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from files.web import Web, serving
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


# Only these faults have a short timeout; other responses may be slow on a busy machine.
SILENT = ("hanging", "trickling")


@pytest.fixture
def web(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Web]:
    """Serve the folder of a test, with a short timeout for silent servers."""
    from gatherum.files.remote import store, transport

    monkeypatch.setattr(store, "FIRST_PAUSE", 0.001)
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("fault") in SILENT:
        monkeypatch.setattr(store, "LONGEST", 1.5)
        monkeypatch.setattr(transport, "IDLE", 0.4)
    with serving(tmp_path) as web:
        yield web
