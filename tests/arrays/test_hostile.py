"""Arguments that run Python code or misreport themselves: memory stays safe."""

import os
import sys
import warnings

import numpy as np
import pytest

import gatherum
from canaries import guarded, guarded_copy, strays
from gatherum._functions import callbacks
from gatherum._model import nests
from gatherum._system import native
from sizes import family

FAR = 1 << 22  # items: large enough that freed memory is returned to the system


class Meddler:
    """Modifies the operands whenever it is queried."""

    def __init__(self, deed, value=1):
        self.deed, self.value = deed, value

    def __array__(self, dtype=None, copy=None):
        self.deed()
        return np.array(self.value)

    def __index__(self):
        self.deed()
        return self.value

    def __bool__(self):
        self.deed()
        return bool(self.value)


def _moved(operand):
    """Return ways to change an array after the call has inspected it."""

    def reshape():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # from NumPy 2.5 on
            operand.shape = (*operand.shape, 1)

    def lock():
        operand.flags.writeable = False

    return {
        "shrunk": lambda: operand.resize(1, refcheck=False),
        "grown": lambda: operand.resize(3 * FAR, refcheck=False),
        "reshaped": reshape,
        "locked": lock,
    }


@pytest.mark.parametrize("deed", ["shrunk", "grown", "reshaped", "locked"])
@pytest.mark.parametrize("name", ["data", "indices", "out"])
@pytest.mark.parametrize("planned", [False, True])
def test_a_fill_value_that_changes_an_operand(name, deed, planned):
    operands = {"data": np.ones(FAR), "indices": np.zeros(FAR, int), "out": np.empty(FAR)}
    operands["indices"][:] = FAR - 1
    fill = Meddler(_moved(operands[name])[deed])
    call = gatherum.gather
    attributes = {"mode": "fill"}
    if planned:
        arguments = operands["data"], operands["indices"]
        call, attributes = (
            gatherum.plan("gather", *arguments, mode="fill", out=operands["out"]).run,
            {},
        )
    with pytest.raises(ValueError, match=name) as caught:
        call(
            operands["data"],
            operands["indices"],
            out=operands["out"],
            fill_value=fill,
            **attributes,
        )
    assert str(caught.value) == f"gather: `{name}` must keep its shape and memory during the call"


@pytest.mark.parametrize("name", ["data", "indices"])
def test_a_fill_value_that_gives_an_operand_other_memory_of_the_same_shape(name):
    operands = {"data": np.ones(FAR), "indices": np.zeros(FAR, int)}
    operand = operands[name]
    state = 1, operand.shape, operand.dtype, False, operand.tobytes()
    fill = Meddler(lambda: operand.__setstate__(state))
    with pytest.raises(ValueError, match=f"gather: `{name}` must keep its shape and memory"):
        gatherum.gather(**operands, mode="fill", fill_value=fill)


def test_data_that_changes_while_the_plan_is_made(monkeypatch):
    """The error precedes any use of the plan, even with a wrong fill value."""
    data, build = np.zeros(FAR, "M8[s]"), callbacks.build  # Python plans calls on dates

    def shrinking(signature):
        data.resize(1, refcheck=False)
        return build(signature)

    native.clear_plans()
    monkeypatch.setattr(callbacks, "build", shrinking)
    with pytest.raises(ValueError, match="gather: `data` must keep its shape and memory"):
        gatherum.gather(data, [FAR - 1], mode="fill", fill_value="no number")


def test_a_fill_value_that_changes_nothing():
    fill = Meddler(lambda: None, 7)
    data = np.arange(3.0)
    assert gatherum.gather(data, [1, 5], mode="fill", fill_value=fill).tolist() == [1, 7]


@pytest.mark.parametrize("name", ["indices", "axis"])
def test_an_argument_that_changes_the_data_before_it_is_read(name):
    data = np.arange(float(FAR))
    meddler = Meddler(lambda: data.resize(4, refcheck=False), 0)
    arguments = {"indices": [3], "axis": 0} | {name: meddler}
    if name == "indices":
        assert gatherum.gather(data, **arguments) == 0
    else:
        assert gatherum.gather(data, **arguments).tolist() == [3]
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 of size 4"):
        gatherum.gather(data, [4])


