"""The critic of a published run, for whoever serves the run's policy: what run.json says of it, and
the critic itself out of the run's state.

Neighbours: `critic.py`, `encoder_texts.py`, `run_state.py` (whose files these are), `best_of.py`
(who asks it); `servers/transformers/reranked.py` serves by it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.engine.checkpoint import load_tokenizer
from agentc_backends.trainers.online_rl.best_of import RankWith
from agentc_backends.trainers.online_rl.critic import Critic, critic_over
from agentc_backends.trainers.online_rl.encoder_texts import untrained_encoder
from agentc_backends.trainers.online_rl.publishing import RUN_FILE
from agentc_backends.trainers.online_rl.run_state import STATE, put_weights

_FILES: Mapping[RankWith, str] = {"target": "target", "online": "critic"}
ENCODER = "encoder"
"""The folder in a run's state that has the encoder of its critic but for the weights, which are the
critic's; in run.json, how the encoder reads."""
_READ_WITH = "reader.encoder."
"""The weights of an encoder of its own."""
_WIDTH = "q1.0.bias"
"""The weights of a critic that are as many as its heads are wide."""


def facts_of(prompt: Mapping[str, Any], encoder: Mapping[str, Any] | None) -> dict[str, Any]:
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
        put_weights(critic, weights)
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
        return critic_over(load_model(folder).eval(), hidden, 0.0)
    words, pool, longest = load_tokenizer(str(folder)), reading["pool"], reading["max_length"]
    return Critic(untrained_encoder(folder / STATE / ENCODER, words, pool, longest), hidden)
