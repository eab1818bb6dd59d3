"""The functions of torch_scatter: published cases, ties, empty groups, gradients, errors.

Cases and answers of `PUBLISHED` and `SEGMENTS` are those of torch_scatter's test tables
(https://github.com/rusty1s/pytorch_scatter, test/test_scatter.py and test/test_segment.py, MIT).
"""

import pytest
from tensors import compiled, double, room, torch
from torch.autograd import gradcheck, gradgradcheck

from gatherum._model.callers import Caller
from gatherum.torch.torch_scatter import scatter_arguments

# torch itself runs it, the first time that it differentiates forwards.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

WORDS = ("sum", "add", "mul", "mean", "min", "max")
DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64,
)  # fmt: skip
# Values, index, dimension; then the answers.
PUBLISHED = [
    {
        "of": ([1, 3, 2, 4, 5, 6], [0, 1, 0, 1, 1, 3], -1),
        "sum": [3, 12, 0, 6], "mul": [2, 60, 1, 6], "mean": [1.5, 4, 0, 6],
        "min": [1, 3, 0, 6], "arg_min": [0, 1, 6, 5],
        "max": [2, 5, 0, 6], "arg_max": [2, 4, 6, 5],
    },
    {
        "of": ([[1, 2], [5, 6], [3, 4], [7, 8], [9, 10], [11, 12]], [0, 1, 0, 1, 1, 3], 0),
        "sum": [[4, 6], [21, 24], [0, 0], [11, 12]],
        "mul": [[3, 8], [315, 480], [1, 1], [11, 12]],
        "mean": [[2, 3], [7, 8], [0, 0], [11, 12]],
        "min": [[1, 2], [5, 6], [0, 0], [11, 12]], "arg_min": [[0, 0], [1, 1], [6, 6], [5, 5]],
        "max": [[3, 4], [9, 10], [0, 0], [11, 12]], "arg_max": [[2, 2], [4, 4], [6, 6], [5, 5]],
    },
    {
        "of": ([[1, 5, 3, 7, 9, 11], [2, 4, 8, 6, 10, 12]],
               [[0, 1, 0, 1, 1, 3], [0, 0, 1, 0, 1, 2]], 1),
        "sum": [[4, 21, 0, 11], [12, 18, 12, 0]], "mul": [[3, 315, 1, 11], [48, 80, 12, 1]],
        "mean": [[2, 7, 0, 11], [4, 9, 12, 0]],
        "min": [[1, 5, 0, 11], [2, 8, 12, 0]], "arg_min": [[0, 1, 6, 5], [0, 2, 5, 6]],
        "max": [[3, 9, 0, 11], [6, 10, 12, 0]], "arg_max": [[2, 4, 6, 5], [3, 4, 5, 6]],
    },
    {
        "of": ([[[1, 2], [5, 6], [3, 4]], [[10, 11], [7, 9], [12, 13]]],
               [[0, 1, 0], [2, 0, 2]], 1),
        "sum": [[[4, 6], [5, 6], [0, 0]], [[7, 9], [0, 0], [22, 24]]],
        "mul": [[[3, 8], [5, 6], [1, 1]], [[7, 9], [1, 1], [120, 143]]],
        "mean": [[[2, 3], [5, 6], [0, 0]], [[7, 9], [0, 0], [11, 12]]],
        "min": [[[1, 2], [5, 6], [0, 0]], [[7, 9], [0, 0], [10, 11]]],
        "arg_min": [[[0, 0], [1, 1], [3, 3]], [[1, 1], [3, 3], [0, 0]]],
        "max": [[[3, 4], [5, 6], [0, 0]], [[7, 9], [0, 0], [12, 13]]],
        "arg_max": [[[2, 2], [1, 1], [3, 3]], [[1, 1], [3, 3], [2, 2]]],
    },
    {
        "of": ([[1, 3], [2, 4]], [[0, 0], [0, 0]], 1),
        "sum": [[4], [6]], "mul": [[3], [8]], "mean": [[2], [3]],
        "min": [[1], [2]], "arg_min": [[0], [0]], "max": [[3], [4]], "arg_max": [[1], [1]],
    },
    {
        "of": ([[[1, 1], [3, 3]], [[2, 2], [4, 4]]], [[0, 0], [0, 0]], 1),
        "sum": [[[4, 4]], [[6, 6]]], "mul": [[[3, 3]], [[8, 8]]], "mean": [[[2, 2]], [[3, 3]]],
        "min": [[[1, 1]], [[2, 2]]], "arg_min": [[[0, 0]], [[0, 0]]],
        "max": [[[3, 3]], [[4, 4]]], "arg_max": [[[1, 1]], [[1, 1]]],
    },
]  # fmt: skip
# Sorted values, the starts of segments; then the answers.
SEGMENTS = [
    {
        "of": ([1, 2, 3, 4, 5, 6], [0, 2, 5, 5, 6]), "back": [0, 0, 1, 1, 1, 3],
        "sum": [3, 12, 0, 6], "mean": [1.5, 4, 0, 6], "min": [1, 3, 0, 6], "max": [2, 5, 0, 6],
    },
    {
        "of": ([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]], [0, 2, 5, 5, 6]),
        "back": [0, 0, 1, 1, 1, 3],
        "sum": [[4, 6], [21, 24], [0, 0], [11, 12]], "mean": [[2, 3], [7, 8], [0, 0], [11, 12]],
        "min": [[1, 2], [5, 6], [0, 0], [11, 12]], "max": [[3, 4], [9, 10], [0, 0], [11, 12]],
    },
    {
        "of": ([[1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]], [[0, 2, 5, 5, 6], [0, 3, 5, 6, 6]]),
        "back": [[0, 0, 1, 1, 1, 3], [0, 0, 0, 1, 1, 2]],
        "sum": [[4, 21, 0, 11], [12, 18, 12, 0]], "mean": [[2, 7, 0, 11], [4, 9, 12, 0]],
        "min": [[1, 5, 0, 11], [2, 8, 12, 0]], "max": [[3, 9, 0, 11], [6, 10, 12, 0]],
    },
    {
        "of": ([[[1, 2], [3, 4], [5, 6]], [[7, 9], [10, 11], [12, 13]]],
               [[0, 2, 3, 3], [0, 1, 1, 3]]),
        "back": [[0, 0, 1], [0, 2, 2]],
        "sum": [[[4, 6], [5, 6], [0, 0]], [[7, 9], [0, 0], [22, 24]]],
        "mean": [[[2, 3], [5, 6], [0, 0]], [[7, 9], [0, 0], [11, 12]]],
        "min": [[[1, 2], [5, 6], [0, 0]], [[7, 9], [0, 0], [10, 11]]],
        "max": [[[3, 4], [5, 6], [0, 0]], [[7, 9], [0, 0], [12, 13]]],
    },
]  # fmt: skip


