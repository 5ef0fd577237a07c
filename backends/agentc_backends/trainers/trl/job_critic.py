"""Job of trl.critic: a model that scores whole trajectories, by log-ratios or by a value head, and
that may read hidden texts of tasks.

Hidden texts are in token rows only, which stay in memory: nothing of them is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentc.kinds.training import CriticLikelihood, CriticScore
from agentc.program.artifact_files import CRITIC_FILE
from agentc.program.job import Job, write_json
from agentc_backends.data.chat.formats import NoRowsError, RowsError
from agentc_backends.data.chat.hidden_texts import HiddenTexts
from agentc_backends.data.chat.rows import (
    MaskRules,
    Normalisation,
    RowCounts,
    Side,
    check_dropped,
    encode_pairs,
    encode_rows,
    join_sides,
    score_weights,
)
from agentc_backends.data.chat.tokens import Encoder, load_encoder
from agentc_backends.data.models.value_head import HEAD, new_head, write_head
from agentc_backends.trainers.common.processes import first_process
from agentc_backends.trainers.common.program import run_trainer
from agentc_backends.trainers.common.rows import Row, pairs_to_compare
from agentc_backends.trainers.common.scoring import COUNT, ScoringSample, sample_of
from agentc_backends.trainers.trl.job_dpo import pair_columns
from agentc_backends.trainers.trl.session import train_with
from agentc_backends.trainers.trl.sharding import ModelLayout, load_with_layout

Pairs = list[tuple[Side, Side]]


@dataclass(frozen=True, kw_only=True)
class CriticRules(CriticScore):
    """How the critic scores; `template` is None where the job has no hidden texts."""

    beta: float
    template: Any = None


def train(job: Job) -> None:
    """Train the critic of the job on its pairs and write its checkpoint. Raises RowsError,
    FormatError, TrainingDivergedError."""
    settings = job.config.read_as(CriticRules, at="critic")
    plain = pairs_to_compare(job)
    rows = with_hidden_texts(job, plain, settings.template, settings.template_at)
    if settings.parameterisation == "value_head":
        train_value_head(job, rows, settings)
    else:
        _train_log_ratio(job, plain, rows, settings)
    if first_process():
        write_json(job.out / CRITIC_FILE, {**job.config["critic"], "reference": reference_of(job)})


def with_hidden_texts(
    job: Job, rows: Sequence[Row], template: str | None, template_at: str
) -> list[Row]:
    """The pairs as the critic reads them: with the hidden text of their task, if the job has hidden
    texts. Raises RowsError, also where the agent's own prompt shows one."""
    folders = job.inputs("privileged")
    if not folders or template is None:
        return list(rows)
    hidden = HiddenTexts(folders, template)
    placed: list[Row] = []
    for row in rows:
        shared = len(row["prompt"]) - 2 * row.get("shared_turns", 0)
        hidden.require_unseen(row["task_id"], row["prompt"][:shared])
        messages, opening = hidden.place(template_at, row["task_id"], row["prompt"])
        placed.append({**row, "prompt": messages, **({"opening": opening} if opening else {})})
    return placed


def reference_of(job: Job) -> str:
    """`<kind>/<key>` of the reference model of the log-ratios."""
    models = [*job.inputs("reference"), *job.inputs("model")]
    return "/".join(models[0].parts[-3:-1])


