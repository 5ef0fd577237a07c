"""Plans that were made before modules moved: their programs are found where they are now."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import agentc_backends
from agentc.runtime.servers.job_leases import planned_leases, program_of
from agentc.runtime.store.plan_file import PlanFile, current_program

MOVED = json.loads((Path(agentc_backends.__file__).parent / "moved.json").read_text("utf-8"))


def test_every_old_place_has_a_new_one() -> None:
    for old, new in MOVED.items():
        assert importlib.util.find_spec(f"agentc_backends.{new}") is not None, old
        assert not (Path(agentc_backends.__file__).parent / old.replace(".", "/")).exists()


def test_programs_of_an_old_plan_are_those_of_today(tmp_path: Path) -> None:
    sft = ["-m", "agentc_backends.trl_trainers.job_sft", "{job}"]
    serve = ["-m", "agentc_backends.textcraft.job_serve", "--port", "0"]
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "jobs": [
                    {
                        "id": "sft",
                        "program": sft,
                        "leases": [{"role": "environment", "program": serve}],
                    }
                ],
                "servers": [{"id": "server/game", "clients": [], "lease": {"program": serve}}],
            }
        )
    )
    job = PlanFile(plan).job("sft")
    served = ["-m", "agentc_backends.environments.textcraft.job_serve", "--port", "0"]
    assert job["program"] == ["-m", "agentc_backends.trainers.trl.job_sft", "{job}"]
    [lease] = planned_leases(job)
    assert (lease.module, program_of(lease.spec)) == (served[1], served)
    assert program_of(PlanFile(plan).server("server/game")["lease"]) == served


def test_what_a_word_names_moves_along() -> None:
    old = ["-m", "agentc_backends.vllm_server.job_serve", "serve", "{model}", "--middleware"]
    new = ["-m", "agentc_backends.servers.vllm.job_serve", *old[2:]]
    gate = "agentc_backends.servers.vllm.gate.Gate"
    assert current_program([*old, "agentc_backends.vllm_server.gate.Gate"]) == [*new, gate]
    assert current_program([*old, "another.vllm_server.gate"]) == [*new, "another.vllm_server.gate"]


def test_a_name_of_today_and_other_words_stay() -> None:
    for program in (
        ["-m", "agentc_backends.trainers.trl.job_sft"],
        ["-m", "no_such_package.job"],
        ["-c", "agentc_backends.trl_trainers.job_sft"],
        ["serve"],
    ):
        assert current_program(program) == program
