"""Pictures of calls in SVG are correct, complete and well-formed."""

import re
import xml.etree.ElementTree as ET

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import gatherum
from cases import CASES
from gatherum._inspection.pictures import svg
from gatherum._inspection.pictures.cells import CallValues, expression, fill_cells, letters
from gatherum._inspection.pictures.model import scene_of
from gatherum._inspection.pictures.roles import CallShapes, excess, reduce
from pictures import NAMESPACE, explanation_of, parse, texts_of
from source import ROOT
from strategies import calls

F4, I8 = "f4", "i8"
NUMBER = r"-?\d+\.?\d*"


def test_a_picture_is_saved(tmp_path):
    explanation = gatherum.explain("gather", [1, 2, 3], [2, 0])
    explanation.save(tmp_path / "call.SVG")
    explanation.save(str(tmp_path / "call.svg"))
    for path in (tmp_path / "call.SVG", tmp_path / "call.svg"):
        assert path.read_text(encoding="utf-8") == explanation.svg()
    with pytest.raises(ValueError, match="explain: pictures are SVG") as raised:
        explanation.save("call.png")
    assert str(raised.value) == (
        "explain: pictures are SVG: `path` must end in .svg, got 'call.png'"
    )


def test_the_picture_of_the_readme_is_that_of_its_call():
    kept = ROOT / "examples" / "gather.svg"
    table = np.array([[1, 2], [3, 4], [5, 6]])
    assert kept.read_text(encoding="utf-8") == gatherum.explain("gather", table, [2, 0]).svg()


def test_a_notebook_shows_the_picture_of_a_plan():
    plan = gatherum.plan("gather", ((4, 3), F4), ((2,), I8))
    page = plan._repr_html_()
    note = "A plan has shapes, not values. gatherum.explain(plan, data, indices) draws values."
    assert page == f"<div>{gatherum.explain(plan)._repr_html_()}<p>{note}</p></div>"
    style = "<style>.gatherum-picture{max-width:100%;height:auto}</style>"
    assert page.startswith(f"<div><div>{style}<svg ")
    assert "style=" not in page.partition("</svg>")[0]  # programs without pages draw nothing then
    assert "for i in range(2):" in page
    ET.fromstring(page)  # HTML that is also XML


def marked(text, name):
    """Return the number of elements with a class."""
    return sum(element.get("class") == name for element in parse(text).iter())


def placed(element, x=0.0, y=0.0):
    """Yield every element with the shift of its groups."""
    shift = re.match(rf"translate\(({NUMBER}) ({NUMBER})\)", element.get("transform", ""))
    if shift:
        x, y = x + float(shift[1]), y + float(shift[2])
    yield element, x, y
    for child in element:
        yield from placed(child, x, y)


def check_picture(text):
    """Check for elements outside the page, classes missing in a scheme, ids, and empty text."""
    root = parse(text)
    _, _, width, height = map(float, root.get("viewBox").split())
    assert root.get("role") == "img"
    assert root.find(f"{NAMESPACE}title").text
    style = root.find(f"{NAMESPACE}style").text
    assert style.startswith("@media (prefers-color-scheme:dark){")
    assert style.count("{") == style.count("}")
    for element, x, y in placed(root):
        assert element.get("id") is None
        look = element.get("class")
        assert look is None or look == svg.CLASS or f".{svg.CLASS} .{look}{{" in style
        tag = element.tag.removeprefix(NAMESPACE)
        if tag == "rect":
            left, top = x + float(element.get("x")), y + float(element.get("y"))
            assert left >= -0.1
            assert left + float(element.get("width")) <= width + 0.1
            assert top >= -0.1
            assert top + float(element.get("height")) <= height + 0.1
        elif tag == "text":
            size = float(element.get("font-size"))
            mono, bold = element.get("font-family"), element.get("font-weight")
            advance = svg.BOLD_ADVANCE if bold else svg.SANS_ADVANCE
            wide = size * len(element.text) * (svg.MONO_ADVANCE if mono else advance)
            left = x + float(element.get("x")) - (wide / 2 if element.get("text-anchor") else 0)
            assert left >= 0, element.text
            assert left + wide <= width, element.text
            assert size <= y + float(element.get("y")) <= height - 2
        elif tag in ("path", "polygon"):
            numbers = [*map(float, re.findall(NUMBER, element.get("d") or element.get("points")))]
            assert numbers
    assert 400 <= width <= 900, (width, texts_of(text)[0])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_picture_of_every_case_is_whole(case):
    arguments = [case.data, case.indices] + ([] if case.updates is None else [case.updates])
    attributes = dict(case.attributes)
    check_picture(gatherum.explain(case.op, *arguments, **attributes).svg())
    shapes = [(a.shape, a.dtype) for a in arguments]
    check_picture(gatherum.explain(case.op, *shapes, **attributes).svg())


