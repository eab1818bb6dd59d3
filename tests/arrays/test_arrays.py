"""Arrays of frameworks that are not installed: small classes claim to be theirs."""

import array
import gc
import sys
import weakref

import numpy as np
import pytest

import gatherum
from gatherum import frameworks
from gatherum._frameworks import registry
from gatherum._model.call import Attributes
from strategies import OPERATORS, SCATTERS

DATA = np.arange(6, dtype=np.float32).reshape(3, 2)


def class_named(module, name, **more):
    """Make a type of another framework, whose values NumPy would read."""

    def read(self, dtype=None, copy=None):
        raise AssertionError("was read")

    return type(name, (), {"__module__": module, "__array__": read, "shape": (3, 2), **more})


KINDS = [
    ("torch", "Tensor", "a torch.Tensor; write {}.numpy(force=True)"),
    ("torch.nn.parameter", "Parameter", "a torch.Parameter; write {}.numpy(force=True)"),
    ("jaxlib._jax", "ArrayImpl", "a jax.ArrayImpl; write np.asarray({})"),
    ("jax._src.core", "Tracer", "a jax.Tracer; write np.asarray({})"),
    ("cupy", "ndarray", "a cupy.ndarray; write cupy.asnumpy({})"),
    ("tensorflow.python.framework.ops", "EagerTensor",
     "a tensorflow.EagerTensor; write {}.numpy()"),
    ("dask.array.core", "Array", "a dask.Array; write {}.compute()"),
    ("zarr.core.array", "Array",
     "a zarr.Array; write {}[...] to read all of it, or give it to gatherum.files"),
    ("h5py._hl.dataset", "Dataset",
     "a h5py.Dataset; write {}[...] to read all of it, or give it to "
     "gatherum.files"),
]  # fmt: skip


def modules_of_others():
    return {name for name in sys.modules if not name.startswith("gatherum.")}


def arguments(op):
    operands = {"data": DATA, "indices": np.zeros((1, 1), np.int64)}
    if op in SCATTERS:
        operands["updates"] = DATA[:1, :1] if op == "scatter_elements" else DATA[:1]
        if op == "scatter_slices":
            operands["updates"] = DATA[None, :1]
    else:
        operands |= {"mode": "fill", "fill_value": 1.0}
    return operands


@pytest.mark.parametrize(("module", "name", "words"), KINDS, ids=[row[0] for row in KINDS])
@pytest.mark.parametrize("op", OPERATORS)
def test_the_message_suggests_code(op, module, name, words):
    loaded = modules_of_others()
    for operand in ("data", "indices", "updates", "fill_value"):
        right = arguments(op)
        if operand not in right:
            continue
        sentence = f"{op}: `{operand}` must be a NumPy array, got {words.format(operand)}"
        for value in (
            class_named(module, name)(),
            type("Mine", (class_named(module, name),), {})(),
        ):
            with pytest.raises(TypeError) as caught:
                getattr(gatherum, op)(**right | {operand: value})
            assert str(caught.value) == sentence
    with pytest.raises(TypeError) as caught:
        getattr(gatherum, op)(**arguments(op), out=class_named(module, name)())
    assert str(caught.value) == f"{op}: `out` must be a numpy.ndarray, got {name}"
    assert modules_of_others() == loaded


@pytest.mark.parametrize("op", OPERATORS)
def test_plans_explanations_reports_and_folds_refuse_them_too(op):
    tensor = class_named("torch", "Tensor")()
    right = {name: arguments(op)[name] for name in ("data", "indices", "updates")[: 3 if op in
             SCATTERS else 2]}  # fmt: skip
    for operand in right:
        words = f"^{op}: `{operand}` must be a NumPy array, got a torch.Tensor; "
        for call in (gatherum.plan, gatherum.explain):
            with pytest.raises(TypeError, match=words):
                call(op, *(right | {operand: tensor}).values())
    with pytest.raises(TypeError, match=rf"^{op}: `indices` must be a NumPy array, got a torch"):
        gatherum.index_report(op, DATA.shape, tensor)
    if op in SCATTERS:
        fold = gatherum.Accumulator(DATA, "add")
        with pytest.raises(
            TypeError, match=rf"^{op}: `updates` must be a NumPy array, got a torch"
        ):
            getattr(fold, op)(right["indices"], tensor)
        with pytest.raises(TypeError, match=r"^Accumulator: `data` must be a NumPy array, got a "):
            gatherum.Accumulator(tensor, "add")


