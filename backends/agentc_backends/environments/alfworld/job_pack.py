"""Packs ALFWorld's games: `python -m agentc_backends.environments.alfworld.job_pack FOLDER OUT`.

FOLDER is `json_2.1.1` as `alfworld-download` leaves it, or the folder around it: a folder for each
part, with a `game.tw-pddl` for each game. OUT gets one `<part>.jsonl.xz` each. `agentc data fetch
alfworld` runs this too.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentc_backends.environments.alfworld.games import GameError, read_problem
from agentc_backends.environments.alfworld.settings import PARTS

_RELEASED = "json_2.1.1"
_TASK = re.compile(r"Your task is to: [^\"\\\n]+")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit 0 with the parts written; 1 when there is nothing to pack, or a game is broken."""
    parser = argparse.ArgumentParser(prog="alfworld.job_pack", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args(arguments)
    inner = options.folder / _RELEASED
    folder = inner if inner.is_dir() else options.folder
    try:
        counts = {part: pack(folder / part, options.out, part) for part in PARTS}
    except GameError as error:
        print(error, file=sys.stderr)
        return 1
    print(", ".join(f"{part}: {count} games" for part, count in counts.items()))
    if not any(counts.values()):
        print(f"{options.folder} holds none of {', '.join(PARTS)}", file=sys.stderr)
        return 1
    return 0


def pack(folder: Path, out: Path, part: str) -> int:
    """Write a part and say how many games it has; nothing is written for none. Raises GameError."""
    rows = list(_rows(folder))
    if rows:
        out.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
        (out / f"{part}.jsonl.xz").write_bytes(lzma.compress(text.encode(), preset=6))
    return len(rows)


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*/*/game.tw-pddl")):
        try:
            game = json.loads(path.read_text(encoding="utf-8"))
            problem, solvable = game["pddl_problem"], game.get("solvable", True)
            task = _TASK.search(game["grammar"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise GameError(f"{path} is no game of ALFWorld's: {error}") from None
        if task is None:
            raise GameError(f"{path} does not say its task")
        if not solvable:
            continue
        try:
            read_problem(problem)
        except GameError as error:
            raise GameError(f"{path}: {error}") from None
        yield {
            "task": path.parent.parent.name,
            "trial": path.parent.name,
            "task_desc": task[0],
            "pddl_problem": problem,
            "walkthrough": game.get("walkthrough") or [],
        }


if __name__ == "__main__":
    sys.exit(main())
