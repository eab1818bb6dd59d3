"""A process ends without output on standard error, for any imports in any order."""

import importlib.util
from itertools import permutations, product

import pytest

from samples import every

# Keeps plans and other objects of the core: in caches, accumulators and global names.
USE = """
import numpy as np
import gatherum
kept = [
    gatherum.plan("gather", ((5, 4), "f4"), ((3,), "i8")),
    gatherum.prepare("scatter_slices", np.zeros((3, 9)), [2, 0, 2], reduction="add"),
    gatherum.Accumulator(np.zeros(3), "add").scatter_nd([[1]], [2.0]),
]
kept.append(gatherum.gather(np.arange(3), [2, 0]))
kept.append(gatherum.aggregate(np.ones((3, 2)), [0, 2], [1, 1], 3, "mean"))
try:
    gatherum.gather(np.arange(3), [7])
except IndexError:
    pass
"""
USE_OF = {
    "torch": "kept.append(gatherum.gather(torch.ones(3).requires_grad_(), torch.tensor([0])))",
    "jax": "kept.append(gatherum.gather(jax.numpy.arange(3.0), jax.numpy.array([0])))",
    "dask.array": "kept.append(gatherum.gather(dask.array.arange(3), [0]).compute())",
}
OURS = {"torch": "gatherum.torch", "jax": "gatherum.jax", "dask.array": "gatherum.dask"}
# The core's own detector of lost references, which is off elsewhere: see module.cpp.
WARNED = "import gatherum._core\ngatherum._core.set_leak_warnings(True)\n"


def ends_quietly(python, modules, use, **environment):
    code = "".join(f"import {module}\n" for module in modules)
    done = python(code + use, JAX_PLATFORMS="cpu", **environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def has(framework):
    return importlib.util.find_spec(framework.split(".")[0]) is not None


@pytest.mark.parametrize("modules", [["gatherum"], ["gatherum.files"]], ids=str)
@pytest.mark.parametrize("use", [USE, WARNED + USE], ids=["plain", "warned"])
def test_only_numpy_is_imported(python, modules, use):
    ends_quietly(python, modules, use)


def test_a_notebook_draws_a_plan_that_is_used_first(python):
    code = "import gatherum\nprint(gatherum.plan('gather', (3,), (2,))._repr_html_()[:4])\n"
    assert python(code).stdout == "<div\n"


FIRST_CALLS = {
    "a plan": ("gatherum.plan('gather', np.zeros(3), np.array([0, 5])).run(np.zeros(3), "
               "np.array([0, 5]))"),
    "groups": "gatherum.groups.reduce(np.zeros(3), [0, 0, 5], 1)",
    "an accumulator": "gatherum.Accumulator(np.zeros(3), 'add').scatter_nd([[5]], [1.0])",
    "a prepared call": "gatherum.prepare('gather', np.zeros(3), [0, 5])",
    "an aggregate": "gatherum.aggregate(np.zeros(3), [5], [0], 1, 'add')",
}  # fmt: skip


@pytest.mark.parametrize("call", FIRST_CALLS)
def test_the_first_use_may_be_anything(python, call):
    """Each raises a message that Python code writes for the core."""
    code = f"""
import numpy as np
import gatherum
try:
    {FIRST_CALLS[call]}
except IndexError as error:
    assert " 5 " in str(error), error
"""
    ends_quietly(python, [], code)


def test_files_may_be_the_first_use(python, tmp_path):
    code = f"""
import os
import numpy as np
os.chdir({str(tmp_path)!r})
np.save("table.npy", np.arange(8.0).reshape(4, 2))
np.save("rows.npy", np.array([[3], [1]]))
np.save("new.npy", np.zeros((2, 2)))
from gatherum.files import scatter_nd_file
scatter_nd_file("table.npy", "rows.npy", "new.npy", "out.npy")
assert np.load("out.npy").sum() == 10
"""
    ends_quietly(python, [], code)


ORDERS = {
    "first": "{theirs} gatherum.files",
    "after its adapter": "{ours} gatherum.files {theirs}",
    "after gatherum": "gatherum.files {theirs} {ours}",
}


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.parametrize(
    "uses", [True, pytest.param(False, marks=pytest.mark.release)], ids=["used", "unused"]
)
@pytest.mark.parametrize(("framework", "order"), every(9, product(USE_OF, ORDERS)))
def test_one_framework(python, framework, order, uses):
    if not has(framework):
        pytest.skip(f"install {framework.split('.')[0]} to import it beside gatherum")
    use = WARNED + USE + (USE_OF[framework] if uses else "")
    modules = ORDERS[order].format(theirs=framework, ours=OURS[framework])
    ends_quietly(python, modules.split(), use)


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.parametrize(
    "modules",
    [
        pytest.param(order, marks=pytest.mark.release if turn < 5 else ())
        for turn, order in enumerate(permutations(USE_OF))
    ],
    ids=" ".join,
)
def test_all_frameworks(python, modules):
    present = [module for module in modules if has(module)]
    ends_quietly(python, [*present, "gatherum.files"], USE + "\n".join(map(USE_OF.get, present)))


OTHERS_KEEP = """
import gatherum, torch
plan = gatherum.plan("gather", ((5, 4), "f4"), ((3,), "i8"))
library = torch.library.Library("mine", "DEF")
library.define("f(Tensor x) -> Tensor")
library.impl("f", lambda x: plan and x, "CPU")
"""
A_THREAD_KEEPS = """
import threading, time
import gatherum
def work(plan):
    started.set()
    time.sleep(100)
started = threading.Event()
plan = gatherum.plan("gather", ((5, 4), "f4"), ((3,), "i8"))
threading.Thread(target=work, args=[plan], daemon=True).start()
started.wait()
"""


def test_a_plan_in_the_frame_of_a_thread_that_is_stopped(python):
    ends_quietly(python, [], A_THREAD_KEEPS)


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.skipif(not has("torch"), reason="install torch for a function that it keeps")
def test_a_plan_that_statics_of_torch_keep(python):
    ends_quietly(python, [], OTHERS_KEEP)


def test_threads_that_use_a_name_first_keep_its_annotations(python):
    code = """
import sys, threading, numpy, gatherum._functions.gathers
sys.setswitchinterval(1e-6)
together = threading.Barrier(8)
def use():
    together.wait()
    gatherum.gather
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(bool(gatherum.gather.__annotations__))
"""
    assert [python(code).stdout for _ in range(3)] == ["True\n"] * 3
