"""Makes what tests share importable (importlib import mode knows no packages); a cluster of two workers."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a test may compile a loop; how long one takes is a benchmark's matter.
settings.register_profile("pairveil", deadline=None)
settings.load_profile("pairveil")

for folder in ("learners", "engine", "audit"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

# The cluster runs in a process of its own: its event loops and open sockets are not this process's
# matter, where every warning is an error. It lives as long as the tests do: its clocks are slowed down,
# which would take a tenth of a core for nothing.
CLUSTER = """
import dask
from dask.distributed import LocalCluster

dask.config.set({
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.worker.memory.monitor-interval": "5s",
})
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                      dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        input()
"""


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory):
    pytest.importorskip("distributed")
    script = tmp_path_factory.mktemp("cluster") / "cluster.py"
    script.write_text(CLUSTER)
    running = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with running:
        yield running.stdout.readline().strip()
        running.stdin.write("\n")


@pytest.fixture
def client(scheduler):
    from distributed import Client

    with Client(scheduler, set_as_default=True) as connected:
        connected.wait_for_workers(2, timeout=300)
        yield connected