def turned(tensor):
    """Return the same values with columns contiguous in memory."""
    return tensor.transpose(0, 1).contiguous().transpose(0, 1) if tensor.dim() > 1 else tensor


def same(one, other):
    return one.dtype == other.dtype and torch.equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("case", PUBLISHED, ids=range(len(PUBLISHED)))
def test_the_published_answers(case, word, dtype):
    values, index, dim = case["of"]
    expected = torch.tensor(case["sum" if word == "add" else word]).to(dtype)
    for of in (torch.tensor(values, dtype=dtype), turned(torch.tensor(values, dtype=dtype))):
        for at in (torch.tensor(index), turned(torch.tensor(index, dtype=torch.uint16))):
            assert same(room.scatter(of, at, dim, reduce=word), expected)
            result = getattr(room, f"scatter_{word}")(of, at, dim)
            if f"arg_{word}" in case:
                result, arg = result
                assert same(arg, torch.tensor(case[f"arg_{word}"]))
            assert same(result, expected)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("case", PUBLISHED, ids=range(len(PUBLISHED)))
def test_the_published_gradients(case, word):
    values, index, dim = case["of"]
    src = torch.tensor(values, dtype=torch.float64, requires_grad=True)

    def call(src):
        return room.scatter(src, torch.tensor(index), dim, reduce=word)

    assert gradcheck(call, src, check_forward_ad=True)
    assert gradgradcheck(call, src)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", PUBLISHED, ids=range(len(PUBLISHED)))
