"""Untrained models of a few layers with a tokenizer made on the spot, for the servers' tests.

As a program, `tiny_models.py NAME FOLDER` makes one of them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from agentc_backends.data.chat.formats import format_named

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
_WORDS = [
    "goal",
    "craft",
    "oak",
    "planks",
    "stick",
    "log",
    "Thought:",
    "Action:",
    "get",
    "inventory",
    "Observation:",
    "Got",
    "1",
    "2",
    "4",
]
_IDS: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 3}
_SHAPE: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    **_IDS,
}
CONFIGS: dict[str, PretrainedConfig] = {
    "llama": LlamaConfig(num_key_value_heads=4, **_SHAPE),
    "llama-gqa": LlamaConfig(num_key_value_heads=2, tie_word_embeddings=True, **_SHAPE),
    # vLLM's attention on CPUs takes heads of this width.
    "llama-wide": LlamaConfig(
        num_key_value_heads=1, **{**_SHAPE, "hidden_size": 128, "num_attention_heads": 2}
    ),
    "qwen2": Qwen2Config(num_key_value_heads=1, **_SHAPE),
    "gpt2": GPT2Config(
        vocab_size=512, n_embd=64, n_layer=2, n_head=4, n_positions=512, initializer_range=0.3,
        **_IDS,
    ),
}  # fmt: skip
SLIDING = MistralConfig(num_key_value_heads=2, sliding_window=8, **_SHAPE)


def make_model(folder: Path, config: PretrainedConfig, *, seed: int = 0) -> Path:
    """A checkpoint directory with weights drawn by `seed`."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config)
    model.generation_config.eos_token_id = 2
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    (folder / "agentc_chat.json").write_text('{"chat_format": "chatml"}', encoding="utf-8")
    return folder


def lengthen(folder: Path, context: int) -> Path:
    """Let a checkpoint of `make_model` take longer texts."""
    for name, key in (("config.json", "max_position_embeddings"),
                      ("tokenizer_config.json", "model_max_length")):  # fmt: skip
        file = folder / name
        file.write_text(json.dumps({**json.loads(file.read_text()), key: context}))
    return folder


def make_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    corpus = [" ".join(_WORDS[(i * 7 + j * 3) % len(_WORDS)] for j in range(20)) for i in range(99)]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(corpus, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=SPECIAL[0], eos_token=SPECIAL[2],
        pad_token=SPECIAL[3], model_max_length=512,
    )  # fmt: skip
    fast.chat_template = format_named("chatml").template
    return fast


if __name__ == "__main__":
    make_model(Path(sys.argv[2]), CONFIGS[sys.argv[1]])
