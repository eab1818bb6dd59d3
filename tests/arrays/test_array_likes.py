"""Objects that NumPy converts: masks, values that are not in memory, dtypes that divide by zero."""

import numpy as np
import pytest

import gatherum
from gatherum import directml, reference

DATA = np.arange(4.0, dtype=np.float32)
ROWS = np.array([2, 0, 1, 3], np.uint32)
MASKED = np.ma.array(DATA, mask=[False, True, False, False])
MASKED_ROWS = np.ma.array(ROWS, mask=[False, True, False, False])
F4 = directml.BufferTensorDesc("FLOAT32", (4,))
U4 = directml.BufferTensorDesc("UINT32", (4,))
GATHER = directml.Device().compile(directml.GatherElementsOperatorDesc(F4, U4, F4, 0))
SCATTER = directml.Device().compile(directml.ScatterOperatorDesc(F4, U4, F4, F4, 0))


class Converts:
    """An object that converts to an array on request."""

    def __init__(self, array):
        self.array = array
        self.reads = 0

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        return self.array


class Interface:
    """An object with an array interface, which may include a mask."""

    def __init__(self, array, mask):
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"mask": mask}


class WithMask(np.ndarray):
    """An array with a mask that is not from numpy.ma, like those of astropy."""

    mask = property(lambda self: self == 1)


def class_named(module, name, **more):
    """Make a type of another package whose values NumPy would read."""

    def read(self, dtype=None, copy=None):
        raise AssertionError("was read")

    return type(name, (), {"__module__": module, "__array__": read, "shape": (4,), **more})


# Entry points with one operand each left open, and the operand's name.
DATA_CALLS = {
    "gather": lambda x: gatherum.gather(x, ROWS),
    "gather_elements": lambda x: gatherum.gather_elements(x, ROWS),
    "gather_nd": lambda x: gatherum.gather_nd(x, ROWS[:, None]),
    "scatter_slices": lambda x: gatherum.scatter_slices(x, ROWS, DATA),
    "scatter_elements": lambda x: gatherum.scatter_elements(x, ROWS, DATA),
    "scatter_nd": lambda x: gatherum.scatter_nd(x, ROWS[:, None], DATA),
    "aggregate": lambda x: gatherum.aggregate(x, ROWS, ROWS, 4, "add"),
    "Accumulator": lambda x: gatherum.Accumulator(x, "add"),
    "prepare": lambda x: gatherum.prepare("gather", x, ROWS),
    "prepared": gatherum.prepare("gather", DATA, ROWS),
    "plan": lambda x: gatherum.plan("gather", x, ROWS),
    "explain": lambda x: gatherum.explain("gather", x, ROWS),
    "index_report": lambda x: gatherum.index_report("gather", x, ROWS),
    "directml": lambda x: GATHER(x, ROWS),
}
INDEX_CALLS = {
    "gather": lambda x: gatherum.gather(DATA, x),
    "scatter_elements": lambda x: gatherum.scatter_elements(DATA, x, DATA),
    "aggregate": lambda x: gatherum.aggregate(DATA, ROWS, x, 4, "add"),
    "Accumulator": lambda x: gatherum.Accumulator(DATA, "add").scatter_slices(x, DATA),
    "prepare": lambda x: gatherum.prepare("gather", DATA, x),
    "plan": lambda x: gatherum.plan("gather", DATA, x),
    "explain": lambda x: gatherum.explain("gather", DATA, x),
    "index_report": lambda x: gatherum.index_report("gather", DATA, x),
    "directml": lambda x: GATHER(DATA, x),
}
OTHER_CALLS = {
    "updates": lambda x: gatherum.scatter_elements(DATA, ROWS, x),
    "weights": lambda x: gatherum.aggregate(DATA, ROWS, ROWS, 4, "add", x),
    "batch": lambda x: gatherum.Accumulator(DATA, "add").scatter_slices(ROWS, x),
    "prepared": lambda x: gatherum.prepare("scatter_slices", DATA, ROWS)(DATA, x),
    "plan": lambda x: gatherum.plan("scatter_slices", DATA, ROWS, x),
    "UpdatesTensor": lambda x: SCATTER(DATA, ROWS, x),
}
CALLS = [
    *((f"{name}-data", call, DATA, MASKED) for name, call in DATA_CALLS.items()),
    *((f"{name}-indices", call, ROWS, MASKED_ROWS) for name, call in INDEX_CALLS.items()),
    *((f"{name}-values", call, DATA, MASKED) for name, call in OTHER_CALLS.items()),
]
every_call = pytest.mark.parametrize(
    ("call", "plain", "masked"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS]
)
MASK_LOST = "must not be a masked array: its mask would be lost"


