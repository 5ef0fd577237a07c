"""Before the first episode: whether the server gives the log-probabilities that the trainer gave
the same tokens, and makes the same tokens of the same messages. Another arithmetic shows in the
third digit; other weights, another position code or a wrong checkpoint show in the first."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from agentc.program.job import Job, read_json
from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.clients.errors import ContextOverflowError, ServiceError
from agentc_backends.data.models.scored_rows import (
    Agreement,
    ScoredRow,
    ScoredRows,
    agreement_of,
    read_scored_rows,
)

LARGEST_MEAN = 0.02
"""Of float32 and float16 the difference is a few thousandths at most."""
_OF_A_DTYPE = {"bfloat16": 0.05}
"""bfloat16 has eight bits: means of 0.006 to 0.021 were measured between trainers and servers of
one checkpoint (SmolLM2-135M, vLLM and the embedded server, LoRA or not). Other weights and another
position code show in the first digit."""


def largest_mean(*dtypes: str | None) -> float:
    """The largest mean difference that rounding explains where numbers of these types are used: by
    the trainer, in the checkpoint's files, by the server where it says so."""
    return max(_OF_A_DTYPE.get(dtype or "", LARGEST_MEAN) for dtype in dtypes)


class _NotComparedError(Exception):
    """Nothing is compared; the message says why."""


async def compare_with_trainer(job: Job, policy: ChatPolicy) -> None:
    """Record the difference as the fact `log_prob_agreement`, and warn of one that rounding does
    not explain. Where nothing can be compared the fact says why, and nothing else happens."""
    try:
        scored = _scored_rows(job)
        found = await _compare(scored, policy)
    except _NotComparedError as reason:
        job.facts(log_prob_agreement={"not_compared": str(reason)})
        return
    numbers = {name: _recorded(value) for name, value in asdict(found).items()}
    same = await _same_prompts(scored, policy)
    others = same.count(False)
    prompts = {"prompts": len(same), "other_prompts": others}
    job.facts(log_prob_agreement={**numbers, "trainer_dtype": scored.dtype, **prompts})
    dtypes = (scored.dtype, _stored_dtype(job), _served_dtype(job))
    largest = largest_mean(*dtypes)
    if not found.mean <= largest:  # or where it is no number
        job.warn(_warning(found, scored.dtype, largest))
    if others:
        job.warn(
            f"the server makes other tokens of {others} of {len(same)} prompts than the policy's "
            "trainer did: its chat template or its tokenizer is another one, so that the policy "
            "is asked in words that it was not trained on"
        )


def _stored_dtype(job: Job) -> str | None:
    """The type of the checkpoint's weights, as its config.json says."""
    config = read_json(job.inputs("model")[0] / "config.json")
    found = config.get("dtype") or config.get("torch_dtype")
    return found if isinstance(found, str) else None


def _served_dtype(job: Job) -> str | None:
    """The type that the spec sets for the server; None where it is the server's default."""
    found = (job.leases["policy"].get("identity") or {}).get("dtype")
    return found if isinstance(found, str) else None


def _scored_rows(job: Job) -> ScoredRows:
    if "log" not in job.leases["policy"]:
        raise _NotComparedError("a remote endpoint serves what it serves")
    found = [read_scored_rows(path) for path in job.inputs("model")]
    if not found or found[0] is None:
        raise _NotComparedError("the checkpoint has no scored rows")
    return found[0]


async def _compare(scored: ScoredRows, policy: ChatPolicy) -> Agreement:
    rows: list[ScoredRow] = []
    served: list[Sequence[float | None]] = []
    # One after the other: servers keep the logits of a whole prompt for it.
    for number, row in enumerate(scored.rows):
        try:
            # Each copy of a server scores its share.
            scores = await policy.score(row.ids, affinity=str(number))
        except ContextOverflowError:
            continue  # the server's window is shorter than the trainer's
        except ServiceError as error:
            # What ails a server that is to play is told by the episodes.
            print(f"the server scores no given tokens: {error}", file=sys.stderr, flush=True)
            raise _NotComparedError("the server scores no given tokens") from error
        if len(scores) != len(row.ids):
            raise _NotComparedError(
                f"the server scored {len(scores)} tokens where it was given {len(row.ids)}"
            )
        rows.append(row)
        served.append(scores)
    found = agreement_of(rows, served)
    if found is None:
        raise _NotComparedError("no scored row fits into the server's context")
    return found


async def _same_prompts(scored: ScoredRows, policy: ChatPolicy) -> list[bool]:
    """Of each prompt that the server takes, whether it makes the same tokens of it."""
    same = []
    for prompt in scored.prompts:
        # One beyond its context is refused; what else ails it, the episodes tell.
        with suppress(ServiceError):
            same.append(await policy.tokenize(prompt.messages) == prompt.ids)
    return same


def _recorded(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def _warning(found: Agreement, dtype: str, largest: float) -> str:
    return (
        f"the server's log-probabilities of {found.tokens} tokens that the policy was trained on "
        f"differ by {found.mean:.3f} on average (at most {found.max:.3f}) from its trainer's, "
        f"which computed in {dtype}; rounding explains up to {largest}. What is sampled is "
        "not quite the policy that was trained. Likely causes: a quantization or another dtype "
        "(of the server's weights, of its keys and values, of `save_dtype`); another attention or "
        "position code (rope) of the server; a head that it ties to the embeddings, or not"
    )
