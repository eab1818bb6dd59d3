"""Reduce decimals in files and in memory as integers that count the smallest unit."""

from __future__ import annotations

import math
import operator
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple

from gatherum.files.arguments.operands import Operand, find_operand, open_all
from gatherum.files.arguments.outputs import RunSettings
from gatherum.files.formats.arrow import Arrow
from gatherum.files.formats.arrow_decimals import DecimalColumn, WideError, open_decimals
from gatherum.files.resources.stats import Stats
from gatherum.groups import decimal_reductions
from gatherum.groups import errors as group_errors
from gatherum.groups.decimal_numbers import DecimalNumbers, decimals_in
from gatherum.groups.reducing import ReduceOptions, results_of_decimals

from . import errors
from .batches import read_whole
from .calls import REDUCE_FILE, SORTING, GroupCall, Results
from .keys import located, resources_of

NUMBER_BYTES = 16


class FillText(NamedTuple):
    """The text of a fill value, and the number or string for values other than decimals."""

    text: str
    value: object

    def exact(self) -> object:
        """Return the fill value for decimals, which has all digits of the text."""
        is_float = isinstance(self.value, float) and math.isfinite(self.value)
        return Decimal(self.text.strip()) if is_float else self.value


def find_decimals(
    operand: Operand | None, settings: RunSettings
) -> DecimalColumn | DecimalNumbers | None:
    """Return the decimals in a column of a file or in memory, None for other operands."""
    location = None if operand is None else located(operand)
    if location is None:
        return decimals_in(REDUCE_FILE, operand)
    if not isinstance(location.format, Arrow):
        return None
    with ExitStack() as stack:
        return open_decimals(location, resources_of(stack, settings))


def reduce_column(call: GroupCall, column: DecimalColumn | DecimalNumbers) -> tuple[Results, Stats]:
    """Return the result of each function, as `groups.reduce` does, and the statistics."""
    if "weights" in call.operands:
        raise group_errors.no_argument_of_decimals(REDUCE_FILE, "weights")
    runs: list[Stats] = []

    def reduce_integers(names: Any, integers: Operand, fill: object) -> Results:
        operands = {**call.operands, "values": integers}
        used = replace(call, names=tuple(names), operands=operands, fill_value=fill)
        results, stats = used.run(None)
        runs.append(stats)
        return results

    axis, fill_value = call.attributes.axis, call.fill_value
    try:
        results = decimal_reductions.reduce_decimals(
            REDUCE_FILE, call.names, column, reduce_integers, axis, fill_value
        )
    except WideError:
        assert isinstance(column, DecimalColumn)
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
            raise errors.values_larger_than_memory(
                REDUCE_FILE, call.names[0], "decimal128", needed, total
            )
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
