"""The arguments `weights`, `dtype` and a list of functions: the oracle's bits and messages."""

import numpy as np
import pytest

import gatherum
from gatherum.groups import functions
from gatherum.reference import groups as reference
from group_calls import call, laid_out, outcome, same, values_of
from strategies import DATA_DTYPES, same_bits

NAN = float("nan")
BOTH = pytest.mark.parametrize("module", [gatherum.groups, reference], ids=["package", "oracle"])
FORMS = [*functions.TAKERS["weights"], *(f"nan{name}" for name in functions.TAKERS["weights"])]
KINDS = ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64", "complex64"]

CASES = {
    "a mean of integers": ([10, 20, 30], {"func": "mean"}, [1, 3, 2], [17.5, 30.0]),
    "a sum of integers": ([10, 20, 30], {"func": "sum"}, [1, 3, 2], [70, 60]),
    "weights of 0": ([1.0, 2.0, 5.0], {"func": "mean"}, [0.0, 0.0, 1.0], [NAN, 5.0]),
    "a variance": ([10.0, 20.0, 30.0], {"func": "var"}, [1, 3, 2], [18.75, 0.0]),
    "NaN is left out with its weight": (
        [10.0, NAN, 30.0],
        {"func": "nanmean"},
        [1.0, 3.0, 2.0],
        [10.0, 30.0],
    ),
    "a NaN weight is a value": ([1.0, 2.0, 5.0], {"func": "nansum"}, [NAN, 1, 1], [NAN, 5.0]),
    "parts of complex numbers": (
        [1j, complex(np.inf, 2), 1],
        {"func": "mean"},
        [1.0, 1.0, 2.0],
        [complex(np.inf, 1.5), 1],
    ),
    "an empty group": ([1.0, 2.0, 5.0], {"func": "mean", "size": 3}, [1, 1, 1], [1.5, 5.0, NAN]),
}


@BOTH
@pytest.mark.parametrize("name", CASES)
def test_weights(module, name):
    values, more, weights, answer = CASES[name]
    result = module.reduce(values, [0, 0, 1], weights=weights, **more)
    assert same_bits(np.asarray(answer, result.dtype), result)


@pytest.mark.parametrize("func", FORMS)
@pytest.mark.parametrize("dtype_name", KINDS)
def test_weights_have_the_bits_of_the_oracle(dtype_name, func):
    dtypes = {dtype.name: dtype for dtype in DATA_DTYPES if dtype.isnative}
    dtype = dtypes[dtype_name]
    rng = np.random.default_rng([*func.encode(), *dtype_name.encode()])
    for other in rng.permutation(KINDS[:-1])[:3]:
        shape, groups, more = call(rng)
        values = laid_out(rng, values_of(rng, dtype, shape))
        along = shape[more["axis"]] if rng.random() < 0.5 else shape
        more |= {"func": func, "weights": values_of(rng, dtypes[other], along)}
        expected = outcome(reference.reduce, values, groups, **more)
        assert same(outcome(gatherum.groups.reduce, values, groups, **more), expected), (
            other,
            more,
        )


@pytest.mark.parametrize("func", functions.TAKERS["dtype"])
@pytest.mark.parametrize("to", ["int64", "uint8", "float16", "float32", "complex128"])
def test_a_dtype_converts_first(to, func):
    rng = np.random.default_rng([*func.encode(), *to.encode()])
    for dtype_name in ("u2", "i1", "f2"):
        values, groups = rng.integers(0, 100, (9, 2)).astype(dtype_name), rng.integers(0, 3, 9)
        result = gatherum.groups.reduce(values, groups, func=func, size=3, dtype=to, fill_value=0)
        alone = values.astype(to), groups, 3, func
        assert same_bits(gatherum.groups.reduce(*alone, fill_value=0), result)
        assert same_bits(reference.reduce(*alone, fill_value=0), result)


