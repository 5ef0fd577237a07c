"""Our steps beside the released trainer's: what `ways.py` puts around ours, by hand; and both on
the same rows where ARCHER_CHECKOUT names a checkout."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from benchmarks.archer_released import parity
from benchmarks.archer_released.parity import AS_MEANT, AS_RELEASED, compare_updates, in_float64
from benchmarks.archer_released.tiny import games, make_models
from benchmarks.archer_released.ways import jointly_clipped, padded, unseen
from torch import nn
from transformers import GPT2Config, GPT2Model

from agentc_backends.trainers.online_rl.learning import reply_states

CHECKOUT = os.environ.get("ARCHER_CHECKOUT")
FILLER = 5


def test_gradients_are_clipped_with_those_of_the_step_before() -> None:
    """A critic's of norm .5 beside stale ones of 1, clipped to 1 together: .4472; two micro-batches
    added up are twice their mean."""
    own, other = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    for parts, before in ((1, 0.5), (2, 0.25)):
        own.weight.grad, other.weight.grad = torch.tensor([[before]]), torch.tensor([[1.0]])
        jointly_clipped(own, (own, other), clip=1.0, parts=parts).step()
        assert float(own.weight.grad) == pytest.approx(0.4472132)
        assert float(other.weight.grad) == pytest.approx(0.8944264)
    own.weight.grad, other.weight.grad = torch.tensor([[0.5]]), None
    jointly_clipped(own, (own, other), clip=1.0, parts=1).step()
    assert float(own.weight.grad) == 0.5


def test_a_reply_behind_filling_stands_at_its_end_and_does_not_see_it() -> None:
    assert padded([[1, 2], [3]], FILLER) == [(1, 2), (3, FILLER)]
    torch.manual_seed(0)
    body = GPT2Model(GPT2Config(vocab_size=9, n_positions=16, n_embd=8, n_layer=2, n_head=2)).eval()
    ids = torch.tensor([[3, FILLER, 4]])
    whole = torch.ones_like(ids)
    with torch.no_grad():
        with unseen(body, FILLER):
            found = body(input_ids=ids, attention_mask=whole).last_hidden_state[0, -1]
        placed = body(
            input_ids=torch.tensor([[3, 4]]), position_ids=torch.tensor([[0, 2]])
        ).last_hidden_state[0, -1]
        seen = body(input_ids=ids, attention_mask=whole).last_hidden_state[0, -1]
    torch.testing.assert_close(found, placed)
    assert not torch.allclose(found, seen)


def test_replies_behind_filling_may_share_a_text() -> None:
    """Two drawn states may be one: their replies then stand in one text, with a mask of its own."""
    torch.manual_seed(0)
    body = GPT2Model(GPT2Config(vocab_size=9, n_positions=16, n_embd=8, n_layer=2, n_head=2)).eval()
    prompts = padded([[3], [3], [1, 2]], FILLER)
    rows = list(zip(prompts, [(4, 6), (7, 8, 6), (4,)], strict=True))
    with torch.no_grad(), unseen(body, FILLER):
        together, _, mask = reply_states(body, rows)
        for number, row in enumerate(rows):
            alone, _, _ = reply_states(body, [row])
            length = int(mask[number].sum())
            torch.testing.assert_close(together[number, :length], alone[0, :length])


@pytest.mark.skipif(CHECKOUT is None, reason="ARCHER_CHECKOUT names no checkout of ArCHer")
class TestBesideTheReleasedTrainer:
    @pytest.fixture(scope="class")
    def made(self, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[Any]]:
        played = games(128, seed=0)
        told = [one for game in played for one in game]
        texts = sorted({one.following for one in told} | {"yes\n", "no\n", "perhaps\n"})
        return (*make_models(tmp_path_factory.mktemp("made"), texts, played, seed=0), told)

    def apart(self, made: tuple[Path, Path, list[Any]], ways: Any) -> dict[str, float]:
        assert CHECKOUT is not None
        with in_float64(), contextlib.redirect_stdout(io.StringIO()):
            return dict(compare_updates(Path(CHECKOUT), *made, ways))

    @pytest.mark.parametrize("ways", [AS_MEANT, AS_RELEASED], ids=["as meant", "as released"])
    def test_both_compute_the_same(self, made: Any, ways: Any) -> None:
        assert max(self.apart(made, ways).values()) < 1e-10

    @pytest.mark.parametrize("left_out", ["clipping together", "filling", "adding up"])
    def test_each_of_the_released_ways_is_seen(
        self, left_out: str, made: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def clipped_apart(own: Any, all_of: Any, clip: float, parts: int) -> Any:
            return jointly_clipped(own, (own,), clip, parts)

        def averaged(own: Any, all_of: Any, clip: float, parts: int) -> Any:
            return jointly_clipped(own, all_of, clip, 1)

        ways = AS_RELEASED
        if left_out == "filling":
            monkeypatch.setattr(parity, "padded", lambda prompts, filler: [*prompts])
        elif left_out == "clipping together":
            monkeypatch.setattr(parity, "jointly_clipped", clipped_apart)
        else:
            # Only a norm below the limit shows by how much gradients are larger.
            monkeypatch.setattr(parity, "jointly_clipped", averaged)
            ways = replace(ways, clip=1e9)
        found = self.apart(made, ways)
        assert found["gradients of the policy"] > 1e-4
