"""Errors of a call about indices (`_model/errors/calls.py`), word for word."""

import numpy as np

from sentences import ZEROS_2X3, check_sentence, each_sentence

# The function, its arguments, and the outcome.
SENTENCES = [
    (
        "not_an_index_dtype", "gather_nd", (ZEROS_2X3, np.zeros((1, 1), bool)), {}, TypeError,
        "gather_nd: `indices` must have an integer dtype, got bool; np.argwhere makes index tuples "
        "of a mask",
    ),
    (
        "not_an_index_dtype", "gather", (ZEROS_2X3, [True, False]), {}, TypeError,
        "gather: `indices` must have an integer dtype, got bool; np.flatnonzero makes indices of a "
        "mask",
    ),
    (
        "not_an_index_dtype", "index_report", ("scatter_slices", (3,), np.ones(3, bool)), {},
        TypeError,
        "scatter_slices: `indices` must have an integer dtype, got bool; np.flatnonzero makes "
        "indices of a mask",
    ),
    (
        "not_an_index_dtype", "gather", (ZEROS_2X3, [0.5]), {}, TypeError,
        "gather: `indices` must have an integer dtype, got float64; write "
        "indices.astype(np.int64)",
    ),
    (
        "index_out_of_bounds", "scatter_slices", (ZEROS_2X3, [[1, 0], [3, 9]], 1.0, 1), {},
        IndexError,
        "scatter_slices: index 3 is out of bounds for axis 1 of size 3 (indices[1, 0])",
    ),
    (
        "index_out_of_bounds", "gather", (ZEROS_2X3, [[1, 0], [7, 9]]), {}, IndexError,
        "gather: index 7 is out of bounds for axis 0 of size 2 (indices[1, 0])",
    ),
    (
        "index_out_of_bounds", "gather", (ZEROS_2X3, -4, -1), {}, IndexError,
        "gather: index -4 is out of bounds for axis 1 of size 3 (indices)",
    ),
    (
        "index_out_of_bounds", "gather", (ZEROS_2X3, [-1]), {"negative": False}, IndexError,
        "gather: index -1 is out of bounds for axis 0 of size 2 (indices[0])",
    ),
    (
        "index_out_of_bounds", "gather", (ZEROS_2X3, np.array([2**64 - 1], ">u8")), {}, IndexError,
        "gather: index 18446744073709551615 is out of bounds for axis 0 of size 2 (indices[0])",
    ),
    (
        "index_out_of_bounds", "gather_nd", (ZEROS_2X3[None], [[[0, 1], [0, -3]]], 0), {},
        IndexError,
        "gather_nd: index -3 is out of bounds for axis 1 of size 2 (indices[0, 1, 1])",
    ),
    (
        "index_out_of_bounds", "gather_nd", (ZEROS_2X3, [[2], [3]], 1), {}, IndexError,
        "gather_nd: index 3 is out of bounds for axis 1 of size 3 (indices[1, 0])",
    ),
    (
        "index_out_of_bounds", "gather", (ZEROS_2X3[:0], [0]), {"mode": "clip"}, IndexError,
        "gather: index 0 cannot be clipped into axis 0, which has size 0 (indices[0])",
    ),
    (
        "index_out_of_bounds", "scatter_nd", (ZEROS_2X3[:, :0], [[0, 4]], 0), {"mode": "wrap"},
        IndexError,
        "scatter_nd: index 4 cannot be wrapped into axis 1, which has size 0 "
        "(indices[0, 1])",
    ),
    (
        "index_out_of_bounds", "gather", (ZEROS_2X3, [2**63]), {}, IndexError,
        f"gather: index {2**63} is out of bounds for axis 0 of size 2 (indices[0])",
    ),
    (
        "too_wide_index", "gather", (ZEROS_2X3, [1, 2**64]), {}, ValueError,
        f"gather: `indices` must be in [-2**63, 2**63), got {2**64} (indices[1])",
    ),
    (
        "too_wide_index", "gather_elements", (ZEROS_2X3, [[0], [2**63]]), {}, ValueError,
        f"gather_elements: `indices` must be in [-2**63, 2**63), got {2**63} (indices[1, 0])",
    ),
    (
        "too_wide_index", "gather", (ZEROS_2X3, -(2**70)), {}, ValueError,
        f"gather: `indices` must be in [-2**63, 2**63), got {-2**70}",
    ),
    (
        "not_an_index_dtype", "gather", (ZEROS_2X3, [1.5, 2**64]), {}, TypeError,
        "gather: `indices` must have an integer dtype, got object",
    ),
]  # fmt: skip


@each_sentence(SENTENCES)
def test_sentence(monkeypatch, function, caller, arguments, attributes, error_type, sentence):
    check_sentence(monkeypatch, function, caller, arguments, attributes, error_type, sentence)
