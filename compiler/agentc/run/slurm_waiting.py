"""Jobs that wait in SLURM's queue: reasons that no waiting ends and what to change, and what a run
prints about all of them, and how rarely. slurm_watch.py asks SLURM."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from agentc.plan.work import Work
from agentc.program.job import read_json
from agentc.run.slurm_endings import Ending, ids_of
from agentc.run.slurm_queue import QueueState
from agentc.run.slurm_records import SUSPENDED, Waiting, WaitingRecord
from agentc.runtime.servers.shared_server_files import ServerFolder
from agentc.text import and_more, counted, duration

_NEVER = (
    (
        r"PartitionTimeLimit",
        "its partition ends jobs sooner than it requests; lower `placement: {minutes: ...}` of the"
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
        " ask those who run the cluster",
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
        "no node has all that it requests; change `constraint`, GPUs or memory in its `placement:`"
        " or in the profile",
    ),
    (r"DependencyNeverSatisfied", "a job that it depends on has failed"),
    (r"ReservationDeleted", "its reservation is gone; remove it from the profile"),
    (
        r"\w*(?:PerJob|PerNode)(?:Limit)?|\w*MinCpuNotSatisfied|QOSMin\w+|MaxMemPerLimit|"
        r"(?:Association|QOS)TimeLimit|\w*MaxWall\w*",
        "it requests more, or less, than its account or qos allows one job; change its"
        " `placement:`, or the profile",
    ),
)
_HINTS = (
    (
        r"ReqNodeNotAvail|Nodes required for job are DOWN",
        "nodes that it needs are drained, down or reserved; `sinfo -R` shows why",
    ),
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
    distinct = sorted(
        dict.fromkeys(numbers),
        key=lambda number_text: [int(part) for part in number_text.split("_")],
    )
    spans: list[list[str]] = []
    for number in distinct:
        last = spans[-1][-1] if spans else ""
        if number.isdecimal() and last.isdecimal() and int(number) == int(last) + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    texts = [f"{span[0]}-{span[-1]}" if len(span) > 1 else span[0] for span in spans]
    shown = ", ".join(texts[:8]) + (f" and {len(texts) - 8} more" if len(texts) > 8 else "")
    return f"{'job' if len(distinct) == 1 else 'jobs'} {shown}"


def _find(table: Iterable[tuple[str, str]], reason: str) -> str:
    word = reason.partition(",")[0].strip("() ")
    return next((words for pattern, words in table if re.fullmatch(pattern, word)), "")


_REPORT_AFTER_S = (60.0, 600.0, 3600.0, 6 * 3600.0)
"""How long jobs have waited when a line says so; the last pause repeats."""
_NAMES = 3

Explain = Callable[[str], Sequence[str]]


class WaitingNews:
    """Of one Snakemake. `explain` knows by the unit of a job (`sft/<key>`) what preflight finds
    about it now; it is called beside the run, once for each reason and rule."""

    def __init__(
        self,
        work: Work,
        record: WaitingRecord | None,
        explain: Explain,
        clock: Callable[[], float],
    ) -> None:
        self._work, self._record, self._explain, self._clock = work, record, explain, clock
        self._since: dict[str, tuple[float, float]] = {}
        self._never: dict[tuple[str, str], str] = {}
        self._said: set[tuple[str, str]] = set()
        self._lines = 0
        self._servers = {
            str(server["id"]): server
            for server in work.document.get("servers") or ()
            if server["scope"] == "shared"
        }

    def servers(self) -> dict[str, str]:
        """Units of shared servers' jobs in the queue, by number."""
        servers = {}
        for server in self._servers.values():
            for copy in ServerFolder(self._work.layout, server).copies():
                number = read_json(copy.launched_file).get("slurm")
                if number is not None:
                    servers[str(number)] = f"server/{server['key']}"
        return servers

    def prepare(self, units: Mapping[str, str], states: Mapping[str, QueueState]) -> None:
        """Find words for reasons that no waiting ends; it may take seconds."""
        for number, state in states.items():
            unit = units.get(number)
            if unit is None or state.state != "PENDING" or not why_never(state.reason):
                continue
            about = (unit.partition("/")[0], state.reason)
            if about not in self._never:
                self._never[about] = "; ".join(self._explain(unit)) or why_never(state.reason)

    def update(self, units: Mapping[str, str], states: Mapping[str, QueueState]) -> list[str]:
        """News of the jobs that wait; the record has all of them."""
        now = self._clock()
        waiting: dict[str, Waiting] = {}
        names: dict[str, list[str]] = {}
        for number, unit in units.items():
            state = states.get(number, QueueState(""))
            if state.state not in ("PENDING", SUSPENDED):
                self._since.pop(number, None)
                continue
            since = self._since.setdefault(number, (now, time.time()))
            remedy = self._never.get((unit.partition("/")[0], state.reason), "")
            if state.held:
                remedy = f"`scontrol release {number}` lets it start"
            entry = Waiting(
                number=number,
                state=state.state,
                reason=state.reason,
                since=since[1],
                remedy=remedy or hint(state.reason),
                server=self._server_of(unit),
            )
            names[number] = self._names_of(unit)
            for name in self._jobs_of(unit):
                waiting.setdefault(name, entry)
        if self._record is not None:
            self._record.write(waiting)
        pending = {n: states[n] for n in names if states[n].state == "PENDING"}
        return [
            *self._suspended(names, states),
            *self._never_lines(units, names, pending),
            *self._waiting_lines(pending, now),
        ]

    def _suspended(
        self, names_of: Mapping[str, list[str]], states: Mapping[str, QueueState]
    ) -> list[str]:
        now = {number for number in names_of if states[number].state == SUSPENDED}
        self._said = {news for news in self._said if news[1] != SUSPENDED or news[0] in now}
        lines = []
        for number, names in names_of.items():
            about = (number, SUSPENDED)
            if number in now and about not in self._said:
                self._said.add(about)
                lines.append(
                    f"SLURM has suspended job {number} ({_listed(names)}): `scontrol resume "
                    f"{number}` resumes it, `scancel {number}` ends it"
                )
        return lines

    def _never_lines(
        self,
        units: Mapping[str, str],
        found: Mapping[str, list[str]],
        pending: Mapping[str, QueueState],
    ) -> list[str]:
        groups: dict[tuple[str, str], list[str]] = {}
        for number, state in pending.items():
            about = (units[number].partition("/")[0], state.reason)
            if about in self._never and about not in self._said:
                groups.setdefault(about, []).append(number)
        self._said |= set(groups)
        return [
            f"SLURM does not start {numbers_text(numbers)} "
            f"({_listed(name for one in numbers for name in found[one])}): {reason}; "
            f"{self._never[rule, reason]}"
            for (rule, reason), numbers in groups.items()
        ]

    def _waiting_lines(self, pending: Mapping[str, QueueState], now: float) -> list[str]:
        """A line after a minute, then seldom; again after a minute where none waited meanwhile."""
        reported = {reason for _, reason in self._never}
        held = {
            n: state for n, state in pending.items() if not (state.held or state.reason in reported)
        }
        if not held:
            self._lines = 0
            return []
        longest = now - min(self._since[number][0] for number in held)
        last = len(_REPORT_AFTER_S) - 1
        due = (
            _REPORT_AFTER_S[min(self._lines, last)]
            + max(0, self._lines - last) * _REPORT_AFTER_S[-1]
        )
        if longest < due:
            return []
        self._lines += 1
        reasons: dict[str, list[str]] = {}
        for number, state in held.items():
            reasons.setdefault(state.reason or "no reason given", []).append(number)
        whole = f"{counted(len(held), 'job')} in SLURM's queue for up to {duration(longest)}: "
        parts = [
            f"{numbers_text(numbers)} ({reason}{_note(hint(reason))})"
            for reason, numbers in reasons.items()
        ]
        return [whole + ", ".join(parts)]

    def _server_of(self, unit: str) -> str:
        kind, _, key = unit.partition("/")
        if kind != "server":
            return ""
        return next((name for name, server in self._servers.items() if server["key"] == key), unit)

    def _names_of(self, unit: str) -> list[str]:
        return [self._server_of(unit)] if unit.startswith("server/") else self._jobs_of(unit)

    def _jobs_of(self, unit: str) -> list[str]:
        server = self._server_of(unit)
        if server:
            clients = self._servers[server].get("clients") or () if server in self._servers else ()
            return [server, *map(str, clients)]
        return ids_of(Ending("", unit, ""), self._work)


def _note(words: str) -> str:
    return f": {words}" if words else ""


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return and_more(distinct[:_NAMES], len(distinct) - _NAMES)
