"""Lease roles: what a server backend drafts once is leased as whatever a stage needs."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

import pytest

from agentc.backend_api import (
    BackendTable,
    JobDraft,
    LowerContext,
    StageBackend,
    StageView,
    load_backends,
)
from agentc.compilation import compile_spec
from agentc.lease_roles import FUSED_ROLES, ROLES, LeaseRole, is_model_server
from agentc.plan.job import Plan
from agentc.plan.render import plan_document
from agentc.plan.work import find_work
from agentc.runtime.machine.hardware import DeviceTaker, TooFewDevicesError, divide
from agentc.runtime.store.layout import StoreLayout

SPEC = """\
agentc: 1
name: roles
environments: {{craft: {{backend: textcraft}}}}
servers: {{local: {server}}}
models:
  base: {{backend: scratch, corpus: expert}}
  other: {{backend: scratch, corpus: expert, seed: 1}}
stages:
  expert: {{kind: expert, split: train}}
  a: {{kind: rollout, model: base, split: train}}
  b: {{kind: rollout, model: base, split: test}}
"""


def with_second(table: BackendTable) -> BackendTable:
    """The installed backends, of which a rollout asks a second model beside the acting one."""
    plain = table.backends["rollout.react"]
    assert isinstance(plain, StageBackend)

    def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        (draft,) = plain.lower(view, context)
        second = context.server_lease(view, "model", "simulator")
        return (replace(draft, leases=(*draft.leases, second)),)

    return BackendTable({**table.backends, plain.id: replace(plain, lower=lower)})


def plan_of(folder: Path, table: BackendTable, server: str = "{backend: transformers}") -> Plan:
    spec = folder / "roles.yaml"
    spec.write_text(SPEC.format(server=server), encoding="utf-8")
    plan = compile_spec(spec, {}, table).plan
    assert plan is not None
    return plan


def test_the_table_is_closed_and_sessions_are_joined_on_policies() -> None:
    assert get_args(LeaseRole) == tuple(role.name for role in ROLES)
    assert FUSED_ROLES == ("policy",)
    served = [role.name for role in ROLES if is_model_server(role.name)]
    assert served == ["policy", "simulator", "critic", "reference", "scorer"]


def test_a_server_is_leased_as_the_role_that_a_stage_needs(tmp_path: Path) -> None:
    job = plan_of(tmp_path, with_second(load_backends())).by_id()["a"]
    found = {lease.draft.role: lease.draft for lease in job.leases}
    assert set(found) == {"policy", "environment", "simulator"}
    assert asdict(found["simulator"]) == {**asdict(found["policy"]), "role": "simulator"}
    assert job.resources.cpus == 2


def test_a_remote_endpoint_has_the_role_and_loads_no_checkpoint(tmp_path: Path) -> None:
    remote = "{backend: openai, url: 'http://127.0.0.1:9/v1', model: m}"
    job = plan_of(tmp_path, with_second(load_backends()), remote).by_id()["a"]
    found = {lease.draft.role: lease.draft.input for lease in job.leases}
    assert found == {"policy": None, "environment": None, "simulator": None}
    assert job.resources.cpus == 1, "it starts no model server"


def test_each_model_server_of_a_session_starts_once(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, with_second(load_backends()))
    assert [session.members for session in plan.sessions] == [("a", "b")]
    work = find_work(plan_document(plan), StoreLayout(tmp_path / "store"))
    assert (work.server_starts, work.saved_starts) == (2, 2)
    alone = find_work(
        plan_document(plan_of(tmp_path, load_backends())), StoreLayout(tmp_path / "store")
    )
    assert (alone.server_starts, alone.saved_starts) == (1, 1)


def test_gpus_of_two_model_servers_are_disjoint_and_one_takes_the_rest() -> None:
    policy = DeviceTaker("policy", "serve.a", 1, "auto")
    second = DeviceTaker("simulator", "serve.b", 2)
    given, left = divide(list("0123456"), {"first": policy, "second": second})
    assert (given["first"], given["second"], left) == (
        [["0"], ["1"], ["2"], ["3"], ["4"]], [["5", "6"]], [],
    )  # fmt: skip
    twice = {"first": policy, "second": second._replace(copies=2)}
    assert [len(one) for one in divide(list("0123456"), twice)[0].values()] == [3, 2]
    with pytest.raises(TooFewDevicesError, match=r"simulator server \(serve\.b\) 2"):
        divide(["0", "1"], {"first": policy, "second": second})
