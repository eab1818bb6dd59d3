"""The benchmark: its cases match their names, answers are checked, reports are complete.

No test asserts a time: they are for people to judge.
"""

import json
import runpy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import show
from bench import children, command, peers, records, report, runner, tiny
from bench.cases import Case
from bench.command import main as bench
from bench.job_workloads import JOBS
from bench.jobs import Job
from bench.limits import Meter
from bench.worker import LIMITS, Verdict, compare, compare_sums
from bench.workloads import WORKLOADS, Workload, select

from source import ROOT

TINY_SCALE = 1e-4
each_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
each_job = pytest.mark.parametrize("workload", JOBS, ids=lambda workload: workload.name)

# Milliseconds at 42 GB/s for the full sizes, computed by hand.
FLOORS = {
    "rows-f32": 12.4, "rows-f16": 14.7, "rows-zipf": 12.4, "line-f32": 36.2, "line-u8": 34.8,
    "line-f64": 38.1, "last-axis": 8.0, "middle-axis-wide": 12.8, "middle-axis-narrow": 3.2,
    "elements-last": 12.8, "elements-first": 12.8, "nd-cube": 21.9, "nd-rows": 12.4,
    "scatter-last-unique": 16.0, "scatter-last-duplicates": 16.0, "scatter-last-add": 16.0,
    "scatter-first-unique": 16.0, "scatter-first-duplicates": 16.0, "scatter-first-add": 16.0,
    "set-rows": 25.6, "set-scalars": 15.2, "add-1M-f32": 5.9, "add-1M-f64": 8.0,
    "add-1M-i64": 8.0, "add-50M-f32": 15.2, "add-256-f32": 5.7, "fold-rows-add": 7.5,
    "fold-rows-max": 7.5,
}  # fmt: skip
JOB_FLOORS = {
    "job-messages-sum": 1.6, "job-messages-max": 1.6, "job-product-64": 1.53,
    "job-product-8": 0.457, "job-bags": 5.15, "job-sum-100": 3.81, "job-sum-10k": 3.81,
    "job-sum-1M": 4.0, "job-mean-100": 3.81, "job-mean-10k": 3.81, "job-mean-1M": 4.0,
    "job-max-100": 3.81, "job-max-10k": 3.81, "job-max-1M": 4.0, "job-argmax": 7.5,
    "job-query-3": 7.66,
    "job-query-5": 7.68, "job-query-7": 7.64, "job-counts": 3.82, "job-take": 1.9,
    "job-permute": 3.61, "job-combine": 3.61,
}  # fmt: skip


def case_of(workload: Workload, scale: float = TINY_SCALE) -> Case:
    return workload.make(scale, np.random.default_rng(1))


def answers(family: str, case: Case | Job) -> dict[str, np.ndarray]:
    return {name: np.asarray(call()) for name, call in peers.methods(family, case).items()}


@each_workload
def test_our_answer_is_numpys_in_all_three_kinds_of_memory(workload: Workload) -> None:
    case = case_of(workload)
    expected = next(iter(answers("numpy", case).values()))
    ours = answers("gatherum", case)
    assert list(ours) == ["fresh", "recycled", "out"]
    assert {name: compare(answer, expected).answer for name, answer in ours.items()} == {
        "fresh": "exact", "recycled": "exact", "out": "exact",
    }  # fmt: skip


@each_workload
def test_floors_are_those_of_the_table(workload: Workload) -> None:
    floor = workload.floor(case_of(workload, 1 / 64))
    assert 64 * floor / 42e9 * 1e3 == pytest.approx(FLOORS[workload.name], rel=0.02)


def test_the_table_is_complete() -> None:
    assert [workload.name for workload in WORKLOADS] == list(FLOORS)


@each_job
def test_our_answer_of_a_job_is_the_referees(workload: Workload) -> None:
    job = case_of(workload, JOB_SCALE)
    expected = next(iter(answers("numpy", job).values()))
    assert expected.nbytes <= job.result_bytes
    for answer in answers("gatherum", job).values():
        assert compare(answer, expected) == EXACT


@each_job
def test_floors_of_jobs_are_those_of_the_table(workload: Workload) -> None:
    floor = workload.floor(case_of(workload, 1 / 64))
    assert 64 * floor / 42e9 * 1e3 == pytest.approx(JOB_FLOORS[workload.name], rel=0.02)


