"""Programs as values: equal, hashable, serialized as bytes, and rejected when damaged."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import gatherum
from gatherum import _core
from gatherum._model.reductions import REDUCTIONS
from sizes import chosen_from

Program = _core.Program


def _plan():
    return gatherum.plan(
        "scatter_nd", ((5, 4), "f4"), ((3, 1), "i8"), ((3, 4), "f4"), reduction="add"
    )


def test_defaults_and_named_fields():
    program = _plan().program
    assert (program.scatter, program.mode, program.reduction) == (
        True,
        _core.Mode["raise"],
        _core.Reduction.add,
    )
    assert (program.value, program.item, program.shape) == (_core.Value.float32, 4, (5, 4))
    assert program.nest == tuple(_plan().nest)
    with pytest.raises(TypeError, match="Program: an unknown field"):
        Program(colour=1)
    with pytest.raises(AttributeError):
        program.item = 8


def test_equal_programs_are_one_value():
    one, two = _plan().program, _plan().program
    assert one == two and hash(one) == hash(two) and bytes(one) == bytes(two)
    other = gatherum.plan("gather", ((5, 4), "f4"), ((3,), "i8")).program
    assert one not in (other, 3)


def test_a_plan_pickles_and_runs():
    data, indices = np.arange(12.0).reshape(3, 4), np.array([2, 0])
    plan = gatherum.plan("gather", data, indices)
    for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert again == plan and again.program == plan.program
        assert again.run(data, indices).tolist() == data[indices].tolist()


def test_a_plan_is_pickled_as_its_arguments():
    data, indices = np.arange(3), np.array([0, 2])
    plan, other = (gatherum.plan("gather", ((n,), "i8"), indices) for n in (3, 1 << 40))
    mixed = dataclasses.replace(plan, program=other.program)
    again = pickle.loads(pickle.dumps(mixed))
    assert again.program == plan.program
    with pytest.raises(ValueError, match="`data` is smaller than what it addresses"):
        mixed.run(data, indices)
    make, (op, *arguments) = plan.__reduce__()
    for damaged in (
        ("gatherings", *arguments),
        (op, ((3,), "O"), *arguments[1:]),
        (op, *arguments[:3], {"axis": 7}, "cpu"),
        (op, *arguments[:4], "torch"),
    ):
        with pytest.raises((TypeError, ValueError)):
            make(*damaged)


@pytest.mark.parametrize("name", ["data", "indices", "updates", "out"])
def test_a_plan_with_the_program_of_another_call_is_refused(name):
    small = {"data": (5, 4), "indices": (3, 1), "updates": (3, 4), "out": (5, 4)}
    if name != "out":
        del small["out"]

    def planned(rows):
        sizes = {key: (rows * n, *trailing) for key, (n, *trailing) in small.items()}
        arrays = {key: np.zeros(shape, "i4") for key, shape in sizes.items()}
        out = arrays.pop("out", None)
        return gatherum.plan("scatter_nd", *arrays.values(), out=out), arrays, out

    (plan, arrays, out), (other, *_) = planned(1), planned(8)
    mixed = dataclasses.replace(plan, program=other.program)
    with pytest.raises(ValueError, match=r"not a plan of these operands"):
        mixed.run(*arrays.values(), out=out)
    gather = gatherum.plan("gather", ((5, 4), "i4"), ((3,), "i4"))
    with pytest.raises(ValueError, match=r"not a plan of these operands"):
        dataclasses.replace(plan, program=gather.program).run(*arrays.values(), out=out)


def test_bytes_hold_the_whole_program():
    program = _plan().program
    again = Program.from_bytes(bytes(program))
    assert again == program and repr(again) == repr(program)
    assert again.nest == program.nest and again.fold_nest == program.fold_nest


def test_every_damaged_byte_is_found():
    whole = bytes(_plan().program)
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= 1 << (i % 8)
        with pytest.raises(ValueError, match="not a program"):
            Program.from_bytes(bytes(damaged))
    for size in (0, 7, 8, 16, len(whole) - 8, len(whole) - 1, len(whole) + 8):
        with pytest.raises(ValueError, match="not a program"):
            Program.from_bytes((whole + bytes(8))[:size])


def _checksum(words):
    total = 0xCBF29CE484222325
    for word in words:
        total = (total ^ (word % 2**64)) * 0x100000001B3 % 2**64
    return total


def _forged(change):
    """Return the bytes of a program with some words replaced, and a valid checksum."""
    words = np.frombuffer(bytes(_plan().program), "<i8")[:-1].copy()
    change(words)
    plain = [int(word) for word in words]
    return words.tobytes() + _checksum(plain).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (1, 2, "of another version"),
        (1, 0, "of another version"),
        (3, 4, "unknown mode"),
        (3, 9, "unknown mode"),
        (4, 2, "damaged"),
        (5, 3, "no such width"),
        (5, 16, "no such width"),
        (5, 256 + 8, "damaged"),
        (8, -1, "negative item size"),
        (9, len(REDUCTIONS), "unknown"),
        (9, 77, "unknown"),
        (10, 0, "not defined for its value type"),
        (10, 14, "not defined for its value type"),
        (10, 16, "unknown"),
        (12, 65, "damaged"),
        (13, 1, "not a nest"),
        (15, 3, "not a nest"),
        (16, 0, "not a nest"),
        (16, -5, "not a nest"),
    ],
)
def test_programs_that_no_plan_makes_are_refused(place, value, why):
    def change(words):
        words[place] = value

    assert Program.from_bytes(_forged(lambda words: None)) == _plan().program
    with pytest.raises(ValueError, match=why):
        Program.from_bytes(_forged(change))


def test_words_behind_the_last_field_are_refused():
    words = [int(word) for word in np.frombuffer(bytes(_plan().program), "<i8")[:-1]] + [0]
    content = np.array(words).tobytes() + _checksum(words).to_bytes(8, "little")
    with pytest.raises(ValueError, match="damaged"):
        Program.from_bytes(content)


def test_more_loops_or_components_than_a_nest_holds_are_refused():
    words = [int(word) for word in np.frombuffer(bytes(_plan().program), "<i8")[:-1]]
    for nest in (
        [65, 0, 1, 16, *[1, 0, 0, 0] * 65, 5, 16, 0],
        [1, 0, 65, 16, 3, 0, 8, 16, *[1, 0, 0] * 65],
    ):
        long = words[:12] + nest + words[23:]
        content = np.array(long).tobytes() + _checksum(long).to_bytes(8, "little")
        with pytest.raises(ValueError, match="damaged"):
            Program.from_bytes(content)


LOOPS, COMPONENTS = ((3, 0, 8, 16),), ((5, 16, 0),)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"scatter": False}, "a reduction that is not defined"),
        ({"item": 2}, "a reduction that is not defined"),
        ({"item": 8}, "a reduction that is not defined"),
        ({"nest": (0, (*LOOPS, (2, 8, 8, 8)), COMPONENTS, 8)}, "not a nest"),
        ({"nest": (0, (*LOOPS, (2, 8, 0, 8), (2, 4, 8, 4)), COMPONENTS, 4)}, "not a nest"),
        ({"nest": (0, LOOPS, ((-1, 16, 0),), 16)}, "not a nest"),
        ({"nest": (0, LOOPS, COMPONENTS, 6)}, "not a nest"),
        ({"nest": (0, LOOPS, COMPONENTS, -16)}, "not a nest"),
        ({"checks": (0, LOOPS, (), 0)}, "nests that do not belong together"),
        ({"checks": (0, LOOPS, COMPONENTS, 4)}, "not a nest"),
        ({"copy": (0, LOOPS, COMPONENTS, 80)}, "not a nest"),
        ({"unit_loops": 1}, "unit loops outside of the nest"),
        ({"unit_loops": -1}, "unit loops outside of the nest"),
        ({"fold_unit_loops": 1}, "unit loops outside of the nest"),
        ({"fold_unit_loops": -1}, "unit loops outside of the nest"),
        ({"line_chunk": -1}, "a negative line chunk"),
        ({"shape": (5, -1)}, "a negative size"),
        ({"shape": (1,) * 65}, "`shape` is too long"),
        ({"nest": (0, LOOPS * 65, COMPONENTS, 16)}, "`nest` is too long"),
        ({"nest": (0, LOOPS, COMPONENTS * 65, 16)}, "`nest` is too long"),
        ({"nest": (0, LOOPS, COMPONENTS)}, "`nest` is not a nest"),
        ({"nest": (0, LOOPS, COMPONENTS, 16, 0)}, "`nest` is not a nest"),
        ({"line_chunk": 2**63}, "`line_chunk` does not fit in 64 bits"),
        ({"item": -(2**63) - 1}, "`item` does not fit in 64 bits"),
        ({"index_width": 2**32 + 8}, "`index_width` is out of range"),
    ],
)
def test_fields_that_fit_no_call_are_refused(changed, why):
    program = _plan().program
    fields = {
        name: getattr(program, name)
        for name, what in vars(Program).items()
        if isinstance(what, property)
    }
    assert Program(**fields) == program
    with pytest.raises(ValueError, match=why):
        Program(**fields | changed)


def test_names_come_from_the_core():
    assert tuple(one.name for one in _core.Reduction) == gatherum._model.reductions.REDUCTIONS
    assert [value.name for value in _core.Value][-2:] == ["complex64", "complex128"]


@pytest.mark.parametrize("stride", [2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_strides_longer_than_any_memory_do_no_harm(stride):
    plan = gatherum.plan("gather_nd", ((5, 4), "f4"), ((300, 2, 2), "i8"))
    names = "item", "unit_loops", "checks", "shape"
    fields = {name: getattr(plan.program, name) for name in names}
    line, loops, components, block = plan.program.nest
    far = tuple((size, stride, offset) for size, _, offset in components)
    for kept in (far, far[:1]):  # nox -s asan detects overflowing numbers
        checks = (*fields["checks"][:2], fields["checks"][2][: len(kept)], fields["checks"][3])
        nest = (line, loops, kept, block)
        program = Program(**fields | {"nest": nest, "checks": checks})
        assert Program.from_bytes(bytes(program)).nest == nest
        assert _core.describe(program)[0] == "direct"


def test_the_algorithm_follows_the_number_of_threads():
    before = gatherum.get_num_threads()
    shapes = {
        "ints": (((1000,), "i8"), ((10**6, 1), "i8"), ((10**6,), "i8")),
        "floats": (((3 * 10**5,), "f8"), ((10**6, 1), "i8"), ((10**6,), "f8")),
        "rows": (((1000, 64), "f4"), ((10**6, 1), "i8"), ((10**6, 64), "f4")),
        "few": (((9,), "f4"), ((5, 1), "i8"), ((5,), "f4")),
    }
    expected = {
        1: ["serial_accumulators", "serial_accumulators", "direct", "direct"],
        2: ["private_accumulators", "serial_accumulators", "by_column", "direct"],
        3: ["private_accumulators", "divided_accumulators", "by_range", "direct"],
        4: ["private_accumulators", "divided_accumulators", "by_range", "direct"],
    }
    try:
        for threads, names in expected.items():
            gatherum.set_num_threads(threads)
            with chosen_from({"least_column_bytes": 128}):  # on any processor
                plans = [gatherum.plan("scatter_nd", *s, reduction="add") for s in shapes.values()]
                assert [plan.algorithm for plan in plans] == names
            assert f"{threads} threads" in plans[0].reason or threads == 1
            assert f"algorithm {names[1]}: {plans[1].reason}" in str(gatherum.explain(plans[1]))
    finally:
        gatherum.set_num_threads(before)


FIELDS = (
    *("scatter", "mode", "negative", "index_width", "index_signed", "index_swapped", "item"),
    *("reduction", "value", "include_self", "nest", "unit_loops", "split_line", "line_chunk"),
    *("fold_nest", "fold_unit_loops", "covers_data", "checks", "copy", "shape"),
)


def _with(program, **other):
    return Program(**({name: getattr(program, name) for name in FIELDS} | other))


def test_nests_that_do_not_belong_together_are_refused():
    """One nest determines the size of scratch memory, and another one addresses it."""
    program = gatherum.plan(
        "scatter_nd", ((500,), "f4"), ((4000, 1), "i8"), ((4000,), "f4"), reduction="mean"
    ).program
    assert _with(program) == program
    line, loops, ((size, stride, offset),), block = program.nest
    wide = (line, loops, ((2 * size, stride, offset),), block)
    few = (program.checks[0], ((1, 0, 0, 0),), *program.checks[2:])
    moving = (line, ((4000, 4, 8, 4),), program.nest[2], block)
    for other in (
        {"nest": wide},
        {"fold_nest": wide},
        {"checks": few},
        {"nest": moving},
        {"fold_nest": moving},
        {"split_line": True},
    ):
        with pytest.raises(ValueError, match="nests that do not belong together"):
            _with(program, **other)
    with pytest.raises(ValueError, match="not a nest"):
        _with(program, nest=(line, loops, program.nest[2], 2**63 - 4))


def test_a_plan_made_by_hand_needs_a_program():
    plan = gatherum.plan("gather", np.zeros(3), np.zeros(2, int))
    incomplete = gatherum.Plan(plan.call, plan.shape, plan.kernel, plan.nest, plan.bytes, None)
    with pytest.raises(TypeError, match="is not a program"):
        incomplete.run(np.zeros(3), np.zeros(2, int))


@pytest.mark.parametrize("other", [object(), (), "", 2**70, np.zeros(3)], ids=type)
def test_only_plans_have_programs(other):
    data, indices = np.arange(3.0), np.array([2, 0])
    assert gatherum.plan("gather", data, indices).run(data, indices).tolist() == [2, 0]
    with pytest.raises(AttributeError, match="program"):
        gatherum.Plan.run(other, data, indices)
