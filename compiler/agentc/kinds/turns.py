"""Fields of the kinds that work on single turns of episodes: `sample`, which draws candidates for
them, and `rank`, which has a critic say what each is worth (SWEET-RL, arXiv 2503.15478, section 4).
"""

from agentc.kinds.field import Field, choice, integer, number, seed
from agentc.kinds.interaction import decoding

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
