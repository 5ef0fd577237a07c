"""Declares `revise.splice` and lowers a revise stage to its one job."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import JobDraft, LeaseDraft, LowerContext, StageBackend, StageView
from agentc.ir.module import Prompt
from agentc.kinds.artifacts import SFT_DATASET
from agentc.kinds.field import Json
from agentc.kinds.interaction import OBSERVATION_PREFIX
from agentc.kinds.search import (
    JudgeDecode,
    JudgeQuestions,
    ReviseSettings,
    RevisionRows,
    RewardBars,
)
from agentc.program.settings import declared_in
from agentc_backends.agents.common.lowering import marks_actions, refuse_marker, refuse_tools
from agentc_backends.software import LIGHT

_NEUTRAL: dict[str, Json] = {
    **dict.fromkeys(("max_pairs_per_tree", "max_revision", "max_good")),
    **dict.fromkeys(("dedup_revision", "dedup_good"), False),
    "seed": 0,
    "verify": "off",
}
"""What a job has of settings that have no effect."""


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. A setting that the chosen parts leave without effect is not read, so that the
    compiler says so, and why."""
    view = stage.scoped()
    # Named by the stage like any other's, whether or not these parts need them.
    facts, prompt = context.environment_facts(view), context.prompt(view)
    refuse_marker(view, prompt)
    refuse_tools(view, prompt, "a revision continues after texts that it writes itself")
    server = context.server_lease(view, "model")
    settings = view.config_of(ReviseSettings, placement=False, without=_without(view, prompt))
    groups = _groups(view, settings, prompt)
    leases: list[LeaseDraft] = []
    inputs = {"trees": stage.inputs["trees"]}
    if groups["judge"] is None:
        view.leave("model", "nothing is judged without the part `revision`")
    else:
        inputs["model"] = _judge_policy(view)
        leases.append(server)
    if settings.get("verify", "off") != "off":
        leases += context.environment_leases(view)
    parts, span = settings["parts"], facts["reward_range"]
    assert isinstance(parts, list)
    best = span[1] if "optimal" in parts and isinstance(span, list) else None
    prefix = OBSERVATION_PREFIX if prompt is None else prompt.observation_prefix
    signal = groups["signal"]
    reply_format = signal["reply_format"] if isinstance(signal, dict) else None
    identity: dict[str, Json] = {"reply_format": reply_format, "best_reward": best}
    if prefix != OBSERVATION_PREFIX:
        identity["observation_prefix"] = prefix
    return (
        JobDraft(
            kind="revise",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.agents.revise.job_revise"),
            view=view,
            config={
                **_NEUTRAL,
                **_of(RevisionRows, settings),
                **groups,
                "best_reward": best,
                "observation_prefix": prefix,
            },
            placement=_placement(view, asks=bool(leases)),
            inputs=inputs,
            produces=SFT_DATASET.name,
            leases=tuple(leases),
            extra_identity=identity,
            contract={"reward_range": facts["reward_range"]},
            resume=True,
        ),
    )


def _without(view: StageView, prompt: Prompt | None) -> dict[str, str]:
    """Settings without an effect, and why, besides what their own conditions say."""
    without: dict[str, str] = {}
    if not marks_actions(prompt) and prompt is not None:
        for name in ("thoughts", "draw"):
            without[f"signal.{name}"] = (
                f"replies of the prompt's `reply_format: {prompt.reply_format}` hold none"
            )
    parts = view.get("parts")
    assert isinstance(parts, list)
    if not {"revision", "direct"} & {*parts} and view.get("max_good") is None:
        without["seed"] = "nothing is drawn without `max_good`"
    return without


def _judge_policy(view: StageView) -> tuple[str, ...]:
    policy = view.inputs.get("model", ())
    if not policy:
        view.refuse(
            "model",
            "the part `revision` requests from the actor its first mistake, and the stage names no "
            "`model`",
            fix="give the model that the trees were searched with, or make `direct` of "
            "`revision`: it keeps the bad trajectories whole",
        )
    return policy


def _groups(
    view: StageView, settings: Mapping[str, Json], prompt: Prompt | None
) -> dict[str, Json]:
    """What a job has in groups: of each, None where no part needs it."""
    if bars := _of(RewardBars, settings):
        bars = {"beta": 0.0, "beta_is": "gap", **bars}
        if bars["alpha"] is None:
            view.refuse(
                "alpha",
                "revise.splice needs `alpha`, the reward above which a trajectory is good",
                fix="set alpha: 0.5, or `parts: [optimal]`",
            )
    judge, signal = settings.get("judge"), settings.get("signal")
    decode: dict[str, Json] | None = None
    if isinstance(judge, dict):
        # Numbers as the spec writes them.
        decode = {name: view.get(f"judge.{name}") for name in _of(JudgeDecode, judge)}
        decode["stop"] = []
        judge = {"unparsed": "bad", **_of(JudgeQuestions, judge)}
    if isinstance(signal, dict):
        reply_format = "react" if prompt is None else prompt.reply_format
        defaults: dict[str, Json] = {"thoughts": [*THOUGHTS[:1]], "draw": "pair"}
        signal = {**defaults, **signal, "reply_format": reply_format}
        signal["thoughts"] = signal["thoughts"] or [*THOUGHTS]
    return {"bars": bars or None, "judge": judge, "decode": decode, "signal": signal}


def _of(part: type, settings: Mapping[str, Json]) -> dict[str, Json]:
    """Those settings that a dataclass has."""
    return {e.name: settings[e.name] for e in declared_in(part) if e.name in settings}


def _placement(view: StageView, *, asks: bool) -> dict[str, Json]:
    neutral: dict[str, Json] = {"concurrency": 1, "error_budget": 0.0}
    because = "these parts ask no server"
    without = {} if asks else dict.fromkeys(neutral, because)
    return neutral | view.config_of(ReviseSettings, placement=True, without=without)


BACKEND = StageBackend(
    id="revise.splice",
    kind="revise",
    version=3,
    doc="Agent-R's revision trajectories: bad ones of search trees, cut at the first error that "
    "the actor finds, spliced onto good ones; and good and optimal ones.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"revision", "direct", "good", "optimal", "resume", "replay"}),
)


THOUGHTS: tuple[str, ...] = (
    "My last action was a mistake. I will go back to what worked and choose differently.",
    "This is not getting me closer to the goal. Let me reconsider and take another way.",
    "I see now that I went wrong. I should correct this before I go on.",
    "What I just did does not fit the task. I need to change my plan.",
    "That did not help. I will drop this idea and try a better one.",
    "I have been on the wrong track. Let me think again about what the task asks for.",
    "Looking at the results so far, I made an error. I will put it right with my next action.",
    "This was a wrong turn. I had better return to my earlier plan and follow it with more care.",
    "I misjudged the situation. Another approach should bring me further.",
    "Something in my reasoning was off. I will stop here and continue in a different way.",
)
"""Our own sentences. The paper prints ten and the released code draws from ten others; both pools
can be given as `signal.thoughts`."""
