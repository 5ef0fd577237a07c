"""`agentc init [--from NAME] [FILE]`: a new spec, based on one that ships with agentc; what each of
those needs (GPUs, downloads, minutes here) is read from its compiled plan. Other origins: templates
and the configurations of ArCHer's released code."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.cli.parser import write_new_file
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_USAGE
from agentc.text import counted, format_duration, format_size

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.plan.work import Work


HELP = "list the bundled specs, or write a new one based on one of them"
_DEFAULT = "quickstart"
"""What a spec begins from when only its file is named: it runs on any machine."""
_NARROWEST, _WIDEST = 60, 200


_EPILOG = """\
With --from-archer each key becomes a setting with the key behind it, or is named at the head of the
spec with the reason; docs/design/archer_released.md has the table.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="SPEC",
        help=f"such as quickstart, agent_r or eto/webshop; default with FILE: {_DEFAULT}. Without "
        "both they are listed, with what each needs",
    )
    parser.add_argument(
        "--from-archer",
        type=Path,
        metavar="CONFIG",
        help="write a configuration of ArCHer's released code as a spec, such as "
        "scripts/config/archer_20q.yaml, to FILE or standard output",
    )
    parser.add_argument(
        "--templates",
        nargs="?",
        const="",
        metavar="NAME",
        help="list the templates that specs can `use:`, or show one with its parameters, such as "
        "eto/rounds, or a file as ./mine.yaml",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME|DIR",
        help="write a Snakemake profile for SLURM, with the partitions and accounts of this "
        "cluster; NAME: in ~/.config/snakemake",
    )
    parser.add_argument("--name", help="name of the experiment; default: that of the file")
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="default: NAME.yaml in this folder"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 with the spec written, 1 where a template or a configuration is broken, 2 when the file is
    there already, 5 when there is no such spec or template."""
    modes = {"--from": arguments.origin, "--from-archer": arguments.from_archer}
    modes |= {"--templates": arguments.templates, "--profile": arguments.profile}
    typed = [name for name, value in modes.items() if value is not None]
    if len(typed) > 1:
        arguments.parser.error(f"{' and '.join(typed)} exclude each other")
    if arguments.name is not None and typed not in ([], ["--from"]):
        arguments.parser.error(f"--name has no meaning with {typed[0]}")
    if arguments.templates is not None:
        from agentc.cli.templates import list_templates, show_template

        if arguments.file is not None:
            arguments.parser.error("--templates writes no FILE")
        return show_template(arguments.templates) if arguments.templates else list_templates()
    if arguments.profile is not None:
        from agentc.cli.slurm_profile import write_profile

        if arguments.file is not None:
            arguments.parser.error("--profile names its folder itself: it takes no FILE")
        return write_profile(arguments.profile)
    if arguments.from_archer is not None:
        from agentc.cli.from_archer import write_from_archer

        return write_from_archer(arguments.from_archer, arguments.file)
    from agentc.backend_api import load_backends

    specs, table = shipped_specs(), load_backends()
    if arguments.origin is None and arguments.file is None and arguments.name is None:
        _list(specs, table)
        return 0
    origin = arguments.origin or _DEFAULT
    inside = tuple(name for name in specs if name.startswith(f"{origin}/"))
    if origin not in specs and not inside:
        from agentc.diagnostics.suggest import did_you_mean, listed

        hint = did_you_mean(origin, specs) or f"there are {listed(specs)}"
        print(f"agentc: no spec `{origin}` ships with agentc; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    name = origin if origin in specs else _best_of(inside, specs, table)
    if arguments.file is not None and arguments.file.suffix not in (".yaml", ".yml"):
        written = str(arguments.file)
        known = written in specs or any(each.startswith(f"{written}/") for each in specs)
        hint = (
            f"`agentc init --from {written}` writes a spec based on the bundled one"
            if known and arguments.origin is None
            else f"write `{written}.yaml`"
        )
        print(f"agentc: {written} is no file name of a spec (.yaml); {hint}", file=sys.stderr)
        return EXIT_USAGE
    target: Path = arguments.file or Path(f"{arguments.name or name.replace('/', '-')}.yaml")
    wanted = arguments.name or re.sub(r"[^a-z0-9_-]+", "-", target.stem.lower()).strip("-_")
    text = _derived_spec(
        specs[name].read_text(encoding="utf-8"), name, wanted or "experiment", target
    )
    if not write_new_file(target, text):
        return EXIT_USAGE
    print(f"wrote {target}, based on {name}")
    others = [other for other in inside if other != name]
    if others:
        print(f"others of its kind: {', '.join(others)}")
    _print_needs(specs[name], table)
    print(f"next: agentc check {target}")
    return 0


def _print_needs(path: Path, table: BackendTable) -> None:
    """What a spec needs; also at the scale `smoke`, where only that runs here."""
    needs = needs_of(path, table)
    if needs is not None:
        print(f"it needs {needs.words()}")
    if needs is None or not needs.runs_here:
        small = needs_of(path, table, "smoke")
        if small is not None and small.runs_here:
            print(f"with --scale smoke: {small.words()}")


def _list(specs: Mapping[str, Path], table: BackendTable) -> None:
    """All of them: what runs on any machine, the quickest first, and what does not."""
    from agentc.text import aligned, format_duration

    found = {name: needs_of(path, table) for name, path in specs.items()}
    here = {name: needs for name, needs in found.items() if needs is not None and needs.runs_here}
    fetching = {name: needs for name, needs in here.items() if needs.packages}
    width = min(_WIDEST, max(_NARROWEST, shutil.get_terminal_size((_WIDEST, 0)).columns))
    rows = [
        (
            f"  {name}",
            format_duration(needs.seconds) if needs.seconds else "in the store",
            _title(specs[name]),
        )
        for name, needs in sorted(here.items(), key=lambda pair: pair[1].seconds or 0.0)
        if name not in fetching
    ]
    print("without GPU and downloads, with the time that an idle machine takes:")
    print("\n".join(_cut(line, width) for line in aligned(rows, right=(1,))))
    if fetching:
        print("\nwithout GPU, with a model from the Python package index:")
        rows = [
            (f"  {name}", needs.words(), _title(specs[name])) for name, needs in fetching.items()
        ]
        print("\n".join(_cut(line, width) for line in aligned(rows)))
    beyond = [
        (f"  {name}", "does not compile here" if needs is None else needs.words())
        for name, needs in found.items()
        if name not in here
    ]
    print("\nNeeds GPUs or downloads:")
    print("\n".join(_cut(line, width) for line in aligned(beyond)))
    print(f"\n`agentc init --from NAME [FILE]` writes a spec based on one of them (default: "
          f"{_DEFAULT}); `agentc --help` lists the commands")  # fmt: skip


def _cut(line: str, width: int) -> str:
    """The line, no longer than a terminal is wide: up to the end of a clause, where one ends past
    the middle."""
    if len(line) <= width:
        return line
    for marks in (":;.", ","):
        ends = [match.start() for match in re.finditer(f"[{marks}] ", line[:width])]
        if ends and ends[-1] > width // 2:
            return line[: ends[-1]]
    return line[: width - 3].rpartition(" ")[0].rstrip() + "..."


def _best_of(inside: tuple[str, ...], specs: Mapping[str, Path], table: BackendTable) -> str:
    """The spec of a folder that the folder's name means: one that runs here, the one called `tiny`
    before others; else that of the environment that runs everywhere."""

    def runs(name: str) -> bool:
        needs: SpecNeeds | None = needs_of(specs[name], table)
        return needs is not None and needs.runs_here

    order = sorted(inside, key=lambda name: (not name.endswith("/tiny"), name))
    first = next((name for name in order if runs(name)), None)
    return first or next((name for name in inside if name.endswith("/textcraft")), inside[0])


def _title(path: Path) -> str:
    """The first words of a spec's description."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("description:"))
    return " ".join(line.strip() for line in lines[at + 1 : at + 4])


