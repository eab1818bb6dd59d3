"""Errors of `gather_quantized`, and their messages."""

import sys

import numpy as np
import pytest

import gatherum
from gatherum import reference

DATA = np.arange(12, dtype=np.int8).reshape(3, 4)
BYTES = DATA.view(np.uint8)
SCALES = np.ones((3, 2), np.float32)
ZEROS = np.zeros((3, 2), np.int8)

DTYPES = "uint8, int8, uint4, int4, uint2, int2, float8_e4m3fn or float8_e5m2"
REFUSED = [
    ({"axis": 2}, ValueError, "`axis` must be in [-2, 2), got 2"),
    ({"axis": 0.0}, TypeError, "`axis` must be an integer, got 0.0"),
    ({"quantize_axis": -3}, ValueError, "`quantize_axis` must be in [-2, 2), got -3"),
    ({"quantize_axis": "last"}, TypeError, "`quantize_axis` must be an integer, got 'last'"),
    ({"block_size": 0}, ValueError, "`block_size` must be at least 1, got 0"),
    ({"block_size": 2.0}, TypeError, "`block_size` must be an integer, got 2.0"),
    ({"bits": 3}, ValueError, "`bits` must be 2, 4 or 8 where `data` is int8, got 3"),
    ({"bits": 4.0}, TypeError, "`bits` must be an integer, got 4.0"),
    ({"mode": "no"}, ValueError,
     "`mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'no'"),
    ({"negative": 1}, TypeError, "`negative` must be True or False, got 1"),
    ({"dtype": "float64"}, TypeError,
     "`dtype` must be float32, float16 or bfloat16, got 'float64'"),
    ({"dtype": np.float64}, TypeError,
     "`dtype` must be float32, float16 or bfloat16, got <class 'numpy.float64'>"),
    ({"dtype": None}, TypeError, "`dtype` must be float32, float16 or bfloat16, got None"),
    ({"data": DATA.astype(np.int16)}, TypeError, f"`data` must be {DTYPES}, got int16"),
    ({"data": DATA.astype(bool)}, TypeError, f"`data` must be {DTYPES}, got bool"),
    ({"data": [[1, 2]]}, TypeError, f"`data` must be {DTYPES}, got int64"),
    ({"data": np.int8(3)}, ValueError, "`data` must have at least 1 dimension, got 0"),
    ({"data": np.ma.array(DATA, mask=DATA > 3)}, TypeError,
     "`data` must not be a masked array: its mask would be lost"),
    ({"indices": [0.5]}, TypeError,
     "`indices` must have an integer dtype, got float64; write indices.astype(np.int64)"),
    ({"indices": [3]}, IndexError, "index 3 is out of bounds for axis 0 of size 3 (indices[0])"),
    ({"indices": [[0, 1], [-4, 9]]}, IndexError,
     "index -4 is out of bounds for axis 0 of size 3 (indices[1, 0])"),
    ({"indices": np.array([2**64 - 1], np.uint64)}, IndexError,
     f"index {2**64 - 1} is out of bounds for axis 0 of size 3 (indices[0])"),
    ({"scales": SCALES.astype(np.float64)}, TypeError,
     "`scales` must be float32, float16, bfloat16 or float8_e8m0fnu, got float64"),
    ({"scales": SCALES.astype(">f4")}, TypeError,
     "`scales` must be float32, float16, bfloat16 or float8_e8m0fnu, got >f4"),
    ({"scales": SCALES[:, :1]}, ValueError,
     "`scales` must have shape (3, 2), a scale for each 2 of dimension 1 of the values, (3, 4), "
     "got (3, 1)"),
    ({"scales": SCALES, "bits": 4}, ValueError,
     "`scales` must have shape (3, 4), a scale for each 2 of dimension 1 of the values, (3, 8), "
     "got (3, 2)"),
    ({"zero_points": ZEROS.astype(np.int32)}, TypeError,
     "`zero_points` must have the dtype of `data`, int8, got int32"),
    ({"zero_points": ZEROS[:, :1]}, ValueError,
     "`zero_points` must have shape (3, 2), one for each scale, got (3, 1)"),
    ({"data": BYTES, "zero_points": ZEROS.view(np.uint8), "bits": 4, "block_size": 4}, ValueError,
     "`zero_points` must have shape (3, 1), one for each scale, with 2 in a byte as in `data`, "
     "got (3, 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error_type", "message"), REFUSED)
def test_invalid_calls_raise(change, error_type, message):
    call = {"data": DATA, "indices": [0], "scales": SCALES, "block_size": 2} | change
    with pytest.raises(error_type) as caught:
        gatherum.gather_quantized(**call)
    assert str(caught.value) == f"gather_quantized: {message}"
    with pytest.raises(error_type):
        reference.gather_quantized(**call)


def test_floats_have_neither_zero_points_nor_other_bits():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")
    data = DATA.view(ml_dtypes.float8_e5m2)
    for zeros in (ZEROS, ZEROS.view(data.dtype)):
        with pytest.raises(TypeError) as caught:
            gatherum.gather_quantized(data, [0], SCALES, zeros, block_size=2)
        assert str(caught.value) == (
            "gather_quantized: `zero_points` must be None where `data` is float8_e5m2"
        )
    with pytest.raises(ValueError, match=r"`bits` must be 8 where `data` is float8_e5m2, got 4$"):
        gatherum.gather_quantized(data, [0], SCALES, block_size=2, bits=4)
    with pytest.raises(ValueError, match=r"`bits` must be 4 where `data` is uint4, got 8$"):
        gatherum.gather_quantized(DATA.astype(ml_dtypes.uint4), [0], SCALES, block_size=2, bits=8)


def test_a_result_that_no_array_can_hold():
    data = np.broadcast_to(np.int8(1), (1, 2**40))
    scales = np.broadcast_to(np.float32(1), (1, 1))
    indices = np.broadcast_to(np.int64(0), 2**30)
    with pytest.raises(ValueError, match=r"has more bytes than can be addressed$"):
        gatherum.gather_quantized(data, indices, scales, block_size=2**41)


def test_bfloat16_needs_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr(
        np, "sctypeDict", {k: v for k, v in np.sctypeDict.items() if k != "bfloat16"}
    )
    with pytest.raises(ImportError) as caught:
        gatherum.gather_quantized(DATA, [0], SCALES, block_size=2, dtype="bfloat16")
    assert str(caught.value) == (
        "gather_quantized: bfloat16 needs ml_dtypes: pip install ml_dtypes"
    )
