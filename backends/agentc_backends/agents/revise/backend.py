"""Declares `revise.splice` and lowers a revise stage to its one job."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import JobDraft, LeaseDraft, LowerContext, StageBackend, StageView
from agentc.ir.module import Prompt
from agentc.kinds.artifacts import SFT_DATASET
from agentc.kinds.field import Json
from agentc.kinds.interaction import OBSERVATION_PREFIX
from agentc_backends.agents.common.lowering import marks_actions, refuse_marker, refuse_tools
from agentc_backends.software import LIGHT

_SIGNAL = ("thoughts", "action", "acknowledgement", "draw")
_JUDGE = ("start", "unparsed", "on_no_bad", "parser", "once_per", "instruction")
_DECODE = ("temperature", "top_p", "max_tokens")


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. A setting that the chosen parts leave without effect is not read, so that the
    compiler says so, and why."""
    view = stage.scoped()
    given = view.get("parts")
    parts = [str(part) for part in given] if isinstance(given, list) else []
    spliced = "revision" in parts or "direct" in parts
    judged = "revision" in parts
    # Named by the stage like any other's, whether or not these parts need them.
    facts, prompt = context.environment_facts(view), context.prompt(view)
    refuse_marker(view, prompt)
    refuse_tools(view, prompt, "a revision goes on behind texts that it writes itself")
    server = context.server_lease(view, "policy")
    verify = _verify(view, spliced)
    leases: list[LeaseDraft] = []
    inputs = {"trees": stage.inputs["trees"]}
    if not judged:
        view.leave("policy", "nothing is judged without the part `revision`")
    if judged:
        policy = stage.inputs.get("policy", ())
        if not policy:
            view.refuse(
                "policy",
                "the part `revision` asks the actor for its first mistake, and the stage names no "
                "`policy`",
                fix="give the policy that the trees were searched with, or make `direct` of "
                "`revision`: it keeps the bad trajectories whole",
            )
        inputs["policy"] = policy
        leases.append(server)
    if verify != "off":
        leases += context.environment_leases(view)
    signal, reply_format = _signal(view, prompt, spliced)
    best = _best_reward(facts) if "optimal" in parts else None
    prefix = OBSERVATION_PREFIX if prompt is None else prompt.observation_prefix
    identity: dict[str, Json] = {"reply_format": reply_format, "best_reward": best}
    if prefix != OBSERVATION_PREFIX:
        identity["observation_prefix"] = prefix
    config: dict[str, Json] = {
        "parts": list(parts),
        "bars": _bars(view, parts, spliced),
        "judge": _judge(view, judged),
        "decode": _decode(view, judged),
        "signal": signal,
        "best_reward": best,
        **_draws(view, parts, spliced),
        "verify": verify,
        "observation_prefix": prefix,
    }
    return (
        JobDraft(
            kind="revise",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.agents.revise.job_revise"),
            view=view,
            config=config,
            placement=_placement(view, bool(leases)),
            inputs=inputs,
            produces=SFT_DATASET.name,
            leases=tuple(leases),
            extra_identity=identity,
            contract={"reward_range": facts["reward_range"]},
            resume=True,
        ),
    )


def _bars(view: StageView, parts: list[str], spliced: bool) -> dict[str, Json] | None:
    if not spliced and "good" not in parts:
        for path in ("alpha", "alpha_is"):
            view.leave(path, "`optimal` takes the trajectories of the largest reward")
        _leave_beta(view)
        return None
    alpha = view.get("alpha")
    if alpha is None:
        view.refuse(
            "alpha",
            "revise.splice needs `alpha`, the reward above which a trajectory is good",
            fix="set alpha: 0.5, or `parts: [optimal]`",
        )
    bars: dict[str, Json] = {"alpha": alpha, "alpha_is": view.text("alpha_is")}
    if spliced:
        return {**bars, "beta": view.number("beta"), "beta_is": view.text("beta_is")}
    _leave_beta(view)
    return {**bars, "beta": 0.0, "beta_is": "gap"}


def _leave_beta(view: StageView) -> None:
    for path in ("beta", "beta_is"):
        view.leave(path, "no trajectories are paired without `revision` or `direct`")


def _judge(view: StageView, judged: bool) -> dict[str, Json] | None:
    if not judged:
        for name in (*_JUDGE, *_DECODE):
            view.leave(f"judge.{name}", "nothing is judged without the part `revision`")
        return None
    parser = view.text("judge.parser")
    if parser == "published":
        view.leave("judge.unparsed", "`parser: published` takes every answer for a verdict")
    return {
        "start": view.text("judge.start"),
        "unparsed": "bad" if parser == "published" else view.text("judge.unparsed"),
        "on_no_bad": view.text("judge.on_no_bad"),
        "parser": parser,
        "once_per": view.text("judge.once_per"),
        "instruction": view.get("judge.instruction"),
    }


def _decode(view: StageView, judged: bool) -> dict[str, Json] | None:
    if not judged:
        return None
    return {**{name: view.get(f"judge.{name}") for name in _DECODE}, "stop": []}


def _signal(
    view: StageView, prompt: Prompt | None, spliced: bool
) -> tuple[dict[str, Json] | None, str | None]:
    """The signal, and the form of replies that it is written in."""
    if not spliced:
        for name in _SIGNAL:
            view.leave(f"signal.{name}", "no signal is written without `revision` or `direct`")
        return None, None
    reply_format = "react" if prompt is None else prompt.reply_format
    thoughts: Json = list(THOUGHTS[:1])
    if not marks_actions(prompt):
        for name in ("thoughts", "draw"):
            view.leave(
                f"signal.{name}",
                f"replies of the prompt's `reply_format: {reply_format}` hold none",
            )
        draw = "pair"
    else:
        thoughts = view.get("signal.thoughts") or list(THOUGHTS)
        draw = view.text("signal.draw")
    signal: dict[str, Json] = {
        "thoughts": thoughts,
        "action": view.text("signal.action"),
        "acknowledgement": view.text("signal.acknowledgement"),
        "draw": draw,
        "reply_format": reply_format,
    }
    return signal, reply_format


def _verify(view: StageView, spliced: bool) -> str:
    if spliced:
        return view.text("verify")
    view.leave("verify", "nothing is spliced without `revision` or `direct`")
    return "off"


def _draws(view: StageView, parts: list[str], spliced: bool) -> dict[str, Json]:
    """What is drawn or left out of what the parts make."""
    whole = "good" in parts or "optimal" in parts
    draws: dict[str, Json] = {}
    for name, used, part, other in (
        ("dedup_revision", spliced, "spliced", False),
        ("max_pairs_per_tree", spliced, "spliced", None),
        ("max_revision", spliced, "spliced", None),
        ("dedup_good", whole, "kept whole", False),
        ("max_good", whole, "kept whole", None),
    ):
        if not used:
            view.leave(name, f"no trajectory is {part} by these parts")
        draws[name] = view.get(name) if used else other
    if spliced or draws["max_good"] is not None:
        draws["seed"] = view.integer("seed")
    else:
        view.leave("seed", "nothing is drawn without `max_good`")
        draws["seed"] = 0
    return draws


def _best_reward(facts: Mapping[str, Json]) -> Json:
    span = facts["reward_range"]
    return span[1] if isinstance(span, list) else None


def _placement(view: StageView, asks: bool) -> dict[str, Json]:
    if not asks:
        for name in ("concurrency", "error_budget"):
            view.leave(name, "these parts ask no server")
        return {"concurrency": 1, "error_budget": 0.0}
    return {
        "concurrency": view.integer("concurrency"),
        "error_budget": view.number("error_budget"),
    }


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