def _derived_spec(text: str, origin: str, name: str, target: Path) -> str:
    """The text of a shipped spec with a head and a name of its own."""
    body = text[text.index("agentc: 1") :]
    body = re.sub(r"^name: .*$", f"name: {name}", body, count=1, flags=re.MULTILINE)
    return (
        f"# Based on {origin}, a bundled example of agentc.\n#\n#   agentc check {target.name}\n"
        f"#   agentc plan {target.name}\n#   agentc run {target.name}\n\n{body}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecNeeds:
    """`gpus` is the most that one job has, `downloads` are repositories of the hub, `packages` with
    models are of the Python package index, with their sizes; `seconds` is the middle of what a
    run would take here with all cores, None for what needs a GPU or the hub."""

    gpus: int
    downloads: tuple[str, ...]
    packages: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None

    @property
    def runs_here(self) -> bool:
        """Whether any machine will do: no GPU, nothing from a hub."""
        return not self.gpus and not self.downloads

    def words(self) -> str:
        """`no GPU, no weights: about 3 min on an idle machine`, or what it takes."""
        if self.seconds is not None:
            fetched = ", ".join(f"{name} ({size})" for name, size in self.packages.items())
            weights = fetched or "no weights"
            return f"no GPU, {weights}: about {format_duration(self.seconds)} on an idle machine"
        parts = [counted(self.gpus, "GPU") if self.gpus else "no GPU"]
        if self.downloads:
            names = sorted(name.rpartition("/")[2] for name in self.downloads)
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            parts.append(f"{names[0]}{more}")
        return ", ".join(parts)


def shipped_specs() -> dict[str, Path]:
    """Path by name, such as `quickstart` or `eto/webshop`."""
    from agentc.resources import data_directory

    folder = data_directory() / "specs"
    paths = sorted(folder.rglob("*.yaml"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def needs_of(path: Path, table: BackendTable, scale: str | None = None) -> SpecNeeds | None:
    """What a spec needs at a scale; None for one that does not compile here, or has no such
    scale."""
    from agentc.compilation import compile_spec
    from agentc.plan.render import plan_document
    from agentc.plan.work import find_work
    from agentc.store.paths import readable_store

    compiled = compile_spec(path, {}, table, scale=scale)
    if compiled.plan is None:
        return None
    work = find_work(plan_document(compiled.plan), readable_store(None))
    jobs = work.document["jobs"]
    downloads = {str(job["config"]["repo"]) for job in jobs if job["config"].get("repo")}
    gpus = max(int((job["resources"] or {}).get("gpus") or 0) for job in jobs)
    seconds = None if gpus or downloads else _seconds(compiled, work, table)
    return SpecNeeds(
        gpus=gpus,
        downloads=tuple(sorted(downloads)),
        packages=_packages(jobs, table),
        seconds=seconds,
    )


def _packages(jobs: Sequence[Mapping[str, Any]], table: BackendTable) -> dict[str, str]:
    """Python packages that hold models, with the size of the file where a data set declares it."""
    from agentc.data_sets.acquire import declared_data_sets

    sizes = {
        source.package: format_size(source.size)
        for data_set, _ in declared_data_sets(table).values()
        for source in data_set.sources
        if source.package
    }
    names = sorted({str(job["config"]["package"]) for job in jobs if job["config"].get("package")})
    return {name.partition("==")[0]: sizes.get(name, "size unknown") for name in names}


def _seconds(compiled: Compilation, work: Work, table: BackendTable) -> float:
    from agentc.cli.cost import cost_of

    return cost_of(work, compiled, table)[1].wall.median
