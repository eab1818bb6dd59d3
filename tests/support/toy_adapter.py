"""A complete adapter, which uses only public names, for a framework that gatherum does not know."""

import numpy as np

import gatherum
from gatherum import frameworks


class Toy:
    """An array of a framework that hides its values."""

    __module__ = "toy.arrays"

    def __init__(self, values):
        self.array = np.asarray(values)


class ToyAdapter(frameworks.Framework):
    name = "toy"
    modules = ("toy",)
    to_numpy = "write {}.array"

    def owns(self, array_type):
        return issubclass(array_type, Toy)

    def call(self, attributes, data, indices, updates, fill_value, out):
        if out is not None:
            raise TypeError(f"{attributes.op}: `out` must be None, since a toy does not change")
        operands, keywords = [data, indices], attributes.keywords
        if attributes.operator.scatters:
            operands.append(updates)
        else:
            keywords["fill_value"] = fill_value
        inputs = [one.array if isinstance(one, Toy) else one for one in operands]
        return Toy(getattr(gatherum, attributes.op)(*inputs, **keywords))

    def spec(self, op, operand, value):
        return frameworks.ArraySpec.of(value.array)

    def describe(self, attributes, data, indices, updates):
        return f"a toy runs {attributes.op}"
