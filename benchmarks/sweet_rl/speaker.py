"""A tiny Llama with its chat encoding: made from scratch, sampled from and scored in batches.

Tokenizer, first weights and masks are the library's; batching is this module's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from agentc_backends.data.chat.formats import format_named
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.data.models.induction import wire_induction
from agentc_backends.data.models.vocabulary import corpus_texts, train_tokenizer

Conversation = Sequence[dict[str, str]]
FORMAT = "chatml"
CONTEXT = 512
VOCABULARY = 768
_LONGEST_REPLY = 60
_TOKENS_AT_ONCE = 16384


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids of a conversation, and each token's weight in its score (0: not counted)."""

    ids: list[int]
    weights: list[float]


@dataclass(slots=True)
class Speaker:
    """A model and the encoder of its conversations."""

    model: Any
    encoder: Encoder

    def copy(self) -> Speaker:
        """The same weights, to be trained apart."""
        return Speaker(copy.deepcopy(self.model), self.encoder)

    def generator(self, seed: int) -> torch.Generator:
        """Random numbers for `replies`."""
        return torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def replies(
        self, conversations: Sequence[Conversation], generator: torch.Generator
    ) -> list[str]:
        """One reply to each conversation, sampled at temperature 1."""
        prompts = [self.encoder.encode_prompt(each) for each in conversations]
        texts = [""] * len(prompts)
        for chunk in _chunks([len(prompt) + _LONGEST_REPLY for prompt in prompts]):
            found = self._sample([prompts[i] for i in chunk], generator)
            for index, ids in zip(chunk, found, strict=True):
                texts[index] = self.encoder.tokenizer.decode(ids)
        return texts

    def _sample(self, prompts: Sequence[list[int]], generator: torch.Generator) -> list[list[int]]:
        longest = max(map(len, prompts))
        pad, end = self.encoder.pad, self.encoder.tokenizer.eos_token_id
        ids = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts])
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        rows = list(range(len(prompts)))
        found: list[list[int]] = [[] for _ in prompts]
        cache = DynamicCache()
        for _ in range(_LONGEST_REPLY):
            logits = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]
            drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)
            keep = []
            for place, token in enumerate(drawn[:, 0].tolist()):
                if token != end:
                    found[rows[place]].append(token)
                    keep.append(place)
            if not keep:
                break
            if len(keep) < len(rows):  # Ended replies leave the batch.
                rows = [rows[place] for place in keep]
                chosen = torch.tensor(keep)
                cache.batch_select_indices(chosen)
                drawn, mask, positions = drawn[chosen], mask[chosen], positions[chosen]
            ids, positions = drawn, positions[:, -1:] + 1
            mask = torch.cat([mask, torch.ones_like(drawn)], 1)
        return found

    def row(self, messages: Conversation, *, normalisation: str, last: bool = False) -> Row:
        """Tokens and weights of a conversation: of its last turn alone with `last`, else of all of
        the agent's. `turn` gives a sum of means by turn, `trajectory` one mean, `none` a sum."""
        encoded = self.encoder.encode(messages)
        turns = [-1 if last and t != len(messages) - 1 else t for t in encoded.turns]
        if normalisation == "turn":
            weights = [1 / turns.count(t) if t >= 0 else 0.0 for t in turns]
        else:
            total = sum(t >= 0 for t in turns) if normalisation == "trajectory" else 1
            weights = [1 / total if t >= 0 else 0.0 for t in turns]
        return Row(encoded.ids, weights)

    @torch.no_grad()
    def scores(self, rows: Sequence[Row]) -> list[float]:
        """The weighted sum of log-probs of each row."""
        found = [0.0] * len(rows)
        for chunk in _chunks([len(row.ids) for row in rows]):
            scored, _ = weighted(self.model, [rows[i] for i in chunk])
            for index, value in zip(chunk, scored.tolist(), strict=True):
                found[index] = value
        return found

    def save(self, path: Path) -> None:
        """Write weights and tokenizer."""
        torch.save({"model": self.model.state_dict(), "config": self.model.config}, path)
        self.encoder.tokenizer.save_pretrained(str(path.with_suffix(".tokenizer")))


def weighted(model: Any, rows: Sequence[Row]) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each row the weighted sum, and the plain mean, of the log-probs of its counted tokens."""
    longest = max(len(row.ids) for row in rows)
    ids = torch.tensor([row.ids + [0] * (longest - len(row.ids)) for row in rows])
    weights = torch.tensor([row.weights + [0.0] * (longest - len(row.ids)) for row in rows])[:, 1:]
    # Rows are padded on the right, so that causal attention needs no mask.
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    counted = weights > 0
    logits = model.lm_head(hidden[counted])
    found = -torch.nn.functional.cross_entropy(logits, ids[:, 1:][counted], reduction="none")
    whole = torch.zeros_like(weights).masked_scatter(counted, found)
    return (whole * weights).sum(1), whole.sum(1) / counted.sum(1)


def new_speaker(conversations: Sequence[Conversation], seed: int) -> Speaker:
    """A model from scratch, as `model.scratch` with `initialisation: induction` makes it."""
    chat = format_named(FORMAT)
    tokenizer = train_tokenizer(chat, corpus_texts(chat, conversations), VOCABULARY, CONTEXT)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    transformers.set_seed(seed)
    model = LlamaForCausalLM(config)
    wire_induction(model, seed)
    return Speaker(model, Encoder(tokenizer, FORMAT))


def load_speaker(path: Path) -> Speaker:
    """What `Speaker.save` wrote."""
    saved = torch.load(path, weights_only=False)
    model = LlamaForCausalLM(saved["config"])
    model.load_state_dict(saved["model"])
    folder = str(path.with_suffix(".tokenizer"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return Speaker(model, Encoder(tokenizer, FORMAT))


def _chunks(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of rows in batches of like length."""
    chunk: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if chunk and (len(chunk) + 1) * lengths[chunk[0]] > _TOKENS_AT_ONCE:
            yield chunk
            chunk = []
        chunk.append(index)
    if chunk:
        yield chunk
