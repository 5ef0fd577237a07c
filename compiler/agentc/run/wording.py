"""Numbers and states of a run in words, shared by the plain lines, the live view and `status`."""

from __future__ import annotations

import time

from agentc.run.observe import JobSnapshot
from agentc.run.waiting_record import SUSPENDED, Waiting
from agentc.runtime.machine.process import STOPPED
from agentc.text import duration

STATE_WORDS = {
    "waiting": "waiting",
    "queued": "queued",
    "environment": "building its software environment",
    "leases": "starting servers",
    "running": "running",
    "checking": "checking the result",
    "done": "done",
    "failed": "failed",
    "killed": "killed",
}

_MINUTE_S = 60.0
FULL_DISK = "(ENOSPC; "
"""What every message of a full disk has, and no other."""


def amount(seen: JobSnapshot) -> str:
    """`40/100 rows`, or "" when nothing is known."""
    if seen.done is None:
        return ""
    if seen.total is None:
        return f"{seen.done:g} {seen.unit}".rstrip()
    return f"{seen.done:g}/{seen.total:g} {seen.unit}".rstrip()


def speed(seen: JobSnapshot) -> str:
    """`2.1 rows/s`; what the program itself reports is preferred to what was observed."""
    own = seen.numbers.get(f"{seen.unit}_per_s")
    rate = own if own is not None else seen.rate
    if not rate:
        return ""
    if rate >= 0.1:
        return f"{rate:.{1 if rate < 100 else 0}f} {seen.unit}/s"
    return f"{60 * rate:.1f} {seen.unit}/min"


def numbers(seen: JobSnapshot) -> str:
    """Losses, rewards, tokens a second: `loss 0.412, 350 tokens/s`."""
    parts = []
    for name, value in sorted(seen.numbers.items()):
        if not isinstance(value, (int, float)) or name == f"{seen.unit}_per_s":
            continue
        if name.endswith("_per_s"):
            parts.append(f"{value:.4g} {name[: -len('_per_s')]}/s")
        else:
            parts.append(f"{name} {value:.4g}")
    return ", ".join(parts)


def remaining(seen: JobSnapshot) -> str:
    """`about 3 min 20 s left`."""
    return f"about {duration(seen.remaining)} left" if seen.remaining is not None else ""


def sentence(seen: JobSnapshot) -> str:
    """All of it on one line; `details` has the rest."""
    words = STATE_WORDS[seen.state]
    if seen.state == "done":
        took = f"done in {duration(seen.seconds)}" if seen.seconds is not None else "done"
        return f"{took} (earlier attempts: {seen.message})" if seen.message else took
    if seen.stopped and seen.ending is not None:
        return f"stopped: {seen.ending.sentence}"
    if seen.stopped:
        return f"stopped{seen.message.removeprefix(STOPPED)}; `agentc run` goes on"
    if seen.state in ("failed", "killed"):
        return f"{words}: {seen.message.splitlines()[0]}" if seen.message else words
    if seen.queue is not None and (seen.state in ("queued", "waiting") or _suspended(seen.queue)):
        return in_queue(seen.queue)
    if seen.state in ("environment", "leases") and seen.message:
        return f"{words} ({seen.message})"
    parts = [amount(seen), speed(seen), numbers(seen), remaining(seen)]
    return ", ".join([words, *(part for part in parts if part)])


def details(seen: JobSnapshot) -> list[str]:
    """What a line has no room for: the rest of a message, how SLURM ended the job, and what to
    change."""
    lines: list[str] = []
    if seen.state in ("failed", "killed"):
        lines += seen.message.splitlines()[1:]
        if seen.ending is not None:
            if seen.ending.sentence not in (sentence(seen), seen.message) and not seen.stopped:
                lines.append(seen.ending.sentence)
            lines += [seen.ending.cause, seen.ending.remedy]
    elif seen.queue is not None:
        lines.append(seen.queue.remedy)
    return [line for line in lines if line]


def in_queue(job: Waiting) -> str:
    """`queued for 3 min 20 s (SLURM job 49: Resources)`; in the first minute without a time."""
    seconds = time.time() - job.since
    since = f" for {duration(seconds)}" if seconds >= _MINUTE_S else ""
    if job.state == SUSPENDED:
        words = f"suspended by SLURM{since} (job {job.number})"
    else:
        words = f"queued{since} (SLURM job {job.number}: {job.reason or 'no reason given'})"
    return f"waiting for {job.server}: {words}" if job.server else words


def _suspended(job: Waiting) -> bool:
    return job.state == SUSPENDED and not job.server