SHAPES = [
    ("gather", (2, 3, 4), (5,), {"axis": 1}),
    ("gather", (4, 3), (5,), {}),
    ("gather", (3, 5), (6,), {"axis": 1}),
    ("gather", (5,), (6,), {"mode": "fill"}),
    ("gather", (6,), (2, 3), {"mode": "clip"}),
    ("gather", (2, 4), (2, 2), {"axis": 1}),
    ("gather", (2, 3, 4), (3,), {"axis": 2}),
    ("gather", (4, 3), (0,), {}),
    ("gather", (2, 0, 3), (3,), {}),
    ("gather", (0, 3), (2,), {}),
    ("gather", (0, 3), (2,), {"mode": "fill"}),
    ("gather", (4, 3), (), {}),
    ("gather", (4,), (), {}),
    ("gather", (200, 3000, 400), (64,), {"axis": 1}),
    ("gather", (50_000_000,), (20_000_000,), {"mode": "wrap"}),
    ("gather", (1,) * 64, (1,), {}),
    ("gather", (2,) * 20, (3,), {"axis": 7}),
    ("gather_elements", (3, 4), (3, 2), {"axis": 1}),
    ("gather_elements", (4, 3), (3, 3), {"mode": "wrap"}),
    ("gather_elements", (5,), (4,), {"mode": "drop"}),
    ("gather_elements", (2, 3, 2), (2, 2, 2), {"axis": 1}),
    ("gather_elements", (3, 2, 2), (2, 2, 2), {}),
    ("gather_elements", (2, 3, 4, 5, 6, 7), (2, 3, 4, 5, 6, 7), {"axis": 2}),
    ("gather_elements", (8192, 4096), (8192, 9), {"axis": 1}),
    ("gather_nd", (3, 4), (5, 2), {"mode": "fill"}),
    ("gather_nd", (4, 3), (5, 1), {}),
    ("gather_nd", (2, 3, 2), (2, 4, 1), {"batch_dims": 1}),
    ("gather_nd", (2, 3), (3, 0), {}),
    ("gather_nd", (), (3, 0), {}),
    ("gather_nd", (3,) * 7, (4, 7), {}),
    ("gather_nd", (256, 256, 256), (10_000_000, 3), {}),
    ("scatter_slices", (4, 3), (3,), {}),
    ("scatter_slices", (3, 4), (4,), {"axis": 1, "mode": "drop"}),
    ("scatter_slices", (4,), (2, 2), {"reduction": "add"}),
    ("scatter_slices", (4, 3), (), {"reduction": "mean"}),
    ("scatter_slices", (2, 3, 2), (3,), {"axis": 1, "reduction": "max"}),
    ("scatter_slices", (200, 3000, 400), (64,), {"axis": 1, "include_self": False}),
    ("scatter_elements", (3, 4), (3, 3), {"axis": 1, "mode": "drop"}),
    ("scatter_elements", (4, 3), (4, 3), {"reduction": "mean"}),
    ("scatter_elements", (900, 900), (900, 900), {"reduction": "add"}),
    ("scatter_nd", (4, 3), (4, 1), {}),
    ("scatter_nd", (6,), (5, 1), {"reduction": "add", "include_self": False}),
    ("scatter_nd", (2, 2), (3, 0), {"reduction": "max"}),
    ("scatter_nd", (300, 400, 50), (1000, 2), {"reduction": "min"}),
]


