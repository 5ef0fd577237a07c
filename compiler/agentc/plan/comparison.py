"""Comparison: two plans side by side: what differs in their results and why, and what differs
without an effect on results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agentc.kinds.field import Json
from agentc.plan.diff import Change, JobDiff, change_texts, changed_values, compare_plans
from agentc.plan.review import command_line_values
from agentc.plan.stage_names import FEWEST_CELLS, cell_in, folded_names, of_all_cells
from agentc.text import and_more, counted, some

_K = TypeVar("_K", bound=Hashable)
_MOST_BLOCKS = 20
_ASKED = ("placement", "resources", "processes", "resume")
_PAGE = "Report"
_TOLD = ("description", "paper", "discrepancies")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`before` and `after` are what the plans are called. `jobs` by id, in the order of the second
    plan; `pages` are those that make a report, which shows results and is none. `without_effect`
    are differences that change no result: placement and resources of a job, texts about the
    experiment (job id "")."""

    before: str
    after: str
    jobs: Mapping[str, JobDiff]
    pages: frozenset[str]
    params: tuple[Change, ...]
    without_effect: tuple[tuple[str, Change], ...]

    @property
    def differing(self) -> tuple[JobDiff, ...]:
        """Jobs whose results are others, or that only one of the plans has."""
        return tuple(
            diff
            for diff in self.jobs.values()
            if diff.novelty != "same" and diff.id not in self.pages
        )

    @property
    def same(self) -> bool:
        """Whether both give the same results."""
        return not self.differing


def compare_documents(
    before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str]
) -> Comparison:
    """Compare two plan documents, called by these names."""
    jobs = compare_plans(before, after)
    old = {job["id"]: job for job in before["jobs"]}
    without: list[tuple[str, Change]] = []
    for name in ("name", *_TOLD):
        one, other = (({"name": d["name"]} | d["experiment"]).get(name) for d in (before, after))
        without += [("", change) for change in changed_values({name: one}, {name: other})]
    for job in after["jobs"]:
        diff = jobs[job["id"]]
        earlier = old.get(diff.was or job["id"])
        if earlier is not None:
            parts = _ASKED if diff.novelty != "same" else (*_ASKED, "program", "config")
            without += [(job["id"], change) for change in _aside(earlier, job, parts)]
    return Comparison(
        before=names[0],
        after=names[1],
        jobs=jobs,
        pages=frozenset(
            j["id"] for j in (*before["jobs"], *after["jobs"]) if j["produces"] == _PAGE
        ),
        params=changed_values(command_line_values(before), command_line_values(after)),
        without_effect=tuple(without),
    )


def _aside(old: Mapping[str, Any], new: Mapping[str, Any], names: tuple[str, ...]) -> list[Change]:
    one, other = ({name: job[name] for name in names} for job in (old, new))
    # What the experiment is about stands in the report's configuration too; it is told once.
    prefix = "config.experiment."
    return [c for c in changed_values(one, other) if not c.path.startswith(prefix)]


def comparison_text(found: Comparison) -> str:
    """What differs, stage by stage, causes before what follows from them."""
    return "\n".join(_lines(found)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    total = len(comparison.jobs)
    before, after = comparison.before, comparison.after
    if comparison.same:
        yield f"{before} and {after}: the same {total} jobs, the same results"
    else:
        # With the report, as `plan` counts.
        differing = sum(diff.novelty != "same" for diff in comparison.jobs.values())
        yield f"{before} and {after}: {differing} of {total} jobs differ"
    if comparison.params:
        yield f"params: {', '.join(change.text() for change in comparison.params)}"
    yield from _lines_of_roots(comparison)
    yield from _lines_of_names(comparison)
    causes = _grouped(_following(comparison))
    for cause, names in list(causes.items())[:_MOST_BLOCKS]:
        yield f"{some(names)} {'follows' if len(names) == 1 else 'follow'} from {cause}"
    yield from _rest(causes, "differ because of other jobs")
    if comparison.without_effect:
        yield "without effect on results:"
    for text, names in _grouped((c.text(), n) for n, c in comparison.without_effect).items():
        yield f"  {text}" + (f" ({some(names, 4)})" if any(names) else "")


def _lines_of_roots(comparison: Comparison) -> Iterator[str]:
    """The jobs that changed themselves, those of the same changes together."""
    roots = _grouped(
        (tuple(change_texts(diff.changes)), diff.id)
        for diff in comparison.differing
        if diff.changes
    )
    for texts, names in list(roots.items())[:_MOST_BLOCKS]:
        yield f"~ {some(folded_names(names, comparison.jobs))}"
        yield from (f"    {text}" for text in texts)
    yield from _rest(roots, "changed themselves")


def _lines_of_names(comparison: Comparison) -> Iterator[str]:
    """The jobs that only one of the plans has, and those that have another name."""
    for words, novelty, mark in (("second", "new", "+"), ("first", "gone", "-")):
        names = [diff.id for diff in comparison.differing if diff.novelty == novelty]
        if names:
            yield f"{mark} only in the {words}: {some(folded_names(names, comparison.jobs))}"
    renamed = [f"{diff.id} (was {diff.was})" for diff in comparison.jobs.values() if diff.was]
    if renamed:
        yield f"= the same work under another name: {some(renamed)}"


def _rest(blocks: Mapping[_K, Sequence[str]], words: str) -> Iterator[str]:
    left = sum(map(len, list(blocks.values())[_MOST_BLOCKS:]))
    if left:
        yield f"and {counted(left, 'more job')} {words}; --json names them"


def _following(found: Comparison) -> Iterator[tuple[str, str]]:
    """Jobs that differ only because of others, each with its nearest causes; a job in all cells of
    a sweep, each because of the same in its own cell, once."""
    cells = Counter(map(of_all_cells, found.jobs))
    told: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for diff in found.differing:
        if diff.novelty == "changed" and not diff.changes:
            nearest = diff.nearest_roots(3)
            own = cell_in(diff.id)
            alike = [of_all_cells(n) if cell_in(n) == own else n for n in nearest]
            more = diff.root_count - len(nearest)
            folded = (and_more(alike, more), of_all_cells(diff.id))
            told.setdefault(folded, []).append((and_more(nearest, more), diff.id))
    for folded, each in told.items():
        yield from [folded] if FEWEST_CELLS <= len(each) == cells[folded[1]] else each


def _grouped(pairs: Iterable[tuple[_K, str]]) -> dict[_K, list[str]]:
    found: dict[_K, list[str]] = {}
    for key, name in pairs:
        found.setdefault(key, []).append(name)
    return found


def comparison_document(found: Comparison) -> dict[str, Json]:
    """The same as JSON."""
    return {
        "same": found.same,
        "before": found.before,
        "after": found.after,
        "params": [_change(change) for change in found.params],
        "jobs": [
            {
                "id": diff.id,
                "novelty": diff.novelty,
                "was": diff.was,
                "changes": [_change(change) for change in diff.changes],
                "because_of": list[Json](diff.nearest_roots(20)),
            }
            for diff in found.jobs.values()
            if diff.novelty != "same" or diff.was is not None
            # A report differs whenever anything does.
            if diff.id not in found.pages
        ],
        "without_effect": [
            {"job": name or None, **_change(change)} for name, change in found.without_effect
        ],
    }


def _change(change: Change) -> dict[str, Json]:
    return {"path": change.path, "before": change.before, "after": change.after}