def test_the_table_of_jobs_is_complete() -> None:
    assert [workload.name for workload in JOBS] == list(JOB_FLOORS)
    assert {case_of(workload).op for workload in JOBS} == set(peers.JOB_PEERS)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.parametrize("family", peers.PEERS)
def test_a_peer_does_the_jobs_that_it_is_named_for(family: str) -> None:
    pytest.importorskip(family, reason=f"install {family} to check it as a peer")
    jobs = getattr(peers.load(family), "JOBS", {})
    assert set(jobs) == {op for op, named in peers.JOB_PEERS.items() if family in named}
    wrong = {workload.name: wrong_methods(family, case_of(workload, JOB_SCALE)) for workload in JOBS
             if case_of(workload).op in jobs}  # fmt: skip
    assert {name: methods for name, methods in wrong.items() if methods} == {}


def test_a_job_is_saved_and_loaded(tmp_path: Path) -> None:
    for workload in JOBS:
        job = case_of(workload)
        job.save(tmp_path)
        job_type, *call = job.call
        result = Job.load(tmp_path, *call)
        assert job_type == "job"
        assert result.call == job.call
        for name, array in job.operands.items():
            assert compare(result[name], array) == EXACT


@pytest.mark.parametrize("name", [w.name for w in WORKLOADS if "unique" in w.name] + ["set-rows"])
def test_unique_indices_are_unique(name: str) -> None:
    (workload,) = (workload for workload in WORKLOADS if workload.name == name)
    case = case_of(workload)
    lines = np.sort(case.indices, axis=case.axis)
    assert np.count_nonzero(np.diff(lines, axis=case.axis) == 0) == 0


def test_skewed_rows_are_skewed_and_scattered() -> None:
    (workload,) = (workload for workload in WORKLOADS if workload.name == "rows-zipf")
    counts = np.bincount(case_of(workload, 0.01).indices)
    assert counts.max() > 0.1 * counts.sum()
    assert counts.argmax() != 0


@pytest.mark.frameworks
@pytest.mark.parametrize("family", peers.OPERATOR_PEERS)
def test_a_peers_methods_are_right(family: str) -> None:
    pytest.importorskip(family, reason=f"install {family} to check it as a peer")
    wrong: dict[str, list[str]] = {}
    for workload in WORKLOADS:
        case = case_of(workload)
        if family not in RACING or case.updates is None:
            wrong[workload.name] = wrong_methods(family, case)
    assert {name: methods for name, methods in wrong.items() if methods} == {}
    assert len(wrong) > 12


def wrong_methods(family: str, case: Case | Job) -> list[str]:
    expected = next(iter(answers("numpy", case).values()))
    result = answers(family, case)
    assert result
    wrong = [name for name, answer in result.items() if compare(answer, expected) != EXACT]
    if wrong and case.may_round:
        whole = case.whole()
        expected = next(iter(answers("numpy", whole).values()))
        sums = answers(family, whole)
        wrong = [name for name in wrong if compare(sums[name], expected) != EXACT]
    return wrong


EXACT = Verdict("exact")
JOB_SCALE = 1e-3
RACING = ("onnxruntime", "torch")  # their scatters share destinations between threads


def test_lost_adds_are_distinguished_from_another_order() -> None:
    updates = np.ones(8, "f4")
    case = Case("scatter_nd", np.zeros(2, "f4"), np.zeros((8, 1), "i8"), updates, reduction="add")
    expected = np.array([8, 0], "f4")
    assert compare_sums(expected.copy(), expected, case) == Verdict("order of sums")
    assert compare_sums(np.array([6, 0], "f4"), expected, case) == Verdict(
        "differs", "loses 25 % of what is added"
    )
    assert compare_sums(np.array([4, 4], "f4"), expected, case) == Verdict(
        "differs", "1e+02 % of elements differ"
    )


def test_bits_are_compared_not_values() -> None:
    zeros = np.array([0.0, 1.0, np.nan, 3.0])
    assert compare(zeros.copy(), zeros) == EXACT
    assert compare(-zeros, zeros).answer == "differs"
    assert compare(zeros.astype("f4"), zeros) == Verdict("differs", "gives float32 (4,)")