@BOTH
@pytest.mark.parametrize("func", ["sum", "nansum"])
@pytest.mark.parametrize("dtype_name", ["f2", "f4", "f8"])
@pytest.mark.parametrize(
    ("value", "target"),
    [(NAN, "i4"), (np.inf, "i8"), (-np.inf, "i8"), (128, "i1"), (-129, "i1"), (-1, "u8")],
)
def test_numbers_outside_the_range_of_a_dtype(value, target, dtype_name, func, module):
    values = np.array([[0.5, -0.5], [value, value]], dtype_name)
    with pytest.raises(ValueError, match=f"`dtype`, {np.dtype(target)}, got {float(value)}") as e:
        module.reduce(values, [0, 0], func=func, dtype=target)
    assert str(e.value).endswith(" (values[1, 0])")


def test_a_complex_number_outside_the_range_of_a_dtype():
    values = np.array([1, complex(np.inf, 1)])
    with pytest.raises(ValueError, match=r"`dtype`, int32, got \(inf\+1j\) \(values\[1\]\)"):
        gatherum.groups.reduce(values, [0, 0], dtype="i4")


@pytest.mark.parametrize("dtype_name", ["f2", "f4", "f8"])
@pytest.mark.parametrize("target", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_the_ends_of_the_range_of_a_dtype(target, dtype_name):
    limits = np.iinfo(target)
    widest = float(limits.max) + 1 if float(np.finfo(dtype_name).max) > limits.max else np.inf
    ends = [limits.min, np.nextafter(np.array(widest, dtype_name), np.array(0, dtype_name))]
    with np.errstate(over="ignore"):
        values = np.array(ends, dtype_name)
    values = values[np.isfinite(values)]
    result = gatherum.groups.reduce(values, np.arange(values.size), dtype=target)
    assert [int(x) for x in values.tolist()] == result.tolist()


def test_a_dtype_keeps_sums_from_wrapping():
    values = np.array([45578, 45589], "u2")
    assert gatherum.groups.reduce(values, [0, 0], dtype=np.int64).tolist() == [91167]
    assert gatherum.groups.reduce(values, [0, 0]).tolist() == [25631]


@BOTH
def test_several_functions(module):
    result = module.reduce([1.0, NAN, 4.0], [0, 0, 1], func=["sum", "nanmean", "count"])
    assert list(result) == ["sum", "nanmean", "count"]
    assert same_bits(np.array([NAN, 4.0]), result["sum"])
    assert same_bits(np.array([1.0, 4.0]), result["nanmean"])
    assert same_bits(np.array([2, 1]), result["count"])


REFUSED = [
    (
        {"func": ["sum", "max"], "weights": [1, 1]}, ValueError,
        "groups.reduce: `weights` must be None for 'max'; it is an argument of 'sum', 'mean', "
        "'var', 'std' and their nan forms",
    ),
    (
        {"func": "count", "dtype": "i4"}, ValueError,
        "groups.reduce: `dtype` must be None for 'count'; it is an argument of 'sum', 'prod', "
        "'mean', 'var', 'std' and their nan forms",
    ),
    ({"func": []}, ValueError, "groups.reduce: `func` must name at least 1 function, got []"),
    (
        {"func": ["sum", "summ"]}, ValueError,
        "groups.reduce: `func` must be a function that help(gatherum.groups.reduce) lists, got "
        "'summ'; did you mean 'sum' or 'fsum' or 'nansum'?",
    ),
    (
        {"func": "var", "weights": [1, 1], "ddof": 1}, ValueError,
        "groups.reduce: `ddof` must be 0 with `weights`, got 1",
    ),
    (
        {"weights": [1, 1, 1]}, ValueError,
        "groups.reduce: `weights` must have shape (2,), got (3,)",
    ),
    (
        {"weights": [1j, 1]}, TypeError,
        "groups.reduce: `weights` must be real numbers, got dtype complex128",
    ),
    (
        {"dtype": "much"}, TypeError,
        "groups.reduce: `dtype` must have a dtype that NumPy reads, got 'much'",
    ),
    (
        {"dtype": "M8[s]"}, TypeError,
        "groups.reduce: `func` 'sum' is not defined for dtype datetime64[s]",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("more", "error_type", "message"), REFUSED)
def test_reduce_checks_its_options(more, error_type, message):
    with pytest.raises(error_type) as caught:
        gatherum.groups.reduce([1, 2], [0, 0], **more)
    assert str(caught.value) == message
