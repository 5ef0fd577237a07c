"""SLURM's reasons why a job waits: those that no waiting ends, and what to change; and numbers of
jobs in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NEVER = (
    (
        r"PartitionTimeLimit",
        "its partition ends jobs sooner than it asks for; lower `placement: {minutes: ...}` of the"
        " stage, or `runtime` in the profile, or name another partition",
    ),
    (
        r"PartitionNodeLimit",
        "its partition does not give a job as many nodes; lower `placement: {nodes: ...}` of the"
        " stage, or name another partition",
    ),
    (
        r"PartitionDown|PartitionInactive",
        "its partition takes no jobs now; name another one (`slurm_partition` in the profile), or"
        " ask whoever runs the cluster",
    ),
    (
        r"AccountNotAllowed|InvalidAccount|Job's account not permitted.*|"
        r"User's group not permitted.*",
        "its account may not use its partition; name another account (`slurm_account`) or another"
        " partition (`slurm_partition`) in the profile",
    ),
    (
        r"QOSNotAllowed|InvalidQOS|Job's QOS not permitted.*",
        "its partition or account does not allow its qos; name another one in the profile",
    ),
    (
        r"BadConstraints",
        "no node has all that it asks for; change `constraint`, GPUs or memory in its `placement:`"
        " or in the profile",
    ),
    (r"DependencyNeverSatisfied", "a job that it depends on has failed"),
    (r"ReservationDeleted", "its reservation is gone; remove it from the profile"),
    (
        r"\w*(?:PerJob|PerNode)(?:Limit)?|\w*MinCpuNotSatisfied|QOSMin\w+|MaxMemPerLimit|"
        r"(?:Association|QOS)TimeLimit|\w*MaxWall\w*",
        "it asks for more, or less, than its account or qos allows one job; change its"
        " `placement:`, or the profile",
    ),
)
_HINTS = (
    (r"ReqNodeNotAvail", "nodes that it needs are drained, down or reserved; `sinfo -R` shows why"),
    (r"(?:QOS|Assoc|Association)\w*Limit", "a limit of the account or qos, until other jobs end"),
)


def why_never(reason: str) -> str:
    """What to change where no waiting starts a job with this reason; "" where one does."""
    return _find(_NEVER, reason) if "PerUser" not in reason and "PerAccount" not in reason else ""


def hint(reason: str) -> str:
    """What a reason that passes means, where SLURM's word leaves it open."""
    return _find(_HINTS, reason)


def numbers_text(numbers: Iterable[str]) -> str:
    """`job 7`, `jobs 7-9, 12`; tasks of arrays as they are."""
    known = sorted(dict.fromkeys(numbers), key=lambda one: [int(part) for part in one.split("_")])
    spans: list[list[str]] = []
    for number in known:
        last = spans[-1][-1] if spans else ""
        if number.isdecimal() and last.isdecimal() and int(number) == int(last) + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    texts = [f"{span[0]}-{span[-1]}" if len(span) > 1 else span[0] for span in spans]
    shown = ", ".join(texts[:8]) + (f" and {len(texts) - 8} more" if len(texts) > 8 else "")
    return f"{'job' if len(known) == 1 else 'jobs'} {shown}"


def _find(table: Iterable[tuple[str, str]], reason: str) -> str:
    word = reason.partition(",")[0].strip("() ")
    return next((words for pattern, words in table if re.fullmatch(pattern, word)), "")
