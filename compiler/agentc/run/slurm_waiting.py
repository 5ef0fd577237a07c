"""Jobs that wait in SLURM's queue: what a run says of them, and how rarely. Neighbours:
slurm_watch.py (asks SLURM), waiting_record.py (what other commands read)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from agentc.plan.work import Work
from agentc.program.job import read_json
from agentc.run.slurm_endings import Ending, ids_of
from agentc.run.slurm_queue import QueueState
from agentc.run.slurm_reasons import hint, numbers_text, why_never
from agentc.run.waiting_record import SUSPENDED, Waiting, WaitingRecord
from agentc.runtime.servers.shared_server_files import ServerFolder
from agentc.text import and_more, counted, duration

_SAID_AFTER_S = (60.0, 600.0, 3600.0, 6 * 3600.0)
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
        found = {}
        for server in self._servers.values():
            for copy in ServerFolder(self._work.layout, server).copies():
                number = read_json(copy.launched_file).get("slurm")
                if number is not None:
                    found[str(number)] = f"server/{server['key']}"
        return found

    def prepare(self, units: Mapping[str, str], states: Mapping[str, QueueState]) -> None:
        """Find words for reasons that no waiting ends; it may take seconds."""
        for number, state in states.items():
            unit = units.get(number)
            if unit is None or state.state != "PENDING" or not why_never(state.reason):
                continue
            about = (unit.partition("/")[0], state.reason)
            if about not in self._never:
                self._never[about] = "; ".join(self._explain(unit)) or why_never(state.reason)

    def look(self, units: Mapping[str, str], states: Mapping[str, QueueState]) -> list[str]:
        """News of the jobs that wait; the record has all of them."""
        now = self._clock()
        waiting: dict[str, Waiting] = {}
        found: dict[str, list[str]] = {}
        for number, unit in units.items():
            state = states.get(number, QueueState(""))
            if state.state not in ("PENDING", SUSPENDED):
                self._since.pop(number, None)
                continue
            since = self._since.setdefault(number, (now, time.time()))
            remedy = self._never.get((unit.partition("/")[0], state.reason), "")
            if state.held:
                remedy = f"`scontrol release {number}` lets it start"
            one = Waiting(
                number=number,
                state=state.state,
                reason=state.reason,
                since=since[1],
                remedy=remedy or hint(state.reason),
                server=self._server_of(unit),
            )
            found[number] = self._names_of(unit)
            for name in self._jobs_of(unit):
                waiting.setdefault(name, one)
        if self._record is not None:
            self._record.write(waiting)
        pending = {n: states[n] for n in found if states[n].state == "PENDING"}
        return [
            *self._suspended(found, states),
            *self._never_lines(units, found, pending),
            *self._waiting_lines(pending, now),
        ]

    def _suspended(
        self, found: Mapping[str, list[str]], states: Mapping[str, QueueState]
    ) -> list[str]:
        now = {number for number in found if states[number].state == SUSPENDED}
        self._said = {each for each in self._said if each[1] != SUSPENDED or each[0] in now}
        lines = []
        for number, names in found.items():
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
        said = {reason for _, reason in self._never}
        held = {
            n: state for n, state in pending.items() if not (state.held or state.reason in said)
        }
        if not held:
            self._lines = 0
            return []
        longest = now - min(self._since[number][0] for number in held)
        last = len(_SAID_AFTER_S) - 1
        due = _SAID_AFTER_S[min(self._lines, last)] + max(0, self._lines - last) * _SAID_AFTER_S[-1]
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
        return next((name for name, one in self._servers.items() if one["key"] == key), unit)

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
    known = list(dict.fromkeys(names))
    return and_more(known[:_NAMES], len(known) - _NAMES)
