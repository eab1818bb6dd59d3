"""Calls on memory that is not NumPy's, and the plans that they share with NumPy arrays."""

import numpy as np
import pytest

import gatherum
from gatherum import _core
from gatherum._model import dtype_rows
from gatherum._system import native
from views import call


@pytest.fixture
def plans_made():
    """Return a function that counts the plans made since its last call."""
    native.clear_plans()
    return lambda: len(native.clear_plans())


DATA = np.arange(24.0).reshape(4, 6)
ROWS = np.array([3, -1, 0])
CALLS = [
    ("gather", (DATA, ROWS), {}),
    ("gather", (DATA[:, ::-2], ROWS[::-1]), {"axis": 1, "mode": "wrap"}),
    ("gather", (DATA, ROWS + 2), {"mode": "clip"}),
    ("gather_elements", (DATA, np.arange(8).reshape(4, 2) % 6), {"axis": 1}),
    ("gather_nd", (DATA, np.array([[3, 5], [0, 0]])), {}),
    ("scatter_slices", (DATA, ROWS, DATA[:3]), {"reduction": "add"}),
    ("scatter_elements", (DATA, np.array([[1, 1, 1, 0, 0, 3]]), DATA[:1]), {"reduction": "mean"}),
    ("scatter_nd", (DATA, ROWS[:, None], DATA[1:]), {"reduction": "mul", "include_self": False}),
    ("scatter_nd", (DATA.astype("f2"), ROWS[:, None], DATA[1:].astype("f2")), {"negative": True}),
]


@pytest.mark.parametrize(("op", "operands", "attributes"), CALLS)
def test_calls_on_views_and_on_arrays_return_the_same(op, operands, attributes):
    name = "batch_dims" if op.endswith("nd") else "axis"
    options = {name if key == "axis" else key: value for key, value in attributes.items()}
    expected = getattr(gatherum, op)(*operands, **options)
    result = call(op, *operands, **attributes)
    assert result.shape == expected.shape
    assert result.tobytes() == expected.tobytes()


def test_arrays_and_views_share_a_plan(plans_made):
    call("gather", DATA, ROWS)
    gatherum.gather(DATA, ROWS)
    gatherum.gather(DATA, ROWS.astype(np.longlong))
    assert plans_made() == 1
    gatherum.gather(DATA.astype("f4"), ROWS)
    call("gather", DATA.astype("f4"), ROWS)
    assert plans_made() == 1


@pytest.mark.parametrize("name", ["?", "i1", "u8", "f2", "f8", "c16"])
def test_copies_of_a_dtype_share_a_plan(name, plans_made):
    for dtype in (np.dtype(name), np.dtype(name, copy=True)):
        data = np.empty(10, dtype)
        assert data.dtype is dtype
        gatherum.gather(data, ROWS)
    assert plans_made() == 1


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_arrays_of_ml_dtypes_share_plans_too(name, plans_made):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = np.arange(10).astype(getattr(ml_dtypes, name))
    raw = data.view(f"u{data.itemsize}")
    assert gatherum.gather(data, ROWS).tobytes() == call("gather", raw, ROWS, dtype=name).tobytes()
    assert plans_made() == 1


def test_unsupported_dtypes_are_none():
    assert _core.dtype_of_dlpack(2, 24) is None
    assert _core.dtype_of_dlpack(99, 8) is None
    assert _core.dtype_of_dlpack(4, 16) is _core.DType.bfloat16
    assert _core.dtype_of_dlpack(6, 8) is _core.DType.bool


