"""The plan as text for people: counts first, then what runs and why, by round."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentc.plan.diff import change_texts
from agentc.plan.fold import Group, fold_groups, fold_idle, folded_title, groups_of
from agentc.plan.review import (
    STATE_WORDS,
    Item,
    Review,
    because,
    novelty_words,
    state_words,
)
from agentc.plan.seeds import seed_notes
from agentc.runtime.servers.job_leases import job_device_takers
from agentc.text import aligned, counted, some, wrapped, wrapped_lines

_MOST_ROWS = 100
_MOST_CHANGES = 5
_COLUMNS = 6
_BACKEND, _KEY, _STATE, _COST, _NOTES = 1, 2, 3, 4, 5
_LEFT_OUT = (_KEY, _BACKEND)
"""Columns that a narrow terminal does not show, in this order."""
_BELOW = (_NOTES, _STATE, _COST)
"""Columns that move below their rows where it is still too narrow, in this order."""
_NARROWER = (
    *(_LEFT_OUT[:count] for count in range(len(_LEFT_OUT) + 1)),
    *((*_LEFT_OUT, *_BELOW[: count + 1]) for count in range(len(_BELOW))),
)
_PAINT = {
    "+ ": "\x1b[32m",
    "~ ": "\x1b[33m",
    "> ": "\x1b[36m",
    "- ": "\x1b[31m",
    "= ": "\x1b[2m",
    "· ": "\x1b[2m",
}


def plan_text(
    review: Review,
    *,
    every: bool = False,
    full: bool = False,
    since: str = "the last run",
    costs: Mapping[str, str] | None = None,
    width: int | None = None,
) -> str:
    """The whole text, in the `width` of a terminal. `every` lists each job, `full` its settings
    too; `costs` are texts by job id for a column of their own."""
    groups = groups_of(review)
    lines = [headline(review)]
    lines += _since(review, since) if review.compared else []
    lines += [*_servers(review), ""]
    listing = _Listing(review, costs or {}, full)
    if every or full:
        for group in groups:
            listing.add(group, group.items)
    elif all(item.mark in "=·" and not item.is_root for item in review.items):
        listing.add(Group(cell="", round="", items=review.items), fold_idle(review.items))
    else:
        for group in fold_groups(groups):
            listing.add(group, fold_idle(group.items))
    lines += listing.lines(None if every or full else _MOST_ROWS, width)
    if review.gone:
        lines.append(f"no longer part of it: {some(review.gone)}")
    lines += seed_notes(review.work.document["jobs"])
    return "\n".join(wrapped_lines(lines, width)) + "\n"


def coloured(text: str) -> str:
    """The text for a terminal: lines of jobs that run in colour, of others dimmed."""
    return "".join(map(_painted, text.splitlines(keepends=True)))


def _painted(line: str) -> str:
    paint = _PAINT.get(line.lstrip(" ")[:2])
    return line if paint is None else f"{paint}{line.rstrip()}\x1b[0m\n"


def headline(review: Review) -> str:
    """`quickstart: 18 stages, 22 jobs: 12 to run, 10 in the store`."""
    work = review.work
    counts = [
        f"{work.count(state)} {words}" for state, words in STATE_WORDS.items() if work.count(state)
    ]
    if not work.count("run"):
        counts.insert(0, "nothing to run")
    shared = f", {len(work.twins)} of them the same work as others" if work.twins else ""
    stages = len({item.job["stage"] for item in review.items})
    jobs = len(review.items)
    return (
        f"{review.name}: {counted(stages, 'stage')}, {counted(jobs, 'job')}{shared}: "
        f"{', '.join(counts)}"
    )


def _since(review: Review, since: str) -> list[str]:
    novelties = Counter(
        "follow" if item.follows and not item.is_root else item.diff.novelty
        for item in review.items
        if item.diff is not None
    )
    follow = "follows" if novelties["follow"] == 1 else "follow"
    parts = [
        f"{novelties['changed']} changed" if novelties["changed"] else "",
        f"{novelties['follow']} {follow} from that" if novelties["follow"] else "",
        f"{novelties['new']} new" if novelties["new"] else "",
        f"{len(review.gone)} gone" if review.gone else "",
    ]
    lines = [f"since {since}: {', '.join(part for part in parts if part) or 'nothing changed'}"]
    params = [change.text() for change in review.params]
    return [*lines, *([f"params: {', '.join(params)}"] if params else [])]


def _servers(review: Review) -> list[str]:
    work = review.work
    lines = []
    if work.server_starts:
        spared = (
            f"; {counted(work.saved_starts, 'more start')} saved by sharing"
            if work.saved_starts
            else ""
        )
        lines = [f"model servers: {counted(work.server_starts, 'start')}{spared}"]
    missing = {str(job["id"]) for job in work.missing}
    for server in work.document.get("servers") or []:
        clients = [name for name in server["clients"] if name in missing]
        if clients:
            lines.append(f"  {_shared(server, clients)}")
            if server["lease"].get("ranks"):
                lines += [f"    {line}" for line in rank_lines(server["lease"])]
    return [*lines, *_spread_within_jobs(work.missing), *_copied_within_jobs(work.missing)]


def _spread_within_jobs(missing: Iterable[Mapping[str, Any]]) -> list[str]:
    """Servers of jobs that have several nodes; those that run alike are said once."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for job in missing:
        for lease in job["leases"]:
            if lease.get("ranks") and not lease.get("server"):
                lines = [f"    {line}" for line in rank_lines(lease)]
                title = f"server within its job ({lease['backend']}): {spread(lease['ranks'])}"
                found.setdefault("\n".join([title, *lines]), ([], [title, *lines]))[0].append(
                    str(job["id"])
                )
    return [
        line
        for names, (title, *lines) in found.values()
        for line in (f"  {title}; for {some(names, 5)}", *lines)
    ]


