"""Job of trl.critic: a model that scores whole trajectories, and may know what no agent sees.

Hidden texts go into token rows, which live in memory alone: nothing of them is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentc.program.job import Job, write_json
from agentc_backends.data.chat.hidden_texts import HiddenTexts
from agentc_backends.data.chat.privileged import FIRST_MESSAGE
from agentc_backends.data.chat.rows import MaskRules, NoRowsError, Side, encode_pairs, joined
from agentc_backends.data.chat.tokens import Encoder, load_encoder
from agentc_backends.data.chat.turn_weights import Normalisation, score_weights
from agentc_backends.trainers.common.processes import first_process
from agentc_backends.trainers.common.program import run_trainer
from agentc_backends.trainers.common.rows import Row, pairs_to_compare
from agentc_backends.trainers.common.scoring import COUNT, ScoringSample, sample_of
from agentc_backends.trainers.trl.job_dpo import pair_columns
from agentc_backends.trainers.trl.likelihood import NllRules
from agentc_backends.trainers.trl.session import train_with
from agentc_backends.trainers.trl.sharding import ModelLayout, load_laid_out

CRITIC_FILE = "agentc_critic.json"
Pairs = list[tuple[Side, Side]]


def train(job: Job) -> None:
    """Train the critic of the job on its pairs and write its checkpoint. Raises RowsError,
    FormatError, TrainingDivergedError."""
    made = job.config["critic"]
    rows = pairs_to_compare(job)
    told = with_hidden_texts(job, rows, made["template"], made.get("template_at", FIRST_MESSAGE))
    if made["parameterisation"] == "value_head":
        from agentc_backends.trainers.trl.value_training import train_value_head

        train_value_head(job, told, made)
    else:
        _train_log_ratio(job, rows, told, made)
    if first_process():
        write_json(job.out / CRITIC_FILE, {**made, "reference": reference_of(job)})


def with_hidden_texts(
    job: Job, rows: Sequence[Row], template: str | None, template_at: str = FIRST_MESSAGE
) -> list[Row]:
    """The pairs as the critic reads them: with the hidden text of their task, where the job has
    some. Raises RowsError, too where an opening shows that the agent was told one."""
    folders = job.inputs("privileged")
    if not folders or template is None:
        return list(rows)
    hidden = HiddenTexts(folders, template)
    told: list[Row] = []
    for row in rows:
        begun = len(row["prompt"]) - 2 * row.get("shared_turns", 0)
        hidden.require_unseen(row["task_id"], row["prompt"][:begun])
        messages, opening = hidden.placed(template_at, row["task_id"], row["prompt"])
        told.append({**row, "prompt": messages, **({"opening": opening} if opening else {})})
    return told


def reference_of(job: Job) -> str:
    """`<kind>/<key>` of the model that log-ratios are against."""
    given = [*job.inputs("reference"), *job.inputs("model")]
    return "/".join(given[0].parts[-3:-1])


def _train_log_ratio(job: Job, rows: list[Row], told: list[Row], made: dict[str, Any]) -> None:
    from datasets import Dataset
    from trl import DPOConfig

    from agentc_backends.trainers.trl.critic_trainers import CriticCollator, CriticTrainer

    base = job.input("model")
    encoder, rules = load_encoder(base), MaskRules(**job.config["mask"])
    nll_weight: float = job.config["nll_weight"]
    nll = NllRules(reduction=job.config.get("nll_reduction", "token"))
    normalisation: Normalisation = made["normalisation"]
    pairs, counts = encode_pairs(encoder, told, rules, turns=True)
    seen = pairs
    if made["reference_sees"] == "history" and told != rows:
        seen = as_seen_without(encoder, rows, told, rules)

    def columns(empty: int) -> dict[str, list[Any]]:
        return weighted_columns(pairs, empty, encoder.pad, normalisation)

    def trainer(*, layout: ModelLayout, **arguments: Any) -> Any:
        references = [path for path in job.inputs("reference") if path != base]
        others = None
        if seen is not pairs:
            others = Dataset.from_dict(weighted_columns(seen, 0, encoder.pad, normalisation))
        return CriticTrainer(
            # Without one, TRL takes the starting policy (with adapters off).
            ref_model=load_laid_out(references[0], layout) if references else None,
            reference_cache=job.work / "reference_scores.json",
            reference_rows=others,
            nll_weight=nll_weight,
            nll=nll,
            data_collator=CriticCollator(encoder.pad),
            layout=layout,
            **arguments,
        )

    sizes = [(len(chosen.ids), len(rejected.ids)) for chosen, rejected in pairs]
    longer, both = [max(size) for size in sizes], [sum(size) for size in sizes]
    sample = _sample(encoder, rows, rules)
    train_with(job, encoder, counts, DPOConfig, trainer, columns, longer, both, sample)


def weighted_columns(
    pairs: Pairs, empty: int, pad: int, normalisation: Normalisation
) -> dict[str, list[Any]]:
    """Columns of a data set for CriticTrainer, with `empty` pairs that count nothing at the end."""
    columns = pair_columns(pairs, empty, pad)
    for place, name in enumerate(("chosen", "rejected")):
        weights = [score_weights(pair[place], normalisation) for pair in pairs]
        columns[f"{name}_weights"] = weights + [[0.0]] * empty
    return columns


def as_seen_without(
    encoder: Encoder, rows: Sequence[Row], told: Sequence[Row], rules: MaskRules
) -> Pairs:
    """The pairs that are kept, as a reference reads them that is not told hidden texts. The same
    tokens count: what was cut off is cut off here."""
    whole = MaskRules(loss_on=rules.loss_on, max_length=1 << 30, truncation="error")
    # How many may be dropped is a share of all, which has been checked.
    one_by_one = replace(rules, max_dropped=1.0)
    found: Pairs = []
    for row, other in zip(rows, told, strict=True):
        try:
            [kept], _ = encode_pairs(encoder, [other], one_by_one)
        except NoRowsError:
            continue  # dropped
        [plain], _ = encode_pairs(encoder, [row], whole, turns=True)
        found.append((_cut_alike(plain[0], kept[0]), _cut_alike(plain[1], kept[1])))
    return found


def _cut_alike(side: Side, other: Side) -> Side:
    """A side with as many trained tokens as another one of the same turns, row by row."""
    return joined(
        [
            _cut_row(row, sum(like.trained))
            for row, like in zip(side.rows(), other.rows(), strict=True)
        ]
    )


def _cut_row(row: Side, trained: int) -> Side:
    places = [place for place, each in enumerate(row.trained) if each]
    end = places[trained] if trained < len(places) else len(row.ids)
    return Side(row.ids[:end], row.trained[:end], row.turns[:end])


def _sample(encoder: Encoder, rows: Sequence[Row], rules: MaskRules) -> ScoringSample:
    """Rows for a server to be compared by, without hidden texts: they stay in the artifact."""
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


if __name__ == "__main__":
    module = "agentc_backends.trainers.trl.job_critic"
    raise SystemExit(run_trainer("trl.critic", train, module=module))
