"""Python numbers and lists in every dtype, inside of every transform of torch."""

import numpy as np
import pytest
from tensors import room, torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from gatherum.torch import dtypes

func = torch.func
DTYPES = list(dtypes._CODES)
NARROW = [dtype for dtype in DTYPES if not dtypes.is_of_numpy(dtype)]
CALLS = {
    "number": lambda data: room.scatter_slices(data, [0], one(data)),
    "list": lambda data: room.scatter_slices(data, [1, 0], [one(data), one(data)]),
    "NaN": lambda data: room.scatter_slices(data, [0, 2], float("nan")),
    "fill": lambda data: room.gather(data, [0, 9], mode="fill", fill_value=one(data)),
}


def one(data):
    return True if data.dtype == torch.bool else 1


def raw(tensor):
    return tensor.contiguous().view(torch.uint8)


def in_grad(call, data):
    return func.grad(lambda y: (y.sum(), call(data)), has_aux=True)(torch.ones(2))[1]


def in_vjp(call, data):
    return func.vjp(lambda y: (y * 2, call(data)), torch.ones(2), has_aux=True)[2]


def in_jvp(call, data):
    two = (torch.ones(2),)
    return func.jvp(lambda y: (y * 2, call(data)), two, two, has_aux=True)[2]


def in_vmap(call, data):
    return func.vmap(call)(torch.stack([data, data]))[1]


def in_dual_numbers(call, data):
    with torch.autograd.forward_ad.dual_level():
        return call(data)


def in_inference(call, data):
    with torch.inference_mode():
        return call(data).clone()


TRANSFORMS = {
    "grad": in_grad,
    "vjp": in_vjp,
    "jvp": in_jvp,
    "vmap": in_vmap,
    "dual numbers": in_dual_numbers,
    "functionalize": lambda call, data: func.functionalize(call)(data),
    "make_fx": lambda call, data: make_fx(call)(data)(data),
    "make_fx of symbols": lambda call, data: make_fx(call, tracing_mode="symbolic")(data)(data),
    "inference": in_inference,
}


def calls(of=DTYPES):
    """Yield every call that these dtypes have."""
    for dtype in of:
        data = torch.ones(3).to(dtype)
        for name, call in CALLS.items():
            if name != "NaN" or dtype.is_floating_point:
                yield f"{name} of {dtype}", call, data


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_numbers_inside_of_transforms(transform):
    slow = transform.startswith("make_fx")
    for name, call, data in calls((torch.float32, *NARROW) if slow else DTYPES):
        result = TRANSFORMS[transform](call, data)
        assert torch.equal(raw(result), raw(call(data))), name


def test_numbers_and_tensors_without_values():
    for name, call, data in calls():
        expected = call(data).shape, data.dtype
        with FakeTensorMode() as mode:
            for valueless in (mode.from_tensor(data), torch.empty(3, dtype=data.dtype)):
                result = call(valueless)
                assert (result.shape, result.dtype) == expected, name
        result = call(data.to("meta"))
        assert (result.shape, result.dtype, result.device.type) == (*expected, "meta"), name


def test_numbers_inside_of_derivatives():
    kept = {"number": [0.0, 1, 1], "list": [0.0, 0, 1], "fill": [1.0, 0, 0]}
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        data = torch.ones(3, dtype=dtype)
        for name, expected in kept.items():
            call = CALLS[name]
            gradient = func.grad(lambda x, call=call: call(x).sum())(data)
            assert (gradient.dtype, gradient.tolist()) == (dtype, expected), name
            _, tangent = func.jvp(call, (data,), (data,))
            shown = [1.0, 0] if name == "fill" else expected
            assert (tangent.dtype, tangent.tolist()) == (dtype, shown), name


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_numbers_of_types_that_numpy_lacks_have_the_bits_of_arrays(dtype):
    """Including NaN, whose bits in torch's own conversions depend on the length of a tensor."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    name = str(dtype).removeprefix("torch.")
    codes = np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}")
    array = codes.view(getattr(ml_dtypes, name))
    with np.errstate(all="ignore"):
        values = array.astype(np.float64)
        quiet = values.astype(array.dtype)
    result = room.scatter_slices(
        torch.ones(len(codes)).to(dtype), np.arange(len(codes)), values.tolist()
    )
    assert raw(result).numpy().tobytes() == quiet.tobytes()
