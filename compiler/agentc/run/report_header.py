"""What a shown report says of its run: the params, the commit and command of the run, the spec.

The published page follows from its inputs and has none of this. `report_page.py` puts it in.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from html import escape
from pathlib import Path

from agentc.plan.stage_names import cell_in
from agentc.plan.work import Document
from agentc.program.job import read_json
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.stopping import round_lines, rounds_so_far
from agentc.store.paths import RunFolder, plans_folder, value_text, variant_of
from agentc.text import some

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
    facts += [("rounds", line) for line in round_lines(rounds_so_far(document, layout))]
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