# Code that the collector runs during a call, each in a fresh Python: a mistake ends it. The
# collector runs after a varying number of allocations, so that one of the attempts hits the right
# moment.
GARBAGE = """
import gc
import numpy as np
import gatherum
FAR, MANY = 1 << 22, 1 << 18

def meet(name, operands, call, most=30, **attributes):
    for threshold in range(1, most):
        arrays = operands()
        class Garbage:
            def __del__(self):
                arrays[name].resize(1, refcheck=False)
        run = call(arrays)
        if attributes:
            attributes["out"] = arrays["data"]
        run(*arrays.values(), **attributes)  # its plan is in the table
        gc.disable()
        gc.collect()  # the collector counts allocations from here
        garbage = Garbage()
        garbage.itself = garbage
        del garbage
        gc.set_threshold(threshold)
        gc.enable()
        try:
            run(*arrays.values(), **attributes)
        except (ValueError, IndexError) as error:
            print(error)
        finally:
            gc.set_threshold(700)

def gathers():
    return {"data": np.ones(FAR), "indices": np.full(MANY, FAR - 1)}

def scatters():
    indices = np.full((MANY, 1), FAR - 1)
    return {"data": np.ones((FAR, 1)), "indices": indices, "updates": np.ones((MANY, 1))}
"""


def _meets(python, code, op, name):
    done = python(GARBAGE + code)
    sentence = f"{op}: `{name}` must keep its shape and memory during the call"
    assert done.returncode == 0, done.stderr
    if sys.version_info >= (3, 12):
        return  # the collector waits until the call is over
    # The call raises, or NumPy prevents the finalizer from resizing.
    assert sentence in done.stdout.splitlines() or "cannot resize an array" in done.stderr


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("name", ["data", "indices", "updates"])
def test_a_finalizer_that_frees_an_operand_while_the_result_is_allocated(python, name, planned):
    op, makers = ("scatter_nd", "scatters") if name == "updates" else ("gather", "gathers")
    call = f"gatherum.{op}"
    if planned:
        call = f"gatherum.plan({op!r}, *arrays.values()).run"
    _meets(python, f"meet({name!r}, {makers}, lambda arrays: {call})", op, name)


def test_a_finalizer_that_frees_the_output(python):
    call = "lambda arrays: gatherum.scatter_nd"
    _meets(python, f"meet('data', scatters, {call}, out=None)", "scatter_nd", "data")


def test_a_finalizer_that_frees_indices_during_a_report(python):
    code = """
report = lambda arrays: lambda indices: gatherum.index_report("gather", (FAR,), indices)
meet("indices", lambda: {"indices": np.zeros(MANY, int)}, report, most=60)
"""
    done = python(GARBAGE + code)
    assert done.returncode == 0, done.stderr
    assert "cannot resize an array" in done.stderr


def test_a_plan_that_runs_code_when_it_leaves_the_table(python):
    done = python(
        """
import numpy as np
import gatherum
FAR = 1 << 22
data = np.ones(FAR)
class Keeper:
    def __del__(self):
        data.resize(1, refcheck=False)
def leave_a_plan():
    dtype = np.dtype("i1", metadata={"keeper": Keeper()})
    gatherum.gather(np.zeros(3, dtype), [0])
leave_a_plan()
for count in range(1, 100_000):
    try:
        gatherum.gather(data, np.full(count % 5000, FAR - 1))
    except (ValueError, IndexError) as error:
        print(error)
        break
"""
    )
    sentence = "gather: `data` must keep its shape and memory during the call\n"
    assert (done.returncode, done.stdout) == (0, sentence), done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX systems")
def test_a_signal_handler_cannot_resize_operands_of_a_call(python):
    done = python(
        """
import signal
import numpy as np
import gatherum
base, indices = np.arange(10), np.broadcast_to(np.int8(-1), (1 << 28, 1))
data, updates = base[:5], np.ones(1, int)
gatherum.scatter_nd  # it is imported before the clock starts
refused = []
def handler(*_):
    for array in (base, updates):
        try:
            array.resize(1 << 20, refcheck=False)
        except ValueError:
            refused.append(array.size)
signal.signal(signal.SIGALRM, handler)
for _ in range(50):
    base.resize(10, refcheck=False)
    updates.resize(1, refcheck=False)
    refused.clear()
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    result = gatherum.scatter_nd(data, indices, updates, reduction="add")
    signal.setitimer(signal.ITIMER_REAL, 0)
    if len(refused) == 2:
        break
print(refused, result.tolist(), base.tolist())
base.resize(11, refcheck=False)
"""
    )
    expected = f"[10, 1] {[0, 1, 2, 3, 4 + (1 << 28)]} {[*range(10)]}\n"
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


