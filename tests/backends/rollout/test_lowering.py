"""Lowering of rollout, evaluate, expert, pair and compare stages, without the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from agentc.backend_api import (
    EnvironmentBackend,
    JobDraft,
    LeaseDraft,
    OptionView,
    Software,
    StageBackend,
    StageView,
)
from agentc.diagnostics.diagnostic import Origin, Source, Span
from agentc.ir.module import Prompt
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.passes.lowering.leases import opens_in
from agentc_backends.agents.common.lowering import prompt_config, prompt_identity
from agentc_backends.agents.evaluate.backend import BACKEND as EVALUATE
from agentc_backends.agents.expert.backend import BACKEND as EXPERT
from agentc_backends.agents.rollout.backend import BACKEND as ROLLOUT
from agentc_backends.agents.search.backend import BACKEND as SEARCH
from agentc_backends.data.pair.backend import BACKEND as PAIR
from agentc_backends.environments.sciworld.backend import BACKEND as SCIWORLD
from agentc_backends.environments.textcraft.backend import BACKEND as TEXTCRAFT
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.settings import TextCraftSettings

NOWHERE = Origin(span=Span(Source("spec.yaml", ""), 1, 1, 1, 1))


class Context:
    """Answers of the compiler for one environment, server and prompt."""

    def __init__(self, reply_format: str = "react", instruction: str = "Act.") -> None:
        self.shown = Prompt(
            name="p",
            instruction=instruction,
            acknowledgement="OK",
            examples=((("user", "t"), ("assistant", "a")),),
            reply_format=reply_format,
            origin=NOWHERE,
        )

    def environment_lease(self, stage: StageView) -> LeaseDraft:
        return TEXTCRAFT.lease(OptionView(table=TEXTCRAFT.fields, values={}))

    def environment_leases(
        self, stage: StageView, inside_of: tuple[Software, ...] = ()
    ) -> tuple[LeaseDraft, ...]:
        lease = self.environment_lease(stage)
        return (replace(lease, port="inside") if opens_in(lease, inside_of) else lease,)

    def environment_facts(self, stage: StageView) -> Mapping[str, Json]:
        return {
            "name": "textcraft",
            "reward_range": [0.0, 1.0],
            "success_at": 1.0,
            "max_turns": 60,
            "splits": ["train", "validation", "test"],
            "capabilities": sorted(TEXTCRAFT.capabilities),
        }

    def server_lease(self, stage: StageView, checkpoint_role: str) -> LeaseDraft:
        return LeaseDraft(
            role="policy",
            backend="serve.sample",
            version=1,
            software=None,
            program=(),
            identity={},
            input=checkpoint_role,
        )

    def prompt(self, stage: StageView) -> Prompt | None:
        return self.shown

    def experiment(self) -> Mapping[str, Json]:
        return {"name": "sample"}


def lowered(
    backend: StageBackend,
    context: Context | None = None,
    without: Sequence[str] = ("prefixes",),
    **values: Any,
) -> tuple[StageView, tuple[JobDraft, ...]]:
    kind = kind_named(backend.kind)
    assert kind is not None
    view = StageView(
        table=(*kind.fields, *backend.options),
        values=values,
        kind=kind.name,
        inputs={role.name: (role.name,) for role in kind.roles if role.name not in without},
    )
    drafts = backend.lower(view, context or Context())
    for draft in drafts:
        view.absorb(draft.view)
    return view, drafts


def test_an_evaluation_rolls_out_as_an_equal_rollout_stage_does() -> None:
    settings: dict[str, Any] = {
        "split": "test",
        "limit": 20,
        "decode": {"temperature": 0.7},
        "action_span": "rest",
    }
    _, (rollout,) = lowered(ROLLOUT, **settings)
    _, (inner, metrics) = lowered(EVALUATE, **settings, confidence=0.9)
    for field in ("kind", "backend", "version", "config", "inputs", "extra_identity"):
        assert getattr(inner, field) == getattr(rollout, field), field
    assert list(map(asdict, inner.leases)) == list(map(asdict, rollout.leases))
    assert inner.view.identity() == rollout.view.identity()
    assert "confidence" not in inner.view.identity()
    assert metrics.view.identity() == {"confidence": 0.9}
    assert metrics.inputs == {"rollouts": (":rollout",)}


def test_prefix_is_read_where_there_is_one() -> None:
    view, (plain,) = lowered(ROLLOUT, split="train")
    assert "prefix" not in plain.config
    assert "prefixes" not in plain.inputs
    assert view.reasons["prefix.cut"] == "without `prefixes` every episode begins at its start"
    given = {"cut": "every", "shortest": 0}
    view, (behind,) = lowered(ROLLOUT, without=(), split="train", prefix=given)
    expected = {"cut": "every", "shortest": 0, "longest": None, "max_reward": None, "counted": True}
    assert behind.config["prefix"] == expected
    assert behind.inputs == {"model": ("model",), "prefixes": ("prefixes",)}
    assert behind.placement["same_state"] == "observation"
    # The prompt is that of the trajectory.
    assert {"prompt_seed", "prompt_per_attempt"} & (set(behind.config) | view.read) == set()
    assert behind.view.identity()["prefix.cut"] == "every"
    _, (rollout, metrics) = lowered(EVALUATE, without=(), split="train", prefix=given)
    assert rollout.config == behind.config
    assert metrics.config["protocol"]["prefix"] == expected  # type: ignore[index, call-overload]


def test_lengths_that_no_prefix_has_are_refused() -> None:
    view, _ = lowered(ROLLOUT, without=(), split="train", prefix={"shortest": 3, "longest": 2})
    assert [each.path for each in view.refusals] == ["prefix.longest"]


def _protocol(context: Context | None = None, **values: Any) -> Mapping[str, Json]:
    _, (_, metrics) = lowered(EVALUATE, context, **{"split": "test", **values})
    protocol = metrics.config["protocol"]
    assert isinstance(protocol, Mapping)
    return protocol


@pytest.mark.parametrize(
    "changed",
    [
        {"attempts": 3},
        {"decode": {"temperature": 0.7}},
        {"decode": {"stop": ["\n"]}},
        {"max_turns": 3},
        {"prompt_seed": 1},
        {"prompt_per_attempt": False},
        {"action_span": "rest"},
        {"action_span": "after_last"},
        {"action_space": "required"},
        {"no_action": "whole_reply"},
        {"on_invalid": "fail"},
        {"invalid_message": "What?"},
        {"invalid_reward": "zero"},
        {"on_overflow": "drop_oldest"},
        {"success_at": 0.5},
    ],
    ids=str,
)
def test_a_setting_that_changes_what_a_score_means_is_recorded(changed: dict[str, Any]) -> None:
    assert _protocol(**changed) != _protocol()


def test_settings_that_leave_the_meaning_of_a_score_alone_are_not_recorded() -> None:
    for same in ({"seed": 7}, {"limit": 3}, {"concurrency": 2}, {"confidence": 0.9}):
        assert _protocol(**same) == _protocol(), same
    assert _protocol(success_at=1.0) == _protocol(), "it is the environment's own"


def test_the_prompt_the_environment_and_the_servers_context_are_recorded() -> None:
    class Other(Context):
        identity: Mapping[str, Json] = {"max_depth": 2}
        longest = 512

        def environment_lease(self, stage: StageView) -> LeaseDraft:
            return TEXTCRAFT.lease(OptionView(table=TEXTCRAFT.fields, values=self.identity))

        def server_lease(self, stage: StageView, checkpoint_role: str) -> LeaseDraft:
            lease = super().server_lease(stage, checkpoint_role)
            return replace(lease, identity={"max_model_len": self.longest})

    plain, other = _protocol(), _protocol(Other())
    assert (plain["max_model_len"], other["max_model_len"]) == (None, 512)
    assert other["environment"] == {"version": TEXTCRAFT.version, "max_depth": 2}
    worded = _protocol(Context(instruction="Act well."))
    assert worded["prompt"] != plain["prompt"]
    prefixed = Context()
    prefixed.shown = replace(prefixed.shown, observation_prefix="")
    assert _flat_differences(_protocol(prefixed)["prompt"], plain["prompt"]) == [
        "observation_prefix"
    ]


def _flat_differences(one: Any, other: Any) -> list[str]:
    return [name for name in one if one[name] != other[name]]


def test_what_a_prompt_leaves_out_is_in_no_key() -> None:
    shown = Context().shown
    assert "output_marker" in prompt_config(shown)
    assert "output_marker" not in prompt_identity(shown)
    marked = replace(shown, output_marker="OUTPUT:")
    assert prompt_identity(marked) == {**prompt_identity(shown), "output_marker": "OUTPUT:"}
    assert prompt_identity(None) == {}


def test_a_marker_gives_the_experts_thought_a_place() -> None:
    context = Context("text")
    context.shown = replace(context.shown, output_marker="OUTPUT:")
    view, (draft,) = lowered(EXPERT, context, split="test", thoughts=True)
    assert "thoughts" in view.read
    assert draft.config["thoughts"] is True


def test_a_split_that_the_environment_lacks_is_refused() -> None:
    view, _ = lowered(ROLLOUT, split="dev")
    [refusal] = view.refusals
    assert refusal.path == "split"
    assert "train, validation, test" in refusal.reason


@pytest.mark.parametrize(
    ("backend", "reply_format", "values", "unread"),
    [
        (ROLLOUT, "react", {"on_invalid": "fail", "invalid_message": "x"}, "invalid_message"),
        (ROLLOUT, "action_only", {"action_space": "required"}, "action_space"),
        (ROLLOUT, "react", {"on_invalid": "fail", "invalid_reward": "zero"}, "invalid_reward"),
        (ROLLOUT, "react", {"no_action": "whole_reply", "on_invalid": "fail"}, "on_invalid"),
        (ROLLOUT, "text", {"on_invalid": "fail"}, "on_invalid"),
        (ROLLOUT, "text", {"invalid_message": "x"}, "invalid_message"),
        (ROLLOUT, "text", {"invalid_reward": "zero"}, "invalid_reward"),
        (ROLLOUT, "text", {"no_action": "invalid"}, "no_action"),
        (ROLLOUT, "text", {"action_span": "rest"}, "action_span"),
        (ROLLOUT, "text", {"action_space": "required"}, "action_space"),
        (EXPERT, "text", {"thoughts": True}, "thoughts"),
        (EXPERT, "action_only", {"thoughts": True}, "thoughts"),
        (PAIR, "react", {"seed": 1}, "seed"),
        (PAIR, "react", {"sources": "self", "prompt_from": "expert"}, "prompt_from"),
    ],
)
def test_a_setting_without_effect_is_not_read(
    backend: StageBackend, reply_format: str, values: dict[str, Any], unread: str
) -> None:
    needed = {} if backend is PAIR else {"split": "test"}
    view, _ = lowered(backend, Context(reply_format), **needed, **values)
    assert unread not in view.read
    assert set(values) - {unread} <= view.read


def test_pairs_against_an_expert_need_one() -> None:
    kind = kind_named("pair")
    assert kind is not None
    view = StageView(table=kind.fields, values={}, kind="pair",
                     inputs={"rollouts": ("r",)})  # fmt: skip
    [draft] = PAIR.lower(view, Context())
    [refusal] = draft.view.refusals
    assert refusal.path == "sources"
    alone = StageView(table=kind.fields, values={"sources": "self"}, kind="pair",
                      inputs={"rollouts": ("r",)})  # fmt: skip
    [draft] = PAIR.lower(alone, Context())
    assert not draft.view.refusals
    assert draft.inputs == {"rollouts": ("r",)}


def test_the_textcraft_lease_passes_its_options_on_and_expects_them() -> None:
    view = OptionView(table=TEXTCRAFT.fields, values={"max_depth": 2, "distractors": 3})
    lease = TEXTCRAFT.lease(view)
    told = [lease.settings[name] for name in ("max_depth", "distractors", "max_expert_steps")]
    assert told == [2, 3, None]
    assert lease.identity == {"max_depth": 2, "distractors": 3}
    environment = TextCraftEnvironment(TextCraftSettings(max_depth=2, distractors=3))
    identity = environment.identity()
    assert {name: identity[name] for name in lease.expect} == lease.expect


def test_declared_facts_are_those_of_the_environment() -> None:
    environment = TextCraftEnvironment(TextCraftSettings())
    assert isinstance(TEXTCRAFT, EnvironmentBackend)
    assert TEXTCRAFT.splits == environment.splits
    assert TEXTCRAFT.reward_range == environment.reward_range
    assert TEXTCRAFT.success_at == environment.success_threshold
    assert TEXTCRAFT.max_turns == environment.default_max_steps


@pytest.mark.parametrize("backend", [ROLLOUT, EVALUATE, EXPERT, SEARCH], ids=lambda one: one.id)
def test_where_the_environment_is_changes_no_key(backend: StageBackend) -> None:
    ports, identities = {}, []
    for where in ("auto", "server"):
        view, drafts = lowered(backend, split="test", environment_at=where)
        assert not view.refusals
        [lease] = [one for one in drafts[0].leases if one.role == "environment"]
        ports[where] = lease.port
        identities.append((drafts[0].view.identity(), lease.identity, drafts[0].config))
    assert ports == {"auto": "inside", "server": "chosen"}
    assert identities[0] == identities[1]


class _Elsewhere(Context):
    """An environment with calls that wait, in software of its own."""

    def environment_lease(self, stage: StageView) -> LeaseDraft:
        return SCIWORLD.lease(OptionView(table=SCIWORLD.fields, values={}))


def test_an_environment_that_may_wait_has_its_server() -> None:
    _, [draft] = lowered(EXPERT, _Elsewhere(), split="test")
    assert [lease.port for lease in draft.leases] == ["chosen"]