def explained(op, data, indices, attributes):
    updates, axis = [], attributes.get("axis", 0)
    if op == "scatter_slices":
        updates = [(data[:axis] + indices + data[axis + 1 :], F4)]
    elif op == "scatter_elements":
        updates = [(indices, F4)]
    elif op == "scatter_nd":
        updates = [(indices[:-1] + data[indices[-1] :], F4)]
    return gatherum.explain(op, (data, F4), (indices, I8), *updates, **attributes)


@pytest.mark.parametrize("call", SHAPES, ids=str)
def test_pictures_of_shapes_are_whole_and_small(call):
    explanation = explained(*call)
    picture = explanation.svg()
    check_picture(picture)
    words = " ".join(texts_of(picture))
    has_example_indices = "Only shapes are known, so the indices are an example." in words
    assert has_example_indices == (0 not in call[2] or (call[2][-1:] == (0,) and len(call[2]) > 1))
    reduced = "A small call of the same form is drawn:" in words.replace("\xa0", " ")
    scene = scene_of(explanation.plan.call)
    assert reduced == (scene.drawn.data != call[1] or scene.drawn.indices != call[2])
    assert len(texts_of(picture)) < 260


@pytest.mark.parametrize("call", SHAPES, ids=str)
def test_cells_and_indices_have_places_of_their_own(call):
    boxes = []
    for element, x, y in placed(parse(explained(*call).svg())):
        if element.find(f"{NAMESPACE}title") is not None and element.get("x"):  # has a tooltip
            left, top, width, height = (
                float(element.get(n)) for n in ("x", "y", "width", "height")
            )
            boxes.append((x + left, y + top, x + left + width, y + top + height))
    assert len(boxes) == len({*boxes})
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:number]:
            apart = left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]
            assert apart, (other, boxes[number])


def test_a_dimension_without_places_that_is_indexed_all_the_same():
    """Drawn as a small call, which shows only addressed positions: here none."""
    data, indices = np.zeros((1, 1, 4, 0, 1), "f4"), np.zeros((1, 1, 4, 4, 1), "i4")
    picture = gatherum.explain("gather_elements", data, indices, axis=3).svg()
    check_picture(picture)
    assert "IndexError" in texts_of(picture)


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_pictures_show_the_result_of_the_operator(data):
    """The operator moves the labels of the cells to their positions in the picture."""
    call = data.draw(calls(data_dtypes=[np.dtype("f4")]))
    explanation = explanation_of(call)
    s = explanation.plan.call
    scene = scene_of(s, explanation.indices)
    cells = fill_cells(scene, CallValues(indices=explanation.indices))
    check_picture(explanation.svg())
    if scene.is_reduced:
        return
    keywords = {"batch_dims" if s.op.endswith("_nd") else "axis": s.axis}
    keywords |= {"mode": s.mode, "negative": s.negative}
    names = named(s.data.shape, "a")
    if s.updates is None:
        shown = written(cells.moved, scene.drawn.moved)
        run = lambda: run_on(s.op, names, explanation.indices, fill_value="0", **keywords)  # noqa: E731
    elif s.reduction == "none":
        shown = written(cells.data, s.data.shape)
        new = named(scene.drawn.moved, "A")
        run = lambda: run_on(s.op, names, explanation.indices, new, **keywords)  # noqa: E731
    else:  # the number of updates, and whether the old value is included
        shown = counted(written(cells.data, s.data.shape))
        zeros = np.zeros(s.data.shape, int)
        run = lambda: np.minimum(  # noqa: E731
            run_on(s.op, zeros, explanation.indices, 1, reduction="add", **keywords),
            5 - s.include_self,
        )
    try:
        expected = run()
    except IndexError:
        assert scene.is_refused
    else:
        assert not scene.is_refused
        assert shown.tolist() == expected.tolist()