def test_out_is_reduced_and_returned(case, dtype):
    values, index, dim = case["of"]
    src, index = torch.tensor(values, dtype=dtype), torch.tensor(index)

    def scattered(word, start):
        out = torch.full_like(torch.tensor(case[word], dtype=dtype), start)
        returned = getattr(room, f"scatter_{word}")(src, index, dim, out)
        assert (returned[0] if isinstance(returned, tuple) else returned) is out
        return out

    sums = torch.tensor(case["sum"]).to(dtype)
    assert same(scattered("sum", -2), sums - 2)
    assert same(scattered("mul", -2), torch.tensor(case["mul"]).to(dtype) * -2)
    assert same(scattered("min", -2), torch.full_like(sums, -2))
    largest = torch.tensor(case["max"]).to(dtype)
    assert same(scattered("max", -2), torch.where(largest == 0, -2, largest))
    count = room.scatter(torch.ones_like(src), index, dim, dim_size=sums.shape[dim]).clamp(min=1)
    rounding = None if dtype.is_floating_point else "floor"
    assert same(scattered("mean", -2), torch.div(sums - 2, count, rounding_mode=rounding).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("word", ["sum", "add", "mean", "min", "max"])
@pytest.mark.parametrize("case", SEGMENTS, ids=range(len(SEGMENTS)))
def test_the_published_segments(case, word, dtype):
    values, indptr = case["of"]
    src = turned(torch.tensor(values, dtype=dtype))
    expected = torch.tensor(case["sum" if word == "add" else word]).to(dtype)
    assert same(room.segment_csr(src, torch.tensor(indptr), reduce=word), expected)
    out = torch.full_like(expected, -2)
    assert room.segment_csr(src, turned(torch.tensor(indptr)), out, word) is out
    assert same(out, expected)


@pytest.mark.parametrize("case", SEGMENTS, ids=range(len(SEGMENTS)))
def test_segments_are_repeated_by_a_gather(case):
    values, indptr = (torch.tensor(part) for part in case["of"])
    dim = indptr.dim() - 1
    sums = torch.tensor(case["sum"])
    back = torch.tensor(case["back"])
    back = back.reshape(back.shape + (1,) * (sums.dim() - back.dim()))
    back = back.expand(values.shape)
    assert same(room.gather_csr(sums, indptr), sums.gather(dim, back))
    out = torch.full_like(values, 9)
    assert room.gather_csr(sums, indptr, out) is out
    assert same(out, sums.gather(dim, back))


@pytest.mark.parametrize("word", WORDS)
def test_gradients_of_segments(word):
    src, indptr = double(2, 5, 3), torch.tensor([[0, 2, 2, 5], [1, 1, 4, 4]])
    assert gradcheck(lambda src: room.segment_csr(src, indptr, reduce=word), src)
    assert gradcheck(lambda src: room.gather_csr(src, torch.tensor([0, 2, 5, 5])), double(3, 2))


def test_elements_outside_all_segments_are_left_out():
    src = torch.arange(1, 7)
    assert room.segment_csr(src, [1, 3, 4]).tolist() == [5, 4]
    assert room.gather_csr(torch.tensor([7, 8]), [1, 3, 4]).tolist() == [0, 7, 7, 8]
    assert room.segment_csr(src, [4]).tolist() == []
    assert room.segment_csr(src.reshape(2, 3), [[0, 2, 3]]).tolist() == [[3, 3], [9, 6]]


@pytest.mark.parametrize("word", WORDS)
def test_nothing_at_all(word):
    src, empty = torch.randn(0, 0, 0, 16, requires_grad=True), torch.tensor([], dtype=torch.long)
    results = (
        room.scatter(src, empty, dim=0, dim_size=0, reduce=word),
        room.scatter(src, empty, dim=0, reduce=word),
        room.segment_csr(src, empty, reduce=word),
        room.gather_csr(src, empty),
    )
    for result in results:
        assert result.shape == (0, 0, 0, 16)
        result.backward(torch.randn_like(result))


def test_empty_places():
    src, index = torch.tensor([5, -5]), torch.tensor([3, 3])
    assert room.scatter_max(src, index, dim_size=5)[0].tolist() == [0, 0, 0, 5, 0]
    assert room.scatter_max(src, index, dim_size=5)[1].tolist() == [2, 2, 2, 0, 2]
    assert room.scatter(src, index, dim_size=5, reduce="mul").tolist() == [1, 1, 1, -25, 1]
    assert room.segment_csr(src, [0, 0, 2], reduce="mul").tolist() == [1, -25]


def test_a_sum_begins_at_zero():
    """So the sum of a single -0 is 0."""
    assert not room.scatter(torch.tensor([-0.0]), torch.tensor([0])).signbit()


def test_a_mean_of_integers_is_rounded_down():
    src, index = torch.tensor([-2, -1]), torch.tensor([0, 0])
    assert room.scatter(src, index, reduce="mean").tolist() == [-2]
    assert room.scatter(src, index, out=torch.tensor([0]), reduce="mean").tolist() == [-2]


def test_the_first_of_equals_is_the_arg():
    src, index = torch.tensor([1.0, 4, 4, 1, 4]), torch.tensor([0, 0, 0, 0, 1])
    assert room.scatter_max(src, index)[1].tolist() == [1, 4]
    assert room.scatter_min(src, index)[1].tolist() == [0, 4]
    nan = torch.tensor([1, torch.nan, 5, torch.nan])
    values, arg = room.scatter_max(nan, torch.tensor([0, 0, 0, 0]))
    assert values.isnan().all()
    assert arg.tolist() == [1]


def test_the_arg_says_where_the_old_value_stays():
    out = torch.tensor([4, 4, 4])
    values, arg = room.scatter_max(torch.tensor([3, 4, 5]), torch.tensor([0, 1, 2]), out=out)
    assert values is out
    assert (out.tolist(), arg.tolist()) == ([4, 4, 5], [3, 3, 2])


@pytest.mark.parametrize("word", ["sum", "mul", "mean", "min", "max", "any"])
@pytest.mark.parametrize(
    ("shape", "dim", "op"),
    [
        ((4,), 1, "slices"), ((1, 4), 1, "slices"), ((1, 4, 1), 1, "slices"), ((3,), 0, "slices"),
        ((5,), 2, "slices"), ((1, 1, 1), 1, "slices"), ((3, 4), 1, "nd"), ((3, 4, 1), 1, "nd"),
        ((3, 1, 1), 1, "nd"), ((3, 4, 5), 2, "nd"), ((3, 1, 5), -1, "nd"),
        ((3, 4, 5), 1, "elements"), ((1, 4, 5), 1, "elements"), ((3, 4, 1), 0, "elements"),
    ],
)  # fmt: skip
def test_an_index_broadcasts(shape, dim, op, word):
    """Every operator returns the same bits as with an index for each element."""
    torch.manual_seed(7)
    src, index = torch.randn(3, 4, 5), torch.randint(6, shape)
    places = scatter_arguments.cheapest_destinations(
        Caller("scatter", "index"), index, src.shape, dim % 3, 6, "raise"
    )
    assert places.operator.name == f"scatter_{op}"
    whole = index.reshape((1,) * (dim % 3) + shape) if len(shape) == 1 else index
    whole = whole.reshape(whole.shape + (1,) * (3 - whole.dim())).expand(src.shape)
    assert same(room.scatter(src, index, dim, dim_size=6, reduce=word),
                room.scatter(src, whole, dim, dim_size=6, reduce=word))  # fmt: skip
    for function in (room.scatter_max, room.scatter_min):
        one, other = (function(src, at, dim, None, 6) for at in (index, whole))
        assert same(one[0], other[0])
        assert same(one[1], other[1])
        # The arg is the position of a value that equals the answer.
        padded = torch.cat((src, torch.zeros_like(src.narrow(dim, 0, 1))), dim)
        assert same(one[0], padded.gather(dim, one[1]))


@pytest.mark.parametrize("word", WORDS)
def test_gradients_reach_out_and_src(word):
    torch.manual_seed(3)
    index = torch.tensor([0, 2, 2, 0, 3])

    def call(start, src):
        return room.scatter(src, index, 0, start.clone(), reduce=word)

    assert gradcheck(call, (double(4, 2), double(5, 2)))


def test_words_of_pyg():
    src, index = torch.tensor([1.0, 3, 2, 4]), torch.tensor([0, 0, 2, 2])
    assert room.scatter(src, index, dim=0, reduce="amax").tolist() == [3, 0, 4]
    assert room.scatter(src, index, dim=0, reduce="amin").tolist() == [1, 0, 2]
    assert room.scatter(src, index, dim=0, reduce="any").tolist() == [3, 0, 4]
    truths = torch.tensor([True, False, False, True])
    assert room.scatter(truths, index, dim=0, reduce="any").tolist() == [False, False, True]


def test_the_example_of_its_documentation():
    out = room.scatter(torch.randn(10, 6, 64), torch.tensor([0, 1, 0, 1, 2, 1]), dim=1)
    assert out.shape == (10, 3, 64)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.uint64, torch.bool], ids=str)