class Liar(np.ndarray):
    """An array that reports the attributes that the test sets."""

    said: dict[str, object]

    def __getattribute__(self, name):
        said = np.ndarray.__getattribute__(self, "__dict__").get("said", {})
        return said[name] if name in said else np.ndarray.__getattribute__(self, name)


def _liar(array, **said):
    liar = array.view(Liar)
    liar.said = said
    return liar


def test_out_that_says_it_is_larger_than_it_is():
    out = guarded((3,), np.float64)
    liar = _liar(out, shape=(5,), strides=(8,))
    with pytest.raises(ValueError, match="`out`") as caught:
        gatherum.gather(np.arange(10.0), [0, 1, 2, 3, 4], out=liar)
    assert str(caught.value) == "gather: `out` must have shape (5,), got (3,)"
    assert strays(out) == []
    with pytest.raises(ValueError, match="`out`"):
        gatherum.plan("gather", np.arange(10.0), np.arange(5), out=liar)


def test_out_that_says_it_is_writable():
    out = guarded((2,), np.float64)
    before = out.tobytes()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="`out`") as caught:
        gatherum.gather(np.arange(3.0), [0, 1], out=_liar(out, flags=np.empty(2).flags))
    assert str(caught.value) == "gather: `out` must be writable, got a read-only array"
    assert out.tobytes() == before


def test_operands_of_a_plan_that_say_they_fit():
    plan = gatherum.plan("gather", np.arange(9.0), np.arange(5))
    data = _liar(guarded_copy(np.arange(3.0)), shape=(9,), strides=(8,))
    with pytest.raises(ValueError, match="plan") as caught:
        plan.run(data, np.arange(5))
    assert (
        str(caught.value) == "gather: the plan was made for `data` float64 (9,), got float64 (3,)"
    )


class Impostor:
    """Claims to be an array, but is not one."""

    __class__ = np.ndarray
    shape, strides, dtype = (2,), (8,), np.dtype("f8")

    def __array__(self, dtype=None, copy=None):
        return np.zeros(2)


def test_objects_that_only_claim_to_be_arrays():
    assert isinstance(Impostor(), np.ndarray)
    assert gatherum.gather(Impostor(), [1]).tolist() == [0]  # as any other object with __array__
    with pytest.raises(TypeError, match="`out`") as caught:
        gatherum.gather(np.zeros(3), [0, 1], out=Impostor())
    assert str(caught.value) == "gather: `out` must be a numpy.ndarray, got Impostor"
    plan = gatherum.plan("gather", np.zeros(2), np.arange(2))
    for operands in [(Impostor(), np.arange(2)), (np.zeros(2), Impostor())]:
        with pytest.raises(TypeError, match="without a mask, got Impostor"):
            plan.run(*operands)
    with pytest.raises(TypeError, match="without a mask, got list"):
        gatherum._system.native.run_plan(plan, np.zeros(2), [0, 1], None, 0, None)


