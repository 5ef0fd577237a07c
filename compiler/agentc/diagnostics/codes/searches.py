"""Diagnostic codes 695 to 699: rules over searches and what becomes of their trees."""

from agentc.diagnostics.codes.code import Code

SEARCHES: tuple[Code, ...] = (
    Code(
        "AGC695",
        "a search deeper than any episode",
        "A path of a search has `depth` + 1 actions. Where the environment ends its episodes "
        "earlier, a policy would learn from attempts that it can never make.",
    ),
    Code(
        "AGC696",
        "trees without branches",
        "A revision joins a bad and a good trajectory of one tree where they part. With one child "
        "at each node every tree is a single path.",
    ),
    Code(
        "AGC697",
        "trees revised under another prompt",
        "The signal between the bad and the good part of a revision is written in the form that "
        "the prompt asks of replies. Under another prompt than the search's, it would be the only "
        "reply of its form.",
    ),
)
