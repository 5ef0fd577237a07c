"""`agentc init [--from NAME] [FILE]`: a new spec, begun from one that ships with agentc.

Neighbour: `shipped_specs.py` knows what each of them needs.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.new_file import write_new_file
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_USAGE

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.cli.shipped_specs import SpecNeeds

HELP = "write a new spec, begun from one that ships with agentc"
_DEFAULT = "quickstart"
"""What a spec begins from when only its file is named: it runs on any machine."""
_NARROWEST, _WIDEST = 60, 200


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="SPEC",
        help=f"such as quickstart, agent_r or eto/webshop; default with FILE: {_DEFAULT}. Without "
        "both they are listed, with what each needs",
    )
    parser.add_argument("--name", help="name of the experiment; default: that of the file")
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="default: NAME.yaml in this folder"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 with the spec written, 2 when the file is there already, 5 when there is no such spec."""
    from agentc.backend_api import load_backends
    from agentc.cli.shipped_specs import needs_of, shipped_specs

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
    target: Path = arguments.file or Path(f"{arguments.name or name.replace('/', '-')}.yaml")
    wanted = arguments.name or re.sub(r"[^a-z0-9_-]+", "-", target.stem.lower()).strip("-_")
    text = _begun(specs[name].read_text(encoding="utf-8"), name, wanted or "experiment", target)
    if not write_new_file(target, text):
        return EXIT_USAGE
    print(f"wrote {target}, begun from {name}")
    others = [each for each in inside if each != name]
    if others:
        print(f"others of its kind: {', '.join(others)}")
    needs = needs_of(specs[name], table)
    if needs is not None:
        print(f"it needs {needs.words()}")
    if needs is None or not needs.runs_here:
        small = needs_of(specs[name], table, "smoke")
        if small is not None and small.runs_here:
            print(f"with --scale smoke: {small.words()}")
    print(f"next: agentc check {target}")
    return 0


def _list(specs: Mapping[str, Path], table: BackendTable) -> None:
    """All of them: what runs on any machine, the quickest first, and what does not."""
    from agentc.cli.shipped_specs import needs_of
    from agentc.text import aligned, shown_time

    found = {name: needs_of(path, table) for name, path in specs.items()}
    here = {name: needs for name, needs in found.items() if needs is not None and needs.runs_here}
    width = min(_WIDEST, max(_NARROWEST, shutil.get_terminal_size((_WIDEST, 0)).columns))
    rows = [
        (
            f"  {name}",
            shown_time(needs.seconds) if needs.seconds else "in the store",
            _title(specs[name]),
        )
        for name, needs in sorted(here.items(), key=lambda pair: pair[1].seconds or 0.0)
    ]
    print("without GPU and downloads, with the time that this machine is expected to take:")
    print("\n".join(_cut(line, width) for line in aligned(rows, right=(1,))))
    beyond = [
        (f"  {name}", "does not compile here" if needs is None else needs.words())
        for name, needs in found.items()
        if name not in here
    ]
    print("\nwhat needs more:")
    print("\n".join(_cut(line, width) for line in aligned(beyond)))
    print(f"\nagentc init --from NAME [FILE] begins a spec from one of them; without --from, from"
          f" {_DEFAULT}.")  # fmt: skip


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
    from agentc.cli.shipped_specs import needs_of

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


def _begun(text: str, origin: str, name: str, target: Path) -> str:
    """The text of a shipped spec with a head and a name of its own."""
    body = text[text.index("agentc: 1") :]
    body = re.sub(r"^name: .*$", f"name: {name}", body, count=1, flags=re.MULTILINE)
    return (
        f"# Begun from {origin}, which ships with agentc.\n#\n#   agentc check {target.name}\n"
        f"#   agentc plan {target.name}\n#   agentc run {target.name}\n\n{body}"
    )
