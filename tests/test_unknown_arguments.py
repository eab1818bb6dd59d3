"""Functions name unknown keywords, and advise `axis` for `dim`."""

import numpy as np
import pytest

import gatherum
from gatherum import files

VALUES, GROUPS = np.arange(3.0), np.array([0, 1, 1])
ACCUMULATOR = gatherum.Accumulator(VALUES, "add")
CALLS = {
    "gather": lambda **how: gatherum.gather(VALUES, GROUPS, **how),
    "gather_elements": lambda **how: gatherum.gather_elements(VALUES, GROUPS, **how),
    "scatter_slices": lambda **how: gatherum.scatter_slices(VALUES, GROUPS, VALUES, **how),
    "scatter_elements": lambda **how: ACCUMULATOR.scatter_elements(GROUPS, VALUES, **how),
    "groups.reduce": lambda **how: gatherum.groups.reduce(VALUES, GROUPS, **how),
    "groups.transform": lambda **how: gatherum.groups.transform(VALUES, GROUPS, "softmax", **how),
    "groups.aggregate": lambda **how: gatherum.groups.aggregate(GROUPS, VALUES, **how),
    "gather_quantized": lambda **how: gatherum.gather_quantized(
        VALUES, GROUPS, VALUES, block_size=1, **how
    ),
    "reduce_file": lambda **how: files.reduce_file(VALUES, GROUPS, **how),
}


def message_of(call, **how):
    with pytest.raises(TypeError) as caught:
        call(**how)
    return str(caught.value)


@pytest.mark.parametrize("op", CALLS)
def test_dim_is_axis(op):
    assert message_of(CALLS[op], dim=0) == f"{op}: unknown argument 'dim'; write axis="
    assert message_of(CALLS[op], dims=0) == f"{op}: unknown argument 'dims'"


def test_files():
    found = message_of(lambda **how: files.gather_file(VALUES, GROUPS, **how), dim=0)
    assert found == "gather: unknown argument 'dim'; write axis="


def test_functions_without_an_axis():
    found = message_of(lambda **how: gatherum.gather_nd(VALUES, [[0]], **how), dim=0)
    assert found == "gather_nd: unknown argument 'dim'"
    call = message_of(lambda **how: gatherum.aggregate(VALUES, [0], [0], 1, "add", **how), dim=0)
    assert call == "aggregate: unknown argument 'dim'"


@pytest.mark.parametrize("function", [gatherum.plan, gatherum.index_report, gatherum.prepare])
def test_attributes(function):
    found = message_of(lambda **how: function("gather", VALUES, GROUPS, **how), dim=0)
    assert found.startswith("gather: unknown attribute 'dim'; it takes 'axis', ")
    assert found.endswith("; write axis=")


@pytest.mark.parametrize("package", ["torch", "jax", "dask"])
def test_functions_of_frameworks(package):
    pytest.importorskip(package, reason=f"install {package}")
    module = getattr(gatherum, package)
    data = {
        "torch": lambda: pytest.importorskip("torch").ones(3),
        "jax": lambda: pytest.importorskip("jax.numpy").ones(3),
        "dask": lambda: pytest.importorskip("dask.array").ones(3),
    }[package]()
    for function in (module.gather, gatherum.gather):
        found = message_of(lambda call=function, **how: call(data, GROUPS, **how), dim=0)
        assert found == "gather: unknown argument 'dim'; write axis="
