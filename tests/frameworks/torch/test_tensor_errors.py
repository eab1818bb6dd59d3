"""Advice in errors about tensors, and the function that errors of torch_scatter's calls name."""

import numpy as np
import pytest
from tensors import room, torch

import gatherum

DATA, ROWS = torch.zeros(4, 3), torch.tensor([0, 2])
UPDATES = torch.ones(2, 3)
MASK = torch.tensor([True, False])

CALLS = {
    "scatter_nd: `updates` must have the dtype of `data`, float32, got float64; write "
    "updates.to(data.dtype)": lambda d: gatherum.scatter_nd(d, ROWS[:, None], UPDATES.double()),
    "gather: `indices` must have an integer dtype, got bool; mask.flatten().nonzero()[:, 0] makes "
    "indices of a mask": lambda d: gatherum.gather(d, MASK),
    "gather_nd: `indices` must have an integer dtype, got bool; torch.argwhere makes index tuples "
    "of a mask": lambda d: gatherum.gather_nd(d, MASK),
    "scatter_elements: `updates` must have the shape of `indices`, (2, 1), got (2, 3); write "
    "torch.broadcast_to(indices, (2, 3)) for an index for each, or call scatter_slices with "
    "indices.ravel()": lambda d: gatherum.scatter_elements(d, ROWS[:, None], UPDATES),
    "gather_nd: `indices` must be one array, got a tuple that holds arrays; torch.argwhere, or "
    "torch.stack(tensors, -1), makes index tuples": lambda d: gatherum.gather_nd(d, (ROWS, ROWS)),
}


@pytest.mark.parametrize("sentence", CALLS)
def test_errors_for_tensors_suggest_torch_code(sentence):
    meta = "holds arrays" not in sentence
    for data in (DATA, DATA.clone().requires_grad_(), DATA[:, :].conj()):
        with pytest.raises((TypeError, ValueError)) as caught:
            CALLS[sentence](data)
        assert str(caught.value) == sentence
    if meta:
        with pytest.raises((TypeError, ValueError)) as caught, torch.device("meta"):
            CALLS[sentence](DATA)
        assert str(caught.value) == sentence


def test_errors_for_arrays_suggest_numpy_code():
    with pytest.raises(TypeError, match=r"write updates\.astype\(data\.dtype\)$"):
        gatherum.scatter_nd(DATA.numpy(), ROWS[:, None].numpy(), UPDATES.double().numpy())
    with pytest.raises(TypeError, match=r"np\.flatnonzero makes indices of a mask$"):
        gatherum.gather(DATA.numpy(), np.array([True]))


FUNCTIONS = [
    (room.scatter, "scatter"), (room.scatter_add, "scatter_add"), (room.scatter_sum, "scatter_sum"),
    (room.scatter_mul, "scatter_mul"), (room.scatter_mean, "scatter_mean"),
    (room.scatter_max, "scatter_max"), (room.scatter_min, "scatter_min"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "name"), FUNCTIONS, ids=lambda f: getattr(f, "__name__", f))
def test_functions_of_torch_scatter_name_themselves(function, name):
    refused = {
        f"{name}: index 9 is out of bounds for axis 0 of size 4 (index[1])": (
            UPDATES, torch.tensor([0, 9]), 4,
        ),
        f"{name}: index -1 is out of bounds for axis 0 of size 4 (index[1, 2])": (
            UPDATES, torch.tensor([[0, 1, 2], [0, 1, -1]]), 4,
        ),
        f"{name}: index 9 is out of bounds for axis 0 of size 4": (
            UPDATES, torch.tensor([[0], [9]]), 4,
        ),
        f"{name}: `index` must have an integer dtype, got float32; write "
        "index.to(torch.int64)": (UPDATES, torch.ones(2), 4),
        f"{name}: `dim_size` must have sizes that are not negative, got (-1,)": (
            UPDATES, ROWS, -1,
        ),
    }  # fmt: skip
    for sentence, (src, index, size) in refused.items():
        for tracked in (False, True):
            with pytest.raises((IndexError, TypeError, ValueError)) as caught:
                function(src.clone().requires_grad_(tracked), index, 0, dim_size=size)
            if "dim_size" not in sentence:
                assert str(caught.value) == sentence
            assert str(caught.value).startswith(f"{name}: ")
    with pytest.raises(TypeError) as caught:
        function(UPDATES, ROWS, 0, out=DATA.double())
    assert str(caught.value).startswith(f"{name}: `src` must have the dtype of `out`, float64, got")


def test_segments_name_themselves():
    for function, name in ((room.segment_csr, "segment_csr"), (room.gather_csr, "gather_csr")):
        with pytest.raises((TypeError, ValueError), match=rf"^{name}: "):
            function(UPDATES, torch.tensor([0.0, 2]))
    with pytest.raises(TypeError, match=r"^segment_csr: `reduction` 'mean' is not defined for dty"):
        room.segment_csr(UPDATES.bool(), torch.tensor([0, 2]), reduce="mean")


class Converts:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("wrapped", [np.ma.array, Converts])
def test_masks_are_not_lost(wrapped):
    rows = np.ma.array([0, 2], mask=[True, False])
    values = np.ma.array(np.ones((2, 3), np.float32), mask=True)
    one = np.ma.array(1.0, mask=True)
    for call in (
        lambda: gatherum.gather(DATA, wrapped(rows)),
        lambda: gatherum.scatter_slices(DATA, ROWS, wrapped(values)),
        lambda: gatherum.gather(DATA, [9], mode="fill", fill_value=wrapped(one)),
        lambda: gatherum.prepare("gather", DATA, wrapped(rows)),
        lambda: room.scatter(UPDATES, wrapped(rows)),
    ):
        with pytest.raises(TypeError, match="must not be a masked array"):
            call()
    with pytest.raises(TypeError, match="`data` must not be a masked array"):
        room.gather(values, [0])
    with pytest.raises(TypeError, match="`src` must not be a masked array"):
        room.scatter(values, ROWS)
