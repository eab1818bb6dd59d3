"""Calls on JAX arrays if a name that JAX does not document is missing."""

import os
import subprocess
import sys

import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import gatherum  # noqa: E402
from gatherum._system import private_names  # noqa: E402
from gatherum.jax import errors, private  # noqa: E402
from source import SOURCE  # noqa: E402

CODE = """
import sys
from gatherum._system import private_names
find_name = private_names.find_name
private_names.find_name = lambda name: None if name in sys.argv[1:] else find_name(name)

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import gatherum

data, rows = np.arange(12.0).reshape(4, 3).astype("f"), np.array([3, 0, 0, 1])
assert np.array_equal(gatherum.gather(jnp.array(data), rows), gatherum.gather(data, rows))
total = lambda x: (gatherum.scatter_slices(x, rows, x * 2, reduction="mul") ** 2).sum()
usual = jax.grad(total)(jnp.array(data))
assert np.array_equal(jax.jit(jax.grad(total))(jnp.array(data)), usual)
numbers = gatherum.scatter_slices(data, rows, data * 2, reduction="mul")
assert np.allclose(total(jnp.array(data)), (numbers**2).sum())
mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
shards = jax.device_put(jnp.array(data[:, :2]), NamedSharding(mesh, PartitionSpec(None, "x")))
try:
    result = gatherum.gather(shards, rows)
except NotImplementedError as error:
    print(error)
else:
    assert np.array_equal(result, gatherum.gather(data[:, :2], rows))
    text = jax.jit(gatherum.gather).lower(shards, jnp.array(rows)).compile().as_text()
    print("gathered" if "all-gather" in text else "divided")
"""


ALONE = [pytest.param([name], marks=pytest.mark.release) for name in private.NAMES]


@pytest.mark.parametrize("hidden", [(), *ALONE, [*private.NAMES]])
def test_calls_are_the_same_without_a_name(hidden) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *hidden], capture_output=True, text=True, check=False,
        timeout=120, env=os.environ | {"PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if private.is_old:
        expected = str(errors.several_devices("gather", jax.__version__))
    else:
        expected = "gathered" if hidden else "divided"
    assert done.stdout == f"{expected}\n"


def test_every_name_is_there_in_the_versions_that_divide() -> None:
    assert private.is_old or private_names.missing(private.NAMES) == []


def test_a_context_of_other_fields_is_not_divided() -> None:
    """JAX's contexts of lowering have changed before."""
    from types import SimpleNamespace

    from gatherum.jax import sharding

    bare = SimpleNamespace(module_context=SimpleNamespace(), avals_in=[])
    assert private.device_count(bare) == 1
    assert sharding._of_devices(bare, "cpu") is None
    there = SimpleNamespace(axis_context=SimpleNamespace(num_devices=2), lowering_parameters=None)
    context, mesh = SimpleNamespace(module_context=there), SimpleNamespace(size=1)
    assert private.with_devices(context, mesh, "cpu") is None
    assert private.is_for_export(SimpleNamespace(module_context=there))


def test_arrays_on_several_devices_are_refused_before_jax_0_7(monkeypatch) -> None:
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    monkeypatch.setattr(private, "is_old", True)
    mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
    data = jax.device_put(np.ones((3, 8), "f"), NamedSharding(mesh, PartitionSpec(None, "x")))
    with pytest.raises(NotImplementedError) as refused:
        gatherum.gather(data, np.array([1, 2, 1, 1, 0]), mode="wrap")
    assert str(refused.value) == (
        f"gather: arrays on several devices need JAX 0.7 or later, and this is {jax.__version__}; "
        "put them on one device by jax.device_put"
    )