def test_whole_numbers_stand_in_for_sums() -> None:
    case = Case("scatter_nd", np.array([0.3]), np.zeros((1, 1), "i8"), np.array([0.9]), 0, "add")
    whole = case.whole()
    assert (whole.data.tolist(), whole.updates.tolist()) == ([2.0], [7.0])
    assert replace(case, updates=None).whole().data.tolist() == [0.3]


NAMES = ["rows-f32", "rows-f16", "line-u8"]


@pytest.mark.parametrize(
    ("only", "chosen"),
    [
        (None, NAMES),
        ((), NAMES),
        (("rows",), ["rows-f32", "rows-f16"]),
        (("line-u8,rows-f32",), ["rows-f32", "line-u8"]),
        (("*-f??",), ["rows-f32", "rows-f16"]),
    ],
)
def test_selection(only: tuple[str, ...] | None, chosen: list[str]) -> None:
    assert select(NAMES, only) == chosen


def test_selection_prefers_a_whole_name() -> None:
    assert select(["add", "add-more"], ["add"]) == ["add"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": 0}, "bench: `scale` must be in (0, 16], got 0"),
        ({"rounds": 0}, "bench: `rounds` must be at least 1, got 0"),
        (
            {"families": ["nothing"]},
            "bench: --peers must be installed peers ({}), got 'nothing'",
        ),
        ({"only": ["nothing"]}, "bench: --only must name workloads among {all}, got 'nothing'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        bench(**arguments)  # type: ignore[arg-type]
    message = message.replace("{}", ", ".join(peers.installed()))
    assert str(caught.value) == message.replace("{all}", ", ".join(runner.NAMES))


def timed(times: float) -> dict[str, float]:
    return {"median": times, "min": times, "rounds": 1}


def test_a_wrong_peer_is_never_the_best() -> None:
    result = records.judged(
        {
            "floor": timed(2.0),
            "goals": {"peer": 1.5, "floor": 1.1},
            "ours": {"recycled": timed(2.0), "out": timed(2.5)},
            "peers": {
                "numpy": {"answer": "exact", **timed(9.0)},
                "torch": {"answer": "order of sums", **timed(4.0)},
                "onnxruntime": {"answer": "differs", **timed(1.0)},
                "jax": {"failed": "RuntimeError: no"},
            },
        }
    )
    assert result["best_peer"] == "torch"
    assert result["ratios"] == {"peer": 2.0, "floor": 1.25}
    assert result["met"] == {"peer": True, "floor": False}


def test_least_times_take_the_place_of_medians() -> None:
    def of(median: float, least: float) -> dict[str, float]:
        return {"median": median, "min": least, "rounds": 3}

    medians = records.judged(
        {
            "floor": of(2.0, 1.0),
            "goals": {"peer": 1.5, "floor": 1.1},
            "ours": {"recycled": of(2.0, 1.5), "out": of(4.0, 1.0), "answer": {"answer": "exact"}},
            "peers": {"numpy": {"answer": "exact", "ways": {"np.take": {}}, **of(9.0, 6.0)}},
        }
    )
    least = records.by_least(medians)
    assert medians["ratios"] == {"peer": 4.5, "floor": 2.0}
    assert least["ratios"] == {"peer": 4.0, "floor": 1.0}
    assert least["met"] == {"peer": True, "floor": True}
    assert least["peers"]["numpy"] == {
        "answer": "exact", "ways": {"np.take": {}}, **of(6.0, 6.0),
    }  # fmt: skip


@pytest.fixture
def child() -> Iterator[children.Child]:
    child = children.Child("numpy")
    yield child
    child.stop()


def test_a_childs_failure_is_a_message(child: children.Child) -> None:
    with pytest.raises(RuntimeError, match=r"^AttributeError: .* has no attribute 'nonsense'$"):
        child.ask("nonsense")
    with pytest.raises(RuntimeError, match=r"^RuntimeError: bench: no case has been loaded$"):
        child.ask("examine", Path("nowhere"))


def test_a_child_that_dies_is_reported_and_started_afresh(child: children.Child) -> None:
    child.ask("drop")
    assert child._process is not None
    child._process.kill()
    with pytest.raises(RuntimeError, match=r"^the process ended with status -9$"):
        child.ask("drop")
    assert child.ask("time") == {}


class BrokenChild(children.Child):
    """A peer whose process dies at the second timed request."""

    def ask(self, name: str, *arguments: object) -> object:
        self.asked = getattr(self, "asked", 0) + name.startswith("time")
        if self.family == "numpy" and self.asked == 2 and name.startswith("time"):
            raise RuntimeError("the process ended with status -11")
        return super().ask(name, *arguments)


@pytest.mark.parametrize("name", ["add-256-f32", "tiny-gather"])
def test_a_peer_that_dies_in_the_middle_ends_only_itself(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "Child", BrokenChild)
    result = bench([name], scale=TINY_SCALE, rounds=3, families=["numpy"], quiet=True)
    (case,) = result["cases"]
    assert case["peers"] == {"numpy": {"failed": "the process ended with status -11"}}
    assert case["best_peer"] is None
    assert case["ours"]["recycled"]["rounds"] == 3
    assert report.problems(result) == [f"{name}: NumPy failed: the process ended with status -11"]
    assert len(report.rows_of(result)) == 1


def test_limits_are_positive_and_complete() -> None:
    meter = Meter()
    with pytest.raises(RuntimeError, match=r"^bench: the machine's limits have not been measured$"):
        meter.read()
    result = meter.measure(TINY_SCALE, rounds=1)
    assert set(result) == {
        "bytes", "read_gb_s", "copy_gb_s", "random_load_ns", "random_load_by", "first_touch_ms",
    }  # fmt: skip
    assert result["bytes"] == max(1 << 20, round((256 << 20) * TINY_SCALE * 100))
    for name in ("read_gb_s", "copy_gb_s", "random_load_ns"):
        assert "1" in result[name]
        assert min(result[name].values()) > 0
    assert meter.read() > 0


@pytest.mark.parametrize("case", tiny.TINY, ids=lambda case: case.name)
def test_tiny_statements_agree(case: tiny.Tiny) -> None:
    def result_of(family: str, statement: str) -> np.ndarray:
        names = tiny.namespace(case.name, family)
        if "out" in statement:
            exec(statement, names)
            return names["out"]
        return np.asarray(eval(statement, names))

    (ours,) = case.statements["gatherum"].values()
    expected = result_of("gatherum", ours)
    for statement in case.statements["numpy"].values():
        assert compare(result_of("numpy", statement), expected) == EXACT


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    folder = tmp_path_factory.mktemp("bench")
    file = folder / "bench.json"
    names = ["rows-f32", "add-256-f32", "tiny-gather"]
    return bench(names, file, TINY_SCALE, 2, families=["numpy"], quiet=True), file


def test_the_report_is_complete(whole_run: tuple[dict, Path]) -> None:
    result, file = whole_run
    assert json.loads(file.read_text()) == result
    assert set(result) == {
        "date", "command", "machine", "gatherum", "versions", "scale", "rounds", "families",
        "limits", "cases", "skipped",
    }  # fmt: skip
    assert set(result["machine"]) == {
        "cpu", "cores", "caches", "memory_bytes", "kernel", "system", "huge_pages",
    }  # fmt: skip
    assert result["families"] == ["gatherum", "numpy"]
    assert [case["name"] for case in result["cases"]] == ["rows-f32", "add-256-f32", "tiny-gather"]
    rows, add, small = result["cases"]
    for case in (rows, add):
        assert set(case) == {
            "name", "title", "op", "unit", "shapes", "dtypes", "floor_bytes", "floor",
            "goals", "ours", "peers", "best_peer", "ratios", "met",
        }  # fmt: skip
        assert set(case["ours"]) == {"fresh", "recycled", "out", "answer"}
        assert case["ours"]["answer"] == {"answer": "exact", "detail": ""}
        assert case["ours"]["out"]["rounds"] == 2
        assert case["best_peer"] == "numpy"
    assert rows["shapes"] == [[200, 64], [100]]
    assert set(rows["peers"]["numpy"]["ways"]) == {
        "np.take", "np.take(mode='clip')", "data[indices]",
    }  # fmt: skip
    assert small["peers"]["numpy"]["way"] == "np.take"
    assert set(small["peers"]["numpy"]["ways"]) == {"d[i]", "np.take"}
    assert small["met"]["floor"] is None


def test_a_report_is_shown_again_and_as_markdown(
    whole_run: tuple[dict, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    result, file = whole_run
    assert show.main([str(file)]) == 0
    shown = capsys.readouterr().out
    assert show.main([str(file), "--markdown"]) == 0
    tables = capsys.readouterr().out
    for case in result["cases"]:
        assert shown.count(case["title"]) == 2
        assert tables.count(f"| {case['title']} |") == 2
    for word in (result["date"], result["machine"]["cpu"], result["command"]):
        assert word in shown
        assert word in tables
    assert show.main([str(file), "--readme"]) == 0
    brief = capsys.readouterr().out
    assert brief.count("\n| `") == sum(case["name"] in report.SHOWN for case in result["cases"])
    assert report.MISSED not in brief
    assert show.main([str(file), "--least"]) == 0
    assert f"least times of 2 rounds: {result['command']}" in capsys.readouterr().out


def test_problems_are_reported(whole_run: tuple[dict, Path]) -> None:
    result = whole_run[0]
    assert report.problems(result) == []
    case = result["cases"][0]
    bad = {
        **case,
        "ours": {
            **case["ours"],
            "answer": {"answer": "differs", "detail": "2 % of elements differ"},
        },
        "peers": {**case["peers"], "jax": {"failed": "RuntimeError: no"}},
    }
    assert report.problems({**result, "cases": [bad], "skipped": {"set-rows": "needs more"}}) == [
        "set-rows: skipped: needs more",
        "rows-f32: OUR ANSWER DIFFERS: 2 % of elements differ",
        "rows-f32: JAX failed: RuntimeError: no",
    ]


def test_a_case_that_does_not_fit_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "available_memory", lambda: 1000)
    result = bench(["rows-f32"], scale=TINY_SCALE, rounds=1, families=["numpy"], quiet=True)
    assert result["cases"] == []
    assert result["skipped"] == {
        "rows-f32": "needs about 0.0 GiB at scale 0.0001, and 0.0 GiB are free: "
        "choose a smaller scale or fewer peers"
    }


def test_the_charts_show_the_last_report() -> None:
    folder = ROOT / "benchmarks"
    if not folder.exists():
        pytest.skip("the benchmarks are not beside these tests")
    charts = SimpleNamespace(**runpy.run_path(str(folder / "charts.py")))
    result = json.loads(charts.RESULTS.read_text())
    rows = charts.roofline_rows(result)
    assert len(rows) == sum("floor" in case for case in result["cases"]) > 20
    speeds = [charts.copied(result), *(max(*row.speeds.values(), row.read) for row in rows)]
    assert max(speeds) <= charts.roof(result)
    for theme in charts.THEMES:
        for name, titles in (
            ("roofline", [row.title for row in rows]),
            ("speed", [title.replace("`", "") for title in report.SHOWN.values()]),
        ):
            text = (folder / f"{name}-{theme}.svg").read_text()
            assert charts.digest() in text, "run `python benchmarks/charts.py`"
            assert all(f">{title}</text>" in text for title in titles)


def test_the_limits_are_not_a_library() -> None:
    assert LIMITS not in peers.FAMILIES


def test_the_command_names_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["anything", "--only", "rows"])
    assert command._command() == ["python", "benchmarks/run.py", "--only", "rows"]


def test_the_pages_show_the_last_reports() -> None:
    root = ROOT
    kept = root / "benchmarks" / "results.json"
    if not kept.exists():
        pytest.skip("the benchmarks are not beside these tests")
    pages = (
        ("README.md", kept, report.SHOWN),
        ("docs/performance.md", kept.with_name("jobs.json"), report.SHOWN_JOBS),
    )
    for page, file, titles in pages:
        text = (root / page).read_text().replace("\n:::\n", "\n")
        shown = report.readme(json.loads(file.read_text()))
        assert shown in text
        assert shown.count("\n| ") == len(titles) + 1 == 7
        assert report.MISSED not in text


def test_a_wrong_answer_is_called_wrong() -> None:
    peer = {"median": 2.5, "answer": "differs", "detail": "loses 1 % of what is added"}
    record = {
        "name": "rows-f32", "title": "rows", "unit": "ms",
        "ours": {"recycled": {"median": 1.0}, "fresh": {"median": 2.0}},
        "peers": {"numpy": peer, "torch": {"failed": "no memory"}},
    }  # fmt: skip
    results = {"families": ["gatherum", "numpy", "torch"], "cases": [record]}
    assert report.speed(results).splitlines()[-1] == "| rows | 1 ms | 2 ms | 2.5 ms (wrong) | - |"
