"""Where the launchers of several nodes meet. tests/slurm/test_two_nodes.py does it for real."""

from __future__ import annotations

import pytest

from agentc.runtime.machine.slurm_nodes import allocated_nodes, expand_hosts, port_of


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
        ("gpu[08-11]-ib,login", ["gpu08-ib", "gpu09-ib", "gpu10-ib", "gpu11-ib", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("", []),
    ],
)
def test_host_lists(shown: str, names: list[str]) -> None:
    assert expand_hosts(shown) == names


def test_nodes_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # no SLURM of this machine is asked
    assert allocated_nodes({}) == 1
    assert allocated_nodes({"SLURM_JOB_NUM_NODES": "4"}) == 1, "not inside of a job"
    assert allocated_nodes({"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "4"}) == 4


def test_ports_follow_from_the_job() -> None:
    ports = {port_of({"SLURM_JOB_ID": str(job)}) for job in range(70_000, 71_000)}
    assert len(ports) == 1000
    assert all(20_000 <= port < 32_768 for port in ports)
