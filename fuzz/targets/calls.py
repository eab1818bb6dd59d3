"""Compare calls of the six operators with the oracle, bit for bit, in guarded memory.

The bytes determine the whole call: operator, dtypes, shapes, strides, index values, attributes,
`out`, and the sizes from which each algorithm is chosen. A call returns the oracle's result or
raises its exception, and writes nothing but its result.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import gatherum
from gatherum import reference
from gatherum._model.operators import GATHERS
from sizes import chosen_from, family
from strategies import same_bits

from .drawn import Call, drawn
from .source import Source

DICTIONARY: tuple[bytes, ...] = ()
ERRORS = (TypeError, ValueError, IndexError)


def run(data: bytes) -> str:
    """Run the call that the bytes describe, and return a label for it."""
    call = drawn(Source(data))
    for memory in call.memories:
        memory.seal()
    expected = _expected(call)
    if call.spoiled and isinstance(expected, (np.ndarray, IndexError)) and call.out is not None:
        return "spoiled"  # another axis may need another shape of `out`
    with chosen_from(call.sizes):
        found = _found(call)
    _compare(call, expected, found)
    if isinstance(found, Exception):
        return " ".join((call.op, type(found).__name__, call.kind))
    how = call.kwargs.get("reduction", call.kwargs.get("mode", ""))
    return " ".join((call.op, _algorithm(call), call.kind, str(how)))


def seeds() -> Iterator[bytes]:
    """Yield inputs at random, the same ones every time."""
    rng = np.random.RandomState(20)
    while True:
        yield rng.bytes(rng.randint(8, 64))


def _expected(call: Call) -> Any:
    try:
        return getattr(reference, call.op)(*call.args, **call.kwargs)
    except ERRORS as error:
        return error


def _found(call: Call) -> Any:
    kwargs = dict(call.kwargs)
    if call.out is not None:
        kwargs["out"] = call.out
    try:
        if call.entry == "plan":
            fill = {key: kwargs.pop(key) for key in ("fill_value",) if key in kwargs}
            plan = gatherum.plan(call.op, *call.args, **kwargs)
            return plan.run(*call.args, out=kwargs.get("out"), **fill)
        found = getattr(gatherum, call.op)(*call.args, **kwargs)
        if call.entry == "twice" and call.out is None:
            again = getattr(gatherum, call.op)(*call.args, **kwargs)
            assert same_bits(found, again), "the plan kept gives another result"
        return found
    except ERRORS as error:
        return error


def _algorithm(call: Call) -> str:
    with chosen_from(call.sizes):
        plan = gatherum.plan(
            call.op, *call.args, **{k: v for k, v in call.kwargs.items() if k != "fill_value"}
        )
        return f"{plan.kernel} {family(plan.algorithm)}"


# --- Checks


def _compare(call: Call, expected: Any, found: Any) -> None:
    written = not isinstance(found, Exception)
    if call.kind in ("", "fresh", "in place"):
        _same_outcome(call, expected, found)
    else:
        _expect_refusal(call, expected, found)
    if call.out is None or not isinstance(call.out, np.ndarray):
        assert all(memory.is_untouched() for memory in call.memories), f"memory changed: {call}"
        if written:
            assert type(found) is np.ndarray and found.flags.c_contiguous, f"{found!r}: {call}"
            assert found.flags.writeable and found.flags.owndata, f"{found.flags}: {call}"
        return
    assert not written or found is call.out, f"another array came back: {call}"
    may_write = written or (call.op in GATHERS and isinstance(found, IndexError))
    for memory in call.memories:
        if may_write and np.may_share_memory(memory.bytes, call.out):
            strays = memory.strays(call.out)
            assert strays == [], f"bytes beside `out` changed, {strays}: {call}"
        else:
            assert memory.is_untouched(), f"memory changed: {call}"


def _same_outcome(call: Call, expected: Any, found: Any) -> None:
    if isinstance(expected, Exception) or isinstance(found, Exception):
        assert type(expected) is type(found), f"{expected!r}, found {found!r}: {call}"
        if isinstance(expected, IndexError):
            numbers = [re.findall(r"-?\d+", str(error)) for error in (expected, found)]
            assert numbers[0] == numbers[1], f"{expected}, found {found}: {call}"
    else:
        assert same_bits(expected, found), f"{expected}, found {found}: {call}"


def _expect_refusal(call: Call, expected: Any, found: Any) -> None:
    """Check that an invalid `out` raises before any index is read."""
    kinds: tuple[type[Exception], ...] = (_refusal(call),)
    if isinstance(expected, (TypeError, ValueError)):
        kinds = (type(expected),)
        if call.kwargs.get("mode") in ("fill", "drop"):
            kinds += (_refusal(call),)  # `fill_value` is checked after `out`
    if call.kind == "overlapping" and not isinstance(expected, (TypeError, ValueError)):
        shared = any(
            np.shares_memory(call.out, np.asarray(a))
            for a in call.args
            if isinstance(a, np.ndarray)
        )
        if not shared:
            if type(found) is not ValueError:  # an undecided overlap counts as one
                _same_outcome(call, expected, found)
            return
    assert type(found) in kinds, f"{call.kind} `out`: found {found!r}, not {kinds}: {call}"


def _refusal(call: Call) -> type[Exception]:
    return TypeError if call.kind in ("another dtype", "no array", "masked") else ValueError
