"""Initial weights that already copy: a previous-token layer and an induction layer.

A pretrained model finds an earlier occurrence of what it just read and continues as it went on
there (induction heads: Olsson et al. 2022, "In-context Learning and Induction Heads"). A small
random model needs millions of tokens before that forms; here the attention of the first two
blocks of a Llama or Qwen2 is set so that training starts close to it. Used by `job_scratch.py`.
"""

from __future__ import annotations

import math
from typing import Any

# Scales that were found by trial on models of width 128 and head size 64.
_EMBEDDING_STD = 0.09
_NOISE_STD = 0.01
_MLP_IN_STD = 0.06
_MLP_OUT_STD = 0.015
_CONSTANT = 3.0
_SHARPNESS = 6.0
_MATCH = 3.0
_COPY = 8.0
_CARRY = 2.0
_HIGH_FREQUENCY = 0.15
_LOW_FREQUENCY = 0.02


def wire_induction(model: Any, seed: int) -> None:
    """Set all weights of a LlamaForCausalLM or Qwen2ForCausalLM in place.

    Dimension 0 of every embedding holds a constant. Block 0: half of its heads attend to the
    previous token, half to the one before it, by rotary phase alone, and write what they find to
    fixed directions (an orthogonal map of the embedding). Block 1: its heads compare the current
    token with those directions, attend where they match, and copy the token that stands there.
    Everything else is small noise.
    """
    import torch

    with torch.no_grad():
        _Wiring(model, torch.Generator().manual_seed(seed)).write()


class _Wiring:
    """The shapes and directions that the two blocks share."""

    def __init__(self, model: Any, generator: Any) -> None:
        import torch

        config = model.config
        self.model = model
        self.generator = generator
        self.width: int = config.hidden_size
        self.heads: int = config.num_attention_heads
        self.head: int = self.width // self.heads
        theta = float(config.rope_parameters["rope_theta"])
        exponents = torch.arange(0, self.head, 2).float() / self.head
        self.frequencies = 1.0 / theta**exponents
        directions, _ = torch.linalg.qr(self._normal((self.width, self.width)))
        directions[0] = 0.0  # Nothing is ever written onto the constant.
        self.directions = directions

    def write(self) -> None:
        self._noise()
        blocks = self.model.model.layers
        self._wire_previous(blocks[0].self_attn)
        self._wire_match(blocks[1].self_attn)

    def _normal(self, shape: tuple[int, ...]) -> Any:
        import torch

        return torch.randn(shape, generator=self.generator)

    def _noise(self) -> None:
        for name, weight in self.model.named_parameters():
            if weight.dim() < 2:
                continue
            if "gate_proj" in name or "up_proj" in name:
                std = _MLP_IN_STD
            elif "down_proj" in name:
                std = _MLP_OUT_STD
            elif "embed_tokens" in name or "lm_head" in name:
                std = _EMBEDDING_STD
            else:
                std = _NOISE_STD
            weight.copy_(self._normal(tuple(weight.shape)) * std)
        self.model.get_input_embeddings().weight[:, 0] = _CONSTANT * _EMBEDDING_STD

    def _wire_previous(self, attention: Any) -> None:
        import torch

        half, groups = self.head // 2, self.heads // 2
        constant = _CONSTANT / math.sqrt(1 + (_CONSTANT**2 - 1) / self.width)
        fast = (self.frequencies > _HIGH_FREQUENCY).float()
        gap = ((1 - torch.cos(self.frequencies)) * fast).sum() / math.sqrt(self.head)
        strength = math.sqrt(_SHARPNESS / float(gap)) / constant
        query, key = attention.q_proj.weight, attention.k_proj.weight
        value, output = attention.v_proj.weight, attention.o_proj.weight
        query *= 0.3
        key *= 0.3
        for head in range(self.heads):
            delta = 1 if head < groups else 2
            first = head * self.head
            middle, last = first + half, first + self.head
            query[first:middle, 0] = strength * torch.cos(delta * self.frequencies) * fast
            query[middle:last, 0] = -strength * torch.sin(delta * self.frequencies) * fast
            key[first:middle, 0] = strength * fast
            key[middle:last, 0] = 0.0
            read = (head % groups) * self.head
            rows = torch.arange(self.head)
            value[first + rows, read + rows] += 1.0
            if read == 0:
                value[first] = 0.0  # The constant is not carried along.
            output[:, first:last] += _CARRY * _EMBEDDING_STD * self.directions[:, first:last]

    def _wire_match(self, attention: Any) -> None:
        import torch

        half = self.width // 2
        previous, before = self.directions[:, :half], self.directions[:, half:]
        slow = [i for i in range(self.head // 2) if self.frequencies[i] < _LOW_FREQUENCY]
        slots = slow + [i + self.head // 2 for i in slow]
        query, key = attention.q_proj.weight, attention.k_proj.weight
        value, output = attention.v_proj.weight, attention.o_proj.weight
        for head in range(self.heads):
            first = head * self.head
            order = (torch.randperm(half - 1, generator=self.generator) + 1).tolist()
            for number, slot in enumerate(slots):
                row, dimension = first + slot, order[number % (half - 1)]
                query[row] *= 0.3
                key[row] *= 0.3
                if head % 2 == 0 or number % 2 == 0:
                    # This token is the one before the place looked for.
                    query[row, dimension] += _MATCH
                    key[row] += _MATCH * previous[:, dimension]
                else:
                    # The token before this one is the second before the place looked for.
                    query[row] += _MATCH * previous[:, dimension]
                    key[row] += _MATCH * before[:, dimension]
            rows = torch.arange(self.head)
            value[first + rows, first + rows] += 1.0
            output[first + rows, first + rows] += _COPY * _EMBEDDING_STD
            if head == 0:
                value[first] = 0.0
