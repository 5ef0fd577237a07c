"""trl.critic with `parameterisation: value_head`: a head on the model, trained on rows that are its
items. Neighbours: job_critic.py, which calls this, and critic_trainers.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentc.program.job import Job
from agentc_backends.data.chat.rows import (
    MaskRules,
    NoRowsError,
    RowCounts,
    RowsError,
    Side,
    check_dropped,
    encode_pairs,
    encode_rows,
)
from agentc_backends.data.chat.tokens import Encoder, load_encoder
from agentc_backends.data.models.value_head import HEAD, new_head, write_head
from agentc_backends.trainers.common.processes import first_process
from agentc_backends.trainers.common.rows import Row
from agentc_backends.trainers.common.scoring import ScoringSample
from agentc_backends.trainers.trl.session import train_with
from agentc_backends.trainers.trl.sharding import ModelLayout


@dataclass(frozen=True, slots=True)
class HeadItem:
    """Rows of tokens that one loss is of, and what their scores should be (1 and 0 of a pair)."""

    ids: list[list[int]]
    targets: list[float]


def train_value_head(job: Job, rows: Sequence[Row], made: Mapping[str, Any]) -> None:
    """Train on pairs (with hidden texts in them) and write the checkpoint and its head. Raises
    RowsError, FormatError, TrainingDivergedError."""
    from transformers import TrainingArguments

    from agentc_backends.trainers.trl.critic_trainers import ValueCollator, ValueTrainer

    encoder, rules = load_encoder(job.input("model")), MaskRules(**job.config["mask"])
    compares = made["objective"] == "bradley_terry"
    items, counts = (compared if compares else judged)(encoder, rows, rules)

    def columns(empty: int) -> dict[str, list[Any]]:
        nothing = HeadItem([[encoder.pad]] * (2 if compares else 1), [0.0] * (2 if compares else 1))
        filled = [*items, *[nothing] * empty]
        return {
            "ids": [item.ids for item in filled],
            "targets": [item.targets for item in filled],
            "real": [True] * len(items) + [False] * empty,
        }

    def trainer(*, layout: ModelLayout, model: Any, args: Any, **arguments: Any) -> Any:
        width = model.get_input_embeddings().embedding_dim
        setattr(model, HEAD, new_head(width, args.seed))
        output = model.get_output_embeddings()
        if output is not None and output.weight is not model.get_input_embeddings().weight:
            # It is not part of a score, and processes would wait for its gradient.
            output.weight.requires_grad_(False)
        args.remove_unused_columns = False
        return ValueTrainer(
            model=model,
            args=args,
            beta=made["beta"],
            objective=made["objective"],
            pooling=made["pooling"],
            data_collator=ValueCollator(encoder.pad),
            layout=layout,
            **arguments,
        )

    def take_head(trainer: Any) -> None:
        model = trainer.accelerator.unwrap_model(trainer.model)
        if first_process():
            write_head(job.out, getattr(model, HEAD))
        delattr(model, HEAD)

    longest = [max(map(len, item.ids)) for item in items]
    tokens = [sum(map(len, item.ids)) for item in items]
    train_with(
        job, encoder, counts, TrainingArguments, trainer, columns, longest, tokens,
        ScoringSample((), ()), trained=take_head,
    )  # fmt: skip


def compared(
    encoder: Encoder, rows: Sequence[Row], rules: MaskRules
) -> tuple[list[HeadItem], RowCounts]:
    """An item for each pair: the chosen trajectory and the rejected one, each to the end of its
    last reply. Raises RowsError, FormatError."""
    pairs, counts = encode_pairs(encoder, rows, rules)
    end = encoder.tokenizer.eos_token_id
    return [
        HeadItem([_said(one.rows()[-1], end), _said(other.rows()[-1], end)], [1.0, 0.0])
        for one, other in pairs
    ], counts


def judged(
    encoder: Encoder, rows: Sequence[Row], rules: MaskRules
) -> tuple[list[HeadItem], RowCounts]:
    """An item for each turn of each trajectory: the conversation up to its end, whose target is
    the reward of the whole. A trajectory that several pairs have counts once. Raises RowsError,
    FormatError."""
    turns: list[dict[str, Any]] = []
    rewards: list[float] = []
    seen: set[str] = set()
    for row in rows:
        for side in ("chosen", "rejected"):
            text = json.dumps([row["prompt"], row[side]])
            if text in seen:
                continue
            seen.add(text)
            reward = row[f"{side}_reward"]
            if not 0 <= reward <= 1:
                raise RowsError(
                    f"the trajectory {row[f'{side}_id']} has the reward {reward:g}; "
                    "`binary_cross_entropy` takes rewards for probabilities, from 0 to 1: let the "
                    "environment reward so, or set objective: bradley_terry"
                )
            for place, message in enumerate(row[side]):
                if message["role"] == "assistant":
                    turns.append(
                        {
                            "id": f"{row[f'{side}_id']}@{place // 2}",
                            "messages": [*row["prompt"], *row[side][: place + 1]],
                            "prompt_length": len(row["prompt"]) + place,
                            "source": row.get("source", "policy"),
                        }
                    )
                    rewards.append(reward)
    kept: list[HeadItem] = []
    counts = RowCounts()
    after = replace(rules, loss_on="after_prompt", max_dropped=1.0)
    for turn, reward in zip(turns, rewards, strict=True):
        try:
            [whole], one = encode_rows(encoder, [turn], after)
        except NoRowsError:
            counts.dropped += 1
            continue
        kept.append(HeadItem([_said(whole, encoder.tokenizer.eos_token_id)], [reward]))
        counts.longest = max(counts.longest, one.longest)
        for name in ("rows", "truncated", "tokens", "trained_tokens"):
            setattr(counts, name, getattr(counts, name) + getattr(one, name))
    if not kept:
        raise NoRowsError(f"no turn to train on: {counts.dropped} are longer than max_length")
    check_dropped(counts, rules)
    return kept, counts


def _said(row: Side, end: int | None) -> list[int]:
    """The row up to the end of its last reply, with the token `end` that a policy stops at: what a
    ranking gives the head. What formats write behind it (a line end, the opening of another turn)
    would be the last token otherwise, and a token of the mean."""
    last = max(place for place, said in enumerate(row.trained) if said)
    first = last
    while first > 0 and row.trained[first - 1]:
        first -= 1
    ends = [place for place in range(first, last + 1) if row.ids[place] == end]
    return row.ids[: 1 + (ends[-1] if ends else last)]
