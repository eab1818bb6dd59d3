"""Run calls on tensors with private names of torch hidden, each set of names in a process.

Each line of the standard input is a JSON list of names. Each line of the output lists the results
of the calls, or their errors.
"""

import importlib
import json
import os
import sys
import warnings

import numpy as np
import torch
from torch.autograd import forward_ad

warnings.simplefilter("ignore")


def load_torch():
    """Make torch import what every child needs: it imports most parts on first use."""

    def cube(x):
        return (x[[0, 0]] ** 3).sum()

    x = torch.ones(3, requires_grad=True)
    torch.compile(cube, backend="aot_eager", fullgraph=True)(x).backward()
    torch.func.hessian(torch.func.functionalize(cube))(x)
    torch.func.vmap(torch.func.grad(cube))(torch.ones(2, 3))
    torch._dynamo.reset()


load_torch()

gatherum = None  # each child imports it while names are hidden
STEPS = []
data = torch.arange(12.0).reshape(4, 3) + 1
rows = torch.tensor([3, 0, 0])
wide = torch.tensor([[0, 2, 1], [3, 3, 0]])
pairs = torch.tensor([[0, 1], [3, 2]])


def step(function):
    STEPS.append(function)
    return function


@step
def six():
    yield gatherum.gather(data, rows, mode="fill", fill_value=7)
    yield gatherum.gather_elements(data, wide, out=torch.empty(2, 3))
    yield gatherum.gather_nd(data.to(torch.bfloat16).t(), pairs[:, :1] // 2).float()
    yield gatherum.scatter_slices(data, rows, data[:3], reduction="add")
    written = data.clone()
    yield gatherum.scatter_elements(written, wide, data[:2], reduction="max", out=written)
    yield torch.tensor(written._version)
    yield gatherum.scatter_nd(data, pairs, torch.tensor([5.0, 6.0]), reduction="mul")
    yield torch.ops.gatherum.gather(data.int(), rows, 1, "clip")
    torch.ops.gatherum.scatter_nd_(written, pairs, torch.tensor([5.0, 6.0]))
    yield written
    yield torch.tensor(written._version)
    same = gatherum.scatter_slices(data.numpy(), rows.numpy(), data[:3].numpy())
    assert np.array_equal(same, gatherum.scatter_slices(data, rows, data[:3]).numpy())


def scattered(data, updates, reduction):
    return gatherum.scatter_slices(data, rows, updates, reduction=reduction)


def tracked():
    return data.clone().requires_grad_(), (data[:3] / 2).requires_grad_()


@step
def gradients():
    for reduction in ("add", "mul", "max", "mean", "none"):
        x, y = tracked()
        (scattered(x, y, reduction) ** 2).sum().backward()
        yield from (x.grad, y.grad)
    x, _ = tracked()
    (gatherum.gather(x, rows) ** 2).sum().backward()
    yield x.grad


@step
def second_gradients():
    for reduction in ("mul", "max"):
        x, y = tracked()
        total = (scattered(x, y, reduction) ** 3).sum()
        (first,) = torch.autograd.grad(total, y, create_graph=True)
        yield from torch.autograd.grad((first**2).sum(), (x, y))


@step
def tangents():
    for reduction in ("add", "mul", "max"):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(data, torch.ones_like(data))
            yield forward_ad.unpack_dual(scattered(dual, data[:3], reduction)).tangent
            yield forward_ad.unpack_dual(gatherum.gather(dual, rows)).tangent


def cube(x, reduction="mul"):
    return (scattered(x, x[:3], reduction) ** 3).sum()


@step
def batched():
    yield torch.func.vmap(gatherum.gather)(data.expand(2, 4, 3), wide)
    yield torch.func.vmap(lambda x: scattered(x, data[:3], "add"))(data.expand(2, 4, 3))


@step
def transformed_gradient():
    yield torch.func.grad(cube)(data)


@step
def transformed_gather():
    yield torch.func.grad(lambda x: (torch.ops.gatherum.gather(x, rows) ** 2).sum())(data)


@step
def transformed_tangent():
    yield torch.func.jvp(cube, (data,), (torch.ones_like(data),))[1]


@step
def transformed_batch():
    yield torch.func.vmap(torch.func.grad(cube))(data.expand(2, 4, 3))


@step
def transformed_jacobian():
    yield torch.func.jacfwd(lambda x: gatherum.gather(x, rows))(data)


@step
def transformed_twice():
    yield torch.func.hessian(cube)(data)


@step
def transformed_functional():
    ones = torch.ones_like(data)
    yield torch.func.jvp(torch.func.functionalize(cube), (data,), (ones,))[1]


@step
def functionalized():
    def written(x):
        out = torch.zeros(3, 3)
        gatherum.gather(x, rows, out=out)
        return out * 1

    yield torch.func.functionalize(written)(data)


@step
def compiled():
    torch._dynamo.reset()
    function = torch.compile(cube, backend="aot_eager", fullgraph=True)
    x, _ = tracked()
    function(x).backward()
    yield x.grad
    out = torch.empty(3, 3)
    torch.compile(gatherum.gather, backend="aot_eager")(data, rows, out=out)
    yield out


@step
def segments():
    def total(indptr):
        return gatherum.torch.segment_csr(data, indptr, reduce="sum")

    yield torch.compile(total, backend="aot_eager", fullgraph=True)(torch.tensor([0, 1, 4]))


@step
def sized_by_values():
    function = torch.compile(gatherum.torch.scatter_add, backend="aot_eager", fullgraph=True)
    yield function(data, torch.tensor([0, 2, 2, 1]), dim=0)


@step
def outside_storage():
    small = data.clone()
    small.untyped_storage().resize_(8)
    yield gatherum.gather(small, rows)


@step
def outside_storage_with_gradient():
    small = data.clone().requires_grad_()
    small.untyped_storage().resize_(8)
    yield torch.ops.gatherum.gather(small, rows)


@step
def recorded_out():
    yield gatherum.gather(tracked()[0], rows, out=torch.empty(3, 3))


@step
def inference():
    with torch.inference_mode():
        out = torch.empty(3, 3)
    yield gatherum.gather(data, rows, out=out)


@step
def overlap():
    yield gatherum.gather(data, rows, out=data[:3])


@step
def changed():
    x, y = tracked()
    total = scattered(x, y, "mul")
    torch.ops.gatherum.gather_out(data.new_zeros(4, 3), torch.arange(4), total.detach())
    total.sum().backward()
    yield x.grad


def answers(hidden):
    """Return the result of each step with some names hidden."""
    from gatherum._system import private_names

    find = private_names.find_name
    private_names.find_name = lambda name: None if name in hidden else find(name)
    globals()["gatherum"] = importlib.import_module("gatherum")
    importlib.import_module("gatherum.torch")
    results = {}
    for step in STEPS:
        try:
            results[step.__name__] = [tensor.tolist() for tensor in step()]
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            # torch names the autograd function, which differs if the dispatcher runs the call.
            results[step.__name__] = text.replace("_DispatchedScatter", "_PlainScatter")
    return results


for line in sys.stdin:
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            answer = answers(json.loads(line))
        except BaseException as error:
            answer = {"import": f"{type(error).__name__}: {error}"}
        with os.fdopen(write, "w") as stream:
            json.dump(answer, stream)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        print(stream.read(), flush=True)
    os.waitpid(child, 0)
