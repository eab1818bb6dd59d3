"""Test vectors: calls of the operators with the answers of the oracle, each with the rule it tests.

They are for those who build the same operators. `vectors` makes the cases of a target, and `write`
puts them into the files that its test runners read.
"""

from gatherum._exports.help_signatures import plain_help

from .case import Case
from .targets import TARGETS, vectors, write
from .virtual import VirtualArray

__all__ = ["TARGETS", "Case", "VirtualArray", "vectors", "write"]

plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
