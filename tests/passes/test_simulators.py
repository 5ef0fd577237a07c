"""Environments that ask a model server of the spec: what they name, what stages get from it, and
what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.plan.job import Job
from agentc.plan.verify import verify_plan

SPEC = """\
agentc: 1
name: asked
environments:
  plain: {{backend: guess_my_city}}
  city: {{backend: guess_my_city, {city}}}
servers:
  local: {{backend: transformers}}
  human: {human}
models:
  base: {{backend: scratch, corpus: expert}}
  host: {{backend: scratch, corpus: expert, seed: 5}}
stages:
  expert: {{kind: expert, environment: plain, split: train}}
  play: {{kind: rollout, environment: city, model: base, server: local, split: train{play}}}
"""
ASKED = "oracle: model, simulator: {server: human, model: host}"
OWN = "{backend: transformers}"
REMOTE = "{backend: openai, url: 'http://127.0.0.1:9/v1', model: m}"


@pytest.fixture(scope="module")
def table() -> BackendTable:
    """The installed backends: what people meet."""
    return load_backends()


class Written:
    """Specs of this page, compiled."""

    def __init__(self, folder: Path, table: BackendTable) -> None:
        self.folder, self.table = folder, table

    def compiled(self, city: str = ASKED, human: str = OWN, play: str = "") -> Compilation:
        return self.text(SPEC.format(city=city, human=human, play=play))

    def text(self, text: str) -> Compilation:
        (self.folder / "asked.yaml").write_text(text, encoding="utf-8")
        return compile_spec(self.folder / "asked.yaml", {}, self.table)

    def play(self, **parts: str) -> Job:
        found = self.compiled(**parts)
        assert found.plan is not None, [each.message for each in found.diagnostics]
        assert {each.code for each in found.diagnostics} <= {"AGC411"}, "a model is unused"
        assert not verify_plan(found.plan)
        return found.plan.by_id()["play"]

    def refusals(self, **parts: str) -> list[tuple[str, str]]:
        """Of each message its code and what it says."""
        found = self.compiled(**parts)
        assert found.plan is None
        return [(each.code, each.message) for each in found.diagnostics]


@pytest.fixture
def written(tmp_path: Path, table: BackendTable) -> Written:
    return Written(tmp_path, table)


def test_each_stage_leases_both_and_reads_the_model_that_is_served(written: Written) -> None:
    job = written.play()
    leases = {lease.draft.role: lease.draft for lease in job.leases}
    assert set(leases) == {"policy", "environment", "simulator"}
    assert leases["environment"].needs == ("simulator",)
    assert leases["environment"].port == "chosen", "an environment that asks has its own server"
    assert (leases["simulator"].input, leases["simulator"].backend) == (
        "simulator", "serve.transformers",
    )  # fmt: skip
    assert job.inputs == {"model": ("base",), "simulator": ("host",)}


def test_the_key_knows_who_answers_and_not_where(written: Written) -> None:
    own = written.play()
    shared = written.play(human="{backend: transformers, scope: shared}")
    assert shared.key == own.key
    assert [lease.server for lease in shared.leases] == ["", "", "server/human.host"]
    longer = written.play(human="{backend: transformers, max_model_len: 128}")
    other = written.play(city=ASKED.replace("host", "base"))
    remote = written.play(city="oracle: model, simulator: {server: human}", human=REMOTE)
    assert remote.inputs == {"model": ("base",)}
    keys = [own.key, longer.key, other.key, remote.key]
    assert len(set(keys)) == 4


def test_one_shared_server_is_asked_by_the_policy_and_by_the_world(written: Written) -> None:
    city = ASKED.replace("server: human, model: host", "server: local, model: base")
    text = SPEC.format(city=city, human=OWN, play="")
    shared = text.replace("local: {backend", "local: {scope: shared, backend")
    apart = shared.replace("server: local, model: base", "server: local, model: host")
    for spec, names in (
        (shared, {"server/local.base": 1}),
        (apart, {"server/local.base": 1, "server/local.host": 1}),
    ):
        plan = written.text(spec).plan
        assert plan is not None
        assert not verify_plan(plan)
        assert {server.id: len(server.clients) for server in plan.servers} == names
        assert {lease.server for lease in plan.by_id()["play"].leases} == {"", *names}


def test_a_simulator_may_be_what_a_stage_of_the_same_round_trained(written: Written) -> None:
    text = SPEC.format(city=ASKED.replace("host", "tuned"), human=OWN, play="")
    text += (
        "  tuned: {kind: sft, model: host, data: expert, lr: 1e-3, global_batch: 8,\n"
        "          max_length: 512}\n"
    )
    found = written.text(text)
    assert found.plan is not None
    assert found.plan.by_id()["play"].inputs["simulator"] == ("tuned",)
    order = [job.id for job in found.plan.jobs]
    assert order.index("tuned") < order.index("play")


@pytest.mark.parametrize(
    ("parts", "code", "says"),
    [
        ({"city": ASKED.replace("server: human", "server: humn")}, "AGC402", "no server `humn`"),
        ({"city": ASKED.replace("host", "hots")}, "AGC401", "no stage or model `hots`"),
        ({"city": ASKED.replace("host", "expert")}, "AGC501", "but `expert` makes Trajectories"),
        ({"city": ASKED.replace("host", "play")}, "AGC405", "takes its own output as `simulator`"),
        ({"city": "oracle: model"}, "AGC603", "calls a model server as `simulator`"),
        ({"city": "oracle: model, simulator: {model: host}"}, "AGC202", "`server`"),
        ({"city": ASKED.replace("model, ", "table, ", 1)}, "AGC602", "`simulator` has no effect"),
        ({"city": ASKED + ", scope: shared"}, "AGC603", "so each job starts its own"),
        ({"city": ASKED + ", scope: node"}, "AGC603", "so each job starts its own"),
        ({"city": ASKED.replace(", model: host", "")}, "AGC603", "and none is named"),
        ({"human": REMOTE}, "AGC603", "which serves its own model"),
        ({"city": ASKED + ", unknown: no"}, "AGC602", "answers every question itself"),
        (
            {"human": "{backend: vllm}", "play": ", placement: {gpus: 1, nodes: 2}"},
            "AGC667", "would share 2 nodes",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(
    written: Written, parts: dict[str, str], code: str, says: str
) -> None:
    found = written.refusals(**parts)
    assert [each for each in found if each[0] == code and says in each[1]], found


def test_what_an_environment_asks_counts_as_used(written: Written) -> None:
    assert not written.compiled().diagnostics
    text = SPEC.format(city=ASKED, human=OWN, play="").replace(
        "environment: city", "environment: plain"
    )
    said = {each.message for each in written.text(text).diagnostics}
    assert said == {
        "no stage uses the model `host`",
        "no stage uses the environment `city`",
        "no stage uses the server `human`",
    }


def test_cells_of_a_sweep_ask_the_servers_of_their_own(written: Written) -> None:
    text = SPEC.format(city=ASKED, human="{backend: transformers, max_model_len: '{{ most }}'}",
                       play="")  # fmt: skip
    text += "params: {most: {type: int, default: 64}}\nmatrix: {most: [64, 128]}\n"
    found = written.text(text)
    assert found.plan is not None, [each.message for each in found.diagnostics]
    lengths = {
        job.id: next(
            lease.draft.identity for lease in job.leases if lease.draft.role == "simulator"
        )
        for job in found.plan.jobs
        if job.draft.kind == "rollout"
    }
    assert sorted(each["max_model_len"] for each in lengths.values()) == [64, 128]


def test_gpus_are_enough_for_both_or_one_is_elsewhere(written: Written) -> None:
    vllm = "{backend: vllm, tensor_parallel: 2%s}"
    text = SPEC.format(city=ASKED, human=vllm % "", play=", placement: {gpus: %d}")
    text = text.replace("local: {backend: transformers}", "local: {backend: vllm}")

    def codes(text: str) -> list[str]:
        return [each.code for each in written.text(text).diagnostics if each.severity == "error"]

    assert codes(text % 2) == ["AGC667"]
    assert codes(text % 3) == []
    shared = vllm % ", scope: shared, placement: {gpus: 2}"
    assert codes(text.replace(vllm % "", shared) % 1) == []
