"""The README of a bundle: how to rerun it, what is in it, and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentc import __version__
from agentc.kinds import REPORT_KIND
from agentc.kinds.field import Json
from agentc.plan.job import Plan

_RERUN = """\
This directory reruns the experiment with Snakemake alone. It needs Linux, Python 3.11 or newer, and
a package index for the software environments, which the first run builds:

    python3 -m pip install "snakemake>=9.8,<10"
    snakemake -c4

Results go to `.agentc/store`. What is there already is not run again, and a run that was cut off
goes on where it was. `sha256sum -c --quiet SHA256SUMS` compares this directory with what was
bundled, results included, and so finds files that were lost or damaged on the way. On a cluster:
`snakemake --workflow-profile profiles/slurm`.

**This directory is code.** Snakemake executes its Snakefile, everything under `packages/` and the
programs that plan.json names, with all rights of whoever starts it, and the sums come from whoever
sent it. Where agentc is installed, `agentc bundle --check .` compiles the spec again and shows what
differs, without executing anything; else run it as you would any program of its sender.
""".splitlines()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a README tells: the plan, the number of jobs whose results are there, `absent` files
    with their sha256, names of template files, and where the store is."""

    plan: Plan
    results: int
    absent: Mapping[str, str]
    templates: tuple[str, ...]
    store: str


def render_readme(contents: Contents) -> str:
    """Markdown."""
    return "\n".join(_lines(contents)) + "\n"


def _lines(contents: Contents) -> Iterator[str]:
    plan = contents.plan
    yield f"# {plan.name}"
    yield ""
    description = plan.experiment.get("description")
    if isinstance(description, str) and description:
        yield from (description, "")
    yield from _paper(plan.experiment.get("paper"))
    yield from _RERUN
    report = next((job for job in plan.jobs if job.draft.kind == REPORT_KIND), None)
    if report is not None:
        yield ""
        yield f"The report is `{contents.store}/objects/{report.object}/data/index.html`"
        yield "once all jobs are done."
    secrets = [job.draft.secrets for job in plan.jobs]
    secrets += [lease.draft.secrets for job in plan.jobs for lease in job.leases]
    needs = sorted({name for found in secrets for name in found.values()})
    if needs:
        yield ""
        yield f"Set these environment variables first: {', '.join(needs)}."
    yield from _absent(contents)
    yield from _table(contents)


def _paper(paper: Json) -> Iterator[str]:
    if not isinstance(paper, dict) or not paper.get("title"):
        return
    authors = paper.get("authors")
    by = f" {', '.join(map(str, authors))}." if isinstance(authors, list) else ""
    where = " ".join(str(paper[name]) for name in ("venue", "year") if paper.get(name))
    url = f" <{paper['url']}>" if paper.get("url") else ""
    yield from (f"*{paper['title']}*.{by} {where}.{url}", "")


def _absent(contents: Contents) -> Iterator[str]:
    if contents.absent:
        yield ""
        yield "## What is not here"
        yield ""
        yield "The spec names files outside of its own folder. Put them where the plan looks for"
        yield "them (relative paths start here); jobs refuse other content:"
        yield ""
        yield from (f"- `{name}`, content {digest}" for name, digest in contents.absent.items())


def _table(contents: Contents) -> Iterator[str]:
    plan = contents.plan
    lock = Path(plan.spec_file).with_suffix(".lock").name
    params = ", ".join(f"{name} = {value}" for name, value in sorted(plan.params.items()))
    rows = [
        ("plan.json", f"{len(plan.jobs)} jobs with their configurations and content keys"),
        ("Snakefile, config.yaml, profiles/", "what Snakemake reads"),
        (plan.spec_file, f"the spec; params: {params or 'none'}"),
        (lock, "everything outside of the spec that it rests on"),
        ("environments/", "exact versions of the packages that jobs run with"),
        ("packages/", f"the job programs, and the runtime of agentc {__version__}"),
    ]
    if contents.templates:
        used = ", ".join(contents.templates)
        rows.append(("templates/", f"for reading, those the spec used ({used}) as they were"))
    if contents.results:
        rows.append((contents.store, f"results of {contents.results} jobs, with manifests"))
    yield from ("", "## What is here", "", "| | |", "|---|---|")
    yield from (f"| `{name}` | {what} |" for name, what in rows)
