"""The targets of test cases: the calls that each target supports, and the writers of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from os import PathLike, fspath
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from gatherum._arguments import plain_values
from gatherum._model import errors
from gatherum._model.dtypes import Extension, load_dtype
from gatherum._model.operators import OPERATORS, find_operator
from gatherum.directml import FeatureLevel
from gatherum.files.durable.file_sets import written_folder

from . import dxdispatch, npz, virtual, webnn
from . import onnx as of_onnx
from .case import Case, RuleCall, run_oracle
from .rules import RULES

TargetName: TypeAlias = Literal["npz", "onnx", "webnn", "dxdispatch"]
NAME = "vectors"


class Target(NamedTuple):
    """The functions of a target.

    Attributes
    ----------
    adapt : callable
        Converts a call, given the options of `vectors`, to the target's call. Returns None if the
        target does not have such a call or does not define its result.
    write : callable
        Writes the files of the target, given cases, a folder and the options.
    """

    adapt: Callable[..., RuleCall | None]
    write: Callable[..., int]


TARGETS = {
    "npz": Target(npz.adapt, npz.write),
    "onnx": Target(of_onnx.adapt, of_onnx.write),
    "webnn": Target(webnn.adapt, webnn.write),
    "dxdispatch": Target(dxdispatch.adapt, dxdispatch.write),
}


def vectors(
    format: TargetName = "npz",
    op: object = None,
    dtype: DTypeLike | None = None,
    rule: str | None = None,
    seed: int = 0,
    *,
    opset: int | None = None,
    feature_level: str | None = None,
) -> Iterator[Case]:
    """Yield test cases for other implementations of the operators.

    Parameters
    ----------
    format : {"npz", "onnx", "webnn", "dxdispatch"}, default "npz"
        The target. ``"npz"`` includes all cases, with this package's results. The other targets
        include the cases that they define, with their rules; for example, WebNN clamps
        out-of-bounds indices.
    op : str or callable, optional
        The operator. The default is all operators.
    dtype : data-type, default float32
        The dtype of the data, unless the rule is about dtypes.
    rule : str, optional
        The rule. The default is all rules except ``"far_sizes"``. The cases of ``"far_sizes"`` have
        row numbers and offsets past 2^31, with tables that are described, not stored. This rule is
        available only for ``"npz"``, because the files of the other formats store all values.
    seed : int, default 0
        The seed of the random cases.
    opset : int, optional
        The ONNX opset, up to the newest opset of the package onnx. The default is the opset of the
        newest of the operators. Only for ``"onnx"``.
    feature_level : str, optional
        The DirectML feature level. The default is the newest one. Only for ``"dxdispatch"``.

    Yields
    ------
    Case
        Calls with the results or errors of `gatherum.reference`, which shares no code with the
        core.

    Raises
    ------
    ValueError
        If an argument has an invalid value, or does not apply to the format.

    Examples
    --------
    >>> import gatherum
    >>> case = next(gatherum.vectors(op="scatter_nd", rule="last_duplicate"))
    >>> case.operands["indices"].tolist(), case.source
    ([[1, 0], [1, 0], [2, 0], [1, 0]], 'docs/semantics.md#duplicates-and-reductions')
    >>> case.expected
    array([[ 0.,  1.],
           [53.,  3.],
           [52.,  5.]], dtype=float32)
    """
    target = TARGETS[plain_values.as_choice(NAME, "format", format, tuple(TARGETS))]
    rules = tuple(RULES)
    if rule is not None:
        rules = (plain_values.as_choice(NAME, "rule", rule, (*RULES, virtual.NAME)),)
    rows = list(OPERATORS.values()) if op is None else [find_operator(op, NAME)]
    checked_dtype = np.float32 if dtype is None else dtype
    item_dtype = load_dtype(
        checked_dtype if isinstance(checked_dtype, str) else np.dtype(checked_dtype)
    )
    if isinstance(item_dtype, Extension):
        raise errors.needs_ml_dtypes(NAME, item_dtype)
    for name, value, option_format in (
        ("opset", opset, "onnx"),
        ("feature_level", feature_level, "dxdispatch"),
    ):
        if value is not None and format != option_format:
            raise ValueError(f"{NAME}: `{name}` is for format {option_format!r}, got {format!r}")
    if opset is not None:
        of_onnx.check_opset(plain_values.as_integer(NAME, "opset", opset), rows)
    if feature_level is not None:
        _check_level(feature_level)
    options = {"opset": opset, "feature_level": feature_level}
    seed_value = plain_values.as_size(NAME, "seed", seed)
    if rule == virtual.NAME:
        if format != "npz":
            raise ValueError(
                f"{NAME}: `rule` {rule!r} is for format 'npz', whose index describes tables that "
                f"are not stored, got {format!r}"
            )
        return chain.from_iterable(virtual.cases(row, item_dtype) for row in rows)
    return _cases(target, list(rules), rows, item_dtype, seed_value, options)


def _check_level(level: str) -> None:
    try:
        FeatureLevel.of(level)
    except ValueError as error:
        text = str(error).replace("feature level", "`feature_level`")
        raise ValueError(f"{NAME}: {text}") from None


def _cases(
    target: Target,
    rules: list[str],
    rows: list[Any],
    dtype: Any,
    seed: int,
    options: dict[str, Any],
) -> Iterator[Case]:
    for row in rows:
        for name in rules:
            rng = np.random.default_rng([seed, *f"{row.name} {name}".encode()])
            ordinal = 0
            for call in RULES[name].calls(row, dtype, rng):
                adapted = target.adapt(call, **options)
                if adapted is None:
                    continue
                expected, error = run_oracle(adapted)
                if error in ("TypeError", "ValueError"):
                    continue  # the dtype has no such reduction
                title = f"{row.name}_{name}_{ordinal}"
                yield Case(title, *adapted, expected, error, name, RULES[name].source)
                ordinal += 1


def write(folder: str | PathLike[str], format: TargetName = "npz", **options: Any) -> int:
    """Write the cases of `gatherum.vectors` to the files that a target's test runners read.

    Parameters
    ----------
    folder : path
        A folder that is empty or does not exist. Either all cases are written, or nothing changes.
    format, **options
        As in `gatherum.vectors`.

    Returns
    -------
    int
        The number of cases.

    Raises
    ------
    ImportError
        If the format needs the package onnx and it is not installed.
    ValueError
        If the target has no such case, or for the reasons listed in `gatherum.vectors`.
    OSError
        If a file cannot be written, or the folder is not empty.
    """
    cases = vectors(format, **options)
    if (first := next(cases, None)) is None:
        raise ValueError(f"{NAME}: {format} has no case of these choices")
    far = isinstance(first.operands["data"], virtual.VirtualArray)
    with written_folder(fspath(folder)) as target_folder:
        all_cases = chain([first], cases)
        if far:
            return virtual.write(all_cases, target_folder)
        return TARGETS[format].write(all_cases, target_folder, options.get("opset"))
