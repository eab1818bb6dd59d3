"""Malformed files: one clear line, and nothing is written."""

import ast
import json
import os
import struct
import sys
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import MISSING, described, npy_bytes, put, put_tensor, put_zarr, refused
from gatherum import files


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "t.npy: not a .npy file (no \\x93NUMPY at its beginning)"),
        (b"\x93NU", "t.npy: the file ends in its .npy header, after 3 bytes"),
        (b"\x93NUMPY\x01\x00v\x00{", "t.npy: the file ends in its .npy header, after 11 bytes"),
        (b"PK\3\4" + bytes(60), "t.npy: not a .npy file (no \\x93NUMPY at its beginning)"),
        (
            b"\x93NUMPY\x04\x00" + bytes(60),
            "t.npy: .npy format 4.0 is not known (1.0, 2.0 and 3.0 are)",
        ),
        (
            b"\x93NUMPY\x01\x00\xff\xff" + bytes(60),
            "t.npy: the header of 65535 bytes reaches past the end of the file (70 bytes)",
        ),
        (
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(60),
            "t.npy: a header of 4294967295 bytes is not believable (limit 1 MiB)",
        ),
        (npy_bytes("__import__('os')"), "t.npy: the .npy header is not a Python literal"),
        (npy_bytes("(" * 3000), "t.npy: the .npy header is not a Python literal"),
        (
            npy_bytes("{'descr': '<f4'}"),
            "t.npy: the .npy header must hold exactly 'descr', 'fortran_order' and 'shape'",
        ),
        (
            npy_bytes(described("[2, 2]")),
            "t.npy: the header's shape must be a tuple of integers, got [2, 2]",
        ),
        (
            npy_bytes(described("(True,)")),
            "t.npy: the header's shape must be a tuple of integers, got (True,)",
        ),
        (
            npy_bytes(described("(-1, 2)")),
            "t.npy: the header's shape (-1, 2) has a negative extent",
        ),
        (
            npy_bytes(described("(4294967296, 4294967296)")),
            "t.npy: the header's shape (4294967296, 4294967296) overflows the address type",
        ),
        (
            npy_bytes(described("(0, 4294967296, 4294967296)")),
            "t.npy: the header's shape (0, 4294967296, 4294967296) overflows the address type",
        ),
        (
            npy_bytes(described("(" + "1," * 65 + ")")),
            "t.npy: the header's shape must have at most 64 dimensions, got 65",
        ),
        (
            npy_bytes(described("(5, 5)")),
            "t.npy: shape (5, 5) of float32 needs 100 bytes of data, the file has 64",
        ),
        (npy_bytes(described(descr="'|O'")), "t.npy: holds Python objects, which are never loaded"),
        (
            npy_bytes(described(descr="[('a', '|O'), ('b', '<i4')]")),
            "t.npy: holds Python objects, which are never loaded",
        ),
        (
            npy_bytes(described(descr="'nonsense'")),
            "t.npy: the header's dtype 'nonsense' is not understood",
        ),
        (
            npy_bytes(described(descr="('<f4', (2,))")),
            "t.npy: the header's dtype ('<f4', (2,)) is not that of an array",
        ),
        (npy_bytes(described(descr="'|S0'")), "t.npy: the header's dtype '|S0' has no bytes"),
        (
            npy_bytes(described(order="1")),
            "t.npy: the header's fortran_order must be True or False, got 1",
        ),
    ],
)  # fmt: skip
def test_npy(tmp_path: Path, content: bytes, line: str) -> None:
    (tmp_path / "t.npy").write_bytes(content)
    assert refused(tmp_path, str(tmp_path / "t.npy")) == line


# Python's parser warns about the first two; from 3.12 on, users see the second, too.
@pytest.mark.parametrize("text", ["{'shape': (1if 1 else 2)}", r"{'shape': '\d'}", "(1j, 0x10)"])
def test_no_warning_comes_of_a_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.npy").write_bytes(npy_bytes(text))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        line = refused(tmp_path, str(tmp_path / "t.npy"))
    assert (line, warned) == ("t.npy: the .npy header is not a Python literal", [])


