"""Tree search and revision (Agent-R, arXiv 2501.11425), and the kinds that work on single turns
(SWEET-RL, arXiv 2503.15478), with their fields: `search`, `revise`, `sample`, `rank`.
"""

from __future__ import annotations

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
from agentc.kinds.field import (
    Field,
    Role,
    boolean,
    choice,
    group,
    integer,
    number,
    seed,
    string,
    strings,
)
from agentc.kinds.interaction import (
    ENVIRONMENT_AT,
    LIMIT,
    POLICY,
    PREFIX,
    PREFIXES,
    SPLIT,
    decoding,
)
from agentc.kinds.kind import Counts, Kind

_DECODE = group(
    "decode",
    "How candidate replies are sampled.",
    (
        number("temperature", "0 is greedy: all children would be the same.", 1.0, minimum=0),
        number("top_p", "Nucleus mass.", 1.0, above=0, maximum=1),
        integer("max_tokens", "Longest reply in tokens.", 500, minimum=1),
        strings("stop", "Texts that end a reply.", blank=True),
    ),
)

SEARCH_FIELDS: tuple[Field, ...] = (
    SPLIT,
    LIMIT,
    PREFIX,
    integer("depth", "A node deeper than this is a leaf: the longest path has one action more.",
            20, minimum=1),
    integer("iterations", "Descents from the root; each expands down to a dead end.", 8, minimum=1),
    integer("children", "Replies sampled at a node.", 4, minimum=1),
    number("c_uct", "Weight of exploration in UCT.", 0.25, minimum=0),
    choice("dedup", "Which siblings are one: those with the same reply, with the same action, or "
           "none.", ("reply", "action", "none"), "reply"),
    _DECODE,
    choice(
        "on_overflow",
        "A prompt longer than the server's context: `drop_oldest` forgets the oldest observation "
        "and the reply after it, as published, `end` makes the node a leaf, `error` fails the "
        "stage.",
        ("drop_oldest", "end", "error"),
        "drop_oldest",
    ),
    boolean("flatten_observations", "Write observations, but for the first one, into one line, "
            "as the published search does (its evaluation does not).", False),
    seed("seed", "Base of the sampling seeds; each node derives its own."),
    seed("tie_seed", "Seed of the choice between equally good nodes."),
    seed("prompt_seed", "Base of the environment's prompt seeds."),
    choice(
        "reach",
        "How the environment is brought to a node: `fork` its state, `replay` the actions from "
        "the start, or `auto`: fork where the environment can.",
        ("auto", "fork", "replay"),
        "auto",
        identity="placement",
    ),
    number("verify_share", "Share of forked nodes that are replayed as well and must show the same "
           "observations.", 0.02, minimum=0, maximum=1, identity="placement"),
    integer("concurrency", "Trees in flight.", 16, minimum=1, identity="placement"),
    number("error_budget", "Share of trees that may end in an infrastructure error before the "
           "stage fails.", 0.0, minimum=0, maximum=1, identity="placement"),
    ENVIRONMENT_AT,
)  # fmt: skip


# Fields of `revise`: from trees to conversations that notice a mistake and fix it (Agent-R, arXiv
# 2501.11425, sections 3.2 and 3.3; `path_collection.py` for what the paper leaves open).

PARTS = ("revision", "direct", "good", "optimal")

_JUDGE = group(
    "judge",
    "How the actor is asked for the first wrong action of a bad trajectory (`revision`).",
    (
        number("temperature", "0 is greedy.", 1.0, minimum=0),
        number("top_p", "Nucleus mass.", 1.0, above=0, maximum=1),
        integer("max_tokens", "Longest answer in tokens.", 500, minimum=1),
        choice("start", "Judge from the first action (as published), or from where the bad "
               "trajectory leaves the good one.", ("root", "divergence"), "root"),
        choice("unparsed", "An answer without a verdict: count the action as `bad` (as published) "
               "or as `good`, or leave the `pair` out.", ("bad", "good", "pair"), "bad"),
        choice("on_no_bad", "No action is found bad: keep the `whole` bad trajectory (as "
               "published), or leave the `pair` out.", ("whole", "pair"), "whole"),
        choice("parser", "`strict` wants one verdict word after the marker, outside of "
               "thinking blocks; `published` takes any text that holds \"good\" or \"uncertain\" "
               "for a pass.", ("strict", "published"),
               "strict"),
        choice("once_per", "Ask once about an action of a tree and let all pairs with that "
               "beginning share the answer (`path`), or anew for every `pair`, as published.",
               ("path", "pair"), "path"),
        string("instruction", "Replaces the question's opening; null: the built-in one.", None,
               nullable=True, blank=True),
    ),
)  # fmt: skip

_SIGNAL = group(
    "signal",
    "The reply between the bad and the good part.",
    (
        strings("thoughts", "Sentences to draw the thought from; empty: ten built-in ones."),
        string("action", "The action that the reply takes.", "wait"),
        string("acknowledgement", "What the environment is made to answer to it.", "ok.",
               blank=True),
        choice("draw", "`pair` draws by a hash of the pair, so that shards do not matter; "
               "`published` draws in the order of the pairs.", ("pair", "published"), "pair"),
    ),
)  # fmt: skip

