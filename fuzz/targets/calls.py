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
        actual = _found(call)
    _compare(call, expected, actual)
    if isinstance(actual, Exception):
        return " ".join((call.op, type(actual).__name__, call.kind))
    variant = call.kwargs.get("reduction", call.kwargs.get("mode", ""))
    return " ".join((call.op, _algorithm(call), call.kind, str(variant)))


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
        result = getattr(gatherum, call.op)(*call.args, **kwargs)
        if call.entry == "twice" and call.out is None:
            again = getattr(gatherum, call.op)(*call.args, **kwargs)
            assert same_bits(result, again), "the plan kept gives another result"
        return result
    except ERRORS as error:
        return error


def _algorithm(call: Call) -> str:
    with chosen_from(call.sizes):
        plan = gatherum.plan(
            call.op, *call.args, **{k: v for k, v in call.kwargs.items() if k != "fill_value"}
        )
        return f"{plan.kernel} {family(plan.algorithm)}"


# --- Checks


def _compare(call: Call, expected: Any, actual: Any) -> None:
    written = not isinstance(actual, Exception)
    if call.kind in ("", "fresh", "in place"):
        _same_outcome(call, expected, actual)
    else:
        _expect_refusal(call, expected, actual)
    if call.out is None or not isinstance(call.out, np.ndarray):
        assert all(memory.is_untouched() for memory in call.memories), f"memory changed: {call}"
        if written:
            assert type(actual) is np.ndarray and actual.flags.c_contiguous, f"{actual!r}: {call}"
            assert actual.flags.writeable and actual.flags.owndata, f"{actual.flags}: {call}"
        return
    assert not written or actual is call.out, f"another array came back: {call}"
    may_write = written or (call.op in GATHERS and isinstance(actual, IndexError))
    for memory in call.memories:
        if may_write and np.may_share_memory(memory.bytes, call.out):
            strays = memory.strays(call.out)
            assert strays == [], f"bytes beside `out` changed, {strays}: {call}"
        else:
            assert memory.is_untouched(), f"memory changed: {call}"


def _same_outcome(call: Call, expected: Any, actual: Any) -> None:
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        assert type(expected) is type(actual), f"{expected!r}, found {actual!r}: {call}"
        if isinstance(expected, IndexError):
            numbers = [re.findall(r"-?\d+", str(error)) for error in (expected, actual)]
            assert numbers[0] == numbers[1], f"{expected}, found {actual}: {call}"
    else:
        assert same_bits(expected, actual), f"{expected}, found {actual}: {call}"


def _expect_refusal(call: Call, expected: Any, actual: Any) -> None:
    """Check that an invalid `out` raises before any index is read."""
    error_types: tuple[type[Exception], ...] = (_refusal(call),)
    if isinstance(expected, (TypeError, ValueError)):
        error_types = (type(expected),)
        if call.kwargs.get("mode") in ("fill", "drop"):
            error_types += (_refusal(call),)  # `fill_value` is checked after `out`
    if call.kind == "overlapping" and not isinstance(expected, (TypeError, ValueError)):
        shared = any(
            np.shares_memory(call.out, np.asarray(a))
            for a in call.args
            if isinstance(a, np.ndarray)
        )
        if not shared:
            if type(actual) is not ValueError:  # an undecided overlap counts as one
                _same_outcome(call, expected, actual)
            return
    assert type(actual) in error_types, (
        f"{call.kind} `out`: found {actual!r}, not {error_types}: {call}"
    )


def _refusal(call: Call) -> type[Exception]:
    return TypeError if call.kind in ("another dtype", "no array", "masked") else ValueError
