"""Profiles as people get them wrong: each is refused with its line, what is wrong, and what to
write instead. Snakemake takes most of them without a word, and then does something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.cli import main
from agentc.placement import read_requests
from agentc.placement.profile import ProfileError, find_profile, require_executor
from agentc.preflight.requests import check_rules

pytest.importorskip("snakemake_executor_plugin_slurm")

SLURM = "executor: slurm\n"
MALFORMED = {
    "partition": (
        SLURM + "default-resources: {partition: main}\n",
        ":2: default-resources: nothing reads the resource `partition`; it is called"
        " `slurm_partition`",
    ),
    "account": (
        SLURM + "default-resources:\n  mem_mb: 1000\n  account: lab\n",
        ":4: default-resources: nothing reads the resource `account`; it is called `slurm_account`",
    ),
    "time": (
        SLURM + "default-resources: {time: 60}\n",
        "`time`; it is called `runtime` (minutes, or `4h`)",
    ),
    "memory": (
        SLURM + "default-resources: {memory: 8000}\n",
        "`memory`; it is called `mem_mb` (a number of MB)",
    ),
    "gpus": (SLURM + "default-resources: {gpus: 1}\n", "`gpus`; it is called `gpu`"),
    "gpus in a list": (SLURM + "default-resources:\n  - gpus=1\n", "`gpus`; it is called `gpu`"),
    "partition of a rule": (
        SLURM + "set-resources:\n  sft: {partition: gpu}\n",
        ":3: set-resources sft: nothing reads the resource `partition`",
    ),
    "partition as an option": (
        SLURM + "slurm_partition: main\n",
        ":2: Snakemake has no option `slurm_partition`; it is a resource: write"
        " `default-resources: {slurm_partition: ...}`",
    ),
    "partition off": (
        SLURM + "default-resources: {slurm_partition: off}\n",
        "YAML reads `slurm_partition: off` as false; write `slurm_partition: 'off'`",
    ),
    "no equals sign": (
        SLURM + "default-resources: [slurm_partition main]\n",
        "resources are written NAME=VALUE, not `slurm_partition main`",
    ),
    "clock": (
        SLURM + "default-resources: {runtime: 2:00:00}\n",
        "YAML reads `runtime: 2:00:00` as 7200, which are minutes then; write minutes",
    ),
    "clock as text": (
        SLURM + 'default-resources: {runtime: "04:00:00"}\n',
        "`runtime: 04:00:00` is no time of Snakemake's; write minutes (`runtime: 120`), or `2h`",
    ),
    "unit": (
        SLURM + "default-resources: {mem_mb: 8GB}\n",
        "`mem_mb` is a number of MB; write `mem: 8GB`",
    ),
    "jobs in words": (SLURM + "jobs: many\n", ":2: `jobs: many`: expected a whole number from 1"),
    "no jobs": (SLURM + "jobs: 0\n", ":2: `jobs: 0`: expected a whole number from 1"),
    "executor": ("executor: Slurm\n", "no executor `Slurm`; did you mean `slurm`?"),
    "no executor": (
        "default-resources: {slurm_partition: main}\n",
        "has `slurm_partition` and no executor, so that jobs would run on this machine",
    ),
    "tab": (SLURM + "default-resources:\n\tmem_mb: 1000\n", "cannot start any token"),
    "list": ("- executor: slurm\n", "is no mapping of Snakemake's options"),
    "twice": (
        SLURM + "default-resources: {mem_mb: 1}\ndefault-resources: {runtime: 5}\n",
        ":3: `default-resources` is there twice, and only the last one would count",
    ),
    "name of Python's": (
        SLURM + "default-resources: {slurm_partition: all}\n",
        "Snakemake evaluates `all`, which is a name of Python's; write `slurm_partition: "
        "\"'all'\"`",
    ),
    "arithmetic": (
        SLURM + "default-resources: {slurm_account: 2024-12}\n",
        "Snakemake calculates `2024-12`; write `slurm_account: \"'2024-12'\"`",
    ),
    "octal": (
        SLURM + "default-resources: {slurm_account: 0123}\n",
        "YAML reads `slurm_account: 0123` as 83",
    ),
    "option of the plugin": (
        SLURM + "default-resources: {slurm_extra: \"'--partition=gpu'\"}\n",
        "the SLURM plugin takes no `--partition` from `slurm_extra`; write `slurm_partition: ...`",
    ),
    "option of sbatch": (
        SLURM + "default-resources: {exclude: n1}\n",
        "nothing reads the resource `exclude`; write `slurm_extra: \"'--exclude=...'\"`",
    ),
    "nodes in words": (SLURM + "default-resources: {nodes: two}\n", "`nodes: two` is no number"),
    "underscore": (
        SLURM + "default_resources: {mem_mb: 1000}\n",
        "Snakemake has no option `default_resources`; did you mean `default-resources`?",
    ),
    "switch": (SLURM + "slurm-requeue: maybe\n", "`slurm-requeue: maybe`: expected `true` or"),
    "a number for resources": (
        SLURM + "default-resources: 8000\n",
        "resources are written NAME=VALUE, not `8000`",
    ),
    "no memory": (SLURM + "default-resources: {mem_mb: -5}\n", "`mem_mb: -5` is less than 1"),
    "no time": (SLURM + "default-resources: {runtime: 0}\n", "`runtime: 0` is no time limit"),
    "misspelt": (
        SLURM + "default-resources: {slurm_partiton: main}\n",
        "nothing reads the resource `slurm_partiton`; did you mean `slurm_partition`?",
    ),
    "threads in words": (
        SLURM + "set-threads: {sft: many}\n",
        "set-threads: `sft: many` is no number",
    ),
}


def refusal(folder: Path) -> str:
    """What is said of a profile, by whatever reads it before a run."""
    try:
        profile = find_profile(str(folder), {})
        assert profile is not None
        read_requests(profile)
        require_executor(profile)
    except ProfileError as refused:
        return str(refused)
    pytest.fail("it is taken as it is")


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_profile(name: str, tmp_path: Path) -> None:
    text, said = MALFORMED[name]
    (tmp_path / "config.yaml").write_text(text)
    assert said in refusal(tmp_path)
    assert str(tmp_path / "config.yaml") in refusal(tmp_path)


def test_folder_whose_file_has_another_name(tmp_path: Path) -> None:
    (tmp_path / "config.yml").write_text(SLURM)
    assert refusal(tmp_path) == (
        f"the profile {tmp_path} has no config.yaml, which is the name that Snakemake reads;"
        " there is config.yml"
    )


@pytest.mark.parametrize(
    "text",
    [
        "default-resources: {slurm_partition: main, mem_mb: 1000, runtime: 10}\n",
        "default-resources: {slurm_partition: 'off', slurm_account: 12, qos: high}\n",
        "default-resources: {slurm_partition: \"'all'\", runtime: 2h, mem: 8GB}\n",
        "default-resources: {slurm_partition: gpu-a100, slurm_account: lab/x, constraint: a|b}\n",
        "default-resources: {mem_mb: 1000 * attempt, runtime: 60 * attempt, gres: gpu:2}\n",
        "default-resources:\n  - slurm_partition=main\n  - runtime=2h\n",
        "default-resources: slurm_partition=main runtime=60\n",
        "default-resources: {slurm_extra: \"'--exclude=n1 --nodelist=n2'\", gpu: 0, local: 0}\n",
        "default-resources: {licenses: 1}\nresources: {licenses: 3}\n",
        "default-resources: {slurm_partition: \"'gpu' if attempt > 1 else 'cpu'\"}\n",
        "set-resources: {sft: {slurm_partition: gpu, nodes: 2}}\nset-threads: {sft: 4}\n",
        "jobs: unlimited\nlatency-wait: 0\nretries: 0\nkeep-going: true\n",
    ],
)
def test_profiles_that_say_what_they_mean(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(SLURM + text)
    profile = find_profile(str(tmp_path), {})
    assert profile is not None
    read_requests(profile)


def test_resources_of_other_executors_are_theirs(tmp_path: Path) -> None:
    """`sbatch -p {resources.partition}` of a command line in the profile."""
    (tmp_path / "config.yaml").write_text(
        "executor: cluster-generic\ndefault-resources: {partition: main, time: 60}\n"
    )
    assert find_profile(str(tmp_path), {}) is not None


@pytest.mark.parametrize("command", ["plan", "run", "plan --cost", "plan --preflight"])
def test_every_command_checks_the_profile_of_the_environment(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "config.yaml").write_text(SLURM + "default-resources: {time: 60}\n")
    monkeypatch.setenv("SNAKEMAKE_PROFILE", str(tmp_path))
    (tmp_path / "spec.yaml").write_text("agentc: 1\nname: any\n")
    assert (
        main([*command.split(), str(tmp_path / "spec.yaml"), "--store", str(tmp_path / "store")])
        == 2
    )
    assert "`time`; it is called `runtime`" in capsys.readouterr().err


def test_rules_that_no_plan_has(tmp_path: Path) -> None:
    """A warning, since a profile may serve other workflows."""
    (tmp_path / "config.yaml").write_text(
        SLURM
        + "set-resources: {stf: {mem_mb: 1000}, sft: {mem_mb: 1000}, script_local: {gpu: 0}}\n"
        "set-threads: {align_reads: 4, session: 2}\n"
    )
    profile = find_profile(str(tmp_path), {})
    assert profile is not None
    found = list(check_rules(read_requests(profile)))
    assert [one.verdict for one in found] == ["warning", "warning"]
    assert "`set-resources: stf`" in found[0].message
    assert found[0].fix == "did you mean `sft`?"
    assert "`set-threads: align_reads`" in found[1].message
    assert "rules are named after the kinds" in str(found[1].fix)
