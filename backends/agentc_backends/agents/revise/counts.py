"""What a revision counts, and how that stands in the manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class RevisionCounts:
    """`pairs`: those that alpha and beta allow; `taken`: those that were looked at, by part;
    `left_out` by reason. `lengths`: numbers of first flagged actions (revision length, section 5 of
    the paper). `trials`: outcomes of replays. `action_tokens`: tokens of the trained replies but
    signals."""

    trees: int = 0
    trees_broken: int = 0
    leaves: int = 0
    pairs: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)
    trials: Counter[str] = field(default_factory=Counter)
    other_observations: int = 0
    action_tokens: int = 0

    def facts(self) -> dict[str, Any]:
        """Mean revision length is null where no action was flagged."""
        lengths = self.lengths
        return {
            "trees": self.trees,
            "trees_broken": self.trees_broken,
            "leaves": self.leaves,
            "pairs": self.pairs,
            "pairs_taken": _sorted(self.taken),
            "left_out": _sorted(self.left_out),
            "rows": sum(self.rows.values()),
            "rows_by_part": _sorted(self.rows),
            "flagged": len(lengths),
            "revision_length": sum(lengths) / len(lengths) if lengths else None,
            "verified": self.trials["verified"],
            "unverified": _sorted(
                Counter({name: n for name, n in self.trials.items() if name != "verified"})
            ),
            "other_observations": self.other_observations,
            "action_tokens": self.action_tokens,
        }


def judge_facts(rows: Sequence[Mapping[str, Any]], wanted: int) -> dict[str, Any]:
    """What asking has cost: `judgements` answers served `wanted` questions of pairs."""
    verdicts = Counter(row["verdict"] for row in rows)
    return {
        "judgements": len(rows),
        "judgements_wanted": wanted,
        "verdicts": _sorted(verdicts),
        "unparsed_share": verdicts["unparsed"] / len(rows) if rows else None,
        "judge_history_cut": sum(row["left_out"] > 0 for row in rows),
        "judge_prompt_tokens": sum(row["tokens"][0] for row in rows),
        "judge_completion_tokens": sum(row["tokens"][1] for row in rows),
    }


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in sorted(counter.items()) if count}
