"""Names of SLURM jobs say the stage, and Snakemake's plugin asks for all of them."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest

from agentc.run.slurm_plugin import name_by_stage, stage_of

plugin = pytest.importorskip("snakemake_executor_plugin_slurm")
RUN = "agentc-0a1b2c3d4e5f_9e107d9d-372b-4b6e-8d2c-6f3f0d6a2b11"


@pytest.mark.parametrize(
    ("words", "stage"),
    [
        (["--job", "eto.2.dpo"], "eto.2.dpo"),
        (["--job", "check:rollout"], "check-rollout"),
        (["--job", "sft@rate=1e-3,seed=2"], "sft"),
        (["--job", "sft@a=b.2.dpo@c=d:rollout"], "sft.2.dpo-rollout"),
        (["--session", "serve base"], "serve-base"),
        ([], ""),
        (["--job", "x" * 200], "x" * 60),
    ],
)
def test_stages_in_letters_that_slurm_takes(words: list[str], stage: str) -> None:
    assert stage_of(words) == stage


def job(name: str) -> SimpleNamespace:
    return SimpleNamespace(
        params=SimpleNamespace(work=["--job", name]),
        resources=SimpleNamespace(get=lambda *_: None, slurm_extra=None),
        threads=1,
        is_group=lambda: False,
    )


def test_the_plugin_submits_by_stage_and_asks_for_each_name() -> None:
    """On a copy of the installed plugin, which has to be as the adapter expects it."""
    copy = ModuleType("copy")
    copy.__dict__.update(plugin.__dict__)
    asked: list[str] = []
    copy.get_submit_command = lambda job, params, **_: str(params["run_uuid"])  # type: ignore[attr-defined]
    assert name_by_stage(copy)
    params = {"run_uuid": RUN, "workdir": "."}
    for name in ("sft", "eto.1.dpo", "sft"):
        asked.append(copy.get_submit_command(job(name), params, settings=None))  # type: ignore[attr-defined]
    assert asked == [
        "agentc-0a1b2c3d4e5f-sft",
        "agentc-0a1b2c3d4e5f-eto.1.dpo",
        "agentc-0a1b2c3d4e5f-sft",
    ]
    assert params["run_uuid"] == RUN
    wanted = f"--name {RUN},agentc-0a1b2c3d4e5f-sft,agentc-0a1b2c3d4e5f-eto.1.dpo"
    for query in (copy.query_job_status_sacct, copy.query_job_status_squeue):  # type: ignore[attr-defined]
        assert query(RUN).endswith(wanted)


def test_a_plugin_of_another_make_is_left_alone() -> None:
    other = ModuleType("other")
    assert not name_by_stage(other)
    assert not hasattr(other, "get_submit_command")