def test_extremes_of_other_dtypes(dtype):
    src, index = torch.tensor([1, 0, 1, 1]).to(dtype), torch.tensor([0, 0, 2, 2])
    values, arg = room.scatter_max(src, index)
    assert (values.tolist(), arg.tolist()) == ([1, 0, 1], [0, 4, 2])


SRC = torch.tensor([[1.0, 2], [3, 4]])
WIDE = torch.tensor([0, 2**63], dtype=torch.uint64)


@pytest.mark.parametrize(
    ("error_type", "sentence", "call"),
    [
        (IndexError,
         "scatter: index 3 is out of bounds for axis 0 of size 3 (index[1])",
         lambda: room.scatter(SRC, [0, 3], 0, dim_size=3)),
        (IndexError,
         "scatter: index -1 is out of bounds for axis 0 of size 1 (index[0])",
         lambda: room.scatter(SRC, [-1, 0], 0)),
        (ValueError,
         "scatter: `index` must have a shape that broadcasts to (2, 2), that of `src`, got (3,)",
         lambda: room.scatter(SRC, [0, 1, 2])),
        (ValueError,
         "scatter_max: `index` must have a shape that broadcasts to (2, 4), that of `src`, got "
         "(2,); write dim=0 for one entry for each slice there",
         lambda: room.scatter_max(torch.ones(2, 4), [0, 1])),
        (ValueError,
         "segment_coo: `index` must have a shape that broadcasts to (2, 4), that of `src`, got "
         "(4,)",
         lambda: room.torch_scatter.segment_coo(torch.ones(2, 4), [0, 1, 2, 3])),
        (ValueError,
         "scatter: `reduce` must be one of 'any', 'sum', 'add', 'mul', 'max', 'amax', 'min', "
         "'amin', 'mean', got 'median'",
         lambda: room.scatter(SRC, [0, 1], reduce="median")),
        (ValueError, "scatter: `dim` must be in [-2, 2), got 2",
         lambda: room.scatter(SRC, [0, 1], 2)),
        (TypeError, "scatter_max: `dim` must be an integer, got 1.0",
         lambda: room.scatter_max(SRC, [0, 1], 1.0)),
        (ValueError, "scatter: `dim_size` must have sizes of at least 0, got (-1,)",
         lambda: room.scatter(SRC, [0, 1], dim_size=-1)),
        (TypeError, "scatter: `dim_size` must be an integer, got 2.0",
         lambda: room.scatter(SRC, [0, 1], dim_size=2.0)),
        (ValueError, "scatter: `src` must have at least 1 dimension, got 0",
         lambda: room.scatter(torch.tensor(1.0), [0])),
        (ValueError, "scatter: `out` must have shape (2, 3), got (3, 3)",
         lambda: room.scatter(SRC, [0, 1], out=torch.zeros(3, 3))),
        (ValueError,
         "segment_csr: `indptr` must not decrease, with values in [0, 2], got 1 (indptr[2])",
         lambda: room.segment_csr(SRC, [0, 2, 1])),
        (ValueError,
         "segment_csr: `indptr` must not decrease, with values in [0, 2], got 3 (indptr[1])",
         lambda: room.segment_csr(SRC, [0, 3])),
        (ValueError,
         "segment_csr: `indptr` must not decrease, with values in [0, 2], got -1 (indptr[0])",
         lambda: room.segment_csr(SRC, [-1, 2])),
        (ValueError,
         "gather_csr: `indptr` must not decrease, with values of at least 0, got -5 (indptr[0])",
         lambda: room.gather_csr(SRC, [-5, -3, -1])),
        (ValueError,
         "gather_csr: `indptr` must not decrease, with values of at least 0, got 1 (indptr[2])",
         lambda: room.gather_csr(SRC, [0, 2, 1])),
        (ValueError, "gather_csr: `indptr` must not decrease, with values of at least 0",
         lambda: room.gather_csr(SRC, [[0, 3, -1]] * 2)),
        (IndexError, f"scatter: index {2**63} is out of bounds for every size (index[1])",
         lambda: room.scatter(SRC, WIDE)),
        (IndexError, f"scatter_max: index {2**63} is out of bounds for every size (index[1])",
         lambda: room.scatter_max(SRC, WIDE, 0, dim_size=4)),
        (IndexError, f"scatter: index {2**63} is out of bounds for every size (index[0, 1])",
         lambda: room.scatter(SRC, WIDE[None], 0)),
        (ValueError,
         f"segment_csr: `indptr` must be in [-2**63, 2**63), got {2**63} (indptr[1])",
         lambda: room.segment_csr(SRC, WIDE)),
        (ValueError, f"gather_csr: `indptr` must be in [-2**63, 2**63), got {2**63} (indptr[1])",
         lambda: room.gather_csr(SRC[:1], WIDE)),
        (ValueError, "segment_csr: `indptr` must not decrease, with values in [0, 2]",
         lambda: room.segment_csr(torch.ones(1, 2), [[0, 3]])),
        (TypeError,
         "segment_csr: `indptr` must have an integer dtype, got float32; write "
         "indptr.to(torch.int64)",
         lambda: room.segment_csr(SRC, torch.tensor([0, 1.5]))),
        (TypeError, "gather_csr: `indptr` must have an integer dtype, got bool; "
         "write indptr.to(torch.int64)",
         lambda: room.gather_csr(SRC, torch.tensor([False, True, True]))),
        (ValueError,
         "segment_csr: `indptr` must have a shape that broadcasts to (4, 2), that of `src`, got "
         "(3, 2)",
         lambda: room.segment_csr(torch.ones(4, 6), [[0, 1]] * 3)),
        (ValueError, "gather_csr: `indptr` must have shape (3,), got (0,)",
         lambda: room.gather_csr(SRC, torch.tensor([], dtype=torch.int64))),
        (ValueError,
         "gather_csr: the result, shape (4611686018427387904,) of dtype float32, has more bytes "
         "than can be addressed",
         lambda: room.gather_csr(torch.ones(1), [0, 2**62])),
        (ValueError, "gather_csr: `indptr` must have shape (3,), got (2,)",
         lambda: room.gather_csr(SRC, [0, 2])),
        (ValueError, "segment_csr: `indptr` must have at least 1 dimension, got 0",
         lambda: room.segment_csr(SRC, 2)),
        (ValueError, "segment_csr: `indptr` must have at most 2 dimensions, got 3",
         lambda: room.segment_csr(SRC, [[[0, 2]]])),
        (ValueError, "segment_csr: `out` must have shape (1, 2), got (2,)",
         lambda: room.segment_csr(SRC, [0, 2], torch.zeros(2))),
        (TypeError, "segment_csr: `out` must have the dtype of `src`, torch.float32, got "
         "torch.float64",
         lambda: room.segment_csr(SRC, [0, 2], torch.zeros(1, 2, dtype=torch.float64))),
        (TypeError, "scatter: `src` must be a dense tensor, got a list; write torch.as_tensor(src)",
         lambda: room.scatter([1], [0])),
    ],
)  # fmt: skip
def test_sentences(error_type, sentence, call):
    with pytest.raises(error_type) as caught:
        call()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("word", WORDS)
