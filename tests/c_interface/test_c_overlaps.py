"""Memory that C writes must not overlap memory that it reads, by the rule of Python."""

from ctypes import byref, c_int32, c_int64, c_void_p
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import c_calls as c
import gatherum
from gatherum._core import Program, Reduction, Value
from gatherum._model.dtypes import index_fields
from gatherum._model.nests import Component, Loop, Nest, lower_copy
from gatherum._model.shape_limits import OperandLayout, shares_memory

pytestmark = c.NEEDS_LIBRARY
NUMBERS = st.integers


def _address(array):
    return c_void_p(array.__array_interface__["data"][0])


def _operands(arrays):
    operands = c.Operands()
    for name, array in arrays.items():
        setattr(operands, name, c.Buffer(*c.memory_of(array)))
    return operands


def _checked(core, program, arrays):
    """Return the error of both functions of a call, or None."""
    outcomes = []
    for function in (core.gatherum_check, core.gatherum_run):
        error = c.Error()
        more = () if function is core.gatherum_check else (None,)
        status = function(program, byref(_operands(arrays)), *more, byref(error))
        assert status in (c.OK, c.INVALID_CALL)
        outcomes.append((error.operand.decode(), error.message.decode()) if status else None)
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


def _message(name):
    return name, f"`out` must not share memory with `{name}`"


def test_a_gather_into_its_data_is_refused(core, read):
    data = np.array([5, 6, 7, 8, 9])
    arrays = {"data": data[:4], "indices": np.array([1, 2, 1, 2]), "out": data[1:]}
    program = read(gatherum.plan("gather", arrays["data"], arrays["indices"]))
    assert _checked(core, program, arrays) == _message("data")
    assert data.tolist() == [5, 6, 7, 8, 9]
    indices = np.array([1, 2, 1, 2, 0])
    arrays = {"data": data, "indices": indices[:4], "out": indices[1:]}
    assert _checked(core, read(gatherum.plan("gather", data, indices[:4])), arrays) == _message(
        "indices"
    )
    assert indices.tolist() == [1, 2, 1, 2, 0]


def test_a_fill_inside_of_the_result_is_refused(core, read):
    data, indices, out = np.arange(3), np.array([1, 9]), np.array([7, 7])
    program = read(gatherum.plan("gather", data, indices, mode="fill"))
    operands, error = _operands({"data": data, "indices": indices, "out": out}), c.Error()
    for fill, status in ((out[1:], c.INVALID_CALL), (data[:1], c.OK)):
        operands.fill = _address(fill)
        assert core.gatherum_check(program, byref(operands), byref(error)) == status
        assert core.gatherum_run(program, byref(operands), None, byref(error)) == status
    assert out.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("data", "out", "name"),
    [
        (lambda a: a, lambda a: a, None),
        (lambda a: a, lambda a: a.T, "data"),
        (lambda a: a[::-1], lambda a: a, "data"),
        (lambda a: a[:, :1], lambda a: a[:, 1:2], None),
        (lambda a: a[::2], lambda a: a[1::2], None),
        (lambda a: a[:2], lambda a: a[1:3], "data"),
    ],
)
def test_a_scatter_in_place_is_laid_out_as_its_data(core, read, data, out, name):
    memory = np.arange(16.0).reshape(4, 4)
    to, of = data(memory), out(memory)
    updates = np.ones((1, *to.shape[1:]))
    specs = [(a.shape, a.dtype, a.strides) for a in (to, np.array([0]), updates, of)]
    plan = gatherum.plan("scatter_slices", *specs[:3], out=specs[3])
    arrays = {"data": to, "indices": np.array([0]), "updates": updates, "out": of}
    assert _checked(core, read(plan), arrays) == (name and _message(name))
    try:
        gatherum.scatter_slices(to, [0], updates, out=of)
    except ValueError as error:
        assert name is not None, error
        assert str(error) == f"scatter_slices: {_message(name)[1]}"
    else:
        assert name is None


@st.composite
def views(draw, memory, dtype, shape):
    """Draw arrays of a shape at any position of a memory, with strides of any numbers of bytes."""
    item = np.dtype(dtype).itemsize
    strides = [item * draw(NUMBERS(-4, 6)) for _ in shape]
    low = -sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    start = low + item * draw(NUMBERS(0, 30))
    return np.ndarray(shape, dtype, memory, start, strides)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), op=st.sampled_from(["gather", "gather_elements", "scatter_slices"]))
