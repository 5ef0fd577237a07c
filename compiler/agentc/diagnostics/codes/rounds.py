"""The diagnostic code of values for each round (layer 6)."""

from agentc.diagnostics.codes.code import Code

ROUNDS: tuple[Code, ...] = (
    Code(
        "AGC657",
        "more values than rounds",
        "`per_round:` gives values for rounds that the repeat does not have. Where the number of "
        "rounds is an expression, spare values are for other choices of it, and nothing is said.",
    ),
)
