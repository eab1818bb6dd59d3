"""Every framework has all functions that groups need, and subclasses inherit the defaults."""

import importlib

import numpy as np
import pytest

from gatherum.frameworks import Arrays
from gatherum.groups.protocol import ArrayDefaults

FRAMEWORKS = [pytest.param(name, marks=pytest.mark.frameworks) for name in ("dask", "jax", "torch")]


@pytest.mark.parametrize("package", ["groups", *FRAMEWORKS])
def test_a_namespace_is_complete(package):
    if package != "groups":
        pytest.importorskip(package, reason=f"install {package} to test its functions")
    namespace = importlib.import_module(f"gatherum.{package}.namespace")
    members = {name for name in dir(Arrays) if not name.startswith("_")}
    sorts = {"sorted_order", "cumsum", "cumulate"} if namespace.in_chunks else set()
    assert members - set(dir(namespace)) == sorts


def test_subclasses_inherit_the_defaults():
    class Plain(ArrayDefaults):
        pass

    plain, values = Plain(), np.ones(2)
    assert (plain.in_chunks, plain.traces_pointers) == (False, False)
    assert (plain.has_gradients, plain.runs_nan_forms) == (True, False)
    assert plain.fused_transform("softmax", values, None) is None
    assert plain.squares_and_counts(values, None, False) is None
    assert plain.fold_skipping_nan(values, "add", None, 0) is None
    assert plain.count_skipping_nan(values, None) is None
    assert plain.positions_of_extremes(values, "max", None, -1, False) is None
    assert plain.narrowed(values, 2) is values
    assert plain.traced_segments("aggregate", "indptr", values, values) is None
    assert plain.in_blocks("median", lambda *call: call, values, 3, None) == (values, 3)
    with plain.float_mode(), plain.sharing_calls():
        pass
