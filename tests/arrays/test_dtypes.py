"""The table of dtypes: its numbers do not change, and every interface covers its rows."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gatherum
from gatherum import _core, directml, files
from gatherum._model.dtype_rows import ROWS, DTypeRow, has_arithmetic, spellings
from gatherum._model.dtypes import load_dtype
from gatherum._model.narrow_floats import FORMATS

# Pickles and the keys of plans contain the positions: append only.
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex32", "complex64", "complex128", "float8_e3m4",
    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "longdouble", "clongdouble",
)  # fmt: skip
VALUES = (
    "none", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
ADDED = {name for name, row in ROWS.items() if not row.is_of_numpy}
LONG = {"longdouble", "clongdouble"}
COMPLEX = {name for name, row in ROWS.items() if row.kind == "c"}


@pytest.mark.parametrize(
    ("enum_type", "names"), [(_core.DType, DTYPES), (_core.Value, VALUES)], ids=["dtypes", "values"]
)
def test_numbers_do_not_change(enum_type, names):
    assert {one.name: one.value for one in enum_type} == {name: i for i, name in enumerate(names)}


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_a_row_describes_its_dtype(row: DTypeRow) -> None:
    if not row.is_of_numpy:
        ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes")
        if not hasattr(ml_dtypes, row.name):
            pytest.skip(f"install a newer ml_dtypes, which has {row.name}")
    dtype = load_dtype(row.name)
    assert dtype.itemsize == row.nbytes
    assert not row.is_of_numpy or dtype.kind == row.kind
    assert row.has_whole_bytes or ml_dtypes.finfo(dtype).bits == row.bits
    assert row.name in FORMATS or row.encoding is None
    assert row.code is _core.DType[row.name]


def names_of_files(suffix: str) -> Callable[[Path], set[str]]:
    def names(folder: Path) -> set[str]:
        stored = set()
        for name in ROWS:
            array = np.arange(4).astype("u1").astype(load_dtype(name)).reshape(2, 2)
            path = f"{folder}/{name}{suffix}"
            try:
                files.gather_file(array, [1, 0], path)
            except ValueError as error:
                assert "cannot hold elements of dtype" in str(error)
                continue
            assert files.gather_file(path, [1, 0]).tobytes() == array.tobytes()
            stored.add(name)
        return stored

    return names


def names_of_arrow(folder: Path) -> set[str]:
    feather = pytest.importorskip("pyarrow.feather", reason="install pyarrow")
    import pyarrow

    read = set()
    for name in ROWS.keys() - ADDED:
        array = np.arange(2).astype(name)
        try:
            table = pyarrow.table({"x": array})
        except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
            continue
        feather.write_feather(table, f"{folder}/{name}.feather", compression="uncompressed")
        rows = files.gather_file(f"{folder}/{name}.feather:x", [0, 1])
        assert (rows.dtype, rows.tobytes()) == (array.dtype, array.tobytes())
        read.add(name)
    return read


def names_of_onnx(_: Path) -> set[str]:
    onnx = pytest.importorskip("onnx", reason="install onnx")
    from gatherum.onnx import operators

    own = {name.lower() for name in onnx.TensorProto.DataType.keys()}  # noqa: SIM118
    names = spellings("ONNX", operators.SPELLING, operators.ABSENT)
    return {name for name, text in names.items() if text in own}


def names_of_torch(_: Path) -> set[str]:
    pytest.importorskip("torch", reason="install torch")
    from gatherum.torch import dtypes

    return {name for name in ROWS if dtypes.of_name(name) is not None}


def names_of_jax(_: Path) -> set[str]:
    jnp = pytest.importorskip("jax.numpy", reason="install jax")
    from gatherum.jax.dtypes import _WHOLE

    return {name for name in _WHOLE if hasattr(jnp, name)}


def names_of_directml(_: Path) -> set[str]:
    members = directml.TensorDataType.__members__
    return {
        name
        for name, row in ROWS.items()
        if name.upper() in members and members[name.upper()].bits == row.bits
    }


def names_of_cuda(_: Path) -> set[str]:
    """Return the value types of the kernels. They move all dtypes by the bytes of an item."""
    kernels = Path(gatherum.__file__).parent / "cuda" / "kernels"
    text = "".join((kernels / name).read_text() for name in ("platform.cuh", "arithmetic.cuh"))
    return set(re.findall(r"^using value_(\w+) =", text, re.MULTILINE))


def names_of_commands(_: Path) -> set[str]:
    pytest.importorskip("rich", reason="install the extra cli")
    from gatherum._command.cli.options import named_dtype

    return {name for name in ROWS if named_dtype(None, None, name) == load_dtype(name)}  # type: ignore[arg-type]


def absent_from_safetensors() -> set[str]:
    from gatherum.files.formats import safetensors

    return {*safetensors.ABSENT}


def absent_from_onnx() -> set[str]:
    from gatherum.onnx import operators

    return {*operators.ABSENT}


def absent_from_torch() -> set[str]:
    from gatherum.torch import dtypes

    return {*dtypes.ABSENT}


# For each interface, the dtypes that it has, and those that it lacks.
INTERFACES = {
    "npy": (names_of_files(".npy"), set),
    "hdf5": (names_of_files(".h5:x"), set),
    "safetensors": (names_of_files(".safetensors:x"), absent_from_safetensors),
    "zarr": (names_of_files(".zarr"), lambda: ADDED | LONG),
    "arrow": (names_of_arrow, lambda: ADDED | COMPLEX | LONG),
    "onnx": (names_of_onnx, absent_from_onnx),
    "torch": (names_of_torch, absent_from_torch),
    "jax": (names_of_jax, lambda: {"complex32", *LONG}),
    "directml": (names_of_directml, lambda: ADDED | COMPLEX | LONG | {"bool"}),
    "cuda": (names_of_cuda, lambda: {name for name in ROWS if not has_arithmetic(name)}),
    "command line": (names_of_commands, set),
}


@pytest.mark.frameworks
@pytest.mark.parametrize("interface", INTERFACES)
def test_every_interface_covers_every_row(tmp_path, interface):
    pytest.importorskip("ml_dtypes", minversion="0.6", reason="install ml_dtypes 0.6")
    if interface in ("hdf5", "zarr"):
        package = {"hdf5": "h5py"}.get(interface, interface)
        pytest.importorskip(package, reason=f"install {package}")
    names, absent = INTERFACES[interface]
    has = names(tmp_path)
    assert has == ROWS.keys() - absent()


def test_a_forgotten_row_is_named():
    others = {"bool", *LONG}
    with pytest.raises(ImportError, match=r"^Toy has no spelling for dtype bfloat16 of the core$"):
        spellings("Toy", {}, others, lambda row: row.name if row.is_of_numpy else None)
    with pytest.raises(ImportError, match=r"^Toy: the core has no dtype float3: rebuild it$"):
        spellings("Toy", {"float3": "F3"}, others)
