"""`agentc store ls | verify | gc`: look at the store, check its bytes, delete what nobody needs."""

from __future__ import annotations

import argparse
import sys
import time

from agentc.cli.store_argument import add_store_argument

HELP = "list, verify or clean the store of results"

_EXIT_STORE = 4
_EXIT_NOT_FOUND = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    ls = actions.add_parser("ls", help="list the objects of the store, the latest last")
    ls.add_argument("--kind", help="only objects of this kind (sft, rollout, ...)")
    ls.add_argument("--json", action="store_true", help="one JSON object a line")
    verify = actions.add_parser(
        "verify", help="compare every file with its manifest; exit code 4 when one differs"
    )
    verify.add_argument("objects", nargs="*", metavar="KIND/KEY", help="default: all of them")
    gc = actions.add_parser(
        "gc", help="show what the last plan of no experiment needs; delete it with --delete"
    )
    gc.add_argument("--delete", action="store_true", help="really delete")
    gc.add_argument(
        "--environments", action="store_true", help="also software environments no plan uses"
    )
    for action, execute_action in ((ls, _ls), (verify, _verify), (gc, _gc)):
        add_store_argument(action)
        action.set_defaults(action=execute_action)


def execute(arguments: argparse.Namespace) -> int:
    """Exit code of the action; 4 when the store is damaged or unusable."""
    from agentc.runtime.layout import StoreLayout
    from agentc.store.paths import store_root

    root = store_root(arguments.store)
    if not root.is_dir():
        print(f"agentc: there is no store at {root}; --store names another", file=sys.stderr)
        return _EXIT_NOT_FOUND
    try:
        return int(arguments.action(arguments, StoreLayout(root)))
    except (OSError, ValueError) as error:
        print(f"agentc: the store is unusable: {error}", file=sys.stderr)
        return _EXIT_STORE


def _ls(arguments: argparse.Namespace, layout: object) -> int:
    import json

    from agentc.runtime.layout import StoreLayout
    from agentc.store.objects import list_objects

    assert isinstance(layout, StoreLayout)
    found, problems = list_objects(layout)
    found.sort(key=lambda stored: (stored.manifest.get("started") or 0, stored.name))
    for stored in found:
        manifest = stored.manifest
        if arguments.kind not in (None, manifest.get("kind")):
            continue
        if arguments.json:
            line = {"object": stored.name, "size": stored.size} | {
                name: manifest.get(name) for name in ("id", "type", "backend", "started", "wall_s")
            }
            print(json.dumps(line, sort_keys=True))
        else:
            started = manifest.get("started")
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(started)) if started else "?"
            seconds = manifest.get("wall_s") or 0.0
            print(
                f"{stored.name:<44} {manifest.get('type', '?'):<16} {shown_size(stored.size):>8}"
                f" {seconds:>8.1f} s  {when}  {manifest.get('id', '')}"
            )
    for problem in problems:
        print(f"damaged: {problem}", file=sys.stderr)
    return _EXIT_STORE if problems else 0


def _verify(arguments: argparse.Namespace, layout: object) -> int:
    from agentc.runtime.layout import StoreLayout
    from agentc.store.objects import Problem, list_objects, read_objects, verify_object

    assert isinstance(layout, StoreLayout)
    problems: list[Problem] = []
    if arguments.objects:
        unknown = [name for name in arguments.objects if not layout.object(name).is_dir()]
        if unknown:
            print(f"agentc: no such object in {layout.root}: {unknown[0]}", file=sys.stderr)
            return _EXIT_NOT_FOUND
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
            f" one's folder under {layout.root / 'objects'}; the next run makes it again.",
            file=sys.stderr,
        )
        return _EXIT_STORE
    print(f"{len(found)} objects are whole")
    return 0


def _gc(arguments: argparse.Namespace, layout: object) -> int:
    from agentc.runtime.layout import StoreLayout
    from agentc.store.gc import StoreBusyError, collect, find_garbage

    assert isinstance(layout, StoreLayout)
    garbage = find_garbage(layout, environments=arguments.environments)
    for title, part in (
        ("object", garbage.objects),
        ("unfinished work", garbage.staging),
        ("software environment", garbage.environments),
    ):
        for name, size in part.items():
            print(f"{title:<21} {name:<44} {shown_size(size):>8}")
    if not garbage:
        print("nothing to delete: the last plans and runs at work need everything that is there")
        return 0
    if not arguments.delete:
        print(f"{shown_size(garbage.size)} could be deleted; `agentc store gc --delete` does it")
        return 0
    try:
        kept = collect(layout, garbage)
    except StoreBusyError as error:
        print(f"agentc: {error}", file=sys.stderr)
        return _EXIT_STORE
    for name in kept:
        print(f"kept after all: {name}, which somebody works on or needs now")
    left = garbage.without(kept)
    print(f"deleted {shown_size(left.size)}")
    return 0


def shown_size(count: float) -> str:
    """Bytes for people: `12 kB`, `3.4 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
