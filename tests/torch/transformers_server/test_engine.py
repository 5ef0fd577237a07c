"""The engine against transformers' own passes: greedy, scores, seeds, batches, prefixes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from driving import finish, one, running
from tiny_models import CONFIGS, SLIDING, make_model
from transformers import AutoModelForCausalLM

from agentc_backends.engine import single_sequence
from agentc_backends.engine.generation import EngineRequest
from agentc_backends.engine.model import Checkpoint, UnsupportedModelError, load_checkpoint


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp(request.param), CONFIGS[request.param])


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Checkpoint:
    torch.set_num_threads(1)
    return load_checkpoint(str(folder), "float32")


@pytest.fixture(scope="module")
def plain(folder: Path) -> Any:
    """The same weights in a model that knows nothing of ours."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def exact(folder: Path) -> Any:
    """The same again in double precision."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()


def logprobs_of(model: Any, text: list[int]) -> torch.Tensor:
    """Log probabilities of all tokens at each place of `text`: (len(text), vocabulary)."""
    with torch.inference_mode():
        return torch.log_softmax(model(torch.tensor([text])).logits[0].double(), -1)


def assert_as_exact_as_plain(
    found: list[float | None], plain: list[float], exact: list[float]
) -> None:
    """How far float32 may be from the true value depends on the processor's order of sums, so the
    plain pass tells it: never twice as far as that one is at its worst, where that is not 1e-5."""
    error = max((abs(a - b) for a, b in zip(plain, exact, strict=True)), default=0.0)
    assert found == pytest.approx(exact, rel=0, abs=max(1e-5, 2 * error))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkpoint]:
    made = make_model(tmp_path_factory.mktemp("llama"), CONFIGS["llama-gqa"])
    return load_checkpoint(str(made), "float32")


def prompt_of(length: int, seed: int) -> list[int]:
    draw = random.Random(seed)
    return [draw.randrange(4, 400) for _ in range(length)]


def test_greedy_is_that_of_generate(checkpoint: Checkpoint, plain: Any) -> None:
    prompts = [prompt_of(length, length) for length in (1, 7, 33, 90, 200)]
    with running(checkpoint, max_batch_tokens=64) as engine:
        ended = finish(engine, [{"prompt": p, "max_tokens": 24} for p in prompts])
    for prompt, sequence in zip(prompts, ended, strict=True):
        with torch.inference_mode():
            out = plain.generate(
                torch.tensor([prompt]), max_new_tokens=24, do_sample=False, eos_token_id=None,
                pad_token_id=3,
            )  # fmt: skip
        assert sequence.tokens == out[0, len(prompt) :].tolist()


def test_scores_are_those_of_a_plain_pass(
    checkpoint: Checkpoint, plain: Any, exact: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_sequence, "CHUNK", 64)
    texts = [prompt_of(length, length) for length in (1, 2, 50, 300)]
    with running(checkpoint) as engine:
        ended = finish(engine, [{"prompt": t, "max_tokens": 0, "alternatives": 2} for t in texts])
    for text, sequence in zip(texts, ended, strict=True):
        values, truth = logprobs_of(plain, text), logprobs_of(exact, text)
        following = list(enumerate(text[1:]))
        assert [s.token for s in sequence.scores] == text
        assert sequence.scores[0].logprob is None
        assert_as_exact_as_plain(
            [s.logprob for s in sequence.scores[1:]],
            [float(values[i, token]) for i, token in following],
            [float(truth[i, token]) for i, token in following],
        )
        for i, scored in enumerate(sequence.scores[1:]):
            assert [t for t, _ in scored.top] == values[i].topk(2).indices.tolist()


def test_reported_logprobs_ignore_temperature(
    checkpoint: Checkpoint, plain: Any, exact: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_sequence, "CHUNK", 8)
    prompt = prompt_of(40, 1)
    with running(checkpoint) as engine:
        sequence = one(
            engine, prompt=prompt, max_tokens=12, temperature=0.3, top_p=0.7, key=(5, 0),
            alternatives=0,
        )  # fmt: skip
    whole = [*prompt, *sequence.tokens]
    values, truth = logprobs_of(plain, whole), logprobs_of(exact, whole)
    drawn = [(i - 1, whole[i]) for i in range(len(prompt), len(whole))]
    assert_as_exact_as_plain(
        [s.logprob for s in sequence.scores],
        [float(values[i, token]) for i, token in drawn],
        [float(truth[i, token]) for i, token in drawn],
    )


def test_replies_and_scores_do_not_depend_on_what_runs_beside(checkpoint: Checkpoint) -> None:
    shared = prompt_of(100, 0)
    requests: list[dict[str, Any]] = [
        {
            "prompt": [*shared[: 100 - 7 * (i % 3)], *prompt_of(3 + 11 * i % 60, i)],
            "max_tokens": 20,
            "temperature": (0.0, 0.7, 1.0, 1.3)[i % 4],
            "top_p": (1.0, 0.9, 0.5)[i % 3],
            "key": (i, 0),
            "alternatives": 0,
        }
        for i in range(24)
    ]
    requests[4:4] = [{**each, "max_tokens": 0} for each in requests[::6]]

    def told(sequences: list[EngineRequest]) -> list[Any]:
        return [(each.tokens, [s.logprob for s in each.scores]) for each in sequences]

    with running(checkpoint) as engine:
        separate = told([one(engine, **request) for request in requests])
    with running(checkpoint) as engine:
        together = told(finish(engine, requests))
        again = told(finish(engine, requests[::-1]))[::-1]
    with running(checkpoint, max_batch_tokens=17, max_sequences=5) as engine:
        cramped = told(finish(engine, requests))
    assert separate == together
    assert separate == again
    assert separate == cramped


def test_a_conversation_computes_only_what_is_new(llama: Checkpoint) -> None:
    with running(llama) as engine:
        prompt = prompt_of(150, 3)
        for turn in range(4):
            before = engine.counters.computed
            reply = one(engine, prompt=prompt, max_tokens=10, temperature=1.0, key=(9, turn))
            computed = engine.counters.computed - before
            if turn:
                # 21 tokens are new: the last of the reply, whose keys were not needed, and 20.
                assert computed == 21 + 9
            prompt = [*prompt, *reply.tokens, *prompt_of(20, turn)]


def test_prompts_that_arrive_together_share_their_beginning(llama: Checkpoint) -> None:
    shared = prompt_of(200, 4)
    requests = [{"prompt": [*shared, *prompt_of(10, i)], "max_tokens": 2} for i in range(8)]
    with running(llama) as engine:
        finish(engine, requests)
        assert engine.counters.computed < 200 + 8 * (10 + 2 + 1)


def test_a_small_cache_evicts_and_stays_right(llama: Checkpoint) -> None:
    tokens = 600
    with running(llama, cache_bytes=tokens * llama.geometry.bytes_per_token) as small:
        requests = [
            {"prompt": prompt_of(100, i), "max_tokens": 8, "temperature": 1.0, "key": (i, 0)}
            for i in range(12)
        ]
        squeezed = [s.tokens for s in finish(small, requests)]
        assert small.held_tokens <= tokens
        whole = one(small, prompt=prompt_of(480, 99), max_tokens=16)
        assert len(whole.tokens) == 16
    with running(llama) as large:
        assert [s.tokens for s in finish(large, requests)] == squeezed


def test_cancelled_sequences_leave(llama: Checkpoint) -> None:
    with running(llama) as engine:
        import numpy

        from agentc_backends.engine.generation import EngineRequest

        endless = EngineRequest(
            prompt=numpy.array(prompt_of(20, 1), dtype=numpy.int32),
            max_tokens=490,
            done=lambda sequence: None,
        )
        engine.submit(endless)
        endless.cancelled = True
        one(engine, prompt=prompt_of(20, 2), max_tokens=30)
        assert len(endless.tokens) < 40


def test_ties_go_to_the_lower_id(tmp_path: Path) -> None:
    made = make_model(tmp_path, CONFIGS["llama"])
    checkpoint = load_checkpoint(str(made), "float32")
    head = checkpoint.model.get_output_embeddings().weight
    with torch.no_grad():
        best = one_best(checkpoint, prompt_of(30, 5))
        head[500] = head[best]
        head[7] = head[best]
    with running(checkpoint) as engine:
        sequence = one(engine, prompt=prompt_of(30, 5), max_tokens=1)
        assert sequence.tokens == [min(7, best)]
        assert engine.counters.settled == 1


def one_best(checkpoint: Checkpoint, prompt: list[int]) -> int:
    with running(checkpoint) as engine:
        return one(engine, prompt=prompt, max_tokens=1).tokens[0]


def test_a_model_that_would_be_served_wrong_is_refused(tmp_path: Path) -> None:
    made = make_model(tmp_path, SLIDING)
    with pytest.raises(UnsupportedModelError, match=r"sliding_window|serve\.vllm"):
        load_checkpoint(str(made), "float32")


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no config\.json"):
        load_checkpoint(str(tmp_path), "float32")


def test_bfloat16_models_load_and_reply(folder: Path) -> None:
    with running(load_checkpoint(str(folder), "bfloat16"), settle_close_calls=False) as engine:
        assert len(one(engine, prompt=prompt_of(30, 5), max_tokens=5).tokens) == 5
