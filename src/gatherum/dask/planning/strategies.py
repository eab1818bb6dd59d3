"""The strategies: how the rows of a call move between chunks."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

# A table is small if every task may hold the whole table; updates are small if every chunk may
# receive all updates.
SMALL_BYTES = 64 << 20
# On a cluster, rows are moved by a shuffle if more pairs of tasks than this exchange rows.
MOST_PAIRS = 256

_Action = TypeVar("_Action")


class Strategy(StrEnum):
    """How the rows of a call move.

    Attributes
    ----------
    when : str
        The condition under which the strategy is chosen, as ``docs/dask.md`` states it.
    effect : str
        The effect on rows, as ``docs/dask.md`` states it.
    gathers : bool
        Whether gathers use it. Every scatter may use it.
    """

    when: str
    effect: str
    gathers: bool

    def __new__(cls, name: str, when: str, effect: str, gathers: bool = True) -> Strategy:
        """Create a row of the table."""
        row = str.__new__(cls, name)
        row._value_ = name
        row.when, row.effect, row.gathers = when, effect, gathers
        return row

    BLOCKWISE = (
        "blockwise",
        "the indexed dimensions are not chunked",
        "each task combines a block of indices with its block of data; rows do not move between "
        "tasks",
    )
    PARTIAL = (
        "partial",
        "a scatter of many updates into a small table, if the order of the updates does not matter "
        "(integers, bools, `max`, `min`, `fsum`, `fmean`) or if the last one wins",
        "each task folds its updates into a separate table; the tables are merged",
        False,
    )
    BROADCAST = (
        "broadcast",
        "a column of the table, or all indices and updates of a scatter, need at most "
        f"{SMALL_BYTES >> 20} MiB",
        "the whole small operand is sent to every task that needs a part of it",
    )
    TASKS = (
        "tasks",
        "otherwise",
        "entries are split by the owners of their rows; owners send rows back, or fold updates in "
        "order",
    )
    SHUFFLE = (
        "shuffle",
        f"as for `tasks`, with more than {MOST_PAIRS} pairs of tasks, on a cluster",
        "as for `tasks`, from worker to worker through their disks",
    )


def for_gathers(actions: Mapping[Strategy, _Action]) -> Mapping[Strategy, _Action]:
    """Return a table with a row for each strategy of gathers. Raise TypeError for other rows."""
    return _complete(actions, {strategy for strategy in Strategy if strategy.gathers})


def for_scatters(actions: Mapping[Strategy, _Action]) -> Mapping[Strategy, _Action]:
    """Return a table with a row for each strategy. Raise TypeError if the table lacks one."""
    return _complete(actions, set(Strategy))


def _complete(
    actions: Mapping[Strategy, _Action], strategies: set[Strategy]
) -> Mapping[Strategy, _Action]:
    if differing := actions.keys() ^ strategies:
        raise TypeError(f"strategies without a row, or without a use: {', '.join(differing)}")
    return actions
