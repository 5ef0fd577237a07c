"""`agentc init --profile`: a profile with what the cluster has, which agentc reads."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from agentc import resources
from agentc.cli import main
from agentc.cli.slurm_profile import with_cluster
from agentc.placement.profile import find_profile
from agentc.preflight.cluster import read_cluster
from agentc.preflight.slurm_facts import SlurmAnswer

RECORDED = Path(__file__).parent / "slurm_22.05"
SHIPPED = (resources.profile("slurm") / "config.yaml").read_text("utf-8")


def test_partitions_and_accounts_of_the_cluster_are_in_it() -> None:
    names = ("partitions", "nodes", "qos", "associations")
    answers = {name: SlurmAnswer((RECORDED / f"{name}.txt").read_text()) for name in names}
    cluster, _ = read_cluster(answers)
    assert cluster is not None
    text = with_cluster(SHIPPED, cluster)
    assert yaml.safe_load(text) == yaml.safe_load(SHIPPED), "nothing but comments"
    assert "#   main (default)  4 nodes, 2 x fake each" in text
    assert "\n  # slurm_partition: main\n" in text
    assert cluster.associations is not None
    first = cluster.default_account or cluster.associations[0].account
    assert f"\n  # slurm_account: {first}" in text
    chosen = text.replace("  # slurm_partition: main\n", "  slurm_partition: main\n")
    assert yaml.safe_load(chosen)["default-resources"]["slurm_partition"] == "main"


def test_it_is_written_where_snakemake_looks_and_never_over_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # no SLURM
    assert main(["init", "--profile", "ours"]) == 0
    printed = capsys.readouterr()
    assert "SLURM does not answer" in printed.err
    assert "agentc plan SPEC --preflight --profile ours" in printed.out
    profile = find_profile("ours", {"XDG_CONFIG_HOME": str(tmp_path)})
    assert profile is not None
    assert (profile.file, profile.executor) == (tmp_path / "snakemake/ours/config.yaml", "slurm")
    assert main(["init", "--profile", "ours"]) == 2
    assert "is there already" in capsys.readouterr().err
