"""A framework that gatherum does not know is supported by one adapter: that of `toy_adapter`."""

import importlib.metadata
import pickle

import numpy as np
import pytest

import gatherum
from gatherum import frameworks
from gatherum._frameworks import registry
from gatherum._frameworks.operator_functions import Functions
from strategies import OPERATORS, SCATTERS
from toy_adapter import Toy, ToyAdapter


def _run(op, data, indices, updates, *attribute_values):
    """Run a call of the framework's own functions."""
    *others, fill_value = attribute_values
    attributes = frameworks.Attributes(op, *others)
    return ToyAdapter().call(attributes, data, indices, updates, fill_value, None)


FUNCTIONS = Functions(__name__, _run)


@pytest.fixture
def toy(monkeypatch):
    """Remove the adapter and its cached types when the test ends."""
    for name in ("_adapters", "_by_module", "_met"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    frameworks.register(ToyAdapter())


def test_groups_of_a_framework_without_functions_for_them_are_refused(toy):
    with pytest.raises(TypeError) as caught:
        gatherum.groups.reduce(Toy(DATA), [0, 0, 1, 1])
    assert str(caught.value) == (
        "groups.reduce: `values` must be a NumPy array, got a toy.Toy; write values.array"
    )


DATA = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("op", OPERATORS)
def test_a_new_framework_has_the_six_functions(toy, op):
    operands = DATA, np.array([[1, 2]])
    if op in SCATTERS:
        shape = gatherum.plan(op.replace("scatter_slices", "gather").replace("scatter", "gather"),
                              *operands).shape  # fmt: skip
        operands = *operands, np.ones(shape, np.float32)
    expected = getattr(gatherum, op)(*operands)
    result = getattr(gatherum, op)(*map(Toy, operands))
    assert isinstance(result, Toy)
    assert np.array_equal(result.array, expected)
    assert np.array_equal(FUNCTIONS.named(op)(*map(Toy, operands)).array, expected)
    plan = gatherum.plan(op, *map(Toy, operands))
    assert plan == gatherum.plan(op, *operands)
    explained = gatherum.explain(op, *map(Toy, operands))
    assert explained.strategy == f"a toy runs {op}"
    assert explained.plan == plan


def test_its_errors_are_those_of_any_framework(toy):
    other = type("ndarray", (), {"__module__": "cupy"})()
    with pytest.raises(
        TypeError, match=r"of one framework, got a toy.Toy as `data` and a cupy.nda"
    ):
        gatherum.gather(Toy(DATA), other)
    with pytest.raises(TypeError, match=r"^gather: `indices` must be a NumPy array, got a toy.Toy"):
        gatherum.gather(DATA, Toy([0]))
    with pytest.raises(ValueError, match=r"^gather: `axis` must be in"):
        gatherum.plan("gather", Toy(DATA), [0], axis=7)
    with pytest.raises(IndexError, match=r"^gather: index 4 is out of bounds for axis 0 of size 4"):
        gatherum.gather(Toy(DATA), Toy([4]))


class Entry:
    name = "toy"

    def load(self):
        return ToyAdapter()


def test_an_installed_package_is_found_by_its_entry_point(monkeypatch):
    for name in ("_adapters", "_by_module", "_met"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    asked = []
    monkeypatch.setattr(registry, "_installed", None)
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: asked.append(group) or [Entry()]
    )
    gatherum.gather(DATA, [0])
    assert asked == []  # entry points are read at the first unknown type
    assert np.array_equal(gatherum.gather(Toy(DATA), [2]).array, DATA[[2]])
    assert np.array_equal(gatherum.gather(Toy(DATA), [1]).array, DATA[[1]])
    assert asked == ["gatherum.frameworks"]


def test_a_package_that_cannot_be_loaded_says_so_each_time(monkeypatch):
    class Broken(Entry):
        def load(self):
            raise ImportError("toy needs libtoy")

    monkeypatch.setattr(registry, "_installed", {"toy": Broken()})
    for _ in range(2):
        with pytest.raises(ImportError, match="toy needs libtoy"):
            gatherum.gather(Toy(DATA), [0])


@pytest.mark.parametrize("result", [(), (1,), ("gather", DATA, *[None] * 9)], ids=len)
def test_a_tuple_result_raises(toy, monkeypatch, result):
    monkeypatch.setattr(ToyAdapter, "call", lambda self, *call: result)
    with pytest.raises(TypeError, match=r"^gather: ToyAdapter\.call must return an array, got \("):
        gatherum.gather(Toy(DATA), [0])


def test_its_functions_are_pickled_by_their_place():
    result = pickle.loads(pickle.dumps(FUNCTIONS.gather))
    assert result == FUNCTIONS.gather


def test_an_adapter_without_a_member_is_refused():
    with pytest.raises(TypeError, match=r"must have `call`, which Half lacks; see gatherum.framew"):
        frameworks.register(type("Half", (), {"name": "h", "modules": (), "to_numpy": "",
                                              "owns": None})())  # fmt: skip
    with pytest.raises(TypeError, match="must be an object, got the class ToyAdapter"):
        frameworks.register(ToyAdapter)
    with pytest.raises(TypeError, match="`modules` must be a tuple of names of modules, got 'toy'"):
        frameworks.register(type("Named", (ToyAdapter,), {"modules": "toy"})())
    with pytest.raises(TypeError, match="abstract"):
        type("Other", (frameworks.Framework,), {"name": "o"})()


def test_attributes_are_plain_values(toy, monkeypatch):
    taken = []
    monkeypatch.setattr(ToyAdapter, "call", lambda self, *call: taken.append(call) or call[1])
    gatherum.gather(Toy(DATA), [0], np.int32(1), mode="clip", negative=np.False_)
    ((attributes, *_),) = taken
    assert attributes == frameworks.Attributes("gather", 1, mode="clip", negative=False)
    assert type(attributes.axis) is int
    assert attributes.negative is False