@every_call
def test_a_mask_is_not_lost_by_a_conversion(call, plain, masked):
    call(Converts(plain))
    for value in (masked, Converts(masked), Interface(plain, masked.mask), plain.view(WithMask)):
        with pytest.raises(TypeError, match=MASK_LOST):
            call(value)
    call(Interface(plain, None))


def test_masks_in_lists_and_of_fill_values():
    one = Converts(np.ma.array(1.0, mask=True))
    for call in (
        lambda: gatherum.gather([Converts(MASKED), Converts(MASKED)], [0]),
        lambda: gatherum.scatter_slices(np.zeros((4, 4)), [0], [[1, 2, 3, one]]),
        lambda: gatherum.gather(DATA, [9], mode="fill", fill_value=one),
        lambda: gatherum.scatter_slices(np.zeros(1, "f4,f4"), [0], [(1, one)]),
    ):
        with pytest.raises(TypeError, match=MASK_LOST):
            call()
    assert gatherum.gather(
        DATA, [9], mode="fill", fill_value=Converts(np.array(3, np.float32))
    ) == [3]


def test_a_list_of_convertible_objects_is_rejected_as_indices():
    with pytest.raises(TypeError, match="`indices` must be one array, got a list that holds"):
        gatherum.gather(DATA, [Converts(ROWS)])


@pytest.mark.parametrize("name", ["input_tensor", "indices_tensor", "output_tensor"])
def test_buffers_with_a_mask(name):
    buffers = {"input_tensor": DATA, "indices_tensor": ROWS, "output_tensor": np.zeros(4, "f4")}
    operand = buffers[name].copy()
    GATHER.dispatch(**buffers | {name: operand})
    with pytest.raises(TypeError, match=MASK_LOST):
        GATHER.dispatch(**buffers | {name: np.ma.array(operand)})


def test_an_object_is_read_once():
    value = Converts(DATA)
    gatherum.gather(value, ROWS)
    assert value.reads == 1


def test_the_reference_keeps_masks_too():
    for call in (
        lambda: reference.gather(Converts(MASKED), ROWS),
        lambda: reference.gather(DATA, Converts(MASKED_ROWS)),
        lambda: reference.scatter_slices(DATA, ROWS, Converts(MASKED)),
    ):
        with pytest.raises(TypeError, match=MASK_LOST):
            call()


GRAPH = {"__dask_graph__": lambda self: {}, "compute": lambda self: DATA}
LAZY = [
    (
        class_named("netCDF4", "Variable"),
        "np.ma.filled({}[...], value), since its mask would be lost",
    ),
    (class_named("tensorstore", "TensorStore"), "{}.read().result() to read all of it"),
    (class_named("pint", "Quantity", **GRAPH), "{}.compute() to read all of it"),
    (class_named("blosc2", "NDArray", chunks=(2,)), "{}[...] to read all of it"),
    (class_named("store", "Store", chunk_layout=None), "{}[...] to read all of it"),
]


@pytest.mark.parametrize(("of", "words"), LAZY, ids=[row[0].__name__ for row in LAZY])
@pytest.mark.parametrize("operand", ["data", "indices", "updates"])
def test_arrays_outside_memory_are_not_read(of, words, operand):
    right = {"data": DATA, "indices": ROWS, "updates": DATA}
    message = f"got a {of.__module__}.{of.__name__}; write {words.format(operand)}"
    with pytest.raises(TypeError) as caught:
        gatherum.scatter_elements(**right | {operand: of()})
    assert str(caught.value).endswith(message)
    for value in ([of()], [[of(), 1]]):
        with pytest.raises(TypeError, match=f"`{operand}` must be (one|a NumPy) array, got a "):
            gatherum.scatter_elements(**right | {operand: value})


@every_call
def test_chunks_are_not_read(call, plain, masked):
    store = class_named("store", "Store", chunks=(2,), dtype=plain.dtype)
    with pytest.raises(TypeError, match=r"must be a NumPy array, got a store\.Store; write"):
        call(store())


def test_chunks_in_memory_are_read():
    class Table(Converts):
        chunks = property(lambda self: [self.array[:2], self.array[2:]])  # as in pyarrow

    class Frame(Converts):
        def __init__(self, array):
            super().__init__(array)
            self.chunks = (2, 2)  # a column

        def __dask_graph__(self):
            return None  # as xarray's objects without Dask

    assert gatherum.gather(Table(DATA), [2]) == [2]
    assert gatherum.gather(Frame(DATA), [2]) == [2]


