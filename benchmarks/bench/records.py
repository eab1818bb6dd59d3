"""Compute the record of a case: medians, the best peer, and the verdict on the goals."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from . import peers
from .worker import DIFFERS, EXACT

Record = dict[str, Any]
Times = Mapping[str, Mapping[str, list[float]]]  # family -> method -> time of each round
Examined = Mapping[str, "list[Record] | str"]  # family -> the record of each method, or a failure


def of_case(case: Record, examined: Examined, times: Times) -> Record:
    """Return the complete record of a workload.

    Parameters
    ----------
    case : dict
        The data known before the run: name, sizes, ``floor`` in ``unit``, ``goals``.
    examined : mapping
        For each family, its methods, or the reason why it has none.
    times : mapping
        For each family and timed method, the time of each round, in ``unit``.

    Returns
    -------
    dict
        `case` with ``ours``, ``peers``, ``ratios`` and ``met``.
    """
    wrong = [
        method for method in _methods(examined[peers.OURS]) if method["verdict"]["answer"] != EXACT
    ]
    ours: Record = {method: summary(runs) for method, runs in times[peers.OURS].items()}
    ours["answer"] = wrong[0]["verdict"] if wrong else {"answer": EXACT, "detail": ""}
    others = {
        family: _peer(examined[family], times.get(family, {}))
        for family in examined
        if family != peers.OURS
    }
    return judged({**case, "ours": ours, "peers": others})


def of_tiny(
    case: Record, rivals: tuple[str, ...], times: Times, failed: Mapping[str, str]
) -> Record:
    """Return the record of a tiny case, in which every statement is timed.

    Parameters
    ----------
    case : dict
        The data known before the run.
    rivals : tuple of str
        The statements with which the goal compares; all statements if empty.
    times : mapping
        For each family and statement, the time of each round.
    failed : mapping
        For each family that failed, the reason.

    Returns
    -------
    dict
        `case` with ``ours``, ``peers``, ``ratios`` and ``met``.
    """
    (runs,) = times[peers.OURS].values()
    others: dict[str, Record] = {family: {"failed": why} for family, why in failed.items()}
    for family, statements in times.items():
        if family not in (peers.OURS, *failed):
            methods = {method: summary(spent) for method, spent in statements.items()}
            counted = [method for method in methods if not rivals or method in rivals]
            best = min(counted or methods, key=lambda method: float(methods[method]["median"]))
            answer = EXACT if counted else "not counted"
            others[family] = {
                "way": best, **methods[best], "answer": answer, "detail": "", "ways": methods,
            }  # fmt: skip
    return judged({**case, "ours": {"recycled": summary(runs)}, "peers": others})


def judged(record: Record) -> Record:
    """Add the best peer, the ratios and the verdict on the goals to a record.

    Parameters
    ----------
    record : dict
        A record with ``ours``, ``peers``, ``goals`` and optionally ``floor``.

    Returns
    -------
    dict
        The record with ``best_peer``, ``ratios`` and ``met``. A peer with a different result is
        ignored.
    """
    sound = {
        family: peer["median"]
        for family, peer in record["peers"].items()
        if "median" in peer and peer["answer"] not in (DIFFERS, "not counted")
    }
    best = min(sound, key=lambda family: sound[family]) if sound else None
    ours, goals = record["ours"], record["goals"]
    ratios: dict[str, float | None] = {"peer": None, "floor": None}
    if best is not None:
        ratios["peer"] = sound[best] / ours["recycled"]["median"]
    if "out" in ours and "floor" in record:
        ratios["floor"] = ours["out"]["median"] / record["floor"]["median"]
    met = {
        "peer": _met(goals["peer"], ratios["peer"]),
        "floor": _met(ratios["floor"], goals["floor"]),
    }
    return {**record, "best_peer": best, "ratios": ratios, "met": met}


def by_least(record: Record) -> Record:
    """Return a record of the minimum times instead of the medians.

    Parameters
    ----------
    record : dict
        A record of medians.

    Returns
    -------
    dict
        The record with new verdicts: an estimate of the times on an idle machine.
    """
    parts = [part for part in ("ours", "peers", "floor") if part in record]
    return judged({**record, **{part: _least(record[part]) for part in parts}})


def _least(times: Record) -> Record:
    replaced = {
        key: _least(part) if isinstance(part, dict) else part for key, part in times.items()
    }
    return {**replaced, "median": times["min"]} if "min" in times else replaced


def _met(least: float | None, value: float | None) -> bool | None:
    return None if least is None or value is None else value >= least


def _methods(records: list[Record] | str) -> list[Record]:
    return [] if isinstance(records, str) else records


def _peer(records: list[Record] | str, times: Mapping[str, list[float]]) -> Record:
    if isinstance(records, str):
        return {"failed": records}
    if not times:
        details = [method["verdict"]["detail"] for method in records]
        return {"failed": "; ".join(details) or "offers no method for this case"}
    ((kept, runs),) = times.items()
    methods = {
        method["name"]: {"warm_up": 1e3 * method["seconds"], **method["verdict"]}
        for method in records
    }
    verdict = {key: methods[kept][key] for key in ("answer", "detail")}
    return {"way": kept, **summary(runs), **verdict, "ways": methods}


def summary(runs: list[float]) -> Record:
    """Return the median, the minimum and the number of some times."""
    return {"median": median(runs), "min": min(runs), "rounds": len(runs)}
