"""Job: values of candidates by a critic with a head.
`python -m agentc_backends.agents.rank.job_value_head JOB.json`.

No lease: the job loads the critic itself. Finished turns lie in `work/values.jsonl`. Of hidden
texts nothing is written.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.program.artifact_files import CANDIDATES_FILE
from agentc.program.job import Job
from agentc_backends.agents.common.critic_scores import CandidatePrompt, critic_prompts, read_critic
from agentc_backends.agents.common.failures import OutOfTimeError
from agentc_backends.agents.common.journal import Journal, stored_rows
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.runner import WorkProgress
from agentc_backends.agents.rank.turns import valued_turn, write_ranked_turns
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import configure_libraries, load_model
from agentc_backends.data.models.value_head import pool_states, read_head
from agentc_backends.job_device import job_device

if TYPE_CHECKING:
    import torch


Row = dict[str, Any]


async def rank(job: Job) -> None:
    """Have the head say what every candidate is worth and write turns.jsonl."""
    job.config.assert_all_read()
    device = job_device(job)
    turns = stored_rows(job.input("candidates") / CANDIDATES_FILE)
    critic = read_critic(job.input("critic"), head=True)
    shown = critic_prompts(critic, job.inputs("privileged"))
    configure_libraries()
    scorer = HeadScorer(job.input("critic"), critic.pooling or "mean", device)
    asked = [place for place, turn in enumerate(turns) if turn["end"] == "sampled"]
    with Journal(job.work / "values.jsonl", ("id",)) as journal:
        values = {row["id"]: row for row in _valued(job, journal, turns, asked, shown, scorer)}
    job.facts(
        rows=len(turns),
        scores=sum(len(row["values"]) for row in values.values()),
        scored_tokens=sum(row["tokens"] for row in values.values()),
        ends=dict(sorted(Counter(row["end"] for row in values.values()).items())),
    )
    unasked = {"end": "", "values": []}
    write_ranked_turns(
        job,
        (
            valued_turn(turn, values.get(turn["id"]) or {**unasked, "end": turn["end"]})
            for turn in turns
        ),
    )


def _valued(
    job: Job,
    journal: Journal,
    turns: Sequence[Row],
    asked: Sequence[int],
    shown: Callable[[Row], CandidatePrompt],
    scorer: HeadScorer,
) -> list[Row]:
    """The values of the turns at these places; what the journal holds is not computed again. Raises
    OutOfTimeError when a turn more may not end in time."""
    progress = WorkProgress(job=job, total=len(asked), noun="turns", speed="tokens_per_s", digits=1)
    left = job.time_left()
    deadline = None if left is None else time.monotonic() + left
    longest = 0.0
    rows: list[Row] = []
    for turn in (turns[place] for place in asked):
        row = journal.finished.get((turn["id"],))
        if row is None:
            began = time.monotonic()
            if deadline is not None and began + longest > deadline:
                raise OutOfTimeError(f"{len(rows)} of {len(asked)} turns are ranked")
            row = _of_turn(turn, shown(turn), scorer)
            journal.append(row)
            longest = max(longest, time.monotonic() - began)
            progress.add(None, row["tokens"])
        else:
            progress.resumed += 1
            progress.add(None)
        rows.append(row)
        progress.show()
    return rows


def _of_turn(turn: Row, prompt: CandidatePrompt, scorer: HeadScorer) -> Row:
    """The row of one turn; too long a one has no values."""
    before = scorer.encoder.encode_prompt(prompt.messages)
    replies = [candidate["tokens"] for candidate in turn["candidates"]]
    named = {"id": turn["id"], "task_id": turn["task_id"]}
    if scorer.window is not None and len(before) + max(map(len, replies)) > scorer.window:
        return {**named, "end": "overflow", "values": [], "tokens": 0}
    tokens = len(before) * len(replies) + sum(map(len, replies))
    values = scorer.values(before, replies)
    return {**named, "end": "scored", "values": values, "tokens": tokens}


class HeadScorer:
    """A critic's model and head in memory, on `device`."""

    def __init__(self, folder: Path, pooling: str, device: torch.device) -> None:
        self._model = load_model(folder).to(device).eval()
        self._head = read_head(folder).to(device)
        self._device = device
        self._pooling = pooling
        self.encoder = load_encoder(folder)
        longest = getattr(self._model.config, "max_position_embeddings", None)
        self.window: int | None = longest
        """The most tokens that a row may have; None where the model does not say."""

    def values(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> list[float]:
        """The value of each reply behind the prompt, all of them token ids."""
        import torch

        count, longest = len(replies), max(map(len, replies))
        pad = self.encoder.pad
        ids = torch.tensor([[*each, *[pad] * (longest - len(each))] for each in replies])
        real = torch.tensor([[1] * len(each) + [0] * (longest - len(each)) for each in replies])
        ids, real = ids.to(self._device), real.to(self._device)
        mask = torch.cat([real.new_ones(count, len(prompt)), real], dim=1)
        with torch.inference_mode():
            before = self._states(torch.tensor([list(prompt)], device=self._device))
            cache = before.past_key_values
            cache.batch_repeat_interleave(count)
            after = self._states(ids, attention_mask=mask, past_key_values=cache)
            told = before.hidden_states[-1].expand(count, -1, -1)
            states = torch.cat([told, after.hidden_states[-1]], dim=1)
            found: list[float] = self._head(pool_states(states, mask, self._pooling))[:, 0].tolist()
        return found

    def _states(self, ids: Any, **given: Any) -> Any:
        return self._model(
            input_ids=ids, use_cache=True, output_hidden_states=True, logits_to_keep=1, **given
        )


if __name__ == "__main__":
    sys.exit(run_job("rank", rank))