def test_c_and_python_reject_the_same_overlaps(core, read, data, op):
    memory = np.zeros(2000, np.uint8)
    rows, columns = data.draw(NUMBERS(1, 3)), data.draw(NUMBERS(1, 3))
    count = rows if op == "gather_elements" else data.draw(NUMBERS(0, 3))
    table = data.draw(views(memory, "i8", (rows, columns)))
    shape = (count, columns) if op == "gather_elements" else (count,)
    arrays = {"data": table, "indices": data.draw(views(memory, "i8", shape))}
    if op == "scatter_slices":
        arrays["updates"] = data.draw(views(memory, "i8", (count, columns)))
    result = (rows, columns) if op == "scatter_slices" else (count, columns)
    in_place = result == table.shape and data.draw(st.booleans())
    arrays["out"] = table if in_place else data.draw(views(memory, "i8", result))
    specs = {name: (a.shape, a.dtype, a.strides) for name, a in arrays.items()}
    try:
        plan = gatherum.plan(op, *list(specs.values())[:-1], out=specs["out"])
    except ValueError as error:
        assert "must not overlap itself" in str(error)
        return
    *operands, out = arrays.values()
    try:
        getattr(gatherum, op)(*operands, out=out)
    except ValueError as error:
        expected = str(error).removeprefix(f"{op}: ")
        assert _checked(core, read(plan), arrays) == _message(expected.split("`")[-2])
    else:
        assert _checked(core, read(plan), arrays) is None


@given(
    sizes=st.tuples(*[st.lists(st.tuples(NUMBERS(0, 4), NUMBERS(-9, 9)), max_size=3)] * 2),
    items=st.tuples(NUMBERS(1, 9), NUMBERS(1, 9)),
    apart=NUMBERS(-40, 40),
)
def test_the_rule_is_exact_where_few_steps_decide(sizes, items, apart):
    memory = np.zeros(600, np.uint8)
    one, other = (
        np.ndarray([n for n, _ in steps], f"V{item}", memory, start, [s for _, s in steps])
        for steps, item, start in zip(sizes, items, (250, 250 + apart), strict=True)
    )
    assert shares_memory(one, other) == np.shares_memory(one, other)


def test_exp_of_a_part_of_its_result(core):
    values = np.zeros(9, np.float32)
    call = b"exp", b"float32"
    assert core.gatherum_map(*call, _address(values), _address(values), c_int64(9), None) == c.OK
    assert (values == 1).all()
    places = _address(values[:8]), _address(values[1:])
    assert core.gatherum_map(*call, *places, c_int64(8), None) == c.INVALID_CALL
    assert core.gatherum_map(*call, *places[::-1], c_int64(8), None) == c.INVALID_CALL
    assert core.gatherum_map(*call, *places, c_int64(1), None) == c.OK


def test_numbers_over_their_indices(core, read):
    core.gatherum_number.restype = c_int64
    indices = np.array([1, 0, 2])
    plan = gatherum.plan("scatter_elements", ((4,), "i1"), indices, ((3,), "i1"))
    program = read(plan)
    assert core.gatherum_number(program, _address(indices), _address(indices)) == -1
    assert indices.tolist() == [1, 0, 2]
    assert core.gatherum_number(program, _address(indices), _address(np.zeros(3, int))) == 0


@pytest.mark.parametrize("name", ["data", "scales", "zero_points", "rows", None])
def test_quantized_rows_over_their_operands(core, name):
    memory = np.zeros(100)
    arrays = {"data": memory[:4], "scales": memory[10:14], "zero_points": memory[20:24],
              "rows": memory[30:34], "out": memory[40:44]}  # fmt: skip
    if name:
        arrays["out"] = arrays[name]
    call = c.Quantized(value=b"int8", scale=b"float32", result=b"float32", bits=8, count=1)
    for field, array in arrays.items():
        setattr(call, field, _address(array))
        if field != "rows":
            setattr(call, f"{field}_bytes", array.nbytes)
    call.gathered, call.scale_line = 4, 1
    for numbers in (call.before, call.after, call.blocks):
        numbers[:] = [1, 1, 1]
    assert core.gatherum_dequantize(byref(call), None) == (c.INVALID_CALL if name else c.OK)


def _fold(value=b"int64", reduction=b"add"):
    return byref(c.Fold(reduction, value, 1, 8))


