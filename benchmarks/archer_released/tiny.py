"""Games, and the tiny models that both trainers are given: a GPT-2 of 2 x 128 and a RoBERTa of
2 x 128, the paper's proportion. Neighbours: `released.py`, `parity.py`, `speed.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.optim import Adam
from transformers import (
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

from agentc_backends.data.models.vocabulary import byte_level, train_encoder_tokenizer
from agentc_backends.environments.guessing_games.environment import GuessingEnvironment
from agentc_backends.trainers.online_rl.learning import actor_step
from agentc_backends.trainers.online_rl.losses import imitation_loss
from benchmarks.archer_objects import SECRETS, WORLD

END = "<|end|>"
OPENING = "Questions:\n"
WIDTH = 128


@dataclass(frozen=True, slots=True)
class Told:
    """An utterance as text: what was read, said and earned, and what was read next."""

    state: str
    reply: str
    reward: float
    following: str
    done: bool


def games(number: int, seed: int) -> list[list[Told]]:
    """Of ten-object Twenty Questions, by somebody who asks readable questions and guesses; a state
    is the transcript so far, as the paper's policies read it."""
    rng = random.Random(seed)
    asked = [*WORLD.table.questions]
    found = []
    for _ in range(number):
        world, text, turns = GuessingEnvironment(WORLD), OPENING, []
        secret = rng.choice(SECRETS)
        world.reset(secret)
        over = False
        while not over:
            guess = rng.random() < 0.35
            question = WORLD.table.guess_of(rng.choice(SECRETS)) if guess else rng.choice(asked)
            answer, reward, over, _, _ = world.step(question)
            following = f"{text}{question} {answer.split()[0]}\n"
            turns.append(Told(text, question, float(reward), following, bool(over)))
            text = following
        found.append(turns)
    return found


def policy_tokenizer(texts: Sequence[str]) -> Any:
    """Byte-level BPE without marks at the ends, as GPT-2's."""
    return PreTrainedTokenizerFast(
        tokenizer_object=byte_level(texts, 512, [END]),
        eos_token=END,
        clean_up_tokenization_spaces=False,
    )


def make_models(
    folder: Path, texts: Sequence[str], played: Sequence[Sequence[Told]], seed: int
) -> tuple[Path, Path]:
    """Folders of a policy that has learnt to end its replies from these games, and of an encoder
    with random weights. Generation cuts no token off (the library's default of the 50 likeliest
    would): the released code sets neither."""
    torch.manual_seed(seed)
    tokenizer = policy_tokenizer(texts)
    policy = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer), n_positions=1024, n_embd=WIDTH, n_layer=2, n_head=2,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            bos_token_id=tokenizer.eos_token_id, eos_token_id=tokenizer.eos_token_id,
        )
    )  # fmt: skip
    policy.generation_config = GenerationConfig(
        do_sample=True, top_k=0, eos_token_id=tokenizer.eos_token_id
    )
    _imitate(policy, tokenizer, played)
    encoder_tokenizer = train_encoder_tokenizer(texts, 512, 512)
    encoder = RobertaModel(
        RobertaConfig(
            vocab_size=len(encoder_tokenizer), hidden_size=WIDTH, num_hidden_layers=2,
            num_attention_heads=2, intermediate_size=4 * WIDTH, max_position_embeddings=514,
            type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2,
        )
    )  # fmt: skip
    made = folder / "policy", folder / "encoder"
    for path, parts in zip(made, ((policy, tokenizer), (encoder, encoder_tokenizer)), strict=True):
        for part in parts:
            part.save_pretrained(str(path))
    return made


def _imitate(policy: Any, tokenizer: Any, played: Sequence[Sequence[Told]]) -> None:
    rows = [
        (tokenizer(one.state)["input_ids"], tokenizer(one.reply + "\n")["input_ids"])
        for game in played
        for one in game
    ]
    rng, optimiser = random.Random(0), Adam(policy.parameters(), lr=2e-3)
    for _ in range(150):
        batch = [rng.choice(rows) for _ in range(16)]
        actor_step(
            policy,
            optimiser,
            batch,
            lambda log_probs, mask, _: imitation_loss(log_probs, mask),
            micro_batch=16,
            clip=1.0,
        )
