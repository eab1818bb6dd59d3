"""Calls on ml_dtypes numbers without ml_dtypes: one message, and working moves."""

import textwrap

import pytest

pytest.importorskip("ml_dtypes", reason="install ml_dtypes: pip install ml_dtypes")

# A Python without ml_dtypes; `t` maps the names of types to safetensors tables of shape (4, 4).
BEGIN = """
import json, pathlib, sys, tempfile
sys.modules["ml_dtypes"] = None
import numpy as np
import gatherum
from gatherum import files, groups

folder = pathlib.Path(tempfile.mkdtemp())

def put(name, code, size, columns=4):
    shape = [4, columns]
    end = 4 * columns * size
    head = json.dumps({"t": {"dtype": code, "shape": shape, "data_offsets": [0, end]}}).encode()
    path = folder / f"{name}.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + bytes(range(end)))
    return f"{path}:t"

types = {"bfloat16": ("BF16", 2), "float8_e4m3fn": ("F8_E4M3", 1), "float8_e5m2": ("F8_E5M2", 1),
         "float8_e8m0fnu": ("F8_E8M0", 1)}
t = {name: put(name, *code) for name, code in types.items()}
scales = {name: put(f"s_{name}", *code, 2) for name, code in types.items()}
ones, codes = np.ones((4, 2), np.float32), np.ones((4, 4), np.int8)
rows = [1, 0, 2, 3]

def held(path):
    return files.gather_file(path, [0, 1, 2, 3])
"""
# Calls, each with the operator and the numbers that the message names.
CALLS = {
    "files.scatter_slices_file(t['bfloat16'], rows, t['bfloat16'], reduction='add')":
        "scatter_slices: bfloat16",
    "files.scatter_slices_file(t['bfloat16'], rows, t['bfloat16'], str(folder / 'o.npy'), "
    "reduction='max')": "scatter_slices: bfloat16",
    "files.scatter_slices_file(t['float8_e4m3fn'], [1], 1.5)": "scatter_slices: float8_e4m3fn",
    "files.scatter_nd_file(t['float8_e5m2'], [[1]], np.ones((1, 4), np.float32))":
        "scatter_nd: float8_e5m2",
    "files.scatter_elements_file(np.ones((4, 4), np.float32), codes, t['float8_e5m2'])":
        "scatter_elements: float8_e5m2",
    "files.reduce_file(t['bfloat16'], rows)": "reduce_file: bfloat16",
    "files.reduce_file(t['bfloat16'], rows, func='max')": "reduce_file: bfloat16",
    "files.open(t['float8_e4m3fn'], scales=ones)": "open: float8_e4m3fn",
    "files.open(put('i8', 'I8', 1), scales=scales['bfloat16'])": "open: bfloat16",
    "files.open(put('i8', 'I8', 1), scales=scales['float8_e8m0fnu'])": "open: float8_e8m0fnu",
    "files.open(codes, scales=ones, dtype='bfloat16')": "open: bfloat16",
    "gatherum.gather_quantized(held(t['float8_e5m2']), [0], ones, block_size=2)":
        "gather_quantized: float8_e5m2",
    "gatherum.gather_quantized(codes, [0], held(scales['bfloat16']), block_size=2)":
        "gather_quantized: bfloat16",
    "gatherum.gather_quantized(codes, [0], held(scales['float8_e8m0fnu']), block_size=2)":
        "gather_quantized: float8_e8m0fnu",
    "gatherum.gather_quantized(codes, [0], ones, block_size=2, dtype='bfloat16')":
        "gather_quantized: bfloat16",
    "gatherum.scatter_slices(held(t['bfloat16']), rows, held(t['bfloat16']), reduction='add')":
        "scatter_slices: bfloat16",
    "gatherum.scatter_slices(held(t['float8_e4m3fn']), [1], 1.5)": "scatter_slices: float8_e4m3fn",
    "gatherum.gather(held(t['bfloat16']), [9], mode='fill', fill_value=1.5)": "gather: bfloat16",
    "gatherum.aggregate(held(t['bfloat16']), [0], [1], 2, 'add')": "aggregate: bfloat16",
    "gatherum.aggregate(np.ones((4, 4)), [0], [1], 2, 'add', held(t['bfloat16'])[0, :1])":
        "aggregate: bfloat16",
    "gatherum.Accumulator(held(t['bfloat16']), 'add')": "Accumulator: bfloat16",
    "groups.reduce(held(t['bfloat16']), rows, func='mean')": "groups.reduce: bfloat16",
    "groups.transform(held(t['bfloat16']), rows, 'softmax')": "groups.transform: bfloat16",
    "gatherum.plan('scatter_nd', ((4,), 'bfloat16'), ((3, 1), 'i8'), 1.0)": "scatter_nd: bfloat16",
    "gatherum.vectors(op='gather', dtype='float8_e5m2')": "vectors: float8_e5m2",
}  # fmt: skip
# With ml_dtypes these are errors, too: the message names the numbers.
UNDEFINED = {
    "files.scatter_slices_file(t['float8_e5m2'], rows, t['float8_e5m2'], reduction='add')":
        "scatter_slices: `reduction` 'add' is not defined for dtype float8_e5m2",
    "files.reduce_file(t['float8_e4m3fn'], rows)":
        "reduce_file: `func` 'sum' is not defined for dtype float8_e4m3fn",
}  # fmt: skip
ASK = """
for call in {calls!r}:
    try:
        eval(call)
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("no error:", call)
"""


