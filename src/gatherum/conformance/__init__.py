"""Test vectors: calls to the operators with the oracle's results, each with the rule it tests.

They test other implementations of the operators. `vectors` yields the cases of a target, and
`write` writes them to the files that the target's test runners read.
"""

# This package imports only directml, _inspection and the packages below them. Start with
# rules.py.

from gatherum._exports.help_signatures import plain_help

from .case import Case
from .targets import TARGETS, vectors, write
from .virtual import VirtualArray

__all__ = ["TARGETS", "Case", "VirtualArray", "vectors", "write"]

plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