def _copied_within_jobs(missing: Iterable[Mapping[str, Any]]) -> list[str]:
    """Servers of jobs that start several, each on GPUs of its own."""
    found: dict[str, list[str]] = {}
    for job in missing:
        own = job_device_takers(job)
        said = sum(each.devices * each.number_of_copies(0) for each in own.values())
        for each in own.values():
            gpus = int(job["resources"]["gpus"])
            others = said - each.devices * each.number_of_copies(0)
            copies = each.number_of_copies(gpus, others)
            if copies > 1:
                on = f" on {counted(each.devices, 'gpu')} each" if each.devices else ""
                title = f"server within its job ({each.backend}): {copies} copies{on}"
                found.setdefault(title, []).append(str(job["id"]))
    return [f"  {title}; for {some(names, 5)}" for title, names in found.items()]


def _shared(server: Mapping[str, Any], clients: list[str]) -> str:
    """`server/local.sft (serve.transformers): shared, a job of its own, 2 replicas, 2 cpus each,
    for eto.1.explore, evaluate; on a cluster it listens on its node's address, with a token`."""
    asked = server["resources"]
    parts = ["one of each node, for jobs there; listens on loopback"]
    if server["scope"] == "shared":
        copies = server["replicas"]
        parts = ["a job of its own" if copies == 1 else f"{copies} replicas, each a job of its own"]
        ranks = server["lease"].get("ranks")
        parts += [spread(ranks)] if ranks else []
        parts += [counted(asked["cpus"], "cpu") + (" on each" if ranks else "")]
        parts += [counted(asked["gpus"], "gpu")] if asked["gpus"] else []
        parts += ["on a cluster it listens on its node's address, with a token"]
    named = some(clients, 5)
    return f"{server['id']} ({server['lease']['backend']}): {', '.join(parts)}; for {named}"


class _Listing:
    """Rows of jobs in aligned columns, with lines of text between them."""

    def __init__(self, review: Review, costs: Mapping[str, str], full: bool) -> None:
        self._costs = costs
        self._full = full
        self._review = review
        self._explained = 0
        self._entries: list[tuple[str, ...] | str] = []

    def add(self, group: Group, parts: Iterable[Item | tuple[Item, ...]]) -> None:
        """A group: its title, when it is not that of the group before, and its rows."""
        if group.is_folded:
            self._entries.append(f"  {_repetition(group)}")
            return
        listed = list(parts)
        if group.title and len(listed) == 1 and isinstance(listed[0], tuple):
            self._entries.append(f"  {_idle(listed[0], group.title)}")
            return
        if group.title:
            self._entries.append(f"  {group.title}")
        indent = "    " if group.title else "  "
        for part in listed:
            if isinstance(part, tuple):
                names = some([item.id for item in part], 5)
                self._entries.append(f"{indent}{_idle(part, names)}")
            else:
                self._entries.append(self._row(part, indent))
                self._entries += [f"{indent}    {line}" for line in self._under(part)]

    def lines(self, most: int | None, width: int | None) -> list[str]:
        """The text, its columns aligned; of more than `most` rows the rest is counted."""
        entries = self._entries if most is None else self._entries[:most]
        rows = [entry for entry in entries if isinstance(entry, tuple)]
        left_out = _left_out(rows, width)
        table = iter(_table(rows, left_out))
        lines = []
        for entry in entries:
            if isinstance(entry, str):
                lines.append(entry)
                continue
            lines.append(next(table))
            below = [entry[n] for n in (_STATE, _COST, _NOTES) if n in left_out]
            # The mark of a row says the state in short.
            shown = [text for text in below if text and text not in STATE_WORDS.values()]
            if shown:
                depth = len(entry[0]) - len(entry[0].lstrip()) + 4
                lines += wrapped(", ".join(shown), width, " " * depth)
        if len(entries) < len(self._entries):
            left = len(self._entries) - len(entries)
            lines.append(f"  and {left} more lines; --all shows them")
        return lines

    def _row(self, item: Item, indent: str) -> tuple[str, ...]:
        notes = [novelty_words(item), "" if item.is_root else because(item)]
        notes += [f"on {item.session}" if item.session else ""]
        return (
            f"{indent}{item.mark} {item.id}",
            str(item.job["backend"]),
            str(item.job["key"])[:8],
            state_words(item),
            "" if item.twin is not None else self._costs.get(item.id, ""),
            ", ".join(note for note in notes if note),
        )

    def _under(self, item: Item) -> Iterator[str]:
        if item.diff is not None and item.diff.changes:
            *others, last = change_texts(item.diff.changes, _MOST_CHANGES)
            yield from others
            self._explained += 1
            # A look at all jobs each time; nobody reads it a hundred times.
            count = self._review.followers(item.id) if self._explained <= _MOST_ROWS else 0
            yield last + (f"   ({counted(count, 'other job')} because of it)" if count else "")
        if self._full:
            yield from _details(item.job)


