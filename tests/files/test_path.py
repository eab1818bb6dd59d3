"""The path of a call on files: docs/architecture.md describes it, and it touches few modules."""

import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import put
from gatherum import files

PACKAGE = Path(gatherum.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
TABLE, ROWS = np.arange(3000.0).reshape(100, 30), np.array([5, 2, 7])


def functions_of(call: Callable[[], Any]) -> set[tuple[str, str]]:
    """Return the file and the name of each function of the package that a call runs."""
    call()  # imports modules
    functions: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            name = path.relative_to(PACKAGE).as_posix()
            functions.add((name, frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return functions


def modules_of(call: Callable[[], Any]) -> set[str]:
    return {name for name, _ in functions_of(call) if name.startswith("files/")}


def test_calls_touch_few_modules(tmp_path: Path) -> None:
    table, out = put(tmp_path, "t", TABLE), f"{tmp_path}/out.npy"
    assert len(modules_of(lambda: files.gather_file(table, ROWS))) <= 19
    assert len(modules_of(lambda: files.gather_file(table, ROWS, out))) <= 27
    assert len(modules_of(lambda: files.scatter_slices_file(table, ROWS, TABLE[:3], out))) <= 23


def test_the_page_describes_a_gather(tmp_path: Path) -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is not part of this installation")
    table, out = put(tmp_path, "t", TABLE), os.fspath(tmp_path / "out.npy")
    functions = functions_of(lambda: files.gather_file(table, ROWS, out))
    _, _, section = PAGE.read_text(encoding="utf-8").partition("\n## A gather of a file\n")
    steps = re.findall(r"`(files/[\w/]+\.py): ([\w.]+)`", section)
    assert len(steps) > 10
    assert [step for step in steps if step not in functions] == []