def test_folds_over_their_operands(core, read):
    memory = np.arange(64)
    data, sums, counts, out = (_address(memory[i : i + 4]) for i in (0, 8, 16, 24))
    n, fold = c_int64(4), _fold()
    finish = core.gatherum_fold_finish
    for where in (data, sums, counts):
        assert finish(fold, data, sums, counts, where, n) == c.INVALID_CALL
        assert finish(fold, data, sums, counts, c_void_p(where.value + 25), n) == c.INVALID_CALL
    assert (memory == np.arange(64)).all()
    assert finish(fold, data, sums, counts, out, n) == c.OK
    begin = core.gatherum_fold_begin
    assert begin(_fold(b"float64"), data, c_void_p(data.value + 8), n) == c.INVALID_CALL
    assert begin(_fold(b"float64"), data, sums, n) == c.OK
    merge = core.gatherum_fold_merge
    others = _address(memory[32:36]), _address(memory[40:44])
    assert merge(fold, sums, counts, *others, n) == c.OK
    assert merge(fold, sums, counts, sums, counts, n) == c.OK
    assert merge(fold, sums, counts, counts, sums, n) == c.INVALID_CALL
    assert merge(fold, sums, counts, c_void_p(sums.value + 8), counts, n) == c.INVALID_CALL
    assert merge(fold, sums, counts, sums, c_void_p(counts.value + 8), n) == c.INVALID_CALL


@pytest.mark.parametrize("over", ["sums", "counts"])
@pytest.mark.parametrize("name", ["indices", "updates", None])
def test_a_batch_over_its_accumulators(core, read, name, over):
    arrays = {"indices": np.zeros(4, int), "updates": np.ones(4, int)}
    kept = {"sums": np.zeros(4, int), "counts": np.zeros(4, int)}
    plan = gatherum.plan("scatter_slices", kept["sums"], *arrays.values(), reduction="add")
    if name:
        kept[over] = arrays[name]
    error = c.Error()
    status = core.gatherum_fold_take(
        read(plan), byref(_operands(arrays)), *map(_address, kept.values()), None, byref(error)
    )
    assert status == (c.INVALID_CALL if name else c.OK)
    assert (error.operand or b"").decode() == (name or "")


NAMES = ["indices", "data", "updates", "result", "gradient", "of_data", "of_updates"]


@pytest.mark.parametrize("written", ["of_data", "of_updates"])
@pytest.mark.parametrize("name", [*NAMES[:5], "of_updates", None])
def test_gradients_over_their_operands(core, read, written, name):
    arrays = {key: np.ones(4) for key in NAMES} | {"indices": np.arange(4)}
    operands = arrays["data"], arrays["indices"], arrays["updates"]
    plan = gatherum.plan("scatter_slices", *operands, reduction="max")
    if name and name != written:
        arrays[written] = arrays[name]
    gradients, error = c.Gradients(), c.Error()
    for key, array in arrays.items():
        setattr(gradients, key, c.Buffer(*c.memory_of(array)))
    status = core.gatherum_differentiate(read(plan), byref(gradients), None, byref(error))
    wrong = name if name != written else None
    assert status == (c.INVALID_CALL if wrong else c.OK)
    assert (error.operand or b"").decode() == (wrong or "")


@pytest.mark.parametrize("name", ["indices", "data", "updates", "out", None])
def test_positions_of_extremes_over_their_operands(core, read, name):
    arrays = {"data": np.arange(4), "indices": np.arange(4), "updates": np.arange(4)}
    plan = gatherum.plan("scatter_slices", *arrays.values(), reduction="max")
    arrays["out"] = np.zeros(4, int)
    positions = arrays[name] if name else np.zeros(4, int)
    buffer, error = byref(c.Buffer(*c.memory_of(positions))), c.Error()
    arguments = buffer, c_int64(-1), None, byref(error)
    status = core.gatherum_extremes(read(plan), byref(_operands(arrays)), *arguments)
    assert status == (c.INVALID_CALL if name else c.OK)
    assert (error.operand or b"").decode() == (name or "")


def _ends(read, size):
    """Make the program of one end of three edges, whose indices are int64."""
    line = Loop(3, 0, 8, 0)
    fields = index_fields(np.dtype("i8"), "raise", negative=False)
    checks = Nest(0, (line,), (Component(size, 1, 0),), 0)
    return read(SimpleNamespace(program=Program(**fields, checks=checks)))


