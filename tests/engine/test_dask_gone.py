"""A cluster that goes away during a fit: what happened, what was charged, and how to resume."""

import concurrent.futures
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from distributed import KilledWorker
from distributed.comm import CommClosedError

from pairveil.engine.backends import dask as dask_waiting
from pairveil.errors import ClusterError

SCRIPT = """
import sys
from distributed import Client, LocalCluster
sys.path.insert(0, sys.argv[2])
from test_dask import make_data
from pairveil import DPPMetricLearner, PrivacyLedger
from pairveil.errors import ClusterError

def cluster():
    return LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)

def fit(closed_after, **options):
    ledger = PrivacyLedger(1.5, 1e-4, path=sys.argv[1] + "/ledger.json")
    steps = []
    with cluster() as running, Client(running, set_as_default=True):
        def close(*_):
            steps.append(1)
            if len(steps) == closed_after:
                running.close()
        learner = DPPMetricLearner(backend="dask", n_steps=3, delta=1e-4, accountant=ledger)
        try:
            learner.fit(make_data(400), on_step=close, **options)
        except ClusterError as gone:
            print(gone)
        else:
            print("done")
        print(len(ledger.entries))

fit(3, checkpoint=sys.argv[1] + "/fit")
fit(0, checkpoint=sys.argv[1] + "/fit")
"""


def test_a_fit_resumes_when_there_is_a_cluster_again(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "the Dask cluster went away. The ledger was charged for this fit, once. Run the same again: "
        "it resumes from its checkpoint, and charges nothing more",
        "1",
        "done",
        "1",
    ]


class Future:
    """As much of a future as is looked at."""

    def __init__(self, status="finished", problem=None):
        self.status, self._problem = status, problem

    def exception(self):
        return self._problem


class Cluster:
    """A client whose cluster gives one answer."""

    def __init__(self, answer, n_workers=1, status="running"):
        self._answer, self._n_workers, self.status = answer, n_workers, status

    def nthreads(self, callback_timeout):
        if self._n_workers is None:  # frozen: the question is given up in time
            assert callback_timeout <= dask_waiting.LOOK_EVERY
            raise TimeoutError
        return dict.fromkeys(range(self._n_workers), 1)

    def gather(self, futures):
        if not self._n_workers:
            threading.Event().wait()
        for one in futures:
            if one.status == "error":
                raise one.exception()
        if isinstance(self._answer, BaseException):
            raise self._answer
        return [self._answer for _ in futures]


def test_results_are_handed_on():
    assert dask_waiting.results(Cluster(7), [Future(), Future()]) == [7, 7]


@pytest.mark.parametrize(
    "problem",
    [
        concurrent.futures.CancelledError("_sum_part-8 lost"),
        CommClosedError("in <TCP>"),
        ConnectionRefusedError(),
        TimeoutError(),
    ],
)
def test_a_lost_scheduler_is_said_without_its_words(problem):
    with pytest.raises(ClusterError, match=r"^the Dask cluster went away$"):
        dask_waiting.results(Cluster(problem), [Future()])


def test_workers_that_die_again_and_again_are_said():
    killed = KilledWorker("_sum_part-8", None, 3)
    with pytest.raises(ClusterError, match="workers of the Dask cluster died again and again"):
        dask_waiting.results(Cluster(None), [Future("error", killed)])


def test_a_tasks_own_problem_is_not_the_clusters():
    with pytest.raises(TimeoutError, match="s3"):
        dask_waiting.results(Cluster(None), [Future("error", TimeoutError("s3"))])


def test_a_cluster_without_workers_is_given_up(monkeypatch):
    monkeypatch.setattr(dask_waiting, "LOOK_EVERY", 0.01)
    with pytest.raises(ClusterError, match="went away"):
        dask_waiting.results(Cluster(7, n_workers=0, status="closed"), [Future()])
    monkeypatch.setattr(dask_waiting, "NO_WORKERS_FOR", 0.02)
    with pytest.raises(ClusterError, match=r"has had no workers, or has not answered, for 0\.02"):
        dask_waiting.results(Cluster(7, n_workers=0), [Future()])


def test_a_frozen_scheduler_is_given_up(monkeypatch):
    """Stopped, it keeps its connections and answers nothing, whatever it is asked."""
    monkeypatch.setattr(dask_waiting, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(dask_waiting, "NO_WORKERS_FOR", 0.02)
    with pytest.raises(ClusterError, match="has not answered, for"):
        dask_waiting.results(Cluster(7, n_workers=None), [Future()])
