"""Drawing replies from a model in training, and the step that changes it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from agentc_backends.trainers.online_rl.learning import (
    actor_step,
    group_by_text,
    reply_log_probs,
    shared_text,
)
from agentc_backends.trainers.online_rl.losses import policy_gradient_loss
from agentc_backends.trainers.online_rl.sampling import Decode, DrawRequest, Sampler

STOP = 2
DECODE = Decode(max_tokens=8, ends=frozenset({STOP}))


def model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=24, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=128,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def test_a_reply_does_not_depend_on_those_beside_it() -> None:
    sampler = Sampler(model())
    asked = [
        DrawRequest([5 + number % 7] * (1 + 3 * number % 40), (number, number % 3))
        for number in range(30)
    ]
    together = sampler.draw(asked, DECODE)
    assert together == sampler.draw(asked, DECODE)
    assert together[::-1] == sampler.draw(asked[::-1], DECODE)
    assert [sampler.draw([one], DECODE)[0] for one in asked[:5]] == together[:5]
    for one in together:
        assert one.cut == (STOP not in one.ids)
        assert one.cut or one.ids.index(STOP) == len(one.ids) - 1


def test_replies_follow_the_models_law() -> None:
    """Chi-square of 4,000 first tokens against the model's own probabilities at a temperature."""
    policy = model(1)
    with torch.no_grad():
        policy.lm_head.weight.mul_(6)
        logits = policy(input_ids=torch.tensor([[7, 9]])).logits[0, -1]
    decode = Decode(max_tokens=1, ends=frozenset(), temperature=0.7)
    drawn = Sampler(policy).draw([DrawRequest([7, 9], (seed, 0)) for seed in range(4000)], decode)
    chances = torch.softmax(logits / 0.7, dim=0)
    counts = Counter(one.ids[0] for one in drawn)
    expected = [4000 * float(chance) for chance in chances]
    assert min(expected) > 5
    statistic = sum((counts[token] - want) ** 2 / want for token, want in enumerate(expected))
    # 23 degrees of freedom: one law in a thousand would be as far off as 49.7.
    assert statistic < 49.7


def test_log_probs_are_those_of_each_row_alone() -> None:
    policy = model()
    rows = [([5, 6, 7], [8, STOP]), ([9], [10, 11, 12, STOP]), ([3] * 20, [4])]
    with torch.no_grad():
        found, mask = reply_log_probs(policy, rows)
    assert mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]
    for (prompt, reply), values in zip(rows, found, strict=True):
        with torch.no_grad():
            logits = policy(input_ids=torch.tensor([[*prompt, *reply]])).logits[0].log_softmax(-1)
        for place, token in enumerate(reply):
            own = float(logits[len(prompt) - 1 + place, token])
            assert float(values[place]) == pytest.approx(own, abs=1e-5)
    with pytest.raises(ValueError, match="a prompt of one token"):
        reply_log_probs(policy, [([], [3])])


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_replies_of_one_conversation_are_read_in_one_text(kind: str) -> None:
    """Those that later turns show as they were said, and others behind earlier messages them;
    the numbers are those of each row alone, and so is the gradient."""
    policy = model()
    if kind == "gpt2":
        shape = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128}
        policy = GPT2LMHeadModel(GPT2Config(vocab_size=24, **shape)).eval()
    talk = [5, 6, 7, 8, STOP, 9, 10, 11, STOP]
    rows = [
        (talk[:3], [8, STOP]),
        ([5, 6, 7], [12, 13, STOP]),  # branches off
        (talk[:7], [11, STOP]),
        ([9, 9], [3]),
        (talk[:3], [8, STOP]),
        (talk[:6], [14]),  # a branch of one token
        ([5, 6, 7], [12, 13, STOP]),  # as another branch
        (talk[:7], [11, 4, 4, 4, 4, 4, 4, STOP]),  # the longest text
    ]
    assert sorted(map(sorted, group_by_text(rows))) == [[0, 1, 2, 4, 5, 6, 7], [3]]
    laid = shared_text([rows[place] for place in group_by_text(rows)[0]])
    assert (len(laid.ids), laid.branches) == (18, [(15, 16, 7), (16, 18, 3)])
    found, mask = reply_log_probs(policy, rows)
    weights = torch.tensor([1.0, -2.0, 0.5, 1.5, -1.0, 3.0, 0.25, -0.75])
    ((found * mask).sum(dim=1) * weights).sum().backward()
    together = [each.grad.clone() for each in policy.parameters()]
    policy.zero_grad()
    for place, row in enumerate(rows):
        alone, its = reply_log_probs(policy, [row])
        (alone.sum() * weights[place]).backward()
        length = int(its.sum())
        assert int(mask[place].sum()) == length
        torch.testing.assert_close(found[place, :length], alone[0], rtol=1e-5, atol=1e-6)
    for each, theirs in zip(policy.parameters(), together, strict=True):
        torch.testing.assert_close(each.grad, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("micro_batch", [1, 2, 3])
def test_a_step_is_the_same_however_it_is_cut(micro_batch: int) -> None:
    rows = [([5, 6], [8, STOP]), ([9], [10, 11, STOP]), ([3, 4, 5], [STOP])]
    better = torch.tensor([1.0, -0.5, 0.25])
    ends = []
    for size in (len(rows), micro_batch):
        policy = model()
        told = actor_step(
            policy,
            torch.optim.SGD(policy.parameters(), lr=0.1),
            rows,
            lambda log_probs, mask, part: policy_gradient_loss(log_probs, mask, better[[*part]]),
            micro_batch=size,
            clip=1.0,
        )
        ends.append((told, [each.detach().clone() for each in policy.parameters()]))
    (whole, weights), (cut, others) = ends
    assert cut == pytest.approx(whole, rel=1e-4)
    for one, other in zip(weights, others, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_what_is_better_becomes_likelier_and_is_drawn_then() -> None:
    """The weights of now are drawn from: the engine keeps nothing of those before."""
    policy = model()
    sampler = Sampler(policy)
    prompt, wanted = [5, 6, 7], [11, STOP]
    likeliest = Decode(max_tokens=8, ends=frozenset({STOP}), temperature=0.0)
    optimiser = torch.optim.Adam(policy.parameters(), lr=1e-2)
    (before,) = sampler.draw([DrawRequest(prompt, (0, 0))], likeliest)
    assert before.ids != tuple(wanted)
    for _ in range(30):
        loss, _ = actor_step(
            policy,
            optimiser,
            [(prompt, wanted)],
            lambda log_probs, mask, part: policy_gradient_loss(log_probs, mask, torch.ones(1)),
            micro_batch=1,
            clip=0.0,
        )
    assert math.exp(-loss) > 0.5
    (after,) = sampler.draw([DrawRequest(prompt, (0, 0))], likeliest)
    assert after.ids == tuple(wanted)
