"""Review: a plan joined with the store and with an earlier plan, job by job.

What `plan`, `why`, `run -n` and `graph` say about a job comes from here, in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentc.kinds.field import Json
from agentc.plan.diff import (
    Change,
    JobDiff,
    change_texts,
    changed_values,
    compare_plans,
    explain_root,
)
from agentc.plan.work import State, Work, object_of
from agentc.text import and_more

Mark: TypeAlias = Literal["+", "~", ">", "=", "·"]
"""+ new, ~ changed, > as in the last run but not made yet: these run. = in the store, or made by
another job of the plan. · neither there nor needed."""

_MOST_CAUSES = 20
"""In JSON: every job of a long chain may be a cause of all that follow, half the square of its
length."""

STATE_WORDS: dict[State, str] = {
    "run": "to run",
    "cached": "in the store",
    "unneeded": "not needed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One job: its entry in plan.json, how the store stands, and how it differs from the earlier
    plan (None when there is none). `twin` is the id of the job that does the same work, `session`
    that of the shared server it runs on."""

    job: Mapping[str, Any]
    state: State
    diff: JobDiff | None
    twin: str | None
    session: str | None

    @property
    def id(self) -> str:
        """The job's id."""
        return str(self.job["id"])

    @property
    def object(self) -> str:
        """The store's name of what it makes."""
        return object_of(self.job)

    @property
    def mark(self) -> Mark:
        """One character for lists."""
        if self.twin is not None or self.state == "cached":
            return "="
        if self.state == "unneeded":
            return "·"
        if self.diff is None or self.diff.novelty == "new":
            return "+"
        return "~" if self.diff.novelty == "changed" else ">"

    @property
    def is_root(self) -> bool:
        """Whether something of its own changed."""
        return self.diff is not None and bool(self.diff.changes)

    @property
    def follows(self) -> bool:
        """Whether changes of other jobs gave it another key."""
        diff = self.diff
        if diff is None or diff.novelty != "changed":
            return False
        return bool(diff.upstream)

    def causes(self, most: int) -> tuple[tuple[str, ...], int]:
        """The nearest of those other jobs, and how many there are besides."""
        diff = self.diff
        if diff is None or not self.follows:
            return (), 0
        nearest = diff.nearest_roots(most + 1)
        own = diff.id in nearest
        others = tuple(root for root in nearest if root != diff.id)[:most]
        return others, diff.root_count - own - len(others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Every job that is needed, in plan order. `compared` says whether there was an earlier plan;
    `params` are those whose values differ from it (see `given`)."""

    name: str
    work: Work
    items: tuple[Item, ...]
    diffs: Mapping[str, JobDiff]
    compared: bool
    params: tuple[Change, ...] = ()

    @property
    def gone(self) -> tuple[str, ...]:
        """Ids of jobs that only the earlier plan has."""
        return tuple(name for name, diff in self.diffs.items() if diff.novelty == "gone")

    @property
    def roots(self) -> tuple[Item, ...]:
        """Jobs with changes of their own."""
        return tuple(item for item in self.items if item.is_root)

    def followers(self, root: str) -> int:
        """How many other jobs have another key because of this one."""
        place = self.diffs[root].order.index(root)
        return sum(diff.causes >> place & 1 for diff in self.diffs.values()) - 1


def review_plan(work: Work, before: Mapping[str, Json] | None) -> Review:
    """Join a plan's work with the plan it is compared with."""
    document = work.document
    diffs = {} if before is None else compare_plans(before, document)
    items = tuple(
        Item(
            job=job,
            state=work.states[job["id"]],
            diff=diffs.get(job["id"]),
            twin=work.twins.get(job["id"]),
            session=work.sessions.get(job["id"]),
        )
        for job in document["jobs"]
        if job["id"] in work.states
    )
    name = str(document["name"])
    return Review(
        name=name,
        work=work,
        items=items,
        diffs=diffs,
        compared=before is not None,
        params=()
        if before is None
        else changed_values(command_line_values(before), command_line_values(document)),
    )


def command_line_values(document: Mapping[str, Any]) -> dict[str, Json]:
    """What the command line can change: params (of a swept one, its values) and the scale."""
    experiment = document["experiment"]
    return {
        **document["params"],
        **experiment.get("matrix", {}),
        "--scale": experiment.get("scale"),
    }


def state_words(item: Item) -> str:
    """`to run`, `in the store`, `not needed`, or `made as sft` for a twin."""
    if item.twin is not None:
        return f"same work as {item.twin}"
    return STATE_WORDS[item.state]


def novelty_words(item: Item) -> str:
    """What kind of thing happened to it since the earlier plan, in a few words; empty for a
    change (`change_lines` tell it), and when there is nothing to say."""
    diff = item.diff
    if diff is None:
        return ""
    if diff.was is not None:
        return f"was called {diff.was}"
    if diff.novelty == "new":
        return "new"
    unmade = diff.novelty == "same" and item.state == "run" and item.twin is None
    return "unchanged, not finished yet" if unmade else ""


def because(item: Item, most: int = 2) -> str:
    """`because of sft`: the other jobs that changed it; empty when there are none."""
    names, more = item.causes(most)
    return f"because of {and_more(names, more)}" if names else ""


def change_document(item: Item) -> dict[str, Json]:
    """What `plan` and `why` say of a job as JSON: how it stands, what changed and because of which
    jobs."""
    diff = item.diff
    return {
        "object": item.object,
        "state": item.state,
        "same_work_as": item.twin,
        "since_last_run": diff.novelty if diff else "new",
        "was": diff.was if diff else None,
        "changes": [
            {"path": change.path, "before": change.before, "after": change.after}
            for change in (diff.changes if diff else ())
        ],
        "because_of": list(diff.nearest_roots(_MOST_CAUSES) if diff else ()),
        "causes": diff.root_count if diff else 0,
    }


def change_lines(item: Item, diffs: Mapping[str, JobDiff]) -> list[str]:
    """What changed in a job and, for what it inherits, where that comes from and what it was."""
    if item.diff is None or item.diff.novelty != "changed":
        return []
    lines = change_texts(item.diff.changes)
    names, more = item.causes(3)
    if names:
        causes = "; ".join(explain_root(diffs, name) for name in names)
        lines.append(f"because of {causes}" + (f"; and {more} more" if more else ""))
    return lines
