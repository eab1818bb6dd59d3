"""Follows the recipe "Add a file format" of CONTRIBUTING.md: a toy format of raw numbers."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import bits, leftovers
from gatherum import files
from gatherum.files import formats
from gatherum.files.formats.format import Format, Location
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.resources.resources import Resources

HEADER = 128


class Toy(Format):
    """A JSON line of 128 bytes, followed by the elements."""

    name, example, suffixes, has_members = "toy", "'x.toy'", ("toy",), False

    def is_start(self, head: bytes) -> bool:
        return head.startswith(b'{"shape": ')

    def open(self, location: Location, resources: Resources) -> Source:
        file = location.open(resources)
        try:
            about = json.loads(file.read_bytes(0, HEADER))
            shape, dtype = tuple(about["shape"]), np.dtype(about["dtype"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{location}: not a toy") from None
        return Source(location, shape, dtype, FlatStorage.of(file, HEADER, shape, dtype), file)

    def header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool
    ) -> bytes:
        return json.dumps({"shape": shape, "dtype": dtype.str}).ljust(HEADER).encode()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "FORMATS", formats.checked([*formats.FORMATS, Toy()]))


def put(path: Path, array: Any) -> str:
    header = json.dumps({"shape": array.shape, "dtype": array.dtype.str}).ljust(HEADER)
    path.write_bytes(header.encode() + array.tobytes())
    return os.fspath(path)


def test_a_new_format_is_read_and_written_and_changed_in_place(tmp_path: Path) -> None:
    table = np.random.default_rng(0).random((50, 6))
    indices = np.arange(7)[:, None] * 3
    path, out = put(tmp_path / "t.toy", table), str(tmp_path / "o.toy")
    files.gather_nd_file(path, indices, out)
    assert bits(files.gather_file(out, np.arange(7))) == bits(table[indices[:, 0]])
    for target in (out, path):
        files.scatter_nd_file(
            path, indices, table[:7], target, reduction="add", in_place=target == path
        )
        result = files.gather_file(target, np.arange(50))
        expected = gatherum.scatter_nd(table, indices, table[:7], reduction="add")
        assert bits(result) == bits(expected)
    assert leftovers(tmp_path) == []
    os.rename(path, tmp_path / "t")
    assert bits(files.gather_file(tmp_path / "t", np.arange(50))) == bits(expected)


def test_a_new_format_is_named_where_none_fits(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a Zarr directory such as 'x.zarr' or 'x.toy'$"):
        files.gather_file(tmp_path / "t.txt", np.array([0]))
    (tmp_path / "t.toy").write_text("no toy")
    with pytest.raises(ValueError, match=r"t.toy: not a toy$"):
        files.gather_file(tmp_path / "t.toy", np.array([0]))


class Unread(Format):
    pass


class Bare(Unread):
    def open(self, location: Location, resources: Resources) -> Source:
        raise NotImplementedError


class Named(Bare):
    name, example = "named", "'x.named'"


class Again(Toy):
    name = "again"


@pytest.mark.parametrize(
    ("format_class", "message"),
    [
        (Unread, "abstract method '?open'?$"),
        (Bare, "Bare has no `name`, no `example`, no `header` or `read_only`, no `suffixes` or `i"),
        (Named, "Named has no `header` or `read_only`, no `suffixes` or `is_start`$"),
        (Again, "the format Again repeats toy$"),
    ],
)  # fmt: skip
def test_a_forgotten_part_is_named(format_class: type[Format], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        formats.checked([Toy(), format_class()])
