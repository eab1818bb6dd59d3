"""Workers that are killed, retired or restarted in the middle of a call."""

import threading

import pytest

from clusters import CALLS, LONGEST, STRATEGIES, WARNINGS, expected, run, session, store

pytestmark = pytest.mark.filterwarnings(*WARNINGS)


@pytest.fixture(
    scope="module", params=[(call, strategy) for strategy in STRATEGIES for call in CALLS], ids=str
)
def measured(request, tmp_path_factory):
    """Run a call without faults. Return the number of its tasks, and its digest."""
    call, strategy = request.param
    with session(strategy) as at:
        result = run(call, store(tmp_path_factory.mktemp("measured")))
        assert result == expected(call)
        return call, strategy, at.watch.done, result


@pytest.mark.parametrize("share", [10, 30, 50, 70, 90])
def test_a_worker_is_killed(measured, share, tmp_path):
    call, strategy, tasks, digest = measured
    with session(strategy) as at:
        path = store(tmp_path)
        at.strike(tasks * share // 100, at.kill())
        running = at.start(call, path)
        assert running.result(LONGEST) == digest
        assert at.watch.struck, "the kill must land before the end"
        # The worker's tasks were repeated, so the kill was not too late.
        assert at.watch.done > at.watch.at


@pytest.mark.parametrize("ending", ["retired", "restarted"])
def test_a_worker_goes(measured, ending, tmp_path):
    """The worker is retired and its results move to other workers, or its nanny restarts it."""
    call, strategy, tasks, digest = measured
    with session(strategy) as at:
        path = store(tmp_path)
        half = threading.Event()
        at.strike(tasks // 2, half.set)
        address = sorted(at.client.scheduler_info()["workers"])[0]
        running = at.start(call, path)
        assert half.wait(LONGEST) and not running.done()
        if ending == "retired":
            assert address in at.client.retire_workers([address], close_workers=True)
        else:
            at.client.restart_workers([address], timeout=LONGEST)
        assert running.result(LONGEST) == digest
        assert address not in at.client.scheduler_info()["workers"]
