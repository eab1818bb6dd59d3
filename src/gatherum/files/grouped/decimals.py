"""Columns of decimals, whose groups are reduced as integers of the smallest unit."""

from __future__ import annotations

import operator
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from typing import Any

from gatherum.files.arguments.operands import Operand, find_operand, open_all
from gatherum.files.file_call import RunSettings
from gatherum.files.formats.arrow import Arrow
from gatherum.files.formats.arrow_decimals import DecimalColumn, WideError, open_decimals
from gatherum.files.resources.stats import Stats
from gatherum.groups import decimals, errors
from gatherum.groups.reducing import ReduceOptions, results_of_decimals

from .batches import read_whole
from .calls import REDUCE_FILE, SORTING, GroupCall, Results
from .keys import located, resources_of

__all__ = ["find_decimals", "reduce_column"]

NUMBER_BYTES = 16


def find_decimals(operand: Operand | None, settings: RunSettings) -> DecimalColumn | None:
    """Return a column of decimals, None for other operands."""
    location = None if operand is None else located(operand)
    if location is None or not isinstance(location.format, Arrow):
        return None
    with ExitStack() as stack:
        return open_decimals(location, resources_of(stack, settings))


def reduce_column(call: GroupCall, column: DecimalColumn) -> tuple[Results, Stats]:
    """Return the result of each function, as `groups.reduce` does, and the statistics."""
    if "weights" in call.operands:
        raise errors.no_argument_of_decimals(REDUCE_FILE, "weights")
    runs: list[Stats] = []

    def run(names: Any, integers: Operand, fill: object) -> Results:
        operands = {**call.operands, "values": integers}
        used = replace(call, names=tuple(names), operands=operands, fill_value=fill)
        results, stats = used.run(None)
        runs.append(stats)
        return results

    axis, fill_value = call.attributes.axis, call.fill_value
    try:
        results = decimals.reduce_decimals(REDUCE_FILE, call.names, column, run, axis, fill_value)
    except WideError:
        results, stats = _in_memory(call, column)
        runs.append(stats)
    return results, reduce(operator.add, runs)


def _in_memory(call: GroupCall, column: DecimalColumn) -> tuple[Results, Stats]:
    """Reduce numbers of more than 64 bits, which must fit in memory."""
    attributes, size = call.attributes, call.size
    with ExitStack() as stack:
        resources = resources_of(stack, call.settings)
        where = {"groups": find_operand("groups", call.operands["groups"], REDUCE_FILE)}
        groups = open_all(where, resources)["groups"]
        needed, total = SORTING * NUMBER_BYTES * column.size + groups.nbytes, resources.budget.total
        if needed > total:
            raise errors.not_in_files(REDUCE_FILE, call.names[0], "decimal128", needed, total)
        resources.meter.rows, resources.meter.in_chunks = column.size, False
        numbers, entries = column.read(resources), read_whole(groups, resources)
        if size is None:
            size = max(0, int(entries.max(initial=-1)) + 1)
        options = ReduceOptions(
            size=size, axis=attributes.axis, mode=attributes.mode, negative=attributes.negative,
            fill_value=call.fill_value,
        )  # fmt: skip
        results = results_of_decimals(REDUCE_FILE, call.names, numbers, entries, options)
        return results, resources.meter.stats()
