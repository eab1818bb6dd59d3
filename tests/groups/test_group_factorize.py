"""`factorize` numbers keys as the oracle's loops do, for every kind of column."""

import numpy as np
import pytest

import gatherum
from gatherum.groups import arrow_arrays, factorizing
from gatherum.reference import groups as reference
from strategies import same_bits

NAN = float("nan")
BOTH = pytest.mark.parametrize("module", [gatherum.groups, reference], ids=["package", "oracle"])
KEYS = {
    "strings": ["b", "a", "b", "", "a"],
    "bytes": [b"b", b"a", b"b"],
    "integers that are far apart": [10**9, 5, 10**9],
    "floats with NaN": [2.0, NAN, 1.0, 2.0],
    "dates with NaT": np.array(["2020-02-01", "NaT", "2020-01-01"], "M8[D]"),
    "bools": [True, False, True],
    "objects with None": np.array(["b", None, "a"], object),
    "two dimensions": [[3, 1], [1, 2]],
    "nothing": np.array([], "U3"),
}


@pytest.mark.parametrize("with_arrow", [True, False])
@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("name", KEYS)
def test_keys(name, sort, with_arrow, monkeypatch):
    if not with_arrow:
        monkeypatch.setattr(factorizing, "_pyarrow", lambda: None)
    numbers, labels = gatherum.groups.factorize(KEYS[name], sort=sort)
    of_oracle, known = reference.factorize(KEYS[name], sort=sort)
    assert same_bits(of_oracle, numbers)
    assert (labels.dtype, labels.tolist()) == (known.dtype, known.tolist())


INTEGERS = ["i1", "u1", "<i4", ">i4", "i8", "u8"]


@pytest.mark.parametrize("span", ["dense", "wide", "all"])
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("with_arrow", [True, False])
def test_integers(dtype, span, with_arrow, monkeypatch):
    monkeypatch.setattr(factorizing, "_MANY_KEYS", 1)
    if not with_arrow:
        monkeypatch.setattr(factorizing, "_pyarrow", lambda: None)
    rng, dtype = np.random.default_rng(2), np.dtype(dtype)
    limits = np.iinfo(dtype)
    keys = rng.integers(limits.max - 50, limits.max, 300, dtype.newbyteorder("="), endpoint=True)
    keys = keys.astype(dtype)
    if span != "dense":
        keys[::7] = limits.min
    if span == "all":
        keys = np.concatenate([keys, np.arange(256).astype(dtype)])
    for sort in (True, False):
        numbers, labels = gatherum.groups.factorize(keys, sort=sort)
        of_oracle, known = reference.factorize(keys, sort=sort)
        assert same_bits(of_oracle, numbers)
        assert (labels.dtype, labels.tolist()) == (known.dtype, known.tolist())


@BOTH
def test_several_keys(module):
    numbers, labels = module.factorize(["b", "a", "b", "a"], [2.0, 1.0, NAN, 2.0])
    assert numbers.tolist() == [2, 0, -1, 1]
    assert [one.tolist() for one in labels] == [["a", "a", "b"], [1.0, 2.0, 2.0]]
    numbers, labels = module.factorize([3, 1, 3], [0, 0, 0], sort=False)
    assert (numbers.tolist(), [one.tolist() for one in labels]) == ([0, 1, 0], [[3, 1], [0, 0]])


def test_many_tuples_need_no_table_of_all():
    rng = np.random.default_rng(1)
    keys = [rng.permutation(3000) for _ in range(4)]
    keys = [np.concatenate([key, key[:500]]) for key in keys]
    for sort in (True, False):
        numbers, labels = gatherum.groups.factorize(*keys, sort=sort)
        of_oracle, known = reference.factorize(*(key[:3000] for key in keys), sort=sort)
        assert same_bits(of_oracle, numbers[:3000])
        assert all(same_bits(one, other) for one, other in zip(known, labels, strict=True))
        assert same_bits(numbers[:500], numbers[3000:])


@pytest.mark.frameworks
def test_columns_of_arrow():
    pa = pytest.importorskip("pyarrow", reason="install pyarrow to test its columns")
    chunked = pa.chunked_array([["b", None], ["a", "b"]])
    for column in (chunked, chunked.combine_chunks(), chunked.dictionary_encode()):
        numbers, labels = gatherum.groups.factorize(column)
        assert (numbers.tolist(), labels.tolist()) == ([1, -1, 0, 1], ["a", "b"])
    numbers, labels = gatherum.groups.factorize(pa.array([7, None, 3]), sort=False)
    assert (numbers.tolist(), labels.tolist()) == ([0, -1, 1], [7, 3])
    numbers, labels = gatherum.groups.factorize(pa.array([], pa.string()))
    assert (numbers.shape, labels.shape) == ((0,), (0,))


