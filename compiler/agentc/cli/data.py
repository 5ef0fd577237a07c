"""`agentc data ls | fetch | verify`: real data of environments that is not agentc's to ship."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import add_format_argument
from agentc.exit_codes import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_USAGE
from agentc.runtime.machine.output_filters import unguarded
from agentc.runtime.store.file_system import explain_start
from agentc.text import aligned, format_size

if TYPE_CHECKING:
    from agentc.backend_api import DataSet

HELP = "list, fetch or verify the real data that environments can use"

_EPILOG = """\
Environments that need data which agentc may not ship invent their tasks unless a spec names the
real ones. `fetch` gets those where their authors published them, makes the environment's form of
them and checks it by its hash; what differs is not kept. An interrupted download continues.

  agentc data fetch alfworld --to alfworld
  agentc data fetch alfworld --to alfworld --from json_2.1.3_tw-pddl.zip
"""
_EXIT_DIFFERS = 4
_PROGRESS_EVERY_S = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    ls = actions.add_parser("ls", help="what there is, a line for each; NAME: all about that one")
    ls.add_argument(
        "name", metavar="NAME", nargs="?", help="licence, addresses, and what a spec writes"
    )
    add_format_argument(ls, "json: an object a line")
    fetch = actions.add_parser("fetch", help="get one; exit code 3 where it cannot be had")
    fetch.add_argument("name", metavar="NAME")
    fetch.add_argument("--to", type=Path, metavar="DIR", help="default: ./NAME")
    fetch.add_argument(
        "--from",
        dest="given",
        action="append",
        default=[],
        metavar="[SOURCE=]PLACE",
        help="a file, a folder that holds what is in it, or another address, in place of the "
        "published one; SOURCE where there are several (`agentc data ls`)",
    )
    verify = actions.add_parser("verify", help="is a folder that data set? exit code 4 if not")
    verify.add_argument("name", metavar="NAME")
    verify.add_argument("path", type=Path, metavar="DIR")
    for action, execute_action in ((ls, _ls), (fetch, _fetch), (verify, _verify)):
        action.set_defaults(action=execute_action)


def execute(arguments: argparse.Namespace) -> int:
    """0 done; 2 a wrong --from or --to; 3 not to be had; 4 other content; 5 no such data set."""
    return int(arguments.action(arguments))


def _ls(arguments: argparse.Namespace) -> int:
    import json
    from dataclasses import asdict

    from agentc.backend_api import load_backends
    from agentc.data_sets.acquire import declared_data_sets

    declared = declared_data_sets(load_backends())
    if arguments.name is not None:
        if _declared(arguments.name) is None:
            return EXIT_NOT_FOUND
        declared = {arguments.name: declared[arguments.name]}
    if arguments.format == "json":
        for one, users in declared.values():
            print(json.dumps({**asdict(one), "backends": users}, sort_keys=True))
    elif arguments.name is not None:
        _show(*declared[arguments.name])
    else:
        rows = [(name, _size(one), one.doc) for name, (one, _) in declared.items()]
        print("\n".join(aligned(rows, right=(1,))))
        print("\n`agentc data ls NAME` shows licence, addresses, and what a spec writes")
    return 0


def _size(data_set: DataSet) -> str:
    return format_size(sum(source.size for source in data_set.sources))


def _show(data_set: DataSet, users: Sequence[str]) -> None:
    print(f"{data_set.name}: {data_set.doc}")
    print(f"  for       {', '.join(users)}: {data_set.use.format(path=data_set.name)}")
    print(f"  licence   {data_set.licence}")
    print(f"  download  {_size(data_set)}, unpacked {format_size(data_set.unpacked_size)}")
    for source in data_set.sources:
        place = f"{source.file} of {source.package}" if source.package else source.url
        print(f"  {source.name}: {place}")


def _fetch(arguments: argparse.Namespace) -> int:
    from agentc.data_sets.acquire import PINNED, AcquireError, acquire, differences
    from agentc.data_sets.download import DownloadError

    data_set = _declared(arguments.name)
    if data_set is None:
        return EXIT_NOT_FOUND
    folder = (arguments.to or Path(arguments.name)).resolve()
    given = _chosen_places(data_set, arguments.given)
    if given is None:
        return EXIT_USAGE
    if folder.exists():
        if differences(data_set, folder):
            print(
                f"agentc: {folder} is there and is not `{data_set.name}`; name another with --to",
                file=sys.stderr,
            )
            return EXIT_USAGE
        print(f"{folder} holds `{data_set.name}` already")
    else:
        try:
            acquire(data_set, folder, given, _Progress())
        except AcquireError as error:
            print(f"agentc: {error}", file=sys.stderr)
            return EXIT_FAILED
        except DownloadError as error:
            print(
                f"agentc: {error}\nThe same command continues with what is there. Without a "
                "network: get the file elsewhere and give it with `--from FILE`.",
                file=sys.stderr,
            )
            return EXIT_FAILED
        except OSError as error:
            print(f"agentc: {explain_start(error) or error}", file=sys.stderr)
            return EXIT_FAILED
        unknown = [name for name, digest in data_set.contents.items() if digest is None]
        checked = (
            f"no hash of {', '.join(unknown)} is published: pinned in {PINNED}, which `agentc data "
            "verify` compares with"
            if unknown
            else "checked by its hashes"
        )
        print(f"{folder} holds `{data_set.name}`; {checked}")
    print(f"in a spec (paths are relative to it): {data_set.use.format(path=folder)}")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from agentc.data_sets.acquire import differences

    data_set = _declared(arguments.name)
    if data_set is None:
        return EXIT_NOT_FOUND
    found = differences(data_set, arguments.path)
    for line in found:
        print(f"{arguments.path}: {line}", file=sys.stderr)
    if found:
        return _EXIT_DIFFERS
    print(f"{arguments.path} holds `{data_set.name}`")
    return 0


class _Progress:
    """Redraws a line on a terminal; else says something now and then."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, there: int, total: int | None) -> None:

        now, live = time.monotonic(), sys.stderr.isatty()
        done = there == total
        if now - self._told < (0.1 if live else _PROGRESS_EVERY_S) and not (done and live):
            return
        self._told = now
        of = "" if total is None else f" of {format_size(total)}"
        end = "\n" if done or not live else ""
        line = f"{chr(13) if live else ''}{format_size(there)}{of} "
        print(line, end=end, file=unguarded(sys.stderr))
        sys.stderr.flush()


def _declared(name: str) -> DataSet | None:
    """None, said on stderr, when there is no such data set."""
    from agentc.backend_api import load_backends
    from agentc.data_sets.acquire import declared_data_sets
    from agentc.diagnostics.suggest import did_you_mean

    found = declared_data_sets(load_backends())
    if name in found:
        return found[name][0]
    hint = did_you_mean(name, list(found)) or f"there are: {', '.join(found) or 'none'}"
    print(f"agentc: no data set `{name}`; {hint}", file=sys.stderr)
    return None


def _chosen_places(data_set: DataSet, written: list[str]) -> dict[str, str] | None:
    """Places by source; None, said on stderr, where it is not clear which source is meant."""
    names = [source.name for source in data_set.sources]
    given: dict[str, str] = {}
    for each in written:
        name, equals, place = each.partition("=")
        if equals and name in names:
            given[name] = place
        elif len(names) == 1:
            given[names[0]] = each
        else:
            print(
                f"agentc: `{data_set.name}` comes from {len(names)} files: write "
                f"`--from {names[0]}=PLACE` (there are {', '.join(names)})",
                file=sys.stderr,
            )
            return None
    return given
