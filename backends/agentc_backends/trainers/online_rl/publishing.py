"""The artifact of a run: the policy as a checkpoint at its root, and the run's files with it.

`agentc.runtime.contracts.model_contracts` checks it. The server of a run's policy reads the critic
from it (`read_critic`).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from agentc.kinds.reinforcement import EncoderReading
from agentc.program.artifact_files import CURVE_FILE, EPISODES_FILE, EVALUATIONS_FILE, RUN_FILE
from agentc.program.job import iterate_rows, write_json, write_rows
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    companion_files,
    load_model,
    require_unquantised,
)
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.trainers.online_rl.critic import Critic, new_critic
from agentc_backends.trainers.online_rl.readers import untrained_encoder
from agentc_backends.trainers.online_rl.settings import RankWith
from agentc_backends.trainers.online_rl.state import STATE, RunFiles, load_weights

KEPT, OWN = "checkpoints", "kept"
"""The folders of kept policies: in an artifact, and in a run's work folder."""
ENCODER = "encoder"
"""The folder in a run's state with the critic's encoder, whose weights are among the critic's; in
run.json, how the encoder reads."""
VERSION = 1
_FILES: Mapping[RankWith, str] = {"target": "target", "online": "critic"}
_ENCODER_WEIGHTS = "reader.encoder."
"""How the names of an encoder's weights begin in a critic that has one."""
_HEAD_WEIGHTS = "q1.0.bias"
"""A critic's weights whose number is the width of its heads."""


def clear(out: Path) -> None:
    """Delete everything in a folder."""
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
    """The present weights, with the tokenizer and formats of the model that the run starts from."""
    out.mkdir(parents=True, exist_ok=True)
    policy.save_pretrained(str(out))
    for path in companion_files(base):
        shutil.copyfile(path, out / path.name)


def keep_policy(policy: Any, base: Path, folder: Path) -> None:
    """The same into a folder, atomically; a repeated call changes nothing."""
    partial = folder.with_name(folder.name + ".half")
    shutil.rmtree(partial, ignore_errors=True)
    write_policy(policy, base, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def publish_run(
    out: Path,
    folder: Path,
    files: RunFiles,
    about: Mapping[str, Any],
    before: Sequence[Path],
) -> None:
    """Write all but the policy into `out`. `about` is the content of run.json but for
    `checkpoints`; `before` holds the earlier run, if there is one, whose rows come first."""
    for path in [*(run / KEPT for run in before), folder / OWN]:
        for policy in sorted(path.glob("*")):
            if policy.name.isdigit():
                shutil.copytree(policy, out / KEPT / policy.name, dirs_exist_ok=True)
    own = range(files.first, about["iterations"])
    played = (dict(row) for number in own for row in files.episodes_of(number))
    earlier = [iterate_rows(path / EPISODES_FILE) for path in before]
    write_rows(out / EPISODES_FILE, itertools.chain(*earlier, played))
    earlier = [iterate_rows(path / CURVE_FILE) for path in before]
    write_rows(out / CURVE_FILE, itertools.chain(*earlier, files.curve()))
    evaluated = _evaluated(folder, before)
    if evaluated:
        write_rows(out / EVALUATIONS_FILE, evaluated)
    iterations = sorted(int(path.name) for path in (out / KEPT).glob("*"))
    write_json(out / RUN_FILE, {"run": VERSION, **about, "checkpoints": iterations})


def _evaluated(folder: Path, before: Sequence[Path]) -> list[dict[str, Any]]:
    """All rows of evaluations, sorted: concurrent episodes end in any order. Both runs may have
    evaluated the policy at which one continues the other."""
    rows = [*iterate_rows(folder / EVALUATIONS_FILE)]
    own = {row["iteration"] for row in rows}
    for path in before:
        if (path / EVALUATIONS_FILE).exists():
            earlier = iterate_rows(path / EVALUATIONS_FILE)
            rows += [row for row in earlier if row["iteration"] not in own]
    return sorted(rows, key=_order)


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["iteration"], row["task_id"], row["attempt"]


def critic_description(prompt: Mapping[str, Any], encoder: EncoderReading | None) -> dict[str, Any]:
    """The part of run.json about the critic: `memory` and a digest of the policy's prompt, which
    determine its states, and the settings of its `encoder`, if it has one."""
    texts = json.dumps(prompt, sort_keys=True)
    return {
        "memory": prompt.get("memory", "all"),
        "prompt": hashlib.sha256(texts.encode()).hexdigest()[:16],
        **({} if encoder is None else {ENCODER: asdict(encoder)}),
    }


def read_critic(folder: Path, rank_with: RankWith) -> tuple[Critic, Mapping[str, Any]]:
    """The critic of a run, in float32 and without gradient, and the part of run.json about it.
    Raises ValueError for a folder that has none."""
    try:
        description = json.loads((folder / RUN_FILE).read_text(encoding="utf-8")).get("critic", {})
        weights = load_file(folder / STATE / f"{_FILES[rank_with]}.safetensors")
        if ENCODER not in description and any(
            name.startswith(_ENCODER_WEIGHTS) for name in weights
        ):
            raise ValueError("the encoder that it reads with was not published; make it again")
        critic = _untrained_critic(folder, description.get(ENCODER), len(weights[_HEAD_WEIGHTS]))
        load_weights(critic, weights)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ValueError(
            f"{folder} has no critic to rank candidates with ({type(error).__name__}: {error}); "
            "runs of `archer` and `chai` with `publish_state: true` have one"
        ) from error
    critic.requires_grad_(False)
    return critic, description


def _untrained_critic(folder: Path, encoder: Mapping[str, Any] | None, hidden: int) -> Critic:
    """A critic of the run's shape; `encoder` has the settings of its encoder, if it has one."""
    if encoder is None:
        return new_critic(load_model(folder).eval(), hidden, 0.0)
    tokenizer, pool, longest = load_tokenizer(str(folder)), encoder["pool"], encoder["max_length"]
    return Critic(untrained_encoder(folder / STATE / ENCODER, tokenizer, pool, longest), hidden)
