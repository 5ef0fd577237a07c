"""A small model that wanders through the corridor, so that its own episodes teach it something."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from tests.torch.online_rl.corridor import POLICY
from tests.torch.trl.jobs import small_model

from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.environments.corridor.rules import ACTIONS, ROOMS
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.learning import Row, actor_step
from agentc_backends.trainers.online_rl.losses import imitation_loss
from agentc_backends.trainers.online_rl.publishing import write_policy

INSTRUCTION, ACKNOWLEDGEMENT = "left, right or look?", "OK"
_TURNS = 4


def wandering_model(root: Path, seed: int = 0) -> Path:
    """A checkpoint that says left, right and look as the corridor's behaviour does, mostly."""
    chance = random.Random(seed)
    texts = [_conversation(chance) for _ in range(64)]
    base = small_model(root, [{"messages": text} for text in texts], vocab_size=300, seed=seed)
    model = load_model(base).eval()
    tokenizer = load_tokenizer(str(base))
    chat = ChatText(str(base), tokenizer)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        rows = [row for _ in range(8) for row in _rows(chat, _conversation(chance))]
        actor_step(
            model, optimiser, rows, lambda log_probs, mask, _: imitation_loss(log_probs, mask),
            micro_batch=64, clip=1.0,
        )  # fmt: skip
    write_policy(model, base, root / "wanderer")
    return root / "wanderer"


def _conversation(chance: random.Random) -> list[dict[str, str]]:
    said = [{"role": "user", "content": INSTRUCTION}]
    said.append({"role": "assistant", "content": ACKNOWLEDGEMENT})
    for _ in range(_TURNS):
        said.append({"role": "user", "content": chance.choice(ROOMS)})
        said.append({"role": "assistant", "content": chance.choices(ACTIONS, POLICY)[0]})
    return said


def _rows(chat: ChatText, said: list[dict[str, str]]) -> list[Row]:
    rows: list[Row] = []
    for place in range(3, len(said), 2):
        prompt = chat.encode(said[:place], add_generation_prompt=True, continue_final_message=False)
        whole = chat.encode(
            said[: place + 1], add_generation_prompt=False, continue_final_message=False
        )
        # The line end behind the token that ends a reply is the format's.
        rows.append((prompt, whole[len(prompt) : -1]))
    return rows