def test_every_call_names_the_package(python):
    done = python(BEGIN + ASK.format(calls=[*CALLS, *UNDEFINED]))
    assert done.stderr == ""
    expected = [f"ImportError {each} needs ml_dtypes: pip install ml_dtypes" for each in
                CALLS.values()] + [f"TypeError {each}" for each in UNDEFINED.values()]  # fmt: skip
    for call, got, right in zip(
        [*CALLS, *UNDEFINED], done.stdout.splitlines(), expected, strict=True
    ):
        assert got == right, call


MOVES = """
for name, path in t.items():
    whole = held(path)
    content = bytes(range(16 * whole.itemsize))
    assert whole.tobytes() == content
    width = 4 * whole.itemsize
    filled = files.gather_file(path, [1, 9], mode="fill")
    assert filled.tobytes() == content[width : 2 * width] + bytes(width)
    assert files.gather_file(path, [9], mode="fill", fill_value=2).dtype == whole.dtype
    swapped = content[width : 2 * width] + content[:width] + content[2 * width :]
    for out in (".npy", ".safetensors:t", ".safetensors:t"):
        files.scatter_slices_file(path, rows, path, f"{folder}/out_{name}{out}")
        assert held(f"{folder}/out_{name}{out}").tobytes() == swapped
    assert gatherum.scatter_slices(whole, rows, whole).tobytes() == swapped
    assert files.reduce_file(path, rows, func="last").tobytes() == swapped
    assert (files.reduce_file(path, rows, func="count") == 1).all()
    assert groups.reduce(whole, rows, func="first").tobytes() == swapped
    assert files.open(path).gather([1]).tobytes() == content[width : 2 * width]
    assert gatherum.plan("gather", ((4, 4), name), ((3,), "i8")).shape == (3, 4)
"""


def test_moves_work_without_the_package(python):
    done = python(textwrap.dedent(BEGIN + MOVES))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "['explain', 'gather', '--data', '4', '--indices', '2', '--dtype', 'float8_e5m2']",
            "--dtype: float8_e5m2 needs ml_dtypes: pip install ml_dtypes",
        ),
        (
            "['scatter-slices', t['bfloat16'], '--values', '1,0,2,3', t['bfloat16'], '-o',"
            " str(folder / 'o.npy'), '--reduction', 'add']",
            "scatter-slices: bfloat16 needs ml_dtypes: pip install ml_dtypes",
        ),
    ],
)
def test_the_command_line_names_the_package(python, arguments, message):
    pytest.importorskip("rich", reason="install the extra cli")
    run = f"\nsys.argv = ['gatherum', *{arguments}]\nfrom gatherum.__main__ import main\n"
    done = python(BEGIN + run + "sys.exit(main())\n")
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