@pytest.mark.frameworks
def test_columns_of_polars():
    pl = pytest.importorskip("polars", reason="install polars to test its columns")
    pytest.importorskip("pyarrow", reason="Polars converts with pyarrow")
    for dtype in (pl.String, pl.Categorical):
        numbers, labels = gatherum.groups.factorize(pl.Series(["b", None, "a"], dtype=dtype))
        assert (numbers.tolist(), labels.tolist()) == ([1, -1, 0], ["a", "b"])


@pytest.mark.frameworks
def test_categoricals_of_pandas_keep_the_order_of_their_categories():
    pd = pytest.importorskip("pandas", reason="install pandas to test its columns")
    months = pd.Categorical(["Feb", None, "Jan", "Feb"], categories=["Jan", "Feb", "Mar"])
    for column in (months, pd.Series(months), pd.CategoricalIndex(months)):
        numbers, labels = gatherum.groups.factorize(column)
        assert (numbers.tolist(), labels.tolist()) == ([1, -1, 0, 1], ["Jan", "Feb"])
    numbers, labels = gatherum.groups.factorize(pd.Series(["b", None, "a"]))
    assert (numbers.tolist(), labels.tolist()) == ([1, -1, 0], ["a", "b"])


@pytest.mark.parametrize(
    ("keys", "more", "error_type", "message"),
    [
        ((), {}, TypeError, "groups.factorize: an array of keys must be given"),
        (
            ([1, 2], [1]), {}, ValueError,
            "groups.factorize: `keys[1]` must have the shape of `keys[0]`, (2,), got (1,)",
        ),
        (
            ([1],), {"sort": 1}, TypeError,
            "groups.factorize: `sort` must be True or False, got 1",
        ),
        (
            (np.array([1, "a"], object),), {}, TypeError,
            "groups.factorize: `keys[0]` must have values that compare: '<' not supported between "
            "instances of 'str' and 'int'",
        ),
    ],
)  # fmt: skip
def test_factorize_checks_its_arguments(keys, more, error_type, message):
    with pytest.raises(error_type) as caught:
        gatherum.groups.factorize(*keys, **more)
    assert str(caught.value) == message


@pytest.mark.parametrize("call", [gatherum.groups.reduce, gatherum.groups.transform])
def test_a_result_much_larger_than_the_values_needs_a_size(call):
    groups, more = [10**9, 5, 10**9], {"func": "centre"} if "trans" in str(call) else {}
    with pytest.raises(ValueError) as caught:
        call([1.0, 2.0, 3.0], groups, **more)
    assert str(caught.value) == (
        f"groups.{call.__name__}: `size` must be given for 3 values in 1000000001 groups; or "
        "renumber them: groups, labels = gatherum.groups.factorize(groups)"
    )


@pytest.mark.frameworks
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["int", "uint"])
def test_codes_of_dictionaries(sign, bits):
    arrow = pytest.importorskip("pyarrow")
    codes = arrow.array([0, 1, None, 2, 1, None, 0] * 5, getattr(arrow, f"{sign}{bits}")())
    column = arrow.DictionaryArray.from_arrays(codes, arrow.array(["b", "a", "c"]))
    parts = column, column[3:], column[9:20], column[:2], column[:0]
    for keys in (*parts, arrow.chunked_array([column[2:5], column[1:9]])):
        numbers, labels = gatherum.groups.factorize(keys)
        found = [None if number < 0 else labels[number] for number in numbers]
        assert found == keys.to_pylist()


@pytest.mark.frameworks
@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "large_binary"])
@pytest.mark.parametrize(
    "texts",
    [
        ["b", "a", "b"], ["", "b", "abc", ""], ["", ""], ["a\0", "a", "\0"], ["é", "a"],
        ["~", "\x7f"], ["b", None, "a"], [],
    ],
    ids=str,
)  # fmt: skip
def test_texts_of_arrow_are_those_of_their_objects(texts, kind, sliced, monkeypatch):
    arrow = pytest.importorskip("pyarrow", reason="install pyarrow to test its columns")
    if "binary" in kind:
        texts = [text if text is None else text.encode() for text in texts]
    column = arrow.array([texts[0], *texts] if sliced and texts else texts, getattr(arrow, kind)())
    column = column[1:] if sliced and texts else column
    numbers, labels = gatherum.groups.factorize(column)
    monkeypatch.setattr(factorizing, "as_texts", lambda _: None)
    known_numbers, known_labels = gatherum.groups.factorize(column)
    assert same_bits(numbers, known_numbers)
    assert (labels.dtype, labels.tolist()) == (known_labels.dtype, known_labels.tolist())


@pytest.mark.frameworks
def test_ascii_texts_of_arrow_are_converted_without_objects():
    arrow = pytest.importorskip("pyarrow", reason="install pyarrow to test its columns")
    for texts in (["b", "abc", ""], [b"\xff", b"a"]):
        converted = arrow_arrays.as_texts(arrow.array(texts))
        assert same_bits(converted, np.array(texts))
    for others in (["é"], ["a", None], [1], [""], []):
        assert arrow_arrays.as_texts(arrow.array(others)) is None