class _Edges:
    """Three edges from four rows to two destinations, and the arguments that fold their rows."""

    def __init__(self, read):
        row = OperandLayout((2,), (8,))
        fold = {"reduction": Reduction.add, "value": Value.float64, "include_self": False}
        weights = Nest(0, (Loop(3, 0, 0, 8),), (), 0)
        rows = Program(scatter=True, item=8, **fold, checks=weights, copy=lower_copy(row, row, 8))
        self.rows = read(SimpleNamespace(program=rows))
        sizes = {"targets": 2, "sources": 4, "pointer": 4}
        self.programs = {name: _ends(read, size) for name, size in sizes.items()}
        self.arrays = {
            "table": np.ones((4, 2)), "sources": np.array([0, 1, 3]), "out": np.zeros((2, 2)),
            "targets": np.array([0, 0, 1]), "pointer": np.array([0, 2, 3]),
        }  # fmt: skip

    def ends(self, name):
        return byref(c.EdgeEnds(self.programs[name], _address(self.arrays[name])))

    def operands(self, **places):
        at = c.RowOperands(table_step=16, out_step=16)
        for name, array in {**{n: self.arrays[n] for n in ("table", "out")}, **places}.items():
            setattr(at, name, _address(array))
        return byref(at)


def test_rows_of_lists_over_their_operands(core, read):
    edges = _Edges(read)
    lists, error, arrays = c_void_p(), c.Error(), edges.arrays
    ends = edges.ends("targets"), edges.ends("sources")
    status = core.gatherum_lists_make(
        c_int64(2), c_int64(1), *ends, c_int32(1), None, byref(lists), byref(error)
    )
    assert status == c.OK, error.message

    def fold(**places):
        at = edges.operands(**places)
        return core.gatherum_lists_fold(lists, edges.rows, at, None, byref(error))

    try:
        for name, places in (
            ("table", {"out": arrays["table"][1:]}),
            ("start", {"start": arrays["out"][1:]}),
            ("weights", {"weights": arrays["out"]}),
        ):
            assert fold(**places) == c.INVALID_CALL, name
            assert error.operand.decode() == name
        assert fold() == c.OK
        assert arrays["out"].tolist() == [[2, 2], [1, 1]]
        assert fold(start=arrays["out"]) == c.OK
        assert arrays["out"].tolist() == [[2, 2], [1, 1]]
        assert fold(weights=np.arange(3.0)) == c.OK
        assert arrays["out"].tolist() == [[1, 1], [2, 2]]
    finally:
        core.gatherum_lists_free(lists)


@pytest.mark.parametrize("name", ["table", "pointer", "sources", None])
def test_pointed_rows_over_their_operands(core, read, name):
    edges, error = _Edges(read), c.Error()
    memory = np.zeros(16)
    if name:
        kept = memory[2 : 2 + edges.arrays[name].size].view(edges.arrays[name].dtype)
        kept[:] = edges.arrays[name].ravel()
        edges.arrays[name] = kept
    ends = edges.ends("pointer"), edges.ends("sources")
    at = edges.operands(out=memory[:4])
    status = core.gatherum_fold_pointed(*ends, edges.rows, at, None, byref(error))
    assert status == (c.INVALID_CALL if name else c.OK), error.message
    assert (error.operand or b"").decode() == (name or "")


@pytest.mark.parametrize("over_targets", [False, True])
def test_a_pointer_over_the_targets(core, read, over_targets):
    edges, error, ascends = _Edges(read), c.Error(), c_int32()
    targets = edges.arrays["targets"]
    pointer = targets if over_targets else np.zeros(3, np.int64)
    ends, output = edges.ends("targets"), _address(pointer)
    status = core.gatherum_make_pointer(ends, output, byref(ascends), None, byref(error))
    assert status == (c.INVALID_CALL if over_targets else c.OK), error.message
    assert (error.operand or b"").decode() == ("targets" if over_targets else "")
    assert pointer.tolist() == ([0, 0, 1] if over_targets else [0, 2, 3])
    assert ascends.value == (not over_targets)
    targets[0] = 1
    if not over_targets:
        assert core.gatherum_make_pointer(ends, output, byref(ascends), None, None) == c.OK
        assert ascends.value == 0


@pytest.mark.parametrize("name", ["numbers", "positions", None])
def test_rows_of_a_file_over_their_numbers(core, tmp_path, name):
    (tmp_path / "rows").write_bytes(bytes(range(64)))
    arrays = {"numbers": np.array([1, 0]), "positions": np.array([0, 1]), "out": np.zeros(2, int)}
    if name:
        arrays["out"] = arrays[name]
    with (tmp_path / "rows").open("rb") as file:
        rows = c.Rows(file=file.fileno(), stride=8, item=8, extent=8, count=2, capacity=2)
        for field, array in arrays.items():
            setattr(rows, field, _address(array))
        result = c.RowsRead()
        status = core.gatherum_read_rows(byref(rows), None, byref(result))
    assert (status, result.status) == ((c.INVALID_CALL, b"invalid") if name else (c.OK, b"done"))
    assert name or arrays["out"].tobytes() == bytes((*range(8, 16), *range(8)))
