"""The examples of DirectML's operator pages, in the descriptors of the pages.

Examples with an erratum are corrected here; `test_errata.py` has the printed values.
"""

from dataclasses import dataclass

import numpy as np

from gatherum.directml import (
    BufferTensorDesc,
    GatherElementsOperatorDesc,
    GatherNd1OperatorDesc,
    GatherNdOperatorDesc,
    GatherOperatorDesc,
    OperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
)


def f32(*sizes):
    return BufferTensorDesc("FLOAT32", sizes)


def u32(*sizes):
    return BufferTensorDesc("UINT32", sizes)


@dataclass(frozen=True)
class Example:
    """A desc, the content of its tensors in row-major order, and the printed output."""

    name: str
    desc: OperatorDesc
    values: tuple[list[int], ...]
    answer: list[int]

    def arrays(self):
        """Return the inputs as arrays, in DirectML's order."""
        inputs = [tensor for name, tensor in self.desc.tensors.items() if name != "OutputTensor"]
        return [
            np.array(values, tensor.data_type.dtype).reshape(tensor.sizes)
            for tensor, values in zip(inputs, self.values, strict=True)
        ]

    def expected(self):
        """Return the output as an array."""
        output = self.desc.output_tensor
        return np.array(self.answer, output.data_type.dtype).reshape(output.sizes)


EXAMPLES = [
    Example(
        "gather_1_1d_remapping",
        GatherOperatorDesc(f32(4), u32(5), f32(5), 0, 1),
        ([11, 12, 13, 14], [3, 1, 3, 0, 2]),
        [14, 12, 14, 11, 13],
    ),
    Example(
        "gather_2_concatenate_rows",
        GatherOperatorDesc(f32(3, 2), u32(1, 4), f32(4, 2), 0, 1),
        ([1, 2, 3, 4, 5, 6], [0, 1, 1, 2]),
        [1, 2, 3, 4, 3, 4, 5, 6],
    ),
    Example(
        "gather_3_swap_columns",
        GatherOperatorDesc(f32(3, 2), u32(1, 2), f32(3, 2), 1, 1),  # erratum 1
        ([1, 2, 3, 4, 5, 6], [1, 0]),
        [2, 1, 4, 3, 6, 5],
    ),
    Example(
        "gather_4_nested_indices_columns",
        GatherOperatorDesc(f32(1, 3, 3), u32(1, 1, 2), f32(3, 1, 2), 2, 2),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 2]),
        [1, 3, 4, 6, 7, 9],
    ),
    Example(
        "gather_5_nested_indices_rows",
        GatherOperatorDesc(f32(1, 3, 2), u32(1, 2, 2), f32(2, 2, 2), 1, 2),
        ([1, 2, 3, 4, 5, 6], [0, 1, 1, 2]),
        [1, 2, 3, 4, 3, 4, 5, 6],
    ),
    Example(
        "scatter_1_1d",
        ScatterOperatorDesc(f32(5), u32(4), f32(4), f32(5), 0),  # erratum 6
        ([0, 1, 2, 3, 4], [3, 1, 3, 0], [5, 6, 7, 8]),
        [8, 6, 2, 7, 4],
    ),
    Example(
        "scatter_2_2d",
        ScatterOperatorDesc(f32(3, 3), u32(2, 3), f32(2, 3), f32(3, 3), 0),  # erratum 5
        ([0] * 9, [1, 0, 2, 0, 2, 1], [10, 11, 12, 20, 21, 22]),
        [20, 11, 0, 10, 0, 22, 0, 21, 12],
    ),
    Example(
        "scatter_nd",
        ScatterNdOperatorDesc(f32(1, 8), u32(4, 1), f32(1, 4), f32(1, 8), 1, 2),  # erratum 10
        ([1, 2, 3, 4, 5, 6, 7, 8], [4, 3, 1, 7], [9, 10, 11, 12]),
        [1, 11, 3, 10, 9, 6, 7, 12],
    ),
    # The pages of related operators, which the three above refer to.
    Example(
        "gather_elements",
        GatherElementsOperatorDesc(f32(3, 3), u32(2, 3), f32(2, 3), 0),  # printed output: UINT32
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 0, 2, 0, 0]),
        [4, 8, 3, 7, 2, 3],
    ),
    Example(
        "gather_nd_1_1d_remapping",
        GatherNdOperatorDesc(f32(2, 2), u32(2, 1), f32(2, 2), 2, 2),
        ([0, 1, 2, 3], [1, 0]),
        [2, 3, 0, 1],
    ),
    Example(
        "gather_nd_2_2d_remapping",
        GatherNdOperatorDesc(f32(1, 2, 2, 2), u32(1, 1, 2, 2), f32(1, 1, 2, 2), 3, 2),
        ([0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 1, 0]),
        [2, 3, 4, 5],
    ),
    Example(
        "gather_nd1_2_batches",
        GatherNd1OperatorDesc(f32(1, 3, 2, 2), u32(1, 3, 2, 2), f32(1, 1, 3, 2), 3, 3, 1),
        (list(range(12)), [0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0]),
        [0, 3, 7, 4, 9, 10],
    ),
]
