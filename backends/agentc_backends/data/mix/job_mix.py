"""Job: mix conversations. `python -m agentc_backends.data.mix.job_mix JOB.json`.

General rows are drawn and added to all agent rows, so that their share is exactly the stated one.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from agentc.kinds.models import MixSettings
from agentc.program.artifact_files import ROWS_FILE, TRAJECTORIES_FILE
from agentc.program.job import load_job, read_rows, write_rows
from agentc_backends.data.chat.selection import best_of_tasks


def main() -> int:
    """Exit 0 with rows.jsonl written; 1 with a message when the share cannot be had."""
    job = load_job()
    rules = job.config.read_as(MixSettings)
    job.config.assert_all_read()
    agent = [_rows(folder) for folder in job.inputs("agent")]
    general = [_rows(folder) for folder in job.inputs("general")]
    try:
        rows, facts = mix(agent, general, rules)
    except MixError as error:
        print(f"mix: {error}", file=sys.stderr)
        return 1
    job.facts(**facts)
    print("mix:", ", ".join(f"{name} {value}" for name, value in facts.items()))
    write_rows(job.out / ROWS_FILE, rows)
    job.progress(len(rows), len(rows), "rows", force=True)
    return 0


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for name in (TRAJECTORIES_FILE, ROWS_FILE)
        if (folder / name).exists()
        for row in read_rows(folder / name)
    ]


Row: TypeAlias = Mapping[str, Any]
Kept: TypeAlias = dict[str, Any]

_FIELDS = ("task_id", "messages", "prompt_length", "reward", "source")
_RARE = ("forgotten",)
"""Those that a row has only where there is something to say."""


class MixError(ValueError):
    """The rows do not allow the share that is asked for; the message says what would."""


def general_rows(agent: int, rules: MixSettings) -> int:
    """How many general rows stand beside so many agent rows, rounded to the nearest (halves up).

    A share s of the total is g / (a + g) = s, so g = a s / (1 - s); a share of the agent rows is
    g = a s. Computed on the decimal that the spec gives: 0.8 of the total is four to one.
    """
    share = Fraction(str(rules.general_share))
    if rules.share_of == "total":
        if share >= 1:
            raise MixError("a general share of the total must be below 1: agent rows are kept")
        share /= 1 - share
    return math.floor(agent * share + Fraction(1, 2))


def mix(
    agent: Sequence[Sequence[Row]], general: Sequence[Sequence[Row]], rules: MixSettings
) -> tuple[list[Kept], dict[str, Any]]:
    """All agent rows, or the best of each task, then the drawn general ones in the order of their
    inputs; and the facts.

    Ids say where a row comes from (`a0/...` is of the first agent input, `g1/...` of the second
    general one, with `/2` for a second use), so they are unique however inputs overlap. Raises
    MixError.
    """
    gathered, left_out = _gathered(agent, "a")
    ours = _best(gathered, rules)
    pool, unusable = _gathered(general, "g")
    if not ours:
        raise MixError("the agent inputs hold no conversation")
    wanted = general_rows(len(ours), rules)
    if wanted and not pool:
        raise MixError("the general inputs hold no conversation")
    drawn = _draw(pool, wanted, len(ours), rules)
    total = len(ours) + len(drawn)
    facts = {
        "agent_rows": len(ours),
        "general_rows": len(drawn),
        "general_wanted": wanted,
        "general_available": len(pool),
        "general_share_of_total": len(drawn) / total,
        "general_share_of_agent": len(drawn) / len(ours),
        "agent_left_out": left_out,
        "general_left_out": unusable,
    }
    if rules.best_per_task is not None:
        facts["agent_not_best"] = len(gathered) - len(ours)
    return ours + drawn, facts


def _best(rows: list[Kept], rules: MixSettings) -> list[Kept]:
    return rows if rules.best_per_task is None else best_of_tasks(rows, rules.best_per_task)


def _gathered(inputs: Sequence[Sequence[Row]], letter: str) -> tuple[list[Kept], int]:
    """The conversations of a role, and how many episodes were none: those that ended in an
    infrastructure error, or in which the agent never replied."""
    kept: list[Kept] = []
    left_out = 0
    for number, rows in enumerate(inputs):
        for row in rows:
            if row.get("end") == "error" or len(row["messages"]) <= row["prompt_length"]:
                left_out += 1
                continue
            kept.append(
                {
                    "id": f"{letter}{number}/{row['id']}",
                    **{name: row.get(name) for name in _FIELDS},
                    **{name: row[name] for name in _RARE if name in row},
                }
            )
    return kept, left_out


def _draw(pool: list[Kept], wanted: int, agent: int, rules: MixSettings) -> list[Kept]:
    """`wanted` rows of the pool, each use of a row before the next use of any."""
    if wanted > len(pool):
        if rules.on_shortage == "fewer":
            return pool
        if rules.on_shortage == "error":
            raise MixError(
                f"{wanted} general rows belong beside {agent} agent rows, and there are "
                f"{len(pool)}. Give more, lower general_share, or set on_shortage to repeat "
                "(use rows several times) or fewer (take what there is)"
            )
    whole, rest = divmod(wanted, len(pool)) if pool else (0, 0)
    chosen = set(random.Random(rules.seed).sample(range(len(pool)), rest))
    drawn: list[Kept] = []
    for place, row in enumerate(pool):
        for use in range(1, whole + (place in chosen) + 1):
            drawn.append(row if use == 1 else {**row, "id": f"{row['id']}/{use}"})
    return drawn


if __name__ == "__main__":
    sys.exit(main())