# NumPy reads the numbers of some types as Python code, which raises a SyntaxError or a warning.
@pytest.mark.parametrize(
    "descr",
    [
        "'<,f4'", "'(2)f4'", "'f4,i4'", "[('a', '<,f4')]", "('<f4', '<,f4')", "[()]", "()",
        "'>01'", "'01'", "'1f4'", "'2'", "[('a', '>01')]", "'f4\\n'", "'M8[1if 1 else 2s]'", "'a5'",
        "[('a', '<f4', [('b', '<,f4')])]", "[('a', ('<f4', (1, '<,f4')))]",
    ],
)  # fmt: skip
def test_a_dtype_is_never_read_as_python(tmp_path: Path, descr: str) -> None:
    (tmp_path / "t.npy").write_bytes(npy_bytes(described(descr=descr)))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        line = refused(tmp_path, str(tmp_path / "t.npy"))
    assert warned == []
    assert line == f"t.npy: the header's dtype {ast.literal_eval(descr)!r} is not understood"


def test_whatever_names_the_fields_have(tmp_path: Path) -> None:
    names = [
        "1a",
        "it's",
        'say "x"',
        "back\\slash",
        "tab\t",
        "\x85",
        "ü",
        "日",
        "🙂",
        "#",
        "{}",
        "(1if),f4",
    ]
    dtype = np.dtype([(name, "<i4", (2,)) for name in names] + [(("a title", "named"), "|S3")])
    table = np.zeros(4, dtype)
    table["it's"] = np.arange(8).reshape(4, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns that the file is not of version 1
        np.save(tmp_path / "t.npy", table)
    np.save(tmp_path / "i.npy", np.array([2, 0]))
    files.gather_file(tmp_path / "t.npy", tmp_path / "i.npy", tmp_path / "o.npy")
    result = np.load(tmp_path / "o.npy")
    assert (result.dtype, result.tobytes()) == (dtype, table[[2, 0]].tobytes())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_of_npy_is_read(tmp_path: Path, version: int) -> None:
    table = np.arange(16, dtype=np.float32).reshape(4, 4)
    content = npy_bytes(described("(4, 4)"), table.tobytes(), version)
    (tmp_path / "t.npy").write_bytes(content + b"more")  # NumPy allows trailing bytes
    np.save(tmp_path / "i.npy", np.array([2, 0]))
    files.gather_file(tmp_path / "t.npy", tmp_path / "i.npy", tmp_path / "o.npy")
    assert np.load(tmp_path / "o.npy").tobytes() == table[[2, 0]].tobytes()


@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("file_format", ["npy", "npz"])
@pytest.mark.parametrize(
    "header",
    [
        described("(4L, 4L)"),
        described("(16L,)"),
        described("(2L, 8)", "u'<f4'"),
        "{u'descr': u'<f4', u'fortran_order': True, u'shape': (4L, 4)}",
        described("(8L,)", "[('5L', '<f4'), (\"'2L\", '<i2', (2L,))]"),
    ],
)
def test_headers_that_python_2_wrote(
    tmp_path: Path, header: str, file_format: str, version: int
) -> None:
    content = npy_bytes(header, bytes(range(64)), version)
    path = str(tmp_path / "t.npy")
    (tmp_path / "t.npy").write_bytes(content)
    if file_format == "npz":
        path = str(tmp_path / "t.npz:a")
        with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
            archive.writestr("a.npy", content)
    table = np.load(tmp_path / "t.npy")
    result = files.gather_file(path, np.arange(len(table)))
    assert (result.shape, result.dtype, result.tobytes()) == (
        table.shape, table.dtype, table.tobytes(),
    )  # fmt: skip


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize(
    "shape", ["(2l, 2)", "(L,)", "(2LL,)", "(x2L,)", "(2.0L,)", "(2 L,)", "('a'L,)"]
)
def test_headers_that_python_2_did_not_write(tmp_path: Path, shape: str, version: int) -> None:
    (tmp_path / "t.npy").write_bytes(npy_bytes(described(shape), version=version))
    line = refused(tmp_path, str(tmp_path / "t.npy"))
    assert line == "t.npy: the .npy header is not a Python literal"
    (tmp_path / "t.npy").write_bytes(npy_bytes(described("(2L,)"), version=3))
    assert refused(tmp_path, str(tmp_path / "t.npy")) == line


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    np.save(tmp_path / "t.npy", np.array([Bomb()], object), allow_pickle=True)
    np.savez(tmp_path / "t.npz", a=np.array([Bomb()], object))
    refused(tmp_path, str(tmp_path / "t.npy"))
    refused(tmp_path, str(tmp_path / "t.npz:a"))
    assert not (tmp_path / "exploded").exists()


def tensor_file(path: Path, header: Any, data: int = 16, length: int | None = None) -> str:
    """Write a safetensors file with the given header."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(raw) if length is None else length
    path.write_bytes(struct.pack("<Q", size) + raw + bytes(data))
    return f"{path}:a"


def entry(dtype: Any = "F32", shape: Any = (4,), offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (
            b"",
            "the safetensors header is not valid JSON: Expecting value: line 1 column 1 (char 0)",
        ),
        (b"[]", "the safetensors header is not a JSON object"),
        (b'{"a":{},"a":{}}', "the safetensors header is not valid JSON: a name occurs twice"),
        ({"__metadata__": {"a": 1}}, "__metadata__ must map strings to strings"),
        ({"__metadata__": []}, "__metadata__ must map strings to strings"),
        ({"a": [1]}, "tensor 'a' must have dtype, shape and data_offsets"),
        ({"a": {"dtype": "F32"}}, "tensor 'a' must have dtype, shape and data_offsets"),
        ({"a": entry("F12")}, "tensor 'a' has the unknown type 'F12'"),
        ({"a": entry(shape=[-4])}, "tensor 'a' has the shape [-4], not a list of sizes"),
        ({"a": entry(shape=[4.0])}, "tensor 'a' has the shape [4.0], not a list of sizes"),
        ({"a": entry(shape=[True])}, "tensor 'a' has the shape [True], not a list of sizes"),
        (
            {"a": entry(shape=[2**40, 2**40])},
            f"tensor 'a': the header's shape ({2**40}, {2**40}) overflows the address type",
        ),
        ({"a": entry(offsets=[16, 0])}, "tensor 'a' lies at bytes 16 to 0 of 16"),
        ({"a": entry(offsets=[0, 32])}, "tensor 'a' lies at bytes 0 to 32 of 16"),
        (
            {"a": entry(offsets=[-1, 15])},
            "tensor 'a' has the data_offsets [-1, 15], not two positions",
        ),
        ({"a": entry(offsets=[0, 12])}, "tensor 'a' needs 16 bytes, its data_offsets hold 12"),
        (
            {"a": entry(shape=[2], offsets=[0, 8]), "b": entry(shape=[3], offsets=[4, 16])},
            "tensor 'b' overlaps the one before it",
        ),
        (
            {"a": entry(shape=[1], offsets=[0, 4]), "b": entry(shape=[2], offsets=[8, 16])},
            "tensor 'b' leaves a gap after the one before it",
        ),
        (
            {"a": entry(shape=[3], offsets=[4, 16])},
            "tensor 'a' leaves a gap after the one before it",
        ),
        ({}, "the tensors end at byte 10, the file at 26"),
    ],
)  # fmt: skip
def test_safetensors(tmp_path: Path, header: Any, line: str) -> None:
    path = tensor_file(tmp_path / "t.safetensors", header)
    assert line in refused(tmp_path, path)


@pytest.mark.parametrize(
    "header",
    [
        {"__metadata__": None, "a": entry()},
        {"a": entry() | {"more": 1, "nested": {"x": [None, True, 1.5]}}},
        {"z": entry(shape=[0], offsets=[16, 16]), "a": entry(), "b": entry("U8", [2, 0], [0, 0])},
    ],
)
def test_safetensors_that_its_own_package_reads(tmp_path: Path, header: Any) -> None:
    package = pytest.importorskip("safetensors.numpy", reason=MISSING.format("safetensors"))
    path = tensor_file(tmp_path / "t.safetensors", header)
    assert package.load_file(tmp_path / "t.safetensors")["a"].tolist() == [0.0] * 4
    assert files.gather_file(path, np.arange(4)).tolist() == [0.0] * 4


def test_safetensors_lengths(tmp_path: Path) -> None:
    file = tmp_path / "t.safetensors"
    good = {"a": entry()}
    assert refused(tmp_path, tensor_file(file, good, length=2**63)) == (
        "t.safetensors: a header of 9223372036854775808 bytes is above the format's limit"
    )
    assert refused(tmp_path, tensor_file(file, good, length=5000)) == (
        "t.safetensors: the header of 5000 bytes reaches past the end of the file"
    )
    file.write_bytes(b"abc")
    assert refused(tmp_path, f"{file}:a") == (
        "t.safetensors: not a safetensors file (3 bytes are too few)"
    )
    assert refused(tmp_path, tensor_file(file, good).replace(":a", ":b")) == (
        "t.safetensors:b: the file has no such tensor; it holds 'a'"
    )
    half = {"a": entry("F4", [32])}
    assert refused(tmp_path, tensor_file(file, half)) == (
        "t.safetensors:a: elements of type F4 are not whole bytes"
    )


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("BF16", "bfloat16"),
        ("F8_E4M3", "float8_e4m3fn"),
        ("F8_E5M2", "float8_e5m2"),
        ("F8_E8M0", "float8_e8m0fnu"),
        ("F8_E4M3FNUZ", "float8_e4m3fnuz"),
        ("F8_E5M2FNUZ", "float8_e5m2fnuz"),
    ],
)
def test_narrow_floats_of_safetensors_keep_their_bits(tmp_path: Path, code: str, name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    table = np.arange(64 * dtype.itemsize, dtype=np.uint8).view(dtype).reshape(16, 4)
    raw = json.dumps({"a": entry(code, table.shape, [0, table.nbytes])}).encode()
    file = tmp_path / "t.safetensors"
    file.write_bytes(struct.pack("<Q", len(raw)) + raw + table.tobytes())
    np.save(tmp_path / "i.npy", np.array([3, 15, 0]))
    out = tmp_path / "o.safetensors"
    files.gather_file(f"{file}:a", tmp_path / "i.npy", f"{out}:b")
    length = int.from_bytes(out.read_bytes()[:8], "little")
    header = json.loads(out.read_bytes()[8 : 8 + length])
    assert header == {"b": entry(code, [3, 4], [0, 12 * dtype.itemsize])}
    assert out.read_bytes()[8 + length :] == table[[3, 15, 0]].tobytes()


def test_neighbours_of_a_tensor_that_is_changed_in_place_stay(tmp_path: Path) -> None:
    path = put_tensor(str(tmp_path / "t.safetensors"), np.zeros((4, 3), np.float32))
    file = tmp_path / "t.safetensors"
    before = file.read_bytes()
    indices = put(tmp_path, "i", np.array([[1]]))
    updates = put(tmp_path, "u", np.array([[1, 2, 3]], np.float32))
    files.scatter_nd_file(path, indices, updates, path, in_place=True)
    after = file.read_bytes()
    at = before.index(bytes(48))
    assert after[:at] + bytes(48) + after[at + 48 :] == before
    assert after[at : at + 48] == np.array([0, 0, 0, 1, 2, 3] + [0] * 6, np.float32).tobytes()


def test_a_link_that_leads_out_of_a_zarr_store_is_refused(tmp_path: Path) -> None:
    path = put_zarr(str(tmp_path / "t.zarr"), np.arange(12.0).reshape(6, 2), chunks=(2, 2))
    chunk = Path(path, "c", "1", "0")
    outside = tmp_path / "secret"
    chunk.rename(outside)
    chunk.symlink_to(outside)
    assert refused(tmp_path, path) == (
        "t.zarr/c/1/0: a link that leads out of the store is not followed"
    )
    chunk.unlink()
    chunk.symlink_to(Path(path, "c", "0", "0"))
    put(tmp_path, "i", np.array([2]))
    files.gather_file(path, tmp_path / "i.npy", tmp_path / "o.npy")
    assert np.load(tmp_path / "o.npy").tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"shape": [-1, 2]}, "t.zarr: the shape [-1, 2] is not a list of sizes"),
        ({"shape": None}, "t.zarr: the shape None is not a list of sizes"),
        ({"shape": [1] * 65}, "t.zarr: the shape must have at most 64 dimensions, got 65"),
        ({"node_type": "group"}, "t.zarr: expected an array, got a group without arrays"),
        ({"node_type": "table"}, "t.zarr: not a Zarr array"),
        (
            {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 2]}}},
            "t.zarr: chunks of (0, 2), expected positive extents",
        ),
        (
            {"codecs": [{"name": "numcodecs.pickle"}]},
            "t.zarr: uses a pickle codec, which is never loaded",
        ),
    ],
)  # fmt: skip
def test_zarr_metadata(tmp_path: Path, change: dict[str, Any], line: str) -> None:
    path = put_zarr(str(tmp_path / "t.zarr"), np.zeros((6, 2)))
    file = Path(path, "zarr.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert refused(tmp_path, path) == line


def test_zarr_chunks_without_extent_along_an_empty_dimension(tmp_path: Path) -> None:
    path = put_zarr(str(tmp_path / "t.zarr"), np.zeros((0, 2)))
    file = Path(path, "zarr.json")
    grid = {"name": "regular", "configuration": {"chunk_shape": [0, 2]}}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"chunk_grid": grid}))
    put(tmp_path, "i", np.zeros(0, int))
    files.gather_file(path, tmp_path / "i.npy", tmp_path / "o.npy")
    assert np.load(tmp_path / "o.npy").shape == (0, 2)


def test_zarr_damage(tmp_path: Path) -> None:
    path = put_zarr(str(tmp_path / "t.zarr"), np.arange(12.0).reshape(6, 2), chunks=(6, 2))
    Path(path, "c", "0", "0").write_bytes(b"not compressed by anything")
    assert refused(tmp_path, path).startswith("t.zarr/c/0/0: cannot be read: ")
    Path(path, "zarr.json").write_text("{")
    assert refused(tmp_path, path).startswith("t.zarr/zarr.json: not valid JSON: ")
    Path(path, "zarr.json").unlink()
    assert refused(tmp_path, path) == (
        "t.zarr: not a Zarr array (neither zarr.json nor .zarray is there)"
    )


@pytest.mark.parametrize("text", ["'" + "\\'" * 400_000, "9" * 800_000, "1L" * 400_000])
def test_a_long_header_takes_no_longer(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.npy").write_bytes(npy_bytes(text, version=2))  # parsing it would take hours
    assert refused(tmp_path, str(tmp_path / "t.npy")) == (
        "t.npy: the .npy header is not a Python literal"
    )


@pytest.mark.parametrize("size", [0, 5])
@pytest.mark.parametrize("compressors", ["auto", None])
@pytest.mark.parametrize(("version", "name"), [(2, "0.0"), (3, "c/0/0")])
def test_a_chunk_that_is_empty_or_cut_is_named(
    tmp_path: Path, version: int, name: str, compressors: str | None, size: int
) -> None:
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    path, table = str(tmp_path / "t.zarr"), np.arange(24.0).reshape(8, 3)
    zarr.create_array(path, data=table, chunks=(2, 3), zarr_format=version, compressors=compressors)
    chunk = Path(path, name)
    chunk.write_bytes(chunk.read_bytes()[:size])
    assert refused(tmp_path, path).startswith(f"t.zarr/{name}: cannot be read: ")


def test_special_files_raise(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.npy")
    assert (
        refused(tmp_path, str(tmp_path / "t.npy"), OSError)
        == "t.npy: is a FIFO, not a regular file"
    )
    assert refused(tmp_path, "/dev/zero.npy", FileNotFoundError)
    line = refused(tmp_path, str(tmp_path / "t.txt"))
    assert line.startswith("'t.txt' is not there, nor a known kind of file: expected 'x.npy'")


def test_extras_are_loaded_only_when_named(tmp_path: Path) -> None:
    import subprocess

    put(tmp_path, "t", np.arange(4))
    put(tmp_path, "i", np.array([1]))
    code = (
        "import sys; from gatherum import files; files.gather_file('t.npy', 'i.npy', 'o.npy');"
        "print([m for m in ('zarr', 'safetensors', 'ml_dtypes') if m in sys.modules])"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_zarr(str(tmp_path / "t.zarr"), np.zeros((6, 2)))
    monkeypatch.setitem(sys.modules, "zarr", None)
    line = refused(tmp_path, path, ImportError)
    assert line == "Zarr arrays need zarr: pip install zarr"
    assert MISSING.format("zarr").startswith("install zarr")


HUGE = 2**31 - 1


def huge_zarr(path: Path, version: int) -> str:
    """Write the metadata of an array of huge elements."""
    path.mkdir()
    if version == 2:
        metadata = {"chunks": [1], "dtype": f"|V{HUGE}", "fill_value": None, "order": "C",
                    "filters": None, "compressor": None}  # fmt: skip
    else:
        grid = {"name": "regular", "configuration": {"chunk_shape": [1]}}
        data_type = {"name": "raw_bytes", "configuration": {"length_bytes": HUGE}}
        metadata = {
            "node_type": "array",
            "data_type": data_type,
            "chunk_grid": grid,
            "fill_value": "",
        }
        metadata |= {"chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]}
    metadata |= {"zarr_format": version, "shape": [0]}
    (path / (".zarray" if version == 2 else "zarr.json")).write_text(json.dumps(metadata))
    return str(path)


@pytest.mark.parametrize("file_format", ["npy", "npz", "deflated", "zarr2", "zarr3"])
@pytest.mark.parametrize("role", ["table", "indices", "updates"])
def test_elements_larger_than_memory(tmp_path: Path, file_format: str, role: str) -> None:
    content = npy_bytes(described("(0,)", f"'|S{HUGE}'"), b"")
    path = str(tmp_path / "t.npy")
    (tmp_path / "t.npy").write_bytes(content)
    if file_format.startswith("zarr"):
        pytest.importorskip("zarr", reason=MISSING.format("zarr"))
        path = huge_zarr(tmp_path / "t.zarr", int(file_format[-1]))
    elif file_format != "npy":
        method = zipfile.ZIP_STORED if file_format == "npz" else zipfile.ZIP_DEFLATED
        path = str(tmp_path / "t.npz:a")
        with zipfile.ZipFile(tmp_path / "t.npz", "w", method) as archive:
            archive.writestr("a.npy", content)
    operands = dict.fromkeys(("table", "indices", "updates"), put(tmp_path, "o", np.zeros((2, 1))))
    operands["indices"] = put(tmp_path, "i", np.zeros((2, 1), int))
    paths = (operands | {role: path}).values()
    tracemalloc.start()
    with pytest.raises(ValueError) as caught:
        if role == "table":
            files.gather_file(path, operands["indices"], tmp_path / "out.npy", memory="64KiB")
        else:
            files.scatter_nd_file(*paths, tmp_path / "out.npy", memory="64KiB")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20
    assert str(caught.value) == (
        f"{path}: one element has {HUGE} bytes, too much for a memory budget of 65536 bytes "
        "(four times the element is needed)"
    )


def test_large_elements_are_moved(tmp_path: Path) -> None:
    table = np.zeros(5, f"S{16 << 10}")
    table[3] = b"a" * (16 << 10)
    call = {"mode": "fill", "fill_value": b"b" * 7, "memory": "64KiB"}
    paths = put(tmp_path, "t", table), put(tmp_path, "i", np.array([3, 9]))
    files.gather_file(*paths, tmp_path / "o.npy", **call)
    assert np.load(tmp_path / "o.npy").tolist() == [table[3], b"b" * 7]