def _left_out(rows: Sequence[tuple[str, ...]], width: int | None) -> tuple[int, ...]:
    for columns in _NARROWER:
        if width is None or max(map(len, _table(rows, columns)), default=0) <= width:
            return columns
    return _NARROWER[-1]


def _table(rows: Sequence[tuple[str, ...]], left_out: tuple[int, ...]) -> list[str]:
    kept = [n for n in range(_COLUMNS) if n not in left_out]
    return aligned([[row[n] for n in kept] for row in rows])


def _repetition(group: Group) -> str:
    states = Counter(
        "the same work as others" if item.twin is not None else STATE_WORDS[item.state]
        for item in group.items
    )
    counts = ", ".join(f"{count} {words}" for words, count in states.items())
    several = len(group.titles)
    again = "the same" if several == 1 else f"the same {several} times"
    return f"{folded_title(group)}: {again}, {counts}"


def _idle(items: tuple[Item, ...], names: str) -> str:
    words = "in the store" if items[0].mark == "=" else "not needed"
    if items[0].diff is not None and items[0].diff.was is not None:
        words += " under earlier names"
    return f"{items[0].mark} {len(items)} {words}: {names}"


def _details(job: Mapping[str, Any]) -> Iterator[str]:
    yield f"{job['kind']} of {job['stage']}, version {job['version']}, in {job['software']}"
    for role, names in job["inputs"].items():
        yield f"{role}: {', '.join(names)}"
    settings = job["identity"].get("settings")
    if settings:
        yield "set: " + ", ".join(f"{path}={json.dumps(v)}" for path, v in settings.items())
    for lease in job["leases"]:
        where = " in the job's process" if lease["port"] == "inside" else " server"
        shared = f", {lease['server']}" if lease.get("server") else ""
        yield f"{lease['role']}{where}: {lease['backend']}{shared}"
    asked = job["resources"]
    yield f"requests {asked['cpus']} cpus" + (f", {asked['gpus']} gpus" if asked["gpus"] else "")
    yield f"key {job['key']}"


# What the plan says of servers that spread over nodes: how, and the command of each rank.
#
# Addresses and ports are known when the job runs; until then they are words in braces.


def spread(ranks: Mapping[str, Any]) -> str:
    """`2 nodes (tensor_parallel 4 x pipeline_parallel 2)`."""
    sizes = " x ".join(f"{name} {size}" for name, size in ranks["sizes"].items())
    return f"{ranks['nodes']} nodes ({sizes})"


def rank_commands(lease: Mapping[str, Any]) -> list[str]:
    """The command line of each rank, the first one's first; none for a server of one node."""
    ranks = lease.get("ranks")
    if not ranks:
        return []
    program = ["python", *lease["program"]]
    return [_command([*program, *_added(ranks, rank)]) for rank in range(ranks["nodes"])]


def rank_lines(lease: Mapping[str, Any]) -> Iterator[str]:
    """The same for people, who need not read the program once for each rank."""
    ranks = lease["ranks"]
    for rank in range(ranks["nodes"]):
        program = "the program" if rank else _command(["python", *lease["program"]])
        where = "another node" if rank else "the first node, listens"
        yield f"rank {rank} ({where}): {program} {_command(_added(ranks, rank))}"


def _added(ranks: Mapping[str, Any], rank: int) -> list[str]:
    known = {"{nodes}": str(ranks["nodes"]), "{rank}": str(rank)}
    return [known.get(word, word) for word in [*ranks["each"], *(ranks["others"] if rank else [])]]


def _command(words: list[str]) -> str:
    """As people would type it: placeholders stay bare."""
    return " ".join(word if word.startswith("{") else shlex.quote(word) for word in words)
