"""The table of reductions: complete, and the only list of them in Python."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from gatherum import _core
from gatherum._core import Neutral
from gatherum._model import reductions
from gatherum._model.dtypes import accumulator_dtype, is_reducible, neutral_item
from gatherum._model.reductions import FOLDS, REDUCTIONS, ROWS, ReductionRow
from gatherum.reference.reductions import REDUCTIONS as OF_ORACLE
from source import ROOT
from strategies import REDUCTIONS_OF

PACKAGE = Path(gatherum.__file__).parent
CORE = ROOT / "src" / "core"
TABLES = ("reductions.py", "derivatives.py")


def test_a_reduction_of_the_core_without_a_row_is_named() -> None:
    rows, forgotten = tuple(ROWS.values()), ", ".join(REDUCTIONS[-2:])
    message = f"^gatherum._model.reductions has no row for {forgotten} of the core$"
    with pytest.raises(ImportError, match=message):
        reductions._in_order_of_core(rows[:-2])


def test_a_row_without_a_reduction_of_the_core_is_named() -> None:
    more = ROWS["max"]._replace(name="median")  # type: ignore[arg-type]
    with pytest.raises(ImportError, match=r"^the core has no reduction median, which has a row in"):
        reductions._in_order_of_core((*ROWS.values(), more))


@pytest.mark.parametrize("field", ReductionRow._fields)
def test_no_field_of_a_row_has_a_default(field: str) -> None:
    fields = ROWS["add"]._asdict()
    del fields[field]
    with pytest.raises(TypeError, match=field):
        reductions.ReductionRow(**fields)


def test_each_alias_belongs_to_one_reduction() -> None:
    for words in ("aliases", "torch_scatter"):
        all_of_them = [word for row in ROWS.values() for word in getattr(row, words)]
        assert len(set(all_of_them)) == len(all_of_them)
    assert not set(reductions.ALIASES) & set(REDUCTIONS)


def test_the_oracle_and_the_core_define_reductions_for_the_same_dtypes() -> None:
    assert OF_ORACLE == REDUCTIONS
    for reduction in FOLDS:
        for dtype in REDUCTIONS_OF["none"]:
            assert is_reducible(dtype, reduction) == (dtype in REDUCTIONS_OF[reduction]), reduction


def test_properties_of_reductions_in_the_core_agree() -> None:
    for name in FOLDS:
        reduction = _core.Reduction[name]
        for value in _core.Value:
            if _core.has_meaning(value, reduction):
                rounds = _core.sum_type(value, reduction) != value or _core.is_exact(reduction)
                assert _core.needs_accumulator(value, reduction, False)
                assert _core.needs_accumulator(value, reduction, True) == (
                    rounds or _core.divides(reduction)
                )
            else:
                assert not _core.is_any_order(value, reduction)
        assert ROWS[name].needs_values or _core.gradient_of(reduction) is _core.Gradient.none


WITH_NEUTRAL_ITEM = [
    (dtype, reduction)
    for reduction in FOLDS
    for dtype in REDUCTIONS_OF[reduction]
    if neutral_item(dtype, reduction) is not None
]


@pytest.mark.parametrize(("dtype", "reduction"), WITH_NEUTRAL_ITEM)
def test_a_fold_with_the_neutral_element_changes_no_bit(dtype: Any, reduction: str) -> None:
    sums: Any = accumulator_dtype(dtype, reduction)
    neutral = np.frombuffer(neutral_item(dtype, reduction) or b"", sums)
    numbers = [0, 1, 2, 100] if sums.kind in "bu" else [-100, -1, 0, 1, 100]
    if sums.kind not in "biu":
        numbers += [-0.0, 0.5, -np.inf, np.inf]
    values = np.array(numbers).astype(sums)
    fold: Any = "add" if _core.divides(_core.Reduction[reduction]) else reduction
    old = np.repeat(neutral, len(values))
    result = gatherum.scatter_elements(old, np.arange(len(values)), values, reduction=fold)
    assert result.tobytes() == values.tobytes()


def test_folds_without_a_neutral_element() -> None:
    """Products of complex numbers have none: 1 times a number can change the sign of a zero."""
    has_none = {
        name for name in FOLDS if _core.accumulator_neutral(_core.Reduction[name]) is Neutral.none
    }
    assert {"fsum", "fmean"} <= has_none
    every = {(dtype.name, fold) for fold in FOLDS for dtype in REDUCTIONS_OF[fold]}
    without = every - {(dtype.name, fold) for dtype, fold in WITH_NEUTRAL_ITEM}
    products = {("complex64", "mul"), ("complex128", "mul")}
    assert without == {pair for pair in every if pair[1] in has_none} | products


def test_nothing_else_in_the_package_lists_reductions() -> None:
    """Code that repeats the names of reductions would omit a new reduction."""
    locations = []
    for path in sorted(PACKAGE.rglob("*.py")):
        # The functions over groups are different, although some have the same names.
        if path.name in TABLES or path.parent.name in ("reference", "groups"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Tuple | ast.List | ast.Set):
                items = node.elts
            elif isinstance(node, ast.Dict):
                items = [key for key in node.keys if key is not None]
            else:
                continue
            words = {item.value for item in items if isinstance(item, ast.Constant)}
            if len(words & set(FOLDS)) > 1:
                locations.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert locations == []
