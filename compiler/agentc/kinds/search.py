"""Fields of `search`: trees of attempts at a task (Agent-R, arXiv 2501.11425, section 3.1)."""

from agentc.kinds.field import (
    Field,
    boolean,
    choice,
    group,
    integer,
    number,
    seed,
    strings,
)
from agentc.kinds.interaction import ENVIRONMENT_AT, LIMIT, SPLIT
from agentc.kinds.prefix import PREFIX

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
