"""write_bundle: an experiment with all that it takes to run it where agentc is not installed.

```
README.md  plan.json  Snakefile  config.yaml  <the spec>  <its lock>  software/  profiles/
templates/agentc/  packages/{agentc/{kinds,program,runtime}, <those of job programs>}  SHA256SUMS
.agentc/store/objects/   with results, where the Snakefile looks for them
```
`packages/` is what the Snakefile puts on PYTHONPATH: the runtime out of agentc, and the packages
whole that hold job programs. Nothing of the compiler is needed any more. The same experiment gives
the same bytes, results apart.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import agentc
from agentc import __version__, resources
from agentc.compilation import Compilation
from agentc.emit.directory import compile_to
from agentc.exit_codes import EXIT_STORE, CommandError
from agentc.kinds import REPORT_KIND
from agentc.kinds.field import Json
from agentc.lock.collect import collect_lock
from agentc.lock.document import render_lock
from agentc.plan.job import Plan
from agentc.runtime.contracts.artifacts import PRIVATE
from agentc.runtime.software.job_software import JOB_MODULES, JOB_PACKAGES, packages_of
from agentc.runtime.store.digests import sha256_of
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import module_of
from agentc.store.objects import Damage, read_object, verify_object
from agentc.store.presence import find_published

SUMS = "SHA256SUMS"
SHIPPED_TEMPLATES = Path("templates") / "agentc"
STORE = Path(".agentc") / "store"
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.py[co]", ".*")


class BundleError(CommandError):
    """The bundle cannot be made; the message is for people."""


class DamagedResultsError(BundleError):
    """The store's bytes are not those of its manifests."""

    exit_code = EXIT_STORE

    def __init__(self, problems: list[Damage]) -> None:
        shown = "; ".join(str(problem) for problem in problems[:3])
        super().__init__(f"results of the store are damaged: {shown}; see `agentc store verify`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What was written: number of files and their bytes; `results` of `jobs` are in it, and
    `absent` are files of this machine that the spec names and the bundle cannot carry."""

    files: int
    size: int
    results: int
    jobs: int
    absent: tuple[str, ...]


def write_bundle(
    directory: Path,
    compiled: Compilation,
    results: StoreLayout | None = None,
    *,
    hidden: bool = False,
) -> Bundle:
    """Write the bundle of a compiled spec; `results` is the store whose objects go along, those
    that are private to their owner only where `hidden` texts are asked for.

    The directory appears whole or not at all. Raises BundleError when it is there already or
    something cannot be bundled, OSError when it cannot be written.
    """
    if compiled.plan is None:
        raise BundleError("the spec has errors")
    directory = directory.absolute()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BundleError(f"{directory} is there already; name a directory that is not")
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    try:
        bundle = _fill(draft, compiled, compiled.plan, results, hidden)
        draft.chmod(0o755)
        if directory.exists():
            directory.rmdir()
        draft.rename(directory)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return bundle


def _fill(
    draft: Path, compiled: Compilation, plan: Plan, results: StoreLayout | None, hidden: bool
) -> Bundle:
    source = compiled.files[0].resolve()
    compile_to(draft, plan, compiled.spec.source.text, draft)
    lock = collect_lock(plan, compiled.references, compiled.templates, compiled.scale)
    _write(draft / Path(plan.spec_file).with_suffix(".lock").name, render_lock(lock))
    slurm = resources.profile("slurm") / "config.yaml"
    _write(draft / "profiles" / "slurm" / "config.yaml", slurm.read_text(encoding="utf-8"))
    programs = [job.draft.program for job in plan.jobs]
    programs += [lease.draft.program for job in plan.jobs for lease in job.leases]
    copy_packages(draft / "packages", programs, carried=plan.code)
    _copy_templates(draft, compiled)
    absent = _copy_files(draft, compiled.references.files, source.parent)
    included = 0 if results is None else _copy_results(draft / STORE, plan, results, hidden)
    contents = Contents(
        plan=plan,
        results=included,
        absent={name: compiled.references.files[name] for name in absent},
        templates=tuple(name for name, _ in compiled.templates),
        store=STORE.as_posix(),
    )
    _write(draft / "README.md", render_readme(contents))
    files, size = _write_sums(draft)
    return Bundle(files=files, size=size, results=included, jobs=len(plan.jobs), absent=absent)


def copy_packages(
    target: Path, programs: Iterable[Sequence[str]], *, carried: Container[str] = ()
) -> None:
    """The wrapper, what programs import of agentc, and every package that holds one of these
    programs of jobs or servers, but those whose text the plan itself carries. Raises
    BundleError."""
    own = Path(agentc.__file__).parent
    (target / "agentc").mkdir(parents=True)
    for package in JOB_PACKAGES:
        shutil.copytree(own / package, target / "agentc" / package, ignore=_LEFT_OUT)
    for module in JOB_MODULES:
        (target / "agentc" / module).parent.mkdir(exist_ok=True)
        shutil.copyfile(own / module, target / "agentc" / module)
    for name in packages_of(map(module_of, programs)):
        if name == "agentc" or name in carried:
            continue
        found = importlib.util.find_spec(name)
        if found is None:
            raise BundleError(f"the Python package {name} of a job's program is not installed")
        if found.submodule_search_locations:
            place = Path(next(iter(found.submodule_search_locations)))
            shutil.copytree(place, target / name, ignore=_LEFT_OUT)
        elif found.origin is not None:
            shutil.copyfile(found.origin, target / Path(found.origin).name)


def _copy_templates(draft: Path, compiled: Compilation) -> None:
    """For reading: what they expanded to is in the plan. Those beside the spec keep their place."""
    for (name, _), path in zip(compiled.templates, compiled.template_files, strict=True):
        local = name.startswith("./")
        target = draft / name if local else draft / SHIPPED_TEMPLATES / f"{name}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _copy_files(draft: Path, files: Iterable[str], beside: Path) -> tuple[str, ...]:
    """Copy the files and folders that the spec names, where they lie beside it; returns those
    that lie elsewhere."""
    absent = []
    for name in sorted(files):
        path = beside / Path(name).expanduser()
        if Path(name).is_absolute() or not path.resolve().is_relative_to(beside):
            absent.append(name)
            continue
        target = draft / path.resolve().relative_to(beside)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=_LEFT_OUT, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, target)
    return tuple(absent)


def _copy_results(store: Path, plan: Plan, results: StoreLayout, hidden: bool) -> int:
    """Copy the objects of a plan that the store has, after comparing every byte with their
    manifests; returns how many jobs have theirs. Private ones go along where that is wanted."""
    made = {job.object for job in plan.jobs if hidden or job.draft.produces not in PRIVATE}
    sessions = [session.object for session in plan.sessions]
    there = find_published(results, [*made, *sessions])
    names = sorted(made & there)
    problems: list[Damage] = []
    for name in [*names, *(one for one in sessions if one in there)]:
        try:
            stored = read_object(results, name)
        except (OSError, ValueError) as error:
            problems.append(Damage(name, None, str(error)))
            continue
        problems += verify_object(stored)
        if not problems:
            shutil.copytree(stored.path, store / "objects" / name)
    if problems:
        raise DamagedResultsError(problems)
    return sum(job.object in names for job in plan.jobs)


def _write_sums(draft: Path) -> tuple[int, int]:
    """SHA256SUMS as `sha256sum -c` reads it; returns the number of files and their bytes."""
    lines, size = [], 0
    for path in _files(draft):
        size += path.stat().st_size
        lines.append(f"{sha256_of(path)}  {path.relative_to(draft).as_posix()}\n")
    _write(draft / SUMS, "".join(lines))
    return len(lines), size


def _files(folder: Path) -> Iterator[Path]:
    found = [Path(top) / name for top, _, names in os.walk(folder) for name in names]
    return iter(sorted(found, key=lambda path: path.relative_to(folder).as_posix()))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


_RERUN = """\
This directory reruns the experiment with plain Snakemake. It needs Linux, Python 3.11 or newer, and
a package index for the software stacks, which the first run builds:

    python3 -m pip install "snakemake>=9.8,<10" uv
    snakemake -c4

Results go to `.agentc/store`. What is there already is not run again, and a run that was cut off
continues where it was. `sha256sum -c --quiet SHA256SUMS` compares this directory with what was
bundled, results included, and so finds files that were lost or damaged on the way. On a cluster:
`snakemake --workflow-profile profiles/slurm`.

**This directory is code.** Snakemake executes its Snakefile, everything under `packages/` and the
programs that plan.json names, with all rights of the user who starts it, and the sums come from its
sender. Where agentc is installed, `agentc bundle --check .` compiles the spec again and shows what
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
        (lock, "everything outside of the spec that it depends on"),
        ("software/", "exact versions of the packages that jobs run with"),
        ("packages/", f"the job programs, and the runtime of agentc {__version__}"),
    ]
    if contents.templates:
        used = ", ".join(contents.templates)
        rows.append(("templates/", f"for reading, those the spec used ({used}) as they were"))
    if contents.results:
        rows.append((contents.store, f"results of {contents.results} jobs, with manifests"))
    yield from ("", "## What is here", "", "| | |", "|---|---|")
    yield from (f"| `{name}` | {what} |" for name, what in rows)