@pytest.mark.frameworks
def test_arrays_of_xarray(tmp_path):
    xr = pytest.importorskip("xarray", reason="install xarray")
    assert gatherum.gather(DATA, xr.DataArray(ROWS)).tolist() == [2, 0, 1, 3]
    assert gatherum.gather(xr.Variable("x", DATA), [2]).tolist() == [2]
    assert gatherum.gather(xr.Dataset(coords={"x": DATA})["x"], [2]).values.tolist() == [2]
    da = pytest.importorskip("dask.array", reason="install dask")
    for lazy in (xr.DataArray(da.from_array(DATA, chunks=2)), xr.Variable("x", da.arange(4))):
        for operand, call in (
            ("data", lambda x: gatherum.gather(x, ROWS)),
            ("indices", lambda x: gatherum.gather(DATA, x)),
            ("indices", lambda x: gatherum.gather(da.arange(4), x)),
        ):
            if operand == "data" and isinstance(lazy, xr.DataArray):
                continue  # its names are tested in test_labels.py
            with pytest.raises(TypeError, match=f"write {operand}.data, the array that it holds"):
                call(lazy)
        taken = gatherum.gather(lazy.data, ROWS)
        assert isinstance(taken, da.Array) and taken.compute().tolist() == [2, 0, 1, 3]


@pytest.mark.frameworks
def test_files_of_xarray_and_netcdf(tmp_path):
    xr = pytest.importorskip("xarray", reason="install xarray")
    netcdf = pytest.importorskip("netCDF4", reason="install netCDF4")
    xr.Dataset({"v": ("x", DATA)}).to_netcdf(tmp_path / "v.nc", engine="netcdf4")
    with xr.open_dataset(tmp_path / "v.nc", engine="netcdf4") as opened:
        lazy = opened["v"]
        for value in (lazy, lazy[1:], lazy.variable):
            with pytest.raises(TypeError, match=r"got a xarray.*; write data\.values to read"):
                gatherum.gather(value, [0])
        assert gatherum.gather(lazy.values, [2]).tolist() == [2]
        assert gatherum.gather(lazy, [2]).values.tolist() == [2]  # xarray caches its values
    with netcdf.Dataset(tmp_path / "v.nc") as opened:
        with pytest.raises(TypeError, match=r"got a netCDF4\.Variable; .* mask would be lost"):
            gatherum.gather(opened["v"], [0])
        assert gatherum.gather(np.ma.filled(opened["v"][...], 0), [2]).tolist() == [2]


ZERO = np.zeros(2, "M8[0s]")
SECONDS = np.zeros(2, "M8[s]")
RECORDS = [("when", "M8[0s]", (2,))]


# NumPy divides by the number of units in a step, which ended the process.
@pytest.mark.parametrize(
    "call",
    [
        lambda: gatherum.gather(ZERO, [0]),
        lambda: gatherum.gather(ZERO.view("m8[0s]"), [0]),
        lambda: gatherum.gather(np.zeros(2, RECORDS), [0]),
        lambda: gatherum.gather(SECONDS, [0], out=ZERO[:1]),
        lambda: gatherum.scatter_slices(SECONDS, [0], ZERO[:1]),
        lambda: gatherum.scatter_slices(SECONDS, [0], [ZERO[0]]),
        lambda: gatherum.scatter_slices(SECONDS, [0], ZERO[0]),
        lambda: gatherum.scatter_slices(ZERO, [0], SECONDS[:1]),
        lambda: gatherum.plan("gather", ((2,), "M8[0s]"), [0]),
        lambda: gatherum.plan("gather", SECONDS, ROWS[:1]).run(ZERO, ROWS[:1]),
        lambda: gatherum.prepare("gather", ZERO, [0]),
        lambda: gatherum.Accumulator(ZERO, "none"),
        lambda: gatherum.Accumulator(SECONDS, "none").finish(out=ZERO),
        lambda: gatherum.aggregate(ZERO, [0], [0], 1, "max"),
    ],
)
def test_datetimes_in_steps_of_nothing(call):
    with pytest.raises(TypeError, match="must have datetimes in steps of at least 1, got"):
        call()


def test_datetimes_without_a_common_unit():
    atto, long = np.datetime64(0, "as"), np.zeros(2, "M8[2147483647Y]")
    with pytest.raises(TypeError, match="`updates` must convert to the dtype of `data`"):
        gatherum.scatter_slices(long, [0], [atto])
    for value in (ZERO[0], atto):
        with pytest.raises(ValueError, match="`fill_value` must convert exactly"):
            gatherum.gather(long, [9], mode="fill", fill_value=value)
