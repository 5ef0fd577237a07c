"""`agentc init --from NAME`: a new spec, begun from one that ships with agentc."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from agentc.cli.new_file import write_new_file
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_USAGE

HELP = "write a new spec, begun from one that ships with agentc"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="SPEC",
        help="such as quickstart, eto or eto/webshop; without it, they are listed",
    )
    parser.add_argument("--name", help="name of the experiment; default: that of the file")
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="default: NAME.yaml in this folder"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 with the spec written, 2 when the file is there already, 5 when there is no such spec."""
    specs = _shipped()
    if arguments.origin is None:
        for name, path in specs.items():
            print(f"{name:16}  {_title(path)}")
        print("\nagentc init --from NAME [FILE] begins a spec from one of them.")
        return 0
    found = _find(arguments.origin, tuple(specs))
    if found is None:
        from agentc.diagnostics.suggest import did_you_mean, listed

        hint = did_you_mean(arguments.origin, specs) or f"there are {listed(specs)}"
        print(f"agentc: no spec `{arguments.origin}` ships with agentc; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    name, others = found
    target: Path = arguments.file or Path(f"{arguments.name or name.replace('/', '-')}.yaml")
    wanted = arguments.name or re.sub(r"[^a-z0-9_-]+", "-", target.stem.lower()).strip("-_")
    text = _begun(specs[name].read_text(encoding="utf-8"), name, wanted or "experiment", target)
    if not write_new_file(target, text):
        return EXIT_USAGE
    print(f"wrote {target}, begun from {name}")
    if others:
        print(f"others of its kind: {', '.join(others)}")
    print(f"next: agentc check {target}")
    return 0


def _shipped() -> dict[str, Path]:
    from agentc.resources import data_directory

    folder = data_directory() / "specs"
    paths = sorted(folder.rglob("*.yaml"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def _find(name: str, specs: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """The spec meant, and others in the same folder. The name of a folder means the spec of it
    whose environment runs everywhere."""
    if name in specs:
        return name, ()
    inside = tuple(each for each in specs if each.startswith(f"{name}/"))
    if not inside:
        return None
    first = next((each for each in inside if each.endswith("/textcraft")), inside[0])
    return first, tuple(each for each in inside if each != first)


def _title(path: Path) -> str:
    """The first line of a spec's description."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("description:"))
    words = " ".join(line.strip() for line in lines[at + 1 : at + 4])
    return words if len(words) <= 100 else words[:97] + "..."


def _begun(text: str, origin: str, name: str, target: Path) -> str:
    """The text of a shipped spec with a head and a name of its own."""
    body = text[text.index("agentc: 1") :]
    body = re.sub(r"^name: .*$", f"name: {name}", body, count=1, flags=re.MULTILINE)
    return (
        f"# Begun from {origin}, which ships with agentc.\n#\n#   agentc check {target.name}\n"
        f"#   agentc plan {target.name}\n#   agentc run {target.name}\n\n{body}"
    )
