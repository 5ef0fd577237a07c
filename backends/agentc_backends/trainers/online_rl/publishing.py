"""The artifact of a run: the policy at its root, as any checkpoint, and beside it the run.

Checked by `agentc.runtime.contracts.run_contract`. Neighbour: `job_online.py`.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.program.job import each_row, write_json, write_rows
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    companion_files,
    load_model,
    require_unquantised,
)
from agentc_backends.trainers.online_rl.run_files import CURVE, EPISODES, EVALUATIONS, RunFiles

RUN_FILE = "run.json"
KEPT, OWN = "checkpoints", "kept"
"""The folders of kept policies: of an artifact, and of a run in its work folder."""
VERSION = 1


def clear(out: Path) -> None:
    """Remove whatever lies in a folder."""
    for path in out.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def load_policy(base: Path) -> Any:
    """The model that a run starts from. Raises FatalError for one that cannot be trained."""
    try:
        require_unquantised(base)
    except CheckpointError as error:
        raise FatalError(str(error)) from None
    return load_model(base).eval()


def write_policy(policy: Any, base: Path, out: Path) -> None:
    """The model as it is now, with the tokenizer and formats of the one that it started from."""
    out.mkdir(parents=True, exist_ok=True)
    policy.save_pretrained(str(out))
    for path in companion_files(base):
        shutil.copyfile(path, out / path.name)


def keep_policy(policy: Any, base: Path, folder: Path) -> None:
    """The same into a folder that is there when it is whole; written again it is the same."""
    half = folder.with_name(folder.name + ".half")
    shutil.rmtree(half, ignore_errors=True)
    write_policy(policy, base, half)
    shutil.rmtree(folder, ignore_errors=True)
    half.replace(folder)


def publish_run(
    out: Path,
    folder: Path,
    files: RunFiles,
    about: Mapping[str, Any],
    before: Sequence[Path],
) -> None:
    """Write all but the policy into `out`; `about` is what run.json says besides `checkpoints`, and
    `before` has the run that this one went on from, whose rows come first."""
    for path in [*(each / KEPT for each in before), folder / OWN]:
        for kept in sorted(path.glob("*")):
            if kept.name.isdigit():
                shutil.copytree(kept, out / KEPT / kept.name, dirs_exist_ok=True)
    own = range(files.first, about["iterations"])
    played = (dict(row) for number in own for row in files.episodes_of(number))
    earlier = [each_row(path / EPISODES) for path in before]
    write_rows(out / EPISODES, itertools.chain(*earlier, played))
    earlier = [each_row(path / CURVE) for path in before]
    write_rows(out / CURVE, itertools.chain(*earlier, files.curve()))
    evaluated = _evaluated(folder, before)
    if evaluated:
        write_rows(out / EVALUATIONS, evaluated)
    found = sorted(int(path.name) for path in (out / KEPT).glob("*"))
    write_json(out / RUN_FILE, {"run": VERSION, **about, "checkpoints": found})


def _evaluated(folder: Path, before: Sequence[Path]) -> list[dict[str, Any]]:
    """All rows of evaluations in one order: side by side they ended in any. Where two runs meet,
    both may have evaluated the same policy."""
    rows = [*each_row(folder / EVALUATIONS)]
    again = {row["iteration"] for row in rows}
    for path in before:
        if (path / EVALUATIONS).exists():
            earlier = each_row(path / EVALUATIONS)
            rows += [row for row in earlier if row["iteration"] not in again]
    return sorted(rows, key=_place)


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["iteration"], row["task_id"], row["attempt"]
