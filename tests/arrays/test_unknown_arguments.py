"""Functions name unknown keywords, and advise `axis` for `dim`."""

import numpy as np
import pytest

import gatherum
from gatherum import files

VALUES, GROUPS = np.arange(3.0), np.array([0, 1, 1])
ACCUMULATOR = gatherum.Accumulator(VALUES, "add")
CALLS = {
    "gather": lambda **call_options: gatherum.gather(VALUES, GROUPS, **call_options),
    "gather_elements": lambda **call_options: gatherum.gather_elements(
        VALUES, GROUPS, **call_options
    ),
    "scatter_slices": lambda **call_options: gatherum.scatter_slices(
        VALUES, GROUPS, VALUES, **call_options
    ),
    "scatter_elements": lambda **call_options: ACCUMULATOR.scatter_elements(
        GROUPS, VALUES, **call_options
    ),
    "groups.reduce": lambda **call_options: gatherum.groups.reduce(VALUES, GROUPS, **call_options),
    "groups.transform": lambda **call_options: gatherum.groups.transform(
        VALUES, GROUPS, "softmax", **call_options
    ),
    "groups.aggregate": lambda **call_options: gatherum.groups.aggregate(
        GROUPS, VALUES, **call_options
    ),
    "gather_quantized": lambda **call_options: gatherum.gather_quantized(
        VALUES, GROUPS, VALUES, block_size=1, **call_options
    ),
    "rows": lambda **call_options: files.rows(VALUES, [GROUPS], **call_options),
    "reduce_file": lambda **call_options: files.reduce_file(VALUES, GROUPS, **call_options),
}


def message_of(call, **options):
    with pytest.raises(TypeError) as caught:
        call(**options)
    return str(caught.value)


@pytest.mark.parametrize("op", CALLS)
def test_dim_is_axis(op):
    assert message_of(CALLS[op], dim=0) == f"{op}: unknown argument 'dim'; write axis="
    assert message_of(CALLS[op], dims=0) == f"{op}: unknown argument 'dims'"


def test_files():
    message = message_of(lambda **options: files.gather_file(VALUES, GROUPS, **options), dim=0)
    assert message == "gather: unknown argument 'dim'; write axis="


def test_open_tables():
    scales = {"scales": np.ones((3, 1), np.float32)}
    with files.open(VALUES) as table, files.open(np.ones((3, 2), np.int8), **scales) as quantized:
        calls = {
            "gather": (table.gather, quantized.gather),
            "gather_elements": (table.gather_elements,),
            "rows": (lambda indices, **options: table.rows([indices], **options),),
        }
        for op, functions in calls.items():
            for function in functions:
                message = message_of(
                    lambda call=function, **options: call(GROUPS, **options), dim=0
                )
                assert message == f"{op}: unknown argument 'dim'; write axis="
        message = message_of(lambda **options: table.gather_nd([[0]], **options), dim=0)
        assert message == "gather_nd: unknown argument 'dim'"
        assert message_of(lambda **options: table.submit(GROUPS, **options).result(), dim=0) == (
            "gather: unknown argument 'dim'; write axis="
        )


def test_functions_without_an_axis():
    message = message_of(lambda **options: gatherum.gather_nd(VALUES, [[0]], **options), dim=0)
    assert message == "gather_nd: unknown argument 'dim'"
    message = message_of(lambda **options: gatherum.Accumulator(VALUES, "add", **options), dim=0)
    assert message == "Accumulator: unknown argument 'dim'"


@pytest.mark.parametrize("function", [gatherum.plan, gatherum.index_report, gatherum.prepare])
def test_attributes(function):
    message = message_of(lambda **options: function("gather", VALUES, GROUPS, **options), dim=0)
    assert message.startswith("gather: unknown attribute 'dim'; it takes 'axis', ")
    assert message.endswith("; write axis=")


@pytest.mark.frameworks
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
        message = message_of(lambda call=function, **options: call(data, GROUPS, **options), dim=0)
        assert message == "gather: unknown argument 'dim'; write axis="