def _train_log_ratio(job: Job, plain: list[Row], rows: list[Row], settings: CriticRules) -> None:
    """Train on pairs, `rows` with hidden texts, and write the checkpoint."""
    from datasets import Dataset
    from trl import DPOConfig

    from agentc_backends.trainers.trl.critic_trainers import CriticCollator, CriticTrainer
    from agentc_backends.trainers.trl.trainers import NllRules

    base = job.input("model")
    encoder, rules = load_encoder(base), job.config.read_as(MaskRules, at="mask")
    likelihood = job.config.read_as(CriticLikelihood)
    nll = NllRules(reduction=likelihood.nll_reduction)
    normalisation = settings.normalisation
    pairs, counts = encode_pairs(encoder, rows, rules, turns=True)
    reference_pairs = pairs
    if settings.reference_sees == "history" and rows != plain:
        reference_pairs = pairs_without_hidden_texts(encoder, plain, rows, rules)

    def columns(empty: int) -> dict[str, list[Any]]:
        return weighted_columns(pairs, empty, encoder.pad, normalisation)

    def trainer(*, layout: ModelLayout, **arguments: Any) -> Any:
        references = [path for path in job.inputs("reference") if path != base]
        reference_rows = None
        if reference_pairs is not pairs:
            reference_rows = Dataset.from_dict(
                weighted_columns(reference_pairs, 0, encoder.pad, normalisation)
            )
        return CriticTrainer(
            # Without one, TRL takes the starting policy (with adapters off).
            ref_model=load_with_layout(references[0], layout) if references else None,
            reference_cache=job.work / "reference_scores.json",
            reference_rows=reference_rows,
            nll_weight=likelihood.nll_weight,
            nll=nll,
            data_collator=CriticCollator(encoder.pad),
            layout=layout,
            **arguments,
        )

    sizes = [(len(chosen.ids), len(rejected.ids)) for chosen, rejected in pairs]
    longer, both = [max(size) for size in sizes], [sum(size) for size in sizes]
    sample = _sample(encoder, plain, rules)
    train_with(job, encoder, counts, DPOConfig, trainer, columns, longer, both, sample)


def weighted_columns(
    pairs: Pairs, empty: int, pad: int, normalisation: Normalisation
) -> dict[str, list[Any]]:
    """Columns of a data set for CriticTrainer, with `empty` empty pairs at the end."""
    columns = pair_columns(pairs, empty, pad)
    for place, name in enumerate(("chosen", "rejected")):
        weights = [score_weights(pair[place], normalisation) for pair in pairs]
        columns[f"{name}_weights"] = weights + [[0.0]] * empty
    return columns


def pairs_without_hidden_texts(
    encoder: Encoder, plain: Sequence[Row], rows: Sequence[Row], rules: MaskRules
) -> Pairs:
    """The pairs as a reference without hidden texts reads them. The same pairs are dropped, and the
    same tokens count: what is cut off from `rows` is cut off here."""
    whole = MaskRules(loss_on=rules.loss_on, max_length=1 << 30, truncation="error")
    # The limit is a share of all pairs, which has been checked.
    one_by_one = replace(rules, max_dropped=1.0)
    pairs: Pairs = []
    for bare, row in zip(plain, rows, strict=True):
        try:
            [(chosen, rejected)], _ = encode_pairs(encoder, [row], one_by_one)
        except NoRowsError:
            continue  # dropped
        [pair], _ = encode_pairs(encoder, [bare], whole, turns=True)
        pairs.append((_cut_side(pair[0], chosen), _cut_side(pair[1], rejected)))
    return pairs


def _cut_side(side: Side, pattern: Side) -> Side:
    """A side cut to the number of trained tokens of `pattern`, row by row."""
    return join_sides(
        [
            _cut_row(row, sum(like.trained))
            for row, like in zip(side.rows(), pattern.rows(), strict=True)
        ]
    )


def _cut_row(row: Side, trained: int) -> Side:
    places = [place for place, counts in enumerate(row.trained) if counts]
    end = places[trained] if trained < len(places) else len(row.ids)
    return Side(row.ids[:end], row.trained[:end], row.turns[:end])