def test_lists_of_them():
    tensors = [class_named("torch", "Tensor")(), class_named("torch", "Tensor")()]
    message = "must be one array, got a list that holds a torch.Tensor; "
    with pytest.raises(TypeError, match=rf"^gather: `data` {message}make one array of them$"):
        gatherum.gather([tensors], [0])
    with pytest.raises(TypeError, match=rf"^gather: `data` {message}write torch\.stack\(data\)$"):
        gatherum.gather(tensors, [0])
    lazy = [class_named("dask.array.core", "Array")()]
    with pytest.raises(TypeError, match=r"a dask\.Array; write dask\.array\.stack\(data\)$"):
        gatherum.gather(lazy, [0])
    with pytest.raises(TypeError, match=r"^gather_nd: `indices` must be one array, got a tuple "):
        gatherum.gather_nd(DATA, tuple(tensors))
    with pytest.raises(TypeError, match=rf"^scatter_nd: `updates` {message}write torch\.st"):
        gatherum.scatter_nd(DATA, [[0]], tensors)


def test_two_frameworks_in_one_call():
    one, other = class_named("torch", "Tensor")(), class_named("jaxlib._jax", "ArrayImpl")()
    calls = {
        "`data` and a jax.ArrayImpl as `indices`": (one, other, 1.0),
        "`data` and a jax.ArrayImpl as `updates`": (one, [[0]], other),
        "`indices` and a jax.ArrayImpl as `updates`": (DATA, one, other),
    }
    for words, operands in calls.items():
        with pytest.raises(TypeError) as caught:
            gatherum.scatter_nd(*operands)
        assert str(caught.value) == (
            f"scatter_nd: the arrays must be of one framework, got a torch.Tensor as {words}"
        )
    with pytest.raises(TypeError, match=r"a torch.Tensor as `data` and a jax.ArrayImpl as `out`$"):
        gatherum.gather(one, [0], out=other)
    with pytest.raises(ValueError, match="`mode` must be one of"):
        gatherum.gather(one, other, mode="no")
    with pytest.raises(TypeError, match=r"`data` must be a NumPy array, got a jax.Tracer"):
        gatherum.gather(class_named("jax._src.core", "Tracer")(), other)


class Recorder(frameworks.Framework):
    """An adapter that records its calls."""

    name, modules, to_numpy = "torch", ("torch",), ""

    def __init__(self):
        self.taken = []

    def owns(self, array_type):
        return array_type.__name__ == "Tensor"

    def call(self, *call):
        self.taken.append(call)
        return "a tensor"

    def spec(self, op, operand, value):
        raise AssertionError


def test_an_adapter_takes_the_calls_on_its_arrays(monkeypatch):
    monkeypatch.setattr(registry, "_adapters", {})
    recorder = Recorder()
    frameworks.register(recorder)
    taken = recorder.taken
    tensor, other = class_named("torch", "Tensor")(), class_named("jax", "Array")()
    assert gatherum.gather(tensor, [0], 1, mode="clip") == "a tensor"
    assert gatherum.scatter_nd(tensor, tensor, 1.0, reduction="add", out=tensor) == "a tensor"
    assert taken[0] == (Attributes("gather", 1, mode="clip"), tensor, [0], None, 0, None)
    attributes = Attributes("scatter_nd", reduction="add")
    assert taken[1] == (attributes, tensor, tensor, 1.0, 0, tensor)
    with pytest.raises(TypeError, match=r"^gather: the arrays must be of one framework, got a t"):
        gatherum.gather(tensor, other)
    with pytest.raises(TypeError, match=r"^gather: `indices` must be a NumPy array, got a torch."):
        gatherum.gather(DATA, tensor)  # the type of data decides
    with pytest.raises(TypeError, match=r"^gather: `data` must be a NumPy array, got a jax.Array"):
        gatherum.gather(other, [0])
    with pytest.raises(TypeError, match=r"must have `name`, which builtin_function\w* lacks; see "):
        frameworks.register(print)
    assert len(taken) == 2