def run_on(op, *arguments, **keywords):
    return getattr(gatherum, op)(*arguments, **keywords)


def named(shape, first):
    return np.array(letters(shape, first), "U9").reshape(shape)


def written(cells, shape):
    return np.array(["".join(cell.lines) for cell in cells], "U99").reshape(shape)


def counted(texts):
    """Return the number of updates in each text, which has at most 5 terms with the old value."""
    counts = [
        0
        if re.fullmatch("[a-z]+", text)
        else len(re.findall(r"[A-Z]+|\N{HORIZONTAL ELLIPSIS}", text))
        for text in texts.ravel()
    ]
    return np.array(counts, int).reshape(texts.shape)


# Indices into data that is too large to be drawn whole, and the drawn part.
PARTS = [
    ("gather", (10_000, 50), np.arange(0, 9000, 37), {}),
    ("gather", (7, 10_000), np.arange(0, 8880, 37).reshape(12, -1)[:, :6], {"axis": 1}),
    ("gather_elements", (40, 1000), np.arange(1600).reshape(40, 40) % 1000, {"axis": 1}),
    ("gather_elements", (1000, 40), np.arange(1600).reshape(40, 40) % 1000, {}),
    ("gather_nd", (300, 400, 5), np.arange(600).reshape(-1, 2) % 300, {}),
    ("gather_nd", (30, 400, 5), np.arange(900).reshape(30, 30, 1) % 400, {"batch_dims": 1}),
]


@pytest.mark.parametrize(("op", "shape", "indices", "attributes"), PARTS)
def test_a_part_of_a_large_call_is_drawn_with_its_own_positions(op, shape, indices, attributes):
    data = np.arange(np.prod(shape)).reshape(shape)
    explanation = gatherum.explain(op, data, indices, **attributes)
    result = getattr(gatherum, op)(data, indices, **attributes)
    picture = explanation.svg()
    check_picture(picture)
    moves = re.findall(r">result\[([\d, ]+)\] = data\[([\d, ]+)\]<", picture)
    assert len(moves) >= 4
    for target, source in moves:
        places = [tuple(map(int, text.split(","))) for text in (target, source)]
        assert result[places[0]] == data[places[1]]
    words = " ".join(texts_of(picture)).replace("\xa0", " ")
    assert "Only the first indices are drawn" in words
    assert "Only some places of the data are drawn, with their positions." in words


# Many short dimensions: 2^60 positions, and indices with one duplicate, or many indices.
DEEP = [
    ("gather_nd", ((2,) * 60, F4), np.zeros((3, 60), int)),
    ("gather_nd", ((2,) * 60, F4), np.resize([[0] * 60, [1] * 60], (3, 60))),
    ("gather_nd", ((6,) * 6, F4), np.arange(30).reshape(5, 6) % 6),
    ("gather_elements", ((2,) * 18, F4), np.zeros((2,) * 18, int)),
    ("gather_elements", ((6,) * 7, F4), np.zeros((6,) * 7, int)),
    ("gather", ((2,) * 20, F4), np.ones((2,) * 12, int)),
]


@pytest.mark.parametrize(("op", "data", "indices"), DEEP)
def test_the_picture_of_many_dimensions_is_small(op, data, indices):
    picture = gatherum.explain(op, data, indices).svg()
    check_picture(picture)
    assert len(texts_of(picture)) < 260


def test_values_are_drawn_where_they_fit():
    explanation = gatherum.explain("gather", np.array(["<a>", "&", '"']), [2, 0])
    assert {"<a>", "&", '"'} <= set(texts_of(explanation.svg()))
    explanation = gatherum.explain("gather", np.array([1.5, -2.25, np.nan]), [0, 1])
    assert {"1.5", "-2.25", "nan"} <= set(texts_of(explanation.svg()))
    for hidden in (np.array([b"ab"]), np.array(["a long text"]), np.array([1j]), np.zeros(1, "V3")):
        texts = texts_of(gatherum.explain("gather", hidden, [0]).svg())
        assert "Letters stand for the elements of data." in texts


