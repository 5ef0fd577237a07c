"""The artifact of a run: the policy at its root, as any checkpoint, and beside it the run.

Checked by `agentc.runtime.contracts.model_contracts`. Neighbour: `job_online.py`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from agentc.program.artifact_files import CURVE_FILE, EPISODES_FILE, EVALUATIONS_FILE, RUN_FILE
from agentc.program.job import each_row, write_json, write_rows
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    companion_files,
    load_model,
    require_unquantised,
)
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.trainers.online_rl.critic import Critic, RankWith, new_critic
from agentc_backends.trainers.online_rl.readers import untrained_encoder
from agentc_backends.trainers.online_rl.state import STATE, RunFiles, load_weights

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
    earlier = [each_row(path / EPISODES_FILE) for path in before]
    write_rows(out / EPISODES_FILE, itertools.chain(*earlier, played))
    earlier = [each_row(path / CURVE_FILE) for path in before]
    write_rows(out / CURVE_FILE, itertools.chain(*earlier, files.curve()))
    evaluated = _evaluated(folder, before)
    if evaluated:
        write_rows(out / EVALUATIONS_FILE, evaluated)
    found = sorted(int(path.name) for path in (out / KEPT).glob("*"))
    write_json(out / RUN_FILE, {"run": VERSION, **about, "checkpoints": found})


def _evaluated(folder: Path, before: Sequence[Path]) -> list[dict[str, Any]]:
    """All rows of evaluations in one order: side by side they ended in any. Where two runs meet,
    both may have evaluated the same policy."""
    rows = [*each_row(folder / EVALUATIONS_FILE)]
    again = {row["iteration"] for row in rows}
    for path in before:
        if (path / EVALUATIONS_FILE).exists():
            earlier = each_row(path / EVALUATIONS_FILE)
            rows += [row for row in earlier if row["iteration"] not in again]
    return sorted(rows, key=_place)


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["iteration"], row["task_id"], row["attempt"]


_FILES: Mapping[RankWith, str] = {"target": "target", "online": "critic"}
ENCODER = "encoder"
"""The folder in a run's state that has the encoder of its critic but for the weights, which are the
critic's; in run.json, how the encoder reads."""
_READ_WITH = "reader.encoder."
"""The weights of an encoder of its own."""
_WIDTH = "q1.0.bias"
"""The weights of a critic that are as many as its heads are wide."""


def critic_description(
    prompt: Mapping[str, Any], encoder: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What run.json says of a critic: what its states were tokens of, by the `memory` and a digest
    of the prompt that the run's policy was shown, and how its own `encoder` reads, if it has one.
    """
    texts = json.dumps(prompt, sort_keys=True)
    return {
        "memory": prompt.get("memory", "all"),
        "prompt": hashlib.sha256(texts.encode()).hexdigest()[:16],
        **({} if encoder is None else {ENCODER: dict(encoder)}),
    }


def read_critic(folder: Path, rank_with: RankWith) -> tuple[Critic, Mapping[str, Any]]:
    """The critic of a run, in float32 and without gradient, and what run.json says of it. Raises
    ValueError for a folder that has none."""
    try:
        told = json.loads((folder / RUN_FILE).read_text(encoding="utf-8")).get("critic", {})
        weights = load_file(folder / STATE / f"{_FILES[rank_with]}.safetensors")
        if ENCODER not in told and any(name.startswith(_READ_WITH) for name in weights):
            raise ValueError("the encoder that it reads with was not published; make it anew")
        critic = _untrained(folder, told.get(ENCODER), len(weights[_WIDTH]))
        load_weights(critic, weights)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ValueError(
            f"{folder} has no critic to rank candidates with ({type(error).__name__}: {error}); "
            "runs of `archer` and `chai` with `publish_state: true` have one"
        ) from error
    critic.requires_grad_(False)
    return critic, told


def _untrained(folder: Path, reading: Mapping[str, Any] | None, hidden: int) -> Critic:
    """A critic of the run's shape; `reading` says how its own encoder reads, if it has one."""
    if reading is None:
        return new_critic(load_model(folder).eval(), hidden, 0.0)
    words, pool, longest = load_tokenizer(str(folder)), reading["pool"], reading["max_length"]
    return Critic(untrained_encoder(folder / STATE / ENCODER, words, pool, longest), hidden)
