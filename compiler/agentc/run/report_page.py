"""The report of a run as people see it: the published page, with the params, the commit and the
text of the spec, and with expected and actual times.

The page is an object of the store, with a key: what it shows follows from its inputs. Estimates,
params and commits follow from the moment and the machine, so they stand in the record of the
run, and this module puts both together into `runs/<label>/report.html`. The object is never
touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from urllib.parse import quote

from agentc.cost.outcomes import StageOutcome, outcomes, read_expected, verdict
from agentc.plan.stage_names import cell_in
from agentc.plan.work import Document, Work, object_of
from agentc.program.artifact_files import REPORT_PAGE
from agentc.program.job import read_json
from agentc.result_tables import TABLES_FILE
from agentc.run.outcome import report_path
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.stopping import round_lines, rounds_progress
from agentc.store.paths import RunFolder, plans_folder, value_text, variant_of
from agentc.text import format_count, format_duration, some

_LIST_END = "</dl>"
_LONGEST = 400_000
"""Characters of a spec that a page takes."""


def with_run_facts(head: str, document: Document, layout: StoreLayout) -> str:
    """The header of a page with the params, where rounds stopped, and when and from which commit
    the last run began, at the end of its own list of facts, if it has one."""
    folder = RunFolder.of_plan(layout, document)
    state = read_json(folder.state)
    chosen = document.get("chosen") or {}
    facts = [
        (f"param {name}", value_text(value) + (" (chosen)" if name in chosen else ""))
        for name, value in (document.get("params") or {}).items()
    ]
    facts += [
        (f"sweep of {axis}", some(values))
        for axis, values in _swept(str(job["id"]) for job in document.get("jobs") or ()).items()
    ]
    facts += [("rounds", line) for line in round_lines(rounds_progress(document, layout))]
    began = state.get("began")
    if isinstance(began, (int, float)):
        moment = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(began))
        facts.append(("last run began", moment))
    commit = state.get("commit")
    if isinstance(commit, Mapping) and commit.get("id"):
        changed = "" if commit.get("has_spec") else ", the spec is not as in it"
        facts.append(("git commit", f"{str(commit['id'])[:12]}{changed}"))
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in facts
    )
    if not rows:
        return head
    if head.rstrip().endswith(_LIST_END):
        return f"{head.rstrip()[: -len(_LIST_END)]}{rows}{_LIST_END}\n"
    return f'{head}<dl class="facts">{rows}{_LIST_END}\n'


def _swept(jobs: Iterable[str]) -> dict[str, list[str]]:
    """The axes of a sweep with their values, from the cells that jobs are in."""
    found: dict[str, dict[str, None]] = {}
    for cell in dict.fromkeys(map(cell_in, jobs)):
        for pair in cell.split(",") if cell else ():
            axis, _, value = pair.partition("=")
            found.setdefault(axis, {})[value] = None
    return {axis: list(values) for axis, values in found.items()}


def spec_section(document: Document, layout: StoreLayout) -> str:
    """The text of the spec, folded; empty where it is not to be had any more."""
    found = _spec_text(document, layout)
    if not found:
        return ""
    name = str((document.get("spec") or {}).get("file") or "spec")
    cut = len(found) - _LONGEST
    note = f"<p>{cut} more characters are left out.</p>\n" if cut > 0 else ""
    return (
        '<section id="spec">\n<h2>Spec</h2>\n'
        f"<details><summary>{escape(name)}, {found.count(chr(10))} lines</summary>\n"
        '<div class="spec"><button type="button" class="copy" data-copies="spec-text" hidden>copy'
        f'</button>\n<pre id="spec-text">{escape(found[:_LONGEST])}</pre></div>\n{note}'
        "</details>\n</section>\n"
    )


def _spec_text(document: Document, layout: StoreLayout) -> str:
    """The copy beside the compiled plan, if it is the one that the plan was made of."""
    spec = document.get("spec") or {}
    label, name = variant_of(document).label, Path(str(spec.get("file") or "")).name
    for folder in (plans_folder(layout) / label, *plans_folder(layout).glob(f"{label}-*")):
        with suppress(OSError, UnicodeDecodeError):
            content = (folder / name).read_bytes()
            if name and hashlib.sha256(content).hexdigest() == spec.get("sha256"):
                return content.decode("utf-8")
    return ""


_END = "</main>"
_HEADER_END = "</header>"
_OBJECTS = 'href="../../../'
"""How links of a page to logs begin: with the folder of objects, from `data/` of the report."""
_APART = {REPORT_PAGE, "sweep.json", TABLES_FILE}
"""What a page does not refer to; it can be shown from another place without them."""
_NAVIGATION = "</nav>"
_NOTE = (
    "Estimates were made before each job started. The band is the 10th to the 90th percentile. "
    "Machines with other work on them are slower."
)


def report_to_show(page: Path, work: Work) -> Path:
    """The page to show for a finished report: with the params, the commit and the text of the spec
    where it has a header, and a section on expected and actual times where something was expected
    of jobs that have finished. The page itself where there is nothing to add."""
    folder = RunFolder.of_plan(work.layout, work.document)
    found = outcomes(work.document["jobs"], work.layout, read_expected(folder))
    try:
        alone = {path.name for path in page.parent.iterdir()} <= _APART
        before, end, after = page.read_text(encoding="utf-8").rpartition(_END)
        head, mark, body = before.partition(_HEADER_END)
        # A page of another backend may be built differently, or refer to files beside it.
        if not end or not alone or not (mark or found):
            return page
        links, sections = "", ""
        if mark:
            sections = spec_section(work.document, work.layout)
            links = '<a href="#spec">Spec</a>\n' if sections else ""
            before = with_run_facts(head, work.document, work.layout) + mark + body
        if found:
            sections = cost_section(found) + sections
            links = '<a href="#cost">Expected</a>\n' + links
        target = folder.report
        before = before.replace(_OBJECTS, f'href="{_objects_from(target, work.layout)}/')
        draft = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        before = before.replace(_NAVIGATION, f"{links}{_NAVIGATION}", 1)
        draft.write_text(before + sections + end + after, encoding="utf-8")
        # Whoever is killed in between leaves a page of which nobody says what it was made from.
        folder.report_source.unlink(missing_ok=True)
        draft.replace(target)
        source = _report_object(work.document)
        if source is not None and page.parent != work.layout.data(source):
            source = None  # a part of the report, of an unfinished run
        draft = folder.report_source.with_name(f"{folder.report_source.name}.{os.getpid()}.tmp")
        draft.write_text(json.dumps({"object": source}) + "\n", encoding="utf-8")
        draft.replace(folder.report_source)
    except (OSError, UnicodeDecodeError):
        return page
    return target


def _objects_from(page: Path, layout: StoreLayout) -> str:
    """The folder of objects from that of a page."""
    return quote(os.path.relpath(layout.root / "objects", page.parent))


def published_page(document: Document, layout: StoreLayout) -> Path | None:
    """The page that people were shown of a plan's finished report: `report.html` where it was made
    from the very report of this plan, else the published one, if any."""
    folder = RunFolder.of_plan(layout, document)
    source = _report_object(document)
    with suppress(OSError, ValueError, AttributeError):
        shown = json.loads(folder.report_source.read_text(encoding="utf-8")).get("object")
        whole = source is not None and shown == source and layout.is_published(source)
        if whole and folder.report.is_file():
            return folder.report
    return report_path(document, layout)


def _report_object(document: Document) -> str | None:
    reports = (job for job in reversed(document["jobs"]) if job["produces"] == "Report")
    return next(map(object_of, reports), None)


def cost_section(found: Iterable[StageOutcome]) -> str:
    """The section as HTML."""
    found = list(found)
    rows = "\n".join(_row(each) for each in found)
    total = sum(each.expected[1] for each in found)
    took = sum(each.actual for each in found)
    return (
        '<section id="cost">\n<h2>Expected and actual time</h2>\n'
        f"<details><summary>expected {format_duration(total)}, "
        f"took {format_duration(took)}</summary>\n"
        f"<p>{escape(_NOTE)}</p>\n"
        '<div class="scroll"><table>\n<thead><tr><th>stage</th><th>jobs</th><th>expected</th>'
        "<th>band</th><th>took</th><th></th><th>tokens expected</th><th>actual tokens</th>"
        "<th>based on</th></tr></thead>\n<tbody>\n"
        f"{rows}\n</tbody>\n<tfoot><tr><th>all together</th><td></td>"
        f"<td>{format_duration(total)}</td><td></td><td>{format_duration(took)}</td>"
        "<td></td><td></td><td></td><td></td></tr></tfoot>\n</table></div>\n</details>\n</section>\n"
    )


def _row(outcome: StageOutcome) -> str:
    low, middle, high = outcome.expected
    met = outcome.actual_tokens
    cells = [
        str(outcome.jobs),
        format_duration(middle),
        f"{format_duration(low)} to {format_duration(high)}",
        format_duration(outcome.actual),
        verdict(outcome),
        format_count(outcome.tokens) if met else "",
        format_count(met) if met else "",
        outcome.basis,
    ]
    inner = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f"<tr><th>{escape(outcome.stage)}</th>{inner}</tr>"