def _sample(encoder: Encoder, rows: Sequence[Row], rules: MaskRules) -> ScoringSample:
    """Rows to compare servers with. They are part of the artifact, so without hidden texts."""
    some = [rows[number * len(rows) // COUNT] for number in range(COUNT)]
    sides = []
    for row in some:
        messages, opening = [*row["prompt"], *row["chosen"]], len(row["prompt"])
        replies = [i for i in range(opening, len(messages)) if messages[i]["role"] == "assistant"]
        encoded = encoder.encode_turns(messages, replies)[-1]
        trained = [turn >= opening for turn in encoded.turns]
        side = Side(encoded.ids[: rules.max_length], trained[: rules.max_length])
        sides += [side] if any(side.trained[1:]) else []
    return sample_of(encoder, sides, [row["prompt"] for row in some])


@dataclass(frozen=True, slots=True)
class HeadItem:
    """The rows of tokens of one loss, and the targets of their scores (1 and 0 for a pair)."""

    ids: list[list[int]]
    targets: list[float]


def train_value_head(job: Job, rows: Sequence[Row], settings: CriticRules) -> None:
    """Train a head on pairs, `rows` with hidden texts, and write the checkpoint and the head.
    Raises RowsError, FormatError, TrainingDivergedError."""
    from transformers import TrainingArguments

    from agentc_backends.trainers.trl.critic_trainers import ValueCollator, ValueTrainer

    encoder, rules = load_encoder(job.input("model")), job.config.read_as(MaskRules, at="mask")
    compares = settings.objective == "bradley_terry"
    items, counts = (pair_items if compares else turn_items)(encoder, rows, rules)

    def columns(empty: int) -> dict[str, list[Any]]:
        count = 2 if compares else 1
        filled = [*items, *[HeadItem([[encoder.pad]] * count, [0.0] * count)] * empty]
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
            # It has no part in a score, and processes would wait for its gradient.
            output.weight.requires_grad_(False)
        args.remove_unused_columns = False
        return ValueTrainer(
            model=model,
            args=args,
            beta=settings.beta,
            objective=settings.objective,
            pooling=settings.pooling,
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


def pair_items(
    encoder: Encoder, rows: Sequence[Row], rules: MaskRules
) -> tuple[list[HeadItem], RowCounts]:
    """An item for each pair: the chosen and the rejected trajectory, each to the end of its last
    reply. Raises RowsError, FormatError."""
    pairs, counts = encode_pairs(encoder, rows, rules)
    end = encoder.tokenizer.eos_token_id
    return [
        HeadItem(
            [_to_reply_end(one.rows()[-1], end), _to_reply_end(other.rows()[-1], end)], [1.0, 0.0]
        )
        for one, other in pairs
    ], counts


def turn_items(
    encoder: Encoder, rows: Sequence[Row], rules: MaskRules
) -> tuple[list[HeadItem], RowCounts]:
    """An item for each turn of each trajectory: the conversation up to its end, with the reward of
    the whole as target. A trajectory of several pairs counts once. Raises RowsError,
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
        kept.append(HeadItem([_to_reply_end(whole, encoder.tokenizer.eos_token_id)], [reward]))
        counts.longest = max(counts.longest, one.longest)
        for name in ("rows", "truncated", "tokens", "trained_tokens"):
            setattr(counts, name, getattr(counts, name) + getattr(one, name))
    if not kept:
        raise NoRowsError(f"no turn to train on: {counts.dropped} are longer than max_length")
    check_dropped(counts, rules)
    return kept, counts


def _to_reply_end(row: Side, end: int | None) -> list[int]:
    """The row up to the end of its last reply, with the token `end` that a policy stops at, as the
    head gets it from a ranking. Otherwise what formats write after a reply (a line end, the opening
    of the next turn) would be the last token, and part of the mean."""
    last = max(place for place, trained in enumerate(row.trained) if trained)
    first = last
    while first > 0 and row.trained[first - 1]:
        first -= 1
    ends = [place for place in range(first, last + 1) if row.ids[place] == end]
    return row.ids[: 1 + (ends[-1] if ends else last)]


if __name__ == "__main__":
    module = "agentc_backends.trainers.trl.job_critic"
    raise SystemExit(run_trainer("trl.critic", train, module=module))