@pytest.mark.parametrize(
    ("data", "fill_value", "text"),
    [
        (["ab", "c"], 0, ""),
        (["ab", "c"], "z", "z"),
        ([True, False], True, "1"),
        ([1.5, 2.5], 0, "0"),
        (np.array([5, 6], "M8[s]"), 0, "fill"),
    ],
)
def test_fill_values_are_drawn_as_items_of_the_dtype(data, fill_value, text):
    explanation = gatherum.explain("gather", data, [1, 7], mode="fill", fill_value=fill_value)
    operands = CallValues(explanation.data, explanation.indices, None, fill_value)
    cells = fill_cells(scene_of(explanation.plan.call, explanation.indices), operands)
    assert cells.moved[1].lines == [text]
    check_picture(explanation.svg())


def test_text_that_xml_lacks_is_replaced():
    explanation = gatherum.explain("gather", np.array(["a\0b", "\x1b[0m", "\ufffe"]), [0, 1])
    assert {"a\ufffdb", "\ufffd[0m", "\ufffd"} <= set(texts_of(explanation.svg()))


def test_marks_do_not_depend_on_colour():
    """Each mark has a distinct shape, a dash or a line, and an explanation next to it."""
    picture = gatherum.explain("gather", np.arange(4), [2, 9, 2], mode="fill", fill_value=-1).svg()
    words = texts_of(picture)
    assert "a duplicate: an index before it names the same place" in words
    assert "out of bounds" in words
    assert "filled: its index is out of bounds" in words
    dashed = [
        e for e in parse(picture).iter() if e.get("stroke-dasharray") and e.get("class") == "bad"
    ]
    assert len(dashed) == 2  # the index, and the sample in the legend
    assert sum(e.get("stroke-opacity") == "0.55" for e in parse(picture).iter()) == 4  # hatching

    picture = gatherum.explain("scatter_nd", np.arange(4), [[1], [1], [9]], [5, 6, 7], mode="drop")
    words = texts_of(picture.svg())
    assert "overwritten by a later update" in words
    assert "dropped: its index is out of bounds" in words
    assert marked(picture.svg(), "strong") == 2  # a stroke through the update, and the sample


def test_the_picture_of_a_scatter_shows_its_data_where_there_is_room():
    explanation = gatherum.explain("scatter_nd", [10, 20, 30], [[2]], [7])
    assert [text for text in texts_of(explanation.svg()) if text in ("10", "20", "30", "7")] == [
        "10", "20", "30",  # data
        "10", "20", "7",  # result
        "7",  # updates
    ]  # fmt: skip
    assert texts_of(explanation.svg()).count("data") == 1
    wide = gatherum.explain("scatter_nd", ((6, 6), F4), ((3, 1), I8), ((3, 6), F4))
    assert "data" not in texts_of(wide.svg())
    assert "data" in texts_of(gatherum.explain("gather", [10, 20, 30], [2]).svg())


@pytest.mark.parametrize("shape", [(1, 0, 1), (0, 3)])
@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_many_indices_that_move_nothing_fit_in_the_picture(shape, mode):
    axis = shape.index(1, 1) if 1 in shape else 1
    indices = np.full((2, 8), 2**31 - 1, np.int32)
    updates = np.zeros((*shape[:axis], 2, 8, *shape[axis + 1 :]), F4)
    explanation = gatherum.explain(
        "scatter_slices", np.zeros(shape, F4), indices, updates, mode=mode, axis=axis
    )
    check_picture(explanation.svg())


