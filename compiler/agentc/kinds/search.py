"""Tree search and revision (Agent-R, arXiv 2501.11425), and the kinds that work on single turns
(SWEET-RL, arXiv 2503.15478), with their fields: `search`, `revise`, `sample`, `rank`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.kinds.artifacts import (
    CANDIDATES,
    CHECKPOINT,
    CRITIC_CHECKPOINT,
    PRIVILEGED_INFORMATION,
    REWARDED_TURNS,
    SEARCH_TREES,
    SFT_DATASET,
    TRAJECTORIES,
)
from agentc.kinds.field import Role
from agentc.kinds.interaction import (
    ACTOR,
    ENVIRONMENT_AT,
    POLICY_ALIAS,
    PREFIXES,
    Decoding,
    OnTasks,
    PrefixSettings,
)
from agentc.kinds.kind import Counts, Kind
from agentc.kinds.settings import fields_of
from agentc.program.settings import only_with, only_with_input, setting, unless, without_input


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateDecode:
    """How candidate replies are sampled."""

    temperature: float = setting("0 is greedy: all children would be the same.", 1.0, minimum=0)
    top_p: float = setting("Nucleus mass.", 1.0, above=0, maximum=1)
    max_tokens: int = setting("Longest reply in tokens.", 500, minimum=1)
    stop: tuple[str, ...] = setting("Texts that end a reply.", (), blank=True)


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class TreeGrowth:
    """How a tree grows."""

    depth: int = setting(
        "A node deeper than this is a leaf: the longest path has one action more.", 20, minimum=1)
    iterations: int = setting(
        "Descents from the root; each expands down to a dead end.", 8, minimum=1)
    children: int = setting("Replies sampled at a node.", 4, minimum=1)
    c_uct: float = setting("Weight of exploration in UCT.", 0.25, minimum=0)
    dedup: Literal["reply", "action", "none"] = setting(
        "Which siblings are one: those with the same reply, with the same action, or none.",
        "reply")
    on_overflow: Literal["drop_oldest", "end", "error"] = setting(
        "A prompt longer than the server's context: `drop_oldest` forgets the oldest "
        "observation and the reply after it, as published, `end` makes the node a leaf, `error` "
        "fails the stage.", "drop_oldest")
    flatten_observations: bool = setting(
        "Write observations, but for the first one, into one line, as the published search does "
        "(its evaluation does not).", False)
    seed: int = setting("Base of the sampling seeds; each node derives its own.", 0, seed=True)
    tie_seed: int = setting("Seed of the choice between equally good nodes.", 0, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedTrees(TreeGrowth, OnTasks):
    """Which trees a search grows, and how."""

    prefix: PrefixSettings = setting(
        "Where the trajectories of `prefixes` are cut. At least their last turn is done again.",
        PrefixSettings(), only_if=only_with_input(
            "prefixes", because="without `prefixes` every tree begins at the start of its task"))
    decode: CandidateDecode = setting("How candidate replies are sampled.", CandidateDecode())
    prompt_seed: int = setting(
        "Base of the environment's prompt seeds.", 0, seed=True, only_if=without_input(
            "prefixes", because="a tree takes the prompt of the trajectory that it continues from"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings(SearchedTrees):
    """Settings of `search`."""

    reach: Literal["auto", "fork", "replay"] = setting(
        "How the environment is brought to a node: `fork` its state, `replay` the actions from "
        "the start, or `auto`: fork where the environment can.", "auto", identity="placement")
    verify_share: float = setting(
        "Share of forked nodes that are replayed as well and must show the same observations.",
        0.02, minimum=0, maximum=1, identity="placement",
        only_if=unless(
            "reach", "replay",
            because="`reach: replay` copies nothing that could be verified"))
    concurrency: int = setting("Trees in flight.", 16, minimum=1, identity="placement")
    error_budget: float = setting(
        "Share of trees that may end in an infrastructure error before the stage fails.", 0.0,
        minimum=0, maximum=1, identity="placement")
    environment_at: Literal["auto", "server"] = setting(
        ENVIRONMENT_AT, "auto", identity="placement")


# Settings of `revise`: from trees to conversations that notice a mistake and fix it (Agent-R, arXiv
# 2501.11425, sections 3.2 and 3.3; `path_collection.py` for what the paper leaves open).

PARTS = ("revision", "direct", "good", "optimal")
_SPLICED = only_with(
    "parts", "revision", "direct", because="no trajectory is spliced by these parts")
_PAIRED = only_with(
    "parts", "revision", "direct",
    because="no trajectories are paired without `revision` or `direct`")
_WHOLE = only_with(
    "parts", "good", "optimal", because="no trajectory is kept whole by these parts")
_WITH_ALPHA = only_with(
    "parts", "revision", "direct", "good",
    because="`optimal` takes the trajectories of the largest reward")


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class JudgeDecode:
    """How the answers of a judge are sampled."""

    temperature: float = setting("0 is greedy.", 1.0, minimum=0)
    top_p: float = setting("Nucleus mass.", 1.0, above=0, maximum=1)
    max_tokens: int = setting("Longest answer in tokens.", 500, minimum=1)


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class JudgeQuestions:
    """What the actor is asked, and what its answers mean."""

    start: Literal["root", "divergence"] = setting(
        "Judge from the first action (as published), or from where the bad trajectory leaves "
        "the good one.", "root")
    unparsed: Literal["bad", "good", "pair"] = setting(
        "An answer without a verdict: count the action as `bad` (as published) or as `good`, or "
        "leave the `pair` out.", "bad", only_if=unless(
            "parser", "published",
            because="`parser: published` takes every answer for a verdict"))
    on_no_bad: Literal["whole", "pair"] = setting(
        "No action is found bad: keep the `whole` bad trajectory (as published), or leave the "
        "`pair` out.", "whole")
    parser: Literal["strict", "published"] = setting(
        "`strict` wants one verdict word after the marker, outside of thinking blocks; "
        '`published` takes any text that holds "good" or "uncertain" for a pass.', "strict")
    once_per: Literal["path", "pair"] = setting(
        "Ask once about an action of a tree and let all pairs with that beginning share the "
        "answer (`path`), or again for every `pair`, as published.", "path")
    instruction: str | None = setting(
        "Replaces the question's opening; null: the built-in one.", None, blank=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorJudge(JudgeQuestions, JudgeDecode):
    """How the actor is asked for its first mistake."""



@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """The reply between the bad and the good part."""

    thoughts: tuple[str, ...] = setting(
        "Sentences to draw the thought from; empty: ten built-in ones.", ())
    action: str = setting("The action that the reply takes.", "wait")
    acknowledgement: str = setting(
        "What the environment is made to answer to it.", "ok.", blank=True)
    draw: Literal["pair", "published"] = setting(
        "`pair` draws by a hash of the pair, so that shards do not matter; `published` draws in "
        "the order of the pairs.", "pair")


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class RevisionRows:
    """What rows are made, and how many."""

    parts: tuple[str, ...] = setting(
        "What to make: `revision` (bad up to its first wrong action, signal, good), `direct` "
        "(the same with the whole bad trajectory, no judge), `good` (trajectories over alpha), "
        "`optimal` (those with the largest reward).", ("revision", "good"),
        schema={"type": "array", "items": {"type": "string", "enum": [*PARTS]}, "minItems": 1,
                "uniqueItems": True})
    dedup_revision: bool = setting(
        "Leave out revisions that differ from an earlier one only in the thought of their "
        "signal: pairs whose bad parts are the same up to the mistake.", False, only_if=_SPLICED)
    dedup_good: bool = setting(
        "Leave out good trajectories with the same replies.", True, only_if=_WHOLE)
    max_pairs_per_tree: int | None = setting(
        "Draw at most N pairs of a tree; null: all.", None, minimum=1, only_if=_SPLICED)
    max_revision: int | None = setting(
        "Draw at most N revision (or direct) rows; null: all.", None, minimum=1,
        only_if=_SPLICED)
    max_good: int | None = setting(
        "Draw at most N good (or optimal) rows; null: all.", None, minimum=1,
        only_if=_WHOLE)
    verify: Literal["off", "mark", "drop"] = setting(
        "Replay the spliced actions: `off`, `mark` rows whose good part cannot be replayed to "
        "the same reward, or `drop` them.", "off", only_if=only_with(
            "parts", "revision", "direct",
            because="nothing is spliced without `revision` or `direct`"))
    seed: int = setting("Seed of the order of pairs and of all draws.", 123, seed=True)


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class RewardBars:
    """Which trajectories are good, and which make a pair."""

    alpha: float | None = setting(
        "The bar for a good trajectory's reward; needed by all parts but `optimal`.", None,
        only_if=_WITH_ALPHA)
    alpha_is: Literal["above", "at_least"] = setting(
        "Whether the reward must be `above` alpha or may be `at_least` alpha.", "above",
        only_if=_WITH_ALPHA)
    beta: float = setting(
        "What separates bad from good; see beta_is.", 0.2, minimum=0, only_if=_PAIRED)
    beta_is: Literal["gap", "ceiling"] = setting(
        "`gap`: good exceeds bad by more than beta (the code and the text); `ceiling`: bad is "
        "below beta (equation 4).", "gap", only_if=_PAIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseSettings(RewardBars, RevisionRows):
    """Settings of `revise`."""

    judge: ErrorJudge = setting(
        "How the actor is asked for the first wrong action of a bad trajectory (`revision`).",
        ErrorJudge(), only_if=only_with(
            "parts", "revision", because="nothing is judged without the part `revision`"))
    signal: Signal = setting(
        "The reply between the bad and the good part.", Signal(), only_if=only_with(
            "parts", "revision", "direct",
            because="no signal is written without `revision` or `direct`"))
    concurrency: int = setting("Trajectories judged at once.", 32, minimum=1, identity="placement")
    error_budget: float = setting(
        "Share of pairs that may be lost to an infrastructure error before the stage fails.", 0.0,
        minimum=0, maximum=1, identity="placement")


# Settings of the kinds that work on single turns of episodes: `sample`, which draws candidates for
# them, and `rank`, which has a critic say what each is worth (SWEET-RL, arXiv 2503.15478, section
# 4).


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTurns:
    """Which turns get candidates, and how many."""

    candidates: int = setting("Replies for each turn.", 16, minimum=1)
    fraction: float = setting("Share of the trajectories that is taken.", 1.0, above=0, maximum=1)
    limit: int | None = setting(
        "Take at most N trajectories; null: all of the fraction.", None, minimum=1)
    take: Literal["hash", "published"] = setting(
        "Which trajectories a part of them is: `hash` draws by a hash of each, so that all "
        "tasks and attempts may come; `published` takes the first, the first attempts of all "
        "tasks before the second ones.", "hash")
    turns: int | None = setting(
        "Only the first N turns of a trajectory; null: all. Turns that an episode took "
        "over from another (`prefixes`) are never taken.", None, minimum=1)
    on_overflow: Literal["drop", "error"] = setting(
        "A turn whose prompt is longer than the server's context: `drop` leaves it without "
        "candidates, `error` fails the stage.", "drop")
    seed: int = setting(
        "Base of the sampling seeds, of which each candidate has its own; of the draw of "
        "trajectories too.", 0, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSettings(DrawnTurns):
    """Settings of `sample`."""

    decode: Decoding = setting(
        "How replies are sampled.", Decoding(temperature=1.0, max_tokens=1024))
    concurrency: int = setting("Requests in flight.", 32, minimum=1, identity="placement")
    error_budget: float = setting(
        "Share of turns that may end in an infrastructure error before the stage fails.", 0.0,
        minimum=0, maximum=1, identity="placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSettings:
    """Settings of `rank`."""

    reference_context: Literal["history", "privileged", "sampler"] = setting(
        "What the reference is shown before a candidate: the `history`, as the policy was (the "
        "paper's, whatever the critic's `reference_sees` was in training); the hidden text too "
        "(`privileged`), as the critic is; or nothing is scored again and what the policy "
        "recorded when it drew the candidates is taken (`sampler`).", "history")
    span: Literal["reply", "published"] = setting(
        "Which tokens the critic scores: `reply`, those of the candidate and its end; "
        "`published`, those that open the reply and those of the candidate without its end, as "
        "the released script has it. The reference always scores the candidate and its end; with "
        "`reference_context: sampler` and `published` both scores are the released script's.",
        "reply")
    concurrency: int = setting("Requests in flight.", 32, minimum=1, identity="placement")
    error_budget: float = setting(
        "Share of turns that may end in an infrastructure error before the stage fails.", 0.0,
        minimum=0, maximum=1, identity="placement")
# fmt: on


SEARCH_KINDS: tuple[Kind, ...] = (
    Kind(
        name="search",
        doc="Grow a tree of attempts at each task by Monte Carlo tree search (Agent-R).",
        example="{kind: search, model: sft, environment: world, split: train, depth: 10}",
        produces=SEARCH_TREES,
        roles=(ACTOR, PREFIXES),
        fields=fields_of(SearchSettings),
        uses=("environment", "prompt", "server"),
        default_backend="search.mcts",
        acts=True,
        collects=True,
        longest_reply="decode.max_tokens",
        counts=Counts(made="trees", replies="samples"),
        forecast="trees",
    ),
    Kind(
        name="revise",
        doc="Splice bad trajectories of search trees onto good ones where the actor finds the "
        "first error, and collect good ones (Agent-R).",
        example="{kind: revise, trees: search, model: sft, environment: world, alpha: 0.5}",
        produces=SFT_DATASET,
        roles=(
            Role(name="trees", accepts=(SEARCH_TREES,), doc="The search trees.", many=True),
            Role(
                name="model",
                accepts=(CHECKPOINT,),
                doc="The actor, which judges itself; needed by the part `revision`.",
                optional=True,
                aliases=POLICY_ALIAS,
            ),
        ),
        fields=fields_of(ReviseSettings),
        uses=("environment", "prompt", "server"),
        default_backend="revise.splice",
        reworks=("trees",),
        longest_reply="judge.max_tokens",
        counts=Counts(made="rows", replies="judgements", tokens="judge_"),
        forecast="revisions",
    ),
    Kind(
        name="sample",
        doc="Draw several replies of a policy at turns of episodes (SWEET-RL, section 4.2).",
        example="{kind: sample, model: sft, rollouts: rollout, candidates: 8}",
        produces=CANDIDATES,
        roles=(
            Role(
                name="model",
                accepts=(CHECKPOINT,),
                doc="The model that replies.",
                aliases=POLICY_ALIAS,
            ),
            Role(
                name="rollouts",
                accepts=(TRAJECTORIES,),
                doc="The episodes of whose turns some are taken.",
                many=True,
            ),
        ),
        fields=fields_of(SampleSettings),
        uses=("server",),
        default_backend="sample.turns",
        reworks=("rollouts",),
        longest_reply="decode.max_tokens",
        counts=Counts(made="rows", replies="replies"),
        forecast="candidates",
    ),
    Kind(
        name="rank",
        doc="Say what each candidate is worth: its log-probability under a critic, less that under "
        "a reference (SWEET-RL, equation 3).",
        example="{kind: rank, candidates: sample, critic: critic, reference: base}",
        produces=REWARDED_TURNS,
        roles=(
            Role(name="candidates", accepts=(CANDIDATES,), doc="What is ranked."),
            Role(name="critic", accepts=(CRITIC_CHECKPOINT,), doc="The critic."),
            Role(
                name="reference",
                accepts=(CHECKPOINT,),
                doc="What the critic was trained against; not needed with `reference_context: "
                "sampler`.",
                optional=True,
            ),
            Role(
                name="privileged",
                accepts=(PRIVILEGED_INFORMATION,),
                doc="The hidden texts, of a critic that was trained with them.",
                optional=True,
            ),
        ),
        fields=fields_of(RankSettings),
        uses=("server",),
        default_backend="rank.advantage",
        reworks=("candidates",),
        counts=Counts(made="rows", replies="scores"),
        forecast="scores",
    ),
)
