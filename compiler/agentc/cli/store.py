"""`agentc store ls | verify | gc`: look at the store, check its bytes, delete what nobody needs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agentc.cli.arguments import add_format_argument
from agentc.cli.parser import add_store_argument
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_STORE
from agentc.text import counted, fitted, format_size, terminal_width

if TYPE_CHECKING:
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.gc import Garbage
    from agentc.store.objects import StoredObject

HELP = "list, verify or clean the store of results"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    ls = actions.add_parser("ls", help="list the objects of the store, the latest last")
    ls.add_argument("--kind", help="only objects of this kind (sft, rollout, ...)")
    ls.add_argument(
        "--sort",
        choices=("time", "size", "stage"),
        default="time",
        help="the latest, the largest, or by stage (default: time)",
    )
    add_format_argument(ls, "json: an object a line")
    verify = actions.add_parser(
        "verify", help="compare every file with its manifest; exit code 4 when one differs"
    )
    verify.add_argument("objects", nargs="*", metavar="KIND/KEY", help="default: all of them")
    gc = actions.add_parser(
        "gc",
        help="list objects that no run needs; delete them with --delete",
        description="List objects that no run needs, by run, stage and size; with --delete they"
        " go. Of each experiment, scale and choice of params stay the objects of the latest plan"
        " and of the last complete one; so do those of running runs.",
    )
    gc.add_argument("--delete", action="store_true", help="really delete")
    gc.add_argument(
        "--keep-runs",
        type=_positive,
        default=1,
        metavar="N",
        help="complete runs to keep of each experiment, scale and choice of params whose plans"
        " differ (default: 1)",
    )
    gc.add_argument(
        "--older-than",
        type=_age,
        default=0.0,
        metavar="AGE",
        help="only what was made longer ago: 30d, 12h, 90m",
    )
    gc.add_argument("--software", action="store_true", help="also software stacks no plan uses")
    for action, execute_action in ((ls, _ls), (verify, _verify), (gc, _gc)):
        add_store_argument(action)
        action.set_defaults(action=execute_action)


def execute(arguments: argparse.Namespace) -> int:
    """Exit code of the action; 4 when the store is damaged or unusable."""
    from agentc.store.paths import readable_store

    layout = readable_store(arguments.store)
    if not layout.root.is_dir():
        print(f"agentc: there is no store at {layout.root}; --store names another", file=sys.stderr)
        return EXIT_NOT_FOUND
    try:
        return int(arguments.action(arguments, layout))
    except BrokenPipeError:  # the reader went away: `agentc store ls | head`
        raise
    except (OSError, ValueError) as error:
        print(f"agentc: the store is unusable: {error}", file=sys.stderr)
        return EXIT_STORE


def _ls(arguments: argparse.Namespace, layout: object) -> int:
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.objects import list_objects

    assert isinstance(layout, StoreLayout)
    objects, problems = list_objects(layout)
    objects = [
        stored for stored in objects if arguments.kind in (None, stored.manifest.get("kind"))
    ]
    sizes = {stored.name: stored.size for stored in objects}
    objects.sort(key=lambda stored: (stored.manifest.get("started") or 0, stored.name))
    if arguments.sort == "size":
        objects.sort(key=lambda stored: sizes[stored.name])
    elif arguments.sort == "stage":
        objects.sort(key=lambda stored: str(stored.manifest.get("id")))
    if arguments.format == "json":
        for stored in objects:
            print(_json_line(stored, sizes[stored.name]))
    else:
        _print_table(objects, sizes)
    for problem in problems:
        print(f"damaged: {problem}", file=sys.stderr)
    return EXIT_STORE if problems else 0


def _json_line(stored: StoredObject, size: int) -> str:
    import json

    fields = ("id", "type", "backend", "started", "wall_s")
    line = {"object": stored.name, "size": size}
    return json.dumps(line | {name: stored.manifest.get(name) for name in fields}, sort_keys=True)


def _print_table(objects: Sequence[StoredObject], sizes: Mapping[str, int]) -> None:
    """A row for each object; the total on standard error, for programs that read the rows."""
    rows = []
    for stored in objects:
        manifest = stored.manifest
        started = manifest.get("started")
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(started)) if started else "?"
        seconds = f"{manifest.get('wall_s') or 0.0:.1f} s"
        kind, job = str(manifest.get("type", "?")), str(manifest.get("id", ""))
        rows.append((stored.name, kind, format_size(sizes[stored.name]), seconds, when, job))
    if rows:
        heads = ("OBJECT", "TYPE", "SIZE", "TIME", "STARTED", "JOB")
        width = terminal_width(sys.stdout)
        table = fitted([heads, *rows], width, right=(2, 3), drop=(3, 1, 4))
        # Programs that read the lines get objects only.
        print("\n".join(table if width is not None else table[1:]))
    total = f"{counted(len(objects), 'object')}, {format_size(sum(sizes.values()))}"
    print(total, file=sys.stderr)


def _verify(arguments: argparse.Namespace, layout: object) -> int:
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.objects import Damage, list_objects, read_objects, verify_object

    assert isinstance(layout, StoreLayout)
    problems: list[Damage] = []
    if arguments.objects:
        unknown = [name for name in arguments.objects if not layout.object(name).is_dir()]
        if unknown:
            print(f"agentc: no such object in {layout.root}: {unknown[0]}", file=sys.stderr)
            return EXIT_NOT_FOUND
        found, problems = read_objects(layout, arguments.objects)
    else:
        found, problems = list_objects(layout)
    for stored in found:
        problems += verify_object(stored)
    for problem in problems:
        print(f"damaged: {problem}", file=sys.stderr)
    damaged = sorted({problem.object for problem in problems})
    if damaged:
        print(
            f"{len(damaged)} of {max(len(found), len(damaged))} objects are damaged. Delete each"
            f" one's folder under {layout.root / 'objects'}: a run that needs it makes it again."
            " Where all that was made from it is there, no run does; to have it made again, delete"
            " that, too.",
            file=sys.stderr,
        )
        return EXIT_STORE
    print(f"{counted(len(found), 'object')} verified, none damaged")
    return 0


def _gc(arguments: argparse.Namespace, layout: object) -> int:
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.gc import collect, find_garbage
    from agentc.store.paths import all_folders
    from agentc.store.run_history import history_damage

    assert isinstance(layout, StoreLayout)
    for warning in history_damage(all_folders(layout)):
        print(f"agentc: warning: {warning}", file=sys.stderr)
    garbage = find_garbage(
        layout,
        software=arguments.software,
        keep_runs=arguments.keep_runs,
        older_than_s=arguments.older_than,
    )
    for line in _garbage_lines(garbage, layout):
        print(line)
    if not garbage:
        print("nothing to delete: all that is there belongs to a run")
        return 0
    if not arguments.delete:
        print(f"{format_size(garbage.size)} could be deleted; `agentc store gc --delete` does it")
        return 0
    kept = collect(layout, garbage)
    for name in kept:
        print(f"kept after all: {name}, which somebody works on or needs now")
    left = garbage.without(kept)
    print(f"deleted {format_size(left.size)}")
    return 0


def _garbage_lines(garbage: Garbage, layout: StoreLayout) -> Iterator[str]:
    """By run, then by stage, then the pages that show what goes."""
    from agentc.store.run_history import find_owners, reports_of

    owners = find_owners(layout, garbage.objects)
    runs: dict[str, list[str]] = {}
    for name in garbage.objects:
        runs.setdefault(owners[name].label, []).append(name)
    for label, names in sorted(runs.items()):
        size = format_size(sum(garbage.objects[name] for name in names))
        whose = f"{label}, of earlier plans" if label else "of no run that is known"
        yield f"{whose}: {counted(len(names), 'object')}, {size}"
        width = max(len(owners[name].job) for name in names)
        for name in sorted(names, key=lambda one: (owners[one].job, one)):
            stage = owners[name].job.ljust(width)
            yield f"  {stage}  {name:<44} {format_size(garbage.objects[name]):>8}"
    for title, part in (
        ("unfinished work", garbage.staging),
        ("software stack", garbage.software),
    ):
        for name, size_of_it in part.items():
            yield f"{title:<21} {name:<44} {format_size(size_of_it):>8}"
    for page, goes in reports_of(layout, garbage.objects):
        yield f"a report goes: {page}" if goes else f"a report stays without its results: {page}"


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return int(text)


def _age(text: str) -> float:
    """Seconds of `30d`, `12h` or `90m`."""
    units = {"d": 86400.0, "h": 3600.0, "m": 60.0}
    if text[-1:] not in units or not text[:-1].isdecimal():
        raise argparse.ArgumentTypeError("expected an age such as 30d, 12h or 90m")
    return int(text[:-1]) * units[text[-1]]