def test_the_data_of_a_scatter_make_its_picture_no_wider():
    """They are drawn above the result: a picture on a phone is 370 pixels wide."""
    large = np.arange(12).reshape(3, 4) * 100
    for indices, updates in (([[2], [0]], [[1, 2, 3, 4], [5, 6, 7, 8]]), ([[2, 0]], [7])):
        root = parse(gatherum.explain("scatter_nd", large, indices, updates).svg())
        assert float(root.get("width")) < 520
        named = {e.text: e for e in root.iter() if e.text in ("data", "result")}
        assert named["data"].get("x") == named["result"].get("x")
        assert float(named["data"].get("y")) < float(named["result"].get("y"))
        last = [e.get("x") for e in root.iter() if e.text == "700"]
        assert len(last) == 2 and last[0] == last[1]


def test_a_call_that_raises_moves_nothing_in_its_picture():
    explanation = gatherum.explain("scatter_nd", np.arange(4), [[1], [9]], [5, 6])
    picture = explanation.svg()
    assert "IndexError" in texts_of(picture)
    assert not any(marked(picture, f"line{n}") for n in range(8))
    many = np.zeros((500, 1), int)
    many[-1] = 4
    late = gatherum.explain("scatter_nd", np.arange(4), many, 0)
    assert "IndexError" in texts_of(late.svg())  # although the wrong one is not drawn


@pytest.mark.parametrize(
    ("reduction", "terms", "lines"),
    [
        ("add", ["a"], ["a"]),
        ("add", ["a", "B", "C"], ["a+B+C"]),
        ("mul", ["a", "B"], ["a\N{MULTIPLICATION SIGN}B"]),
        ("max", ["a", "B", "C", "D"], ["max(a,B,", "C,D)"]),
        ("mean", ["a", "B", "C"], ["(a+B+C)/3"]),
        ("add", list("aBCDEF"), ["a+B+C+\N{HORIZONTAL ELLIPSIS}+F"]),
        ("min", ["1.25", "-3.5", "1e+06"], ["min(1.25,", "-3.5,", "1e+06)"]),
    ],
)
def test_a_fold_is_written_in_lines_that_fit(reduction, terms, lines):
    assert expression(reduction, terms) == lines


def test_a_fold_of_values_shows_its_value():
    explanation = gatherum.explain(
        "scatter_nd", [10, 20, 30], [[0], [2], [0]], [1, 2, 3], reduction="add"
    )
    assert {"10+1+3", "= 14", "30+2", "= 32", "20"} <= set(texts_of(explanation.svg()))
    fresh = gatherum.explain(
        "scatter_nd", [1.0, 2.0], [[0], [0]], [3, 6], reduction="mean", include_self=False
    )
    assert {"(3+6)/2", "= 4.5"} <= set(texts_of(fresh.svg()))


def test_hues_stay_apart_from_the_text_in_both_schemes():
    """Text and its background have a contrast of at least 4.5 to 1 (WCAG's AA)."""
    for light, dark in svg.COLOURS.values():
        for scheme, ink in ((light, "#1b1f24"), (dark, "#f0f3f6")):
            if "fill" in scheme and "stroke" in scheme:
                assert contrast(scheme["fill"], ink) >= 4.5
    for name in ("ink", "muted", "warning"):
        for scheme, paper in zip(svg.COLOURS[name], ("#ffffff", "#15181d"), strict=True):
            assert contrast(scheme["fill"], paper) >= 4.5, name


def contrast(one, other):
    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_small_call_is_of_the_form_of_the_large_one():
    for call in SHAPES:
        plan = explained(*call).plan
        full = CallShapes.of(plan.call)
        small = reduce(full)
        assert excess(small) == 0 or len(call[1]) > 6
        for role in ("outer", "named", "inner", "suffix"):
            pairs = zip(getattr(small, role), getattr(full, role), strict=True)
            assert all(0 <= less <= n and (less > 0) == (n > 0) for less, n in pairs)
        shapes = [(small.data, F4), (small.indices, I8)]
        updates = [(small.moved, F4)] if call[0].startswith("scatter") else []
        axis = {key: value for key, value in call[3].items() if key in ("axis", "batch_dims")}
        gatherum.plan(call[0], *shapes, *updates, **axis)  # the example is a valid call