def test_a_word_that_is_equal_to_every_other():
    class Any(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            return True

    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 of size 3"):
        gatherum.gather(np.zeros(3), np.array([9]), mode=Any("ignore"))


# --- Sizes whose products no integer holds: broadcast operands need no memory


def _everywhere(value, *shape):
    return np.broadcast_to(np.int8(value), shape)


@pytest.mark.parametrize("count", [2**60, 2**62, 2**63 - 1])
def test_an_index_is_found_among_more_than_a_sum_of_their_bytes_holds(settings_restored, count):
    for threads in (1, 2):
        gatherum.set_num_threads(threads)
        with pytest.raises(IndexError) as caught:
            gatherum.gather(np.zeros((4, 0), np.int8), _everywhere(9, count))
        assert str(caught.value) == (
            "gather: index 9 is out of bounds for axis 0 of size 4 (indices[0])"
        )
    data = np.zeros((4, 2))
    for shape in [(count, 1), (1, count, 1)]:
        with pytest.raises(IndexError, match=r"index 9 is out of bounds for axis 0 of size 4"):
            gatherum.scatter_nd(data, _everywhere(9, *shape), 1.0, out=data)


@pytest.mark.parametrize(
    ("algorithm", "data", "count", "reduction"),
    [
        # 16 bytes per update are 0 and 16 modulo 2^64; 5 bytes per update are 4.
        ("by_destination", np.ones((3, 2), np.int8), 2**60, "mean"),
        ("by_destination", np.ones((3, 2), np.int8), 2**60 + 1, "mean"),
        ("partitioned", np.ones(9 << 20, np.int8), 3_689_348_814_741_910_324, "add"),
    ],
)
def test_scratch_for_more_updates_than_there_is_memory(algorithm, data, count, reduction):
    indices, updates = _everywhere(0, count, 1), np.ones(data.shape[1:], np.int8)
    plan = gatherum.plan("scatter_nd", data, indices, updates, reduction=reduction, mode="drop")
    assert family(plan.algorithm) == algorithm
    before = data.copy()
    with pytest.raises(MemoryError):
        gatherum.scatter_nd(data, indices, updates, reduction=reduction, mode="drop", out=data)
    assert data.tobytes() == before.tobytes()


def test_a_bad_index_is_found_before_scratch_that_no_memory_holds():
    indices = np.broadcast_to(np.int8(9), (2**60, 1))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        gatherum.scatter_nd(np.ones((3, 2), "i1"), indices, np.ones(2, "i1"), reduction="mean")


def test_a_result_that_no_memory_holds():
    with pytest.raises(MemoryError):
        gatherum.gather(np.zeros(1), _everywhere(0, 2**59 + 2**58))
    with pytest.raises(ValueError, match="more bytes than can be addressed"):
        gatherum.gather(np.zeros(1), _everywhere(0, 2**62))


NOTHING = np.zeros((2**40,) * 3, "V0")


@pytest.mark.parametrize("size", [2**40, 2**20])
def test_items_of_no_bytes(size):
    data = np.zeros((size, 2), "V0")
    rows, column = np.array([[size - 1], [0]]), np.array([1, -1])
    assert gatherum.gather(data, column, 1).shape == (size, 2)
    assert gatherum.gather_nd(data, rows).shape == (2, 2)
    assert gatherum.scatter_nd(data, rows, data[:2]).shape == data.shape
    assert gatherum.scatter_elements(data, rows, data[:2, :1]).shape == data.shape
    for mode in ("clip", "wrap", "drop"):
        assert gatherum.gather_elements(data, rows + 9, mode=mode).shape == (2, 1)
    for call in (gatherum.gather_nd, lambda *a: gatherum.scatter_nd(*a, data[:2], out=data)):
        with pytest.raises(IndexError, match=rf"index {size} is out of bounds for .* \(indices\[1"):
            call(data, np.array([[0], [size]]))


@pytest.mark.parametrize("size", [1, 0])
def test_items_without_bytes_are_not_visited(size):
    """Nor are empty results: the loops of a call of 2^40 items would take minutes."""
    data, indices = np.zeros((2**40, 2), "V0"), ((size * 2**40,), "i8")
    for plan in (
        gatherum.plan("gather", data, indices),
        gatherum.plan("scatter_slices", data, indices, (indices[0] + (2,), "V0")),
    ):
        assert plan.nest == nests.EMPTY


@pytest.mark.parametrize("op", ["gather", "gather_elements", "gather_nd"])
def test_more_items_of_no_bytes_than_can_be_counted(op):
    with pytest.raises(ValueError, match=f"^{op}: `data`, shape .* has more elements than can be"):
        getattr(gatherum, op)(NOTHING, [[[1]]] if op == "gather_elements" else [0])
    empty = np.zeros((2**40, 0, 2**40), "V0")
    with pytest.raises(ValueError, match=f"^{op}: `data`, shape .* has more elements than can be"):
        getattr(gatherum, op)(empty, [[[1]]] if op == "gather_elements" else [0])


def test_empty_operands_whose_strides_mean_nothing():
    wild = np.lib.stride_tricks.as_strided(np.zeros(0), (5, 0, 7), (2**62, 2**61, -(2**62)))
    assert gatherum.gather(wild, [4, 0]).shape == (2, 0, 7)
    assert gatherum.gather(np.zeros((3, 0, 7)), [4], 2, out=wild[:3, :, :1]).shape == (3, 0, 1)
    assert gatherum.scatter_nd(wild, [[4]], np.zeros((1, 0, 7)), reduction="add", out=wild) is wild
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 of size 5"):
        gatherum.scatter_nd(wild, [[5]], wild[:1])
