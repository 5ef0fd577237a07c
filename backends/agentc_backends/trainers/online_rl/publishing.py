"""The artifact of a run: the policy at its root, as any checkpoint, and beside it the run.

Checked by `agentc.runtime.contracts.run_contract`. Neighbour: `job_online.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from agentc.runtime.program import each_row, write_json, write_rows
from agentc_backends.data.models.checkpoint import companion_files
from agentc_backends.trainers.online_rl.run_files import CURVE, EPISODES, EVALUATIONS, RunFiles

RUN_FILE = "run.json"
KEPT = "checkpoints"
VERSION = 1


def clear(out: Path) -> None:
    """Remove whatever lies in a folder."""
    for path in out.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


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
    out: Path, folder: Path, files: RunFiles, modules: Mapping[str, Any], about: Mapping[str, Any]
) -> None:
    """Write all but the policy into `out`; `about` is what run.json says besides `checkpoints`."""
    kept = sorted(int(path.name) for path in (folder / "kept").glob("*") if _whole(path))
    for iteration in kept:
        shutil.copytree(folder / "kept" / str(iteration), out / KEPT / str(iteration))
    iterations = about["iterations"]
    write_rows(
        out / EPISODES,
        (dict(row) for number in range(iterations) for row in files.episodes_of(number)),
    )
    write_rows(out / CURVE, files.curve())
    evaluated = folder / EVALUATIONS
    if evaluated.stat().st_size:
        # Side by side they ended in any order.
        write_rows(out / EVALUATIONS, sorted(each_row(evaluated), key=_place))
    for name, module in modules.items():
        if name != "policy":
            (out / name).mkdir()
            weights = {n: each.detach().contiguous() for n, each in module.named_parameters()}
            save_file(weights, out / name / "model.safetensors")
    write_json(out / RUN_FILE, {"run": VERSION, **about, "checkpoints": kept})


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["iteration"], row["task_id"], row["attempt"]


def _whole(path: Path) -> bool:
    return path.is_dir() and path.name.isdigit()
