"""Fields of `revise`: from trees to conversations that notice a mistake and mend it (Agent-R,
arXiv 2501.11425, sections 3.2 and 3.3; `path_collection.py` for what the paper leaves open)."""

from agentc.kinds.field import (
    Field,
    boolean,
    choice,
    group,
    integer,
    number,
    seed,
    string,
    strings,
)

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