REVISE_FIELDS: tuple[Field, ...] = (
    Field(
        name="parts",
        schema={"type": "array", "items": {"type": "string", "enum": list(PARTS)}, "minItems": 1,
                "uniqueItems": True},
        doc="What to make: `revision` (bad up to its first wrong action, signal, good), `direct` "
        "(the same with the whole bad trajectory, no judge), `good` (trajectories over alpha), "
        "`optimal` (those with the largest reward).",
        default=["revision", "good"],
    ),
    number("alpha", "The bar for a good trajectory's reward; needed by all parts but `optimal`.",
           None, nullable=True),
    choice("alpha_is", "Whether the reward must be `above` alpha or may be `at_least` alpha.",
           ("above", "at_least"), "above"),
    number("beta", "What tells bad from good; see beta_is.", 0.2, minimum=0),
    choice("beta_is", "`gap`: good exceeds bad by more than beta (the code and the text); "
           "`ceiling`: bad is below beta (equation 4).", ("gap", "ceiling"), "gap"),
    _JUDGE,
    _SIGNAL,
    boolean("dedup_revision", "Leave out revisions that differ from an earlier one in the thought "
            "of their signal alone: pairs whose bad parts are the same up to the mistake.", False),
    boolean("dedup_good", "Leave out good trajectories with the same replies.", True),
    integer("max_pairs_per_tree", "Draw at most so many pairs of a tree; null: all.", None,
            minimum=1, nullable=True),
    integer("max_revision", "Draw at most so many revision (or direct) rows; null: all.", None,
            minimum=1, nullable=True),
    integer("max_good", "Draw at most so many good (or optimal) rows; null: all.", None,
            minimum=1, nullable=True),
    choice("verify", "Replay the spliced actions: `off`, `mark` rows whose good part cannot be "
           "replayed to the same reward, or `drop` them.", ("off", "mark", "drop"), "off"),
    seed("seed", "Seed of the order of pairs and of all draws.", 123),
    integer("concurrency", "Trajectories judged at once.", 32, minimum=1, identity="placement"),
    number("error_budget", "Share of pairs that may be lost to an infrastructure error before the "
           "stage fails.", 0.0, minimum=0, maximum=1, identity="placement"),
)  # fmt: skip


# Fields of the kinds that work on single turns of episodes: `sample`, which draws candidates for
# them, and `rank`, which has a critic say what each is worth (SWEET-RL, arXiv 2503.15478, section
# 4).

SAMPLE_FIELDS: tuple[Field, ...] = (
    integer("candidates", "Replies for each turn.", 16, minimum=1),
    decoding(1.0, 1024),
    number("fraction", "Share of the trajectories that is taken.", 1.0, above=0, maximum=1),
    integer(
        "limit",
        "Take at most so many trajectories; null: all of the fraction.",
        None,
        minimum=1,
        nullable=True,
    ),
    choice(
        "take",
        "Which trajectories a part of them is: `hash` draws by a hash of each, so that all tasks "
        "and attempts may come; `published` takes the first, the first attempts of all tasks "
        "before the second ones.",
        ("hash", "published"),
        "hash",
    ),
    integer(
        "turns",
        "Only the first so many turns of a trajectory; null: all. Turns that an episode took over "
        "from another (`prefixes`) are never taken.",
        None,
        minimum=1,
        nullable=True,
    ),
    choice(
        "on_overflow",
        "A turn whose prompt is longer than the server's context: `drop` leaves it without "
        "candidates, `error` fails the stage.",
        ("drop", "error"),
        "drop",
    ),
    seed("seed", "Base of the sampling seeds, of which each candidate has its own; of the draw of "
         "trajectories too."),
    integer("concurrency", "Requests in flight.", 32, minimum=1, identity="placement"),
    number(
        "error_budget",
        "Share of turns that may end in an infrastructure error before the stage fails.",
        0.0,
        minimum=0,
        maximum=1,
        identity="placement",
    ),
)  # fmt: skip

RANK_FIELDS: tuple[Field, ...] = (
    choice(
        "reference_context",
        "What the reference is shown before a candidate: the `history`, as the policy was (the "
        "paper's, whatever the critic's `reference_sees` was in training); the hidden text too "
        "(`privileged`), as the critic is; or nothing is scored again and what the policy recorded "
        "when it drew the candidates is taken (`sampler`).",
        ("history", "privileged", "sampler"),
        "history",
    ),
    choice(
        "span",
        "Which tokens the critic scores: `reply`, those of the candidate and its end; `published`, "
        "those that open the reply and those of the candidate without its end, as the released "
        "script has it. The reference always scores the candidate and its end; with "
        "`reference_context: sampler` and `published` both scores are the released script's.",
        ("reply", "published"),
        "reply",
    ),
    integer("concurrency", "Requests in flight.", 32, minimum=1, identity="placement"),
    number(
        "error_budget",
        "Share of turns that may end in an infrastructure error before the stage fails.",
        0.0,
        minimum=0,
        maximum=1,
        identity="placement",
    ),
)

SEARCH_KINDS: tuple[Kind, ...] = (
    Kind(
        name="search",
        doc="Grow a tree of attempts at each task by Monte Carlo tree search (Agent-R).",
        produces=SEARCH_TREES,
        roles=(POLICY, PREFIXES),
        fields=SEARCH_FIELDS,
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
        produces=SFT_DATASET,
        roles=(
            Role(name="trees", accepts=(SEARCH_TREES,), doc="The search trees.", many=True),
            Role(
                name="policy",
                accepts=(CHECKPOINT,),
                doc="The actor, which judges itself; needed by the part `revision`.",
                optional=True,
            ),
        ),
        fields=REVISE_FIELDS,
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
        produces=CANDIDATES,
        roles=(
            Role(name="policy", accepts=(CHECKPOINT,), doc="The model that replies."),
            Role(
                name="rollouts",
                accepts=(TRAJECTORIES,),
                doc="The episodes of whose turns some are taken.",
                many=True,
            ),
        ),
        fields=SAMPLE_FIELDS,
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
        fields=RANK_FIELDS,
        uses=("server",),
        default_backend="rank.advantage",
        reworks=("candidates",),
        counts=Counts(made="rows", replies="scores"),
        forecast="scores",
    ),
)