def test_compiled(word):
    src, index = torch.randn(6, 3), torch.tensor([0, 2, 2, 1, 0, 2])
    grown = torch.randn(9, 3), torch.tensor([0, 2, 2, 1, 0, 2, 3, 3, 1])

    def call(src, index):
        return room.scatter(src, index, 0, dim_size=5, reduce=word)

    graph = compiled(call, dynamic=True)
    for operands in ((src, index), grown):
        assert same(graph(*operands), call(*operands))


def test_extremes_and_segments_compiled():
    src, index = torch.randn(6, 3), torch.tensor([0, 2, 2, 1, 0, 2])
    indptr = torch.tensor([0, 2, 2, 6])
    graph = compiled(lambda src, index: room.scatter_max(src, index, 0, None, 4))
    for one, other in zip(graph(src, index), room.scatter_max(src, index, 0, None, 4), strict=True):
        assert same(one, other)
    graph = compiled(lambda src, indptr: room.segment_csr(src, indptr, reduce="mean"))
    assert same(graph(src, indptr), room.segment_csr(src, indptr, reduce="mean"))
    for wrong in ([0, 3, 2, 6], [4, 0, 4, 6]):
        with pytest.raises(RuntimeError, match="segment_csr: `indptr` must not decrease"):
            graph(src, torch.tensor(wrong))


