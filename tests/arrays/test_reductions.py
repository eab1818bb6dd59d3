"""The table of reductions: complete, and the only list of them in Python."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import gatherum
from gatherum import _core
from gatherum._model import reductions
from gatherum._model.dtypes import is_reducible
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


def test_no_word_means_two_reductions() -> None:
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


def test_neutral_numbers_are_the_identities_of_the_core() -> None:
    source = (CORE / "model" / "types.hpp").read_text()
    rows = dict(re.findall(r'\.name = "(\w+)",.*?\.neutral = Neutral::(\w+)', source, re.DOTALL))
    assert rows.keys() == ROWS.keys()
    numbers = {"zero": 0, "one": 1}
    expected = {name: numbers.get(identity) for name, identity in rows.items()}
    assert {name: row.neutral for name, row in ROWS.items()} == expected | {"fsum": 0}


def test_a_neutral_number_changes_nothing() -> None:
    values = np.array([3.0, -2.0, 0.5])
    for name, row in ROWS.items():
        if row.neutral is not None:
            neutral = np.full(3, float(row.neutral))
            assert (
                gatherum.scatter_elements(values, [0, 1, 2], neutral, reduction=name) == values
            ).all()


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