def test_values_that_frameworks_only_name():
    """Tuples of type torch.Size and scalars of JAX count as Python or NumPy values."""
    size = type("Size", (tuple,), {"__module__": "torch"})((2, 0))
    assert gatherum.gather(DATA, size).tolist() == [[4, 5], [0, 1]]
    number = type("float0", (float,), {"__module__": "jax"})(1.5)
    assert gatherum.scatter_nd(DATA, [[0, 0]], number)[0, 0] == 1.5
    mine = DATA.view(type("Mine", (np.ndarray,), {"__module__": "dask.array"}))
    assert gatherum.gather(mine, [1]).tolist() == [[2, 3]]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (object(), "object"), (b"ab", "bytes"), ("ab", "str"), (None, "NoneType"), ({1: 2}, "dict"),
        ({1, 2}, "set"), (iter([1]), "list_iterator"), (print, "builtin_function_or_method"),
    ],
)  # fmt: skip
def test_values_that_are_not_arrays_raise(value, name):
    for operand in ("data", "indices", "updates"):
        if operand == "updates" and isinstance(value, (bytes, str)):
            continue  # items of strings
        for call in (gatherum.scatter_nd, lambda **a: gatherum.plan("scatter_nd", *a.values())):
            with pytest.raises(TypeError) as caught:
                call(**arguments("scatter_nd") | {operand: value})
            assert str(caught.value) == f"scatter_nd: `{operand}` must be an array, got {name}"
    with pytest.raises(TypeError, match=f"^Accumulator: `data` must be an array, got {name}$"):
        gatherum.Accumulator(value, "add")


class Column:
    """Exports its values to NumPy as a column of pandas or polars does."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def column(module, values, **more):
    return type("Series", (Column,), {"__module__": module, **more})(values)


@pytest.mark.parametrize(
    "value",
    [
        [0, 2], (0, 2), range(0, 3, 2), array.array("i", [0, 2]), memoryview(np.array([0, 2])),
        Column([0, 2]),
        column("pandas.core.series", [0, 2], dtype=np.dtype(int)),
        column("pandas.core.series", [0, 2], dtype="Int64", isna=lambda _: np.zeros(2, bool)),
        column("pandas.core.frame", [0, 2]),  # without a dtype
        column("polars.series.series", [0, 2], null_count=lambda _: 0),
        column("pyarrow.lib", [0, 2], null_count=0),
    ],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}",
)  # fmt: skip
def test_whatever_shows_its_values_to_numpy_is_taken(value):
    assert gatherum.gather(np.arange(3), value).tolist() == [0, 2]
    assert gatherum.gather(value, [1]).tolist() == [2]
    assert gatherum.scatter_nd(
        np.zeros(2, np.asarray(value).dtype), [[1], [0]], value
    ).tolist() == [
        2,
        0,
    ]


@pytest.mark.parametrize(
    "value",
    [
        column("pandas.core.series", [0, 2], dtype="Int64", isna=lambda _: np.array([True, False])),
        column("polars.series.series", [0, 2], null_count=lambda _: 1),
        column("pyarrow.lib", [0, 2], null_count=2),
    ],
    ids=lambda value: type(value).__module__,
)
def test_missing_values_are_not_lost(value):
    library = type(value).__module__.partition(".")[0]
    for operand in ("data", "indices", "updates"):
        with pytest.raises(TypeError) as caught:
            gatherum.scatter_nd(**arguments("scatter_nd") | {operand: value})
        assert str(caught.value).startswith(
            f"scatter_nd: `{operand}` must be without nulls, got a {library}.Series with nulls; "
            f"write {operand}."
        )


def test_types_that_come_and_go_are_not_all_kept_alive():
    types = [class_named("torch", "Tensor") for _ in range(100)]
    assert {registry.foreign_type(of) for of in types} == {registry.foreign_type(types[0])}
    kept = [weakref.ref(of) for of in types]
    del types
    gc.collect()
    assert sum(of() is not None for of in kept) <= 64


def test_an_array_of_zarr_is_not_read(tmp_path):
    zarr = pytest.importorskip("zarr", reason="install zarr")
    stored = zarr.create_array(tmp_path / "a.zarr", shape=(4,), dtype="i8", chunks=(2,))
    with pytest.raises(TypeError) as caught:
        gatherum.gather(stored, [0])
    assert str(caught.value) == (
        "gather: `data` must be a NumPy array, got a zarr.Array; write data[...] to read all of "
        "it, or give it to gatherum.files"
    )
    assert gatherum.gather(stored[...], [0]).tolist() == [0]
