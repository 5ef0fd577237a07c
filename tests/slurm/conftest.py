"""One real SLURM of four nodes for the tests of this folder, brought up once and always stopped.

Where SLURM is not installed, or there is no right to set one up, its tests are skipped. They are
marked `slurm`, and belong to one worker: there can be one cluster on a machine.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tests.slurm.cluster import Cluster, ClusterUnavailableError, running_cluster
from tests.slurm.configuration import CONTROL_GROUPS
from tests.slurm.daemons import DaemonError
from tests.support.patience import wait_for
from tiny_plan import TinyPlan, drivers_of, processes_of


@pytest.fixture(scope="session")
def whole_cluster() -> Iterator[Cluster]:
    """The cluster, up; tests use `cluster`. Commands find it in /etc/slurm from here on."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("SLURM_CONF", raising=False)  # see tests/conftest.py
            with running_cluster(4) as found:
                print(f"SLURM of {len(found.nodes)} nodes up in {found.seconds:.1f} s")
                yield found
        assert not list(CONTROL_GROUPS.glob("*/slurm_n[0-9]*")), "nothing of it is left"
    except ClusterUnavailableError as error:
        pytest.skip(str(error))
    except DaemonError as error:
        # A machine may have the programs and lack a right (devices, ports); where the tests have
        # to run, that is no excuse.
        if os.environ.get("AGENTC_REQUIRE_SLURM"):
            raise
        pytest.skip(f"SLURM cannot start here: {error}")


@pytest.fixture
def cluster(whole_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with an empty queue and all nodes idle, put in order again after the test."""
    assert whole_cluster.queue() == []
    yield whole_cluster
    whole_cluster.repair()


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A user's own profile, which looks at jobs often."""
    folder = tmp_path / "profile"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "executor: slurm\njobs: 20\nlatency-wait: 20\n"
        "default-resources: {mem_mb: 1000, runtime: 5, slurm_partition: short}\n"
        "slurm-init-seconds-before-status-checks: 1\nslurm-requeue: true\n"
    )
    return folder


@pytest.fixture
def plan(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TinyPlan]:
    """An empty plan; when the test is over, none of its processes may be left."""
    monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path_factory.getbasetemp() / "empty"))
    tiny = TinyPlan(tmp_path)
    yield tiny
    for pid in drivers_of(tiny.store):  # of a test that failed
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not processes_of(tiny.store))
