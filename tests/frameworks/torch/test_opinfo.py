"""Torch's own samples of its functions: values and gradients of their counterparts here.

The samples are those of `torch.testing._internal`, which also names the dtypes of each function.
"""

import warnings

import pytest
from tensors import room, torch

from samples import every

pytest.importorskip("expecttest", reason="install expecttest for torch's own samples")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

WORDS = {
    "sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "mean": "mean",
    "amin": "min", "amax": "max",
}  # fmt: skip


def _lifted(data, *others):
    """Add a dimension to a tensor without dimensions, as torch's functions do."""
    return [t.reshape(1) if t.dim() == 0 else t for t in (data, *others)]


def gather(data, dim, index, **_):
    return room.gather_elements(*_lifted(data, index), axis=dim).reshape(index.shape)


def scatter(data, dim, index, src=None, value=None, reduce=None, include_self=True):
    updates = value if src is None else src
    of, at = _lifted(data, index)
    if isinstance(updates, torch.Tensor):  # torch reads only the updates that have an index
        updates = _lifted(updates)[0][tuple(slice(n) for n in at.shape)]
    else:
        updates = torch.tensor(updates, dtype=data.dtype)
    done = room.scatter_elements(of, at, updates, axis=dim, reduction=WORDS.get(reduce, "none"),
                                 include_self=include_self)  # fmt: skip
    return done.reshape(data.shape)


def scatter_add(data, dim, index, src):
    return scatter(data, dim, index, src, reduce="add")


def scatter_reduce(data, dim, index, src, reduce, include_self=True):
    return scatter(data, dim, index, src, None, reduce, include_self)


def index_select(data, dim, index):
    return room.gather(*_lifted(data, index), axis=dim).reshape_as(data.index_select(dim, index))


def _index_write(data, dim, index, source, reduction, include_self=True):
    of, at, source = _lifted(data, index, source)
    done = room.scatter_slices(
        of, at, source, axis=dim, reduction=reduction, include_self=include_self
    )
    return done.reshape(data.shape)


def index_add(data, dim, index, source, alpha=1):
    return _index_write(data, dim, index, source * alpha, "add")


def index_copy(data, dim, index, source):
    return _index_write(data, dim, index, source, "none")


def index_reduce(data, dim, index, source, reduce, include_self=True):
    return _index_write(data, dim, index, source, WORDS[reduce], include_self)


def take_along_dim(data, indices, dim=None):
    if dim is None:
        return room.gather_elements(data.reshape(-1), indices.reshape(-1))
    shape = torch.broadcast_shapes(*(
        t.shape[:dim] + (1,) + t.shape[dim:][1:] for t in (data, indices)
    ))  # fmt: skip
    sized = [t.expand(shape[:dim] + (t.shape[dim],) + shape[dim:][1:]) for t in (data, indices)]
    return room.gather_elements(*sized, axis=dim)


def embedding(indices, weight, **_):
    return room.gather(weight, indices)


COUNTERPARTS = {
    "gather": gather, "scatter": scatter, "scatter_add": scatter_add,
    "scatter_reduce": scatter_reduce, "index_select": index_select, "index_add": index_add,
    "index_copy": index_copy, "index_reduce": index_reduce, "take_along_dim": take_along_dim,
    "nn.functional.embedding": embedding,
}  # fmt: skip
OPS = [op for op in op_db if op.name in COUNTERPARTS]


def ranks_differ(op, sample):
    """Return True for an empty 2-d index of 1-d data, which torch accepts; here, a ValueError."""
    return op.name == "gather" and sample.args[1].numel() == 0 and sample.args[1].dim() == 2


def of_weight(op, sample):
    """Return the operands of a sample. Those of embedding pass the weights as the input."""
    if op.name == "nn.functional.embedding":
        return [sample.args[0], sample.input]
    return [sample.input, *sample.args]


def samples(op, dtype, requires_grad=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad))
    kept = [sample for sample in result if not ranks_differ(op, sample)]
    assert kept
    return kept


def theirs(op, sample):
    """Return torch's answer.

    Some of its functions round half precision after each step. Folded in float32, as here, their
    samples have one answer.
    """
    halves = sample.input.dtype.is_floating_point and sample.input.dtype.itemsize == 2
    narrow = halves and op.name != "nn.functional.embedding"  # which may scale its weights in place

    def wide(value):
        is_narrow = isinstance(value, torch.Tensor) and value.dtype == sample.input.dtype
        return value.float() if narrow and is_narrow else value

    args = [wide(value) for value in sample.args]
    more = {name: wide(value) for name, value in sample.kwargs.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op(wide(sample.input), *args, **more).to(sample.input.dtype)


def test_the_counterparts_are_all_there():
    assert {op.name for op in OPS} == set(COUNTERPARTS)
    assert len(OPS) == 17


@pytest.mark.parametrize("op", every(4, OPS), ids=lambda op: op.full_name)
def test_values(op):
    tried = 0
    for dtype in op.supported_dtypes("cpu"):
        if dtype in (torch.complex32,):  # not supported here
            continue
        for sample in samples(op, dtype):
            expected = theirs(op, sample)
            result = COUNTERPARTS[op.name](*of_weight(op, sample), **sample.kwargs)
            torch.testing.assert_close(result, expected, equal_nan=True)
            tried += 1
    assert tried >= 15


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.full_name)
def test_gradients(op):
    torch.manual_seed(0)
    for sample in samples(op, torch.float64, requires_grad=True):
        expected = theirs(op, sample)
        result = COUNTERPARTS[op.name](*of_weight(op, sample), **sample.kwargs)
        leaves = [
            t for t in (sample.input, *sample.args, *sample.kwargs.values())
            if isinstance(t, torch.Tensor) and t.requires_grad
        ]  # fmt: skip
        coming = torch.randn_like(expected)
        for mine, other in zip(
            torch.autograd.grad(result, leaves, coming),
            torch.autograd.grad(expected, leaves, coming),
            strict=True,
        ):
            torch.testing.assert_close(mine, other)