@pytest.mark.parametrize("word", ["sum", "mul", "mean"])
def test_out_may_be_a_lazy_conjugate(word):
    src, index = torch.randn(4, dtype=torch.complex64), torch.tensor([0, 1, 1, 0])
    plain = torch.ones(2, dtype=torch.complex64)
    lazy = plain.clone().conj()
    assert same(
        room.scatter(src, index, out=lazy, reduce=word),
        room.scatter(src, index, out=plain, reduce=word),
    )


# torch_scatter has wheels for some versions of torch. Its build needs a compiler and minutes.
def torch_scatter():
    return pytest.importorskip(
        "torch_scatter", reason="build torch_scatter to compare with it", exc_type=ImportError
    )


def agree(mine, theirs, exact):
    mine, theirs = (
        outputs if isinstance(outputs, tuple) else (outputs,) for outputs in (mine, theirs)
    )
    for one, other in zip(mine, theirs, strict=True):
        if exact:
            assert same(one, other)
        else:  # sums are rounded in another order
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("word", WORDS)
def test_torch_scatter_itself(word):
    modules = room, torch_scatter()
    torch.manual_seed(11)
    for dim, shape in [(0, (9,)), (1, (7,)), (2, (8,)), (1, (9, 7)), (2, (9, 7, 8)), (-2, (9, 7))]:
        index = torch.randint(5, shape)
        for src in (torch.randn(9, 7, 8), torch.randint(-4, 4, (9, 7, 8))):
            new = [getattr(module, f"scatter_{word}")(src, index, dim) for module in modules]
            agree(*new, exact=word in ("min", "max"))
            start = torch.randint_like(new[0][0] if isinstance(new[0], tuple) else new[0], -3, 3)
            outs = [
                getattr(module, f"scatter_{word}")(src, index, dim, start.clone())
                for module in modules
            ]
            agree(*outs, exact=word in ("min", "max"))


@pytest.mark.parametrize("word", ["sum", "mean", "min", "max"])
@pytest.mark.parametrize("shape", [(8,), (1, 8), (4, 8)])
def test_segments_of_torch_scatter_itself(word, shape):
    modules = room, torch_scatter()
    torch.manual_seed(12)
    indptr = torch.cat((torch.zeros(*shape[:-1], 1, dtype=torch.long),
                        torch.randint(9, (*shape[:-1], 6)).sort(-1)[0],
                        torch.full((*shape[:-1], 1), 9)), -1)  # fmt: skip
    src = torch.randn(9, 5) if len(shape) == 1 else torch.randn(4, 9, 5)
    sums = [module.segment_csr(src, indptr, reduce=word) for module in modules]
    agree(*sums, exact=word in ("min", "max"))
    agree(*(module.gather_csr(sums[0], indptr) for module in modules), exact=True)