def test_every_dtype_has_its_size():
    for name, code in _core.DType.__members__.items():
        digits = "".join(c if c.isdigit() else " " for c in name).split()
        bits = int(digits[0]) if digits else 8 * np.dtype(name).itemsize
        row = dtype_rows.ROWS[code.name]
        assert (row.bits, row.nbytes) == (bits, (bits + 7) // 8)


WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None  # as if it were not installed
import numpy as np
import gatherum
from gatherum._system import native
from views import call, view

ones = np.array([0x3F80, 0x4000, 0x4040, 0x4080], "u2")  # 1, 2, 3, 4
rows = np.array([[0], [0], [3]])
added = call("scatter_nd", ones, rows, ones[1:], dtype="bfloat16", reduction="add")
assert [hex(n) for n in added] == ["0x40c0", "0x4000", "0x4040", "0x4100"], added  # 6, 2, 3, 8
filled = call("gather", ones, rows[:, 0] * 2, dtype="bfloat16", mode="fill", fill=b"\\x80\\x3f")
assert [hex(n) for n in filled] == ["0x3f80", "0x3f80", "0x3f80"], filled

plan = gatherum.plan("gather", ((4, 8), "bfloat16"), ((3,), "i8"))
assert str(plan).startswith("gather -> bfloat16 (3, 8)"), plan
assert plan == gatherum.plan("gather", ((4, 8), "bfloat16"), ((3,), "i8"))
gatherum.explain(plan)
add = gatherum.plan("scatter_nd", ((4,), "bfloat16"), ((3, 1), "i8"), ((3,), "bfloat16"),
                    reduction="add")
assert add.program.value.name == "bfloat16"
for wrong in (
    lambda: gatherum.plan("scatter_nd", ((4,), "bfloat16"), ((3, 1), "i8"), 1.0),
    lambda: gatherum.explain("gather", ((4,), "bfloat16"), ((3,), "i8"), mode="fill"),
):
    try:
        wrong()
    except ImportError as error:
        print(error)
"""


def test_bfloat16_needs_no_package(python):
    done = python(WITHOUT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "scatter_nd: bfloat16 needs ml_dtypes: pip install ml_dtypes",
        "gather: bfloat16 needs ml_dtypes: pip install ml_dtypes",
    ]


LATER = """
import numpy as np
import gatherum
before = gatherum.plan("gather", ((4,), "bfloat16"), ((3,), "i8"))
import ml_dtypes
data = np.arange(4).astype(ml_dtypes.bfloat16)
assert type(before.call.data.dtype) is not np.dtype
print(before.run(data, np.array([3, 0, 1])).astype(int))
assert gatherum.plan("gather", ((4,), "bfloat16"), ((3,), "i8")).call.data.dtype == data.dtype
"""


def test_a_plan_made_before_the_package_came_runs(python):
    pytest.importorskip("ml_dtypes")
    done = python(LATER)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[3 0 1]\n"


REGISTERED = """
import numpy as np
from views import call

data, wrong = np.zeros(4, "u2"), np.array([9])
for _ in range(2):
    try:
        call("gather", data, wrong, dtype="bfloat16")
    except IndexError as error:
        print(error)
    import ml_dtypes
print(call("gather", data, wrong, dtype="bfloat16", mode="clip"))
"""


def test_a_package_may_come_between_two_calls_of_a_plan(python):
    pytest.importorskip("ml_dtypes")
    done = python(REGISTERED)
    assert (done.returncode, done.stderr) == (0, "")
    message = "gather: index 9 is out of bounds for axis 0 of size 4 (indices[0])"
    assert done.stdout.splitlines() == [message, message, "[0]"]


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "error", "sentence"),
    [
        ("gather", (DATA, np.array([4])), {}, IndexError,
         "gather: index 4 is out of bounds for axis 0 of size 4 (indices[0])"),
        ("gather", (DATA, DATA), {}, TypeError,
         "gather: `indices` must have an integer dtype, got float64; write "
         "indices.to(torch.int64)"),
        ("gather", (DATA, ROWS), {"axis": 2}, ValueError,
         "gather: `axis` must be in [-2, 2), got 2"),
        ("scatter_nd", (DATA, ROWS[:, None]), {}, TypeError,
         "scatter_nd: `updates` must be an array, got NoneType"),
        ("gather", (DATA, ROWS), {"out": DATA[1:]}, ValueError,
         "gather: `out` must not share memory with `data`"),
    ],
)  # fmt: skip
def test_views_are_refused_as_arrays_are(op, operands, attributes, error, sentence):
    with pytest.raises(error) as raised:
        call(op, *operands, **attributes)
    assert str(raised.value) == sentence


def test_out_may_be_given():
    out = np.zeros((4, 3))
    assert call("gather", DATA, ROWS, axis=1, out=out) is out
    assert out.tobytes() == gatherum.gather(DATA, ROWS, 1).tobytes()
    place = DATA.copy()
    call("scatter_nd", place, ROWS[:, None], DATA[:3], out=place, reduction="add")
    expected = gatherum.scatter_nd(DATA, ROWS[:, None], DATA[:3], reduction="add")
    assert place.tobytes() == expected.tobytes()


def test_out_that_is_read_only_is_refused():
    out = np.zeros((3, 6))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        call("gather", DATA, ROWS, out=out)


def test_a_fill_of_another_size_is_refused():
    with pytest.raises(ValueError, match="`fill` is not an item of `data`"):
        call("gather", DATA, ROWS, mode="fill", fill=b"1234")


def test_a_view_has_a_stride_for_each_dimension():
    with pytest.raises(ValueError, match="not a shape and its strides"):
        native.View(DATA.ctypes.data, (4, 6), (8,), _core.DType.float64)
