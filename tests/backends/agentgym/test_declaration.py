"""What `agentc check` makes of an environment of the AgentGym family, and what the plan says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_folder import write_model_folder

from agentc.backend_api import load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.program.settings import settings_from
from agentc_backends.environments.agentgym.settings import AgentGymSettings

SPEC = """\
agentc: 1
name: demo
environments:
  world:
    backend: agentgym
{settings}
models:
  base: {{backend: path, path: model}}
servers:
  local: {{backend: scripted}}
prompts:
  react: {{instruction: Act.}}
stages:
  score: {{kind: evaluate, model: base, environment: world, split: {split}{more}}}
"""
PLAIN = """\
server: textcraft
url: http://127.0.0.1:36008
splits: {test: {range: [0, 31]}, train: {range: [31, 538]}}
"""


@pytest.fixture
def compiled(tmp_path: Path) -> Any:
    write_model_folder(tmp_path / "model")

    def run(settings: str = PLAIN, split: str = "test", more: str = "") -> Compilation:
        indented = "".join(f"    {line}\n" for line in settings.splitlines())
        path = tmp_path / "spec.yaml"
        path.write_text(SPEC.format(settings=indented, split=split, more=more))
        return compile_spec(path, {}, load_backends(), allowed=())

    return run


def messages(compilation: Compilation) -> str:
    return "\n".join(found.message for found in compilation.diagnostics)


def lease_of(compilation: Compilation) -> Any:
    assert compilation.plan is not None, messages(compilation)
    (job,) = (job for job in compilation.plan.jobs if job.stage == "score" and job.leases)
    return job, next(lease for lease in job.draft.leases if lease.role == "environment")


def test_splits_and_rewards_follow_from_the_settings(compiled: Any) -> None:
    wrong = compiled(split="dev")
    assert "one of `test`, `train`" in str([d.expected for d in wrong.diagnostics])
    too_much = compiled(more=", success_at: 50")
    assert too_much.has_errors
    sciworld = PLAIN.replace("textcraft", "sciworld")
    job, _ = lease_of(compiled(sciworld))
    assert job.draft.config["reward_range"] == [-1.0, 1.0]
    job, _ = lease_of(compiled())
    assert job.draft.config["reward_range"] == [0.0, 1.0]
    assert job.draft.contract["reward_range"] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (PLAIN.replace("[31, 538]", "[30, 538]"), "`test` and `train` share 1 task (30)"),
        (PLAIN.replace("[31, 538]", "[31, 9999]"), "the server has 0 to 543"),
        (PLAIN.replace("url: http://127.0.0.1:36008\n", ""), "where the server is"),
        (PLAIN + "launch: {command: [textcraft]}\n", "none is to be started"),
        (PLAIN + "dialect: {success_at: 5}\n", "every episode succeeds, or none"),
        (PLAIN.replace("textcraft", "other"), "`task_field` is missing"),
        (PLAIN + "dialect: {reward_kin: sum}\n", "reward_kin"),
        (PLAIN.replace("range: [0, 31]", "file: nowhere.json"), "no file nowhere.json"),
    ],
)
def test_what_is_refused_when_checked(compiled: Any, settings: str, says: str) -> None:
    compilation = compiled(settings)
    assert compilation.has_errors
    assert says in messages(compilation)


def test_a_file_outside_of_the_spec_is_not_read(compiled: Any, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.json"
    outside.write_text("[1]")
    compilation = compiled(PLAIN.replace("range: [0, 31]", "file: ../outside.json"))
    assert "AGC123" in {found.code for found in compilation.diagnostics}


def test_keys_follow_the_numbers_and_not_how_they_are_written(
    compiled: Any, tmp_path: Path
) -> None:
    (tmp_path / "test.json").write_text(json.dumps([f"textcraft_{n}" for n in range(31)]))
    written = compiled(PLAIN.replace("range: [0, 31]", "file: test.json"))
    job, lease = lease_of(written)
    assert job.key == lease_of(compiled())[0].key
    assert lease.settings["splits"] == [["test", "0-30"], ["train", "31-537"]]
    assert "test.json" in written.references.files
    (tmp_path / "test.json").write_text("[0, 1]")
    assert lease_of(compiled(PLAIN.replace("range: [0, 31]", "file: test.json")))[0].key != job.key


def test_placeholders_of_a_launch_are_left_to_it(compiled: Any) -> None:
    command = ["textcraft", "--host", "{host}", "--port={port}"]
    launched = PLAIN.replace(
        "url: http://127.0.0.1:36008", f"launch: {{command: {json.dumps(command)}}}"
    )
    told = settings_from(AgentGymSettings, lease_of(compiled(launched))[1].settings)
    assert told.launch is not None
    assert told.launch["command"] == command


def test_the_place_of_the_server_is_no_part_of_keys_and_what_it_serves_is(compiled: Any) -> None:
    key = lease_of(compiled())[0].key
    elsewhere = PLAIN.replace("127.0.0.1:36008", "gym.example:80")
    assert lease_of(compiled(elsewhere))[0].key == key
    pinned = PLAIN + f"fingerprint: {'0123456789abcdef' * 2}\n"
    for settings in (pinned, PLAIN + "release: 3ef9235\n", PLAIN + "dialect: {max_turns: 20}\n"):
        assert lease_of(compiled(settings))[0].key != key
    assert lease_of(compiled(pinned))[1].expect["fingerprint"] == "0123456789abcdef" * 2
