"""`agentc software ...`: the software stacks that job programs run in, and their locks."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_format_argument,
    add_locked_argument,
    add_spec_arguments,
    compile_typed,
    print_diagnostics,
    show_diagnostics,
)
from agentc.cli.parser import add_store_argument
from agentc.exit_codes import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_SPEC, EXIT_STORE, EXIT_USAGE
from agentc.text import aligned, format_size

if TYPE_CHECKING:
    from agentc.runtime.store.layout import StoreLayout
    from agentc.software.inventory import Installed


HELP = "build, list, verify or remove the software stacks of backends"

_EPILOG = """\
Each backend's programs run in a software stack built from its lock: kept in the store by the
lock's digest, or in the folder $AGENTC_SOFTWARE, which several stores may share. `agentc run`
builds what is missing; `agentc software sync` does so ahead of time, on a cluster's login node say.
See docs/software.md.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    sync = actions.add_parser("sync", help="build what a spec needs and is not there yet")
    add_spec_arguments(sync, optional=True)
    add_locked_argument(sync)
    sync.add_argument("--all", action="store_true", help="those of every installed backend")
    sync.add_argument(
        "-j", "--jobs", type=int, default=3, metavar="N", help="builders at once (default: 3)"
    )
    ls = actions.add_parser(
        "ls", help="list what is built: Python, packages, size, last use, users"
    )
    add_format_argument(ls, "json: an object a line")
    verify = actions.add_parser(
        "verify", help="compare interpreter and files with what was built; exit code 4 on damage"
    )
    verify.add_argument("names", nargs="*", metavar="NAME", help="names or digests; default: all")
    verify.add_argument(
        "--imports", action="store_true", help="also import every package that the locks pin"
    )
    rm = actions.add_parser("rm", help="delete stacks by name or digest")
    rm.add_argument("names", nargs="+", metavar="NAME")
    gc = actions.add_parser(
        "gc", help="show what no backend, no last plan and no recent run uses; --delete deletes it"
    )
    gc.add_argument("--delete", action="store_true", help="really delete")
    gc.add_argument(
        "--days", type=float, default=30.0, metavar="N", help="unused for so long (default: 30)"
    )
    hashes = actions.add_parser("hash", help=_HASH_HELP)
    _configure_hash(hashes)
    hashes.set_defaults(store=None, action=lambda arguments, layout: _hash(arguments))
    for action, execute_action in (
        (sync, _sync),
        (ls, _ls),
        (verify, _verify),
        (rm, _rm),
        (gc, _gc),
    ):
        add_store_argument(action)
        action.set_defaults(action=execute_action)


def execute(arguments: argparse.Namespace) -> int:
    """0 done; 1 errors in the spec; 3 a stack cannot be built; 4 damage, or a folder that
    cannot be used; 5 no such stack."""
    from agentc.store.paths import readable_store

    try:
        return int(arguments.action(arguments, readable_store(arguments.store)))
    except BrokenPipeError:  # the reader of the list has exited: `agentc software | head`
        raise
    except OSError as error:
        print(f"agentc: the software stacks cannot be used: {error}", file=sys.stderr)
        return EXIT_STORE


def _sync(arguments: argparse.Namespace, layout: StoreLayout) -> int:
    from agentc.backend_api import load_backends
    from agentc.diagnostics import Sink
    from agentc.runtime.software.job_software import SoftwareError
    from agentc.software.build import Progress, build_all
    from agentc.software.requirements import (
        needed_by_backends,
        needed_by_plan,
        report_lacking,
    )
    from agentc.tracking.choice import choose_trackers

    if (arguments.spec is None) != arguments.all:
        print("agentc: say which: `agentc software sync SPEC`, or `--all`", file=sys.stderr)
        return EXIT_USAGE
    table = load_backends()
    if arguments.all:
        needed = needed_by_backends(table)
    else:
        compiled = compile_typed(arguments, table)
        print_diagnostics(compiled, arguments)
        if compiled.plan is None:
            return EXIT_SPEC
        written = () if compiled.module is None else compiled.module.track
        trackers = choose_trackers(written, None, Sink())
        needed = (*needed_by_plan(compiled.plan), *(stack.needed for stack in trackers))
    lacking = Sink()
    report_lacking(needed, layout, lacking)
    if lacking.has_errors:
        show_diagnostics(lacking.sorted())
        if not arguments.all:
            return EXIT_FAILED
    began = time.time()
    missing = [stack for stack in needed if not stack.ready(layout)]
    for stack in needed:
        if stack not in missing:
            print(f"{stack.name}: ready")
    try:
        with Progress(missing, sys.stdout) as progress:
            build_all(
                missing,
                layout,
                progress.report,
                at_once=arguments.jobs,
                spec_directory=arguments.spec and arguments.spec.parent,
            )
    except SoftwareError as error:
        print(f"agentc: {error}", file=sys.stderr)
        return EXIT_FAILED
    if missing:
        print(f"{len(missing)} built in {time.time() - began:.0f} s, in {layout.software}")
    return 0


def _ls(arguments: argparse.Namespace, layout: StoreLayout) -> int:
    import json

    installed = _installed(layout)
    if not installed and arguments.format != "json":
        print(f"no software stack is built in {layout.software}")
        return 0
    rows = [("name", "digest", "python", "packages", "size", "last used", "state", "used by")]
    for stack in installed:
        size = stack.size()
        last = stack.used
        used = "" if last is None else time.strftime("%Y-%m-%d", time.localtime(last))
        if arguments.format == "json":
            line = {
                "names": stack.names,
                "digest": stack.digest,
                "lock": stack.record.get("lock"),
                "python": stack.record.get("python"),
                "interpreter": stack.record.get("interpreter"),
                "container": stack.record.get("container"),
                "versions": stack.record.get("versions"),
                "size": size,
                "used": stack.used,
                "state": stack.state,
                "users": stack.users,
                "path": str(stack.path),
            }
            print(json.dumps(line, sort_keys=True))
            continue
        more = f" +{len(stack.users) - 3}" if stack.users[3:] else ""
        users = ", ".join(stack.users[:3]) + more
        rows.append(
            (
                ", ".join(stack.names) or "-",
                stack.digest,
                str(stack.record.get("python") or "-"),
                str(len(stack.record.get("versions") or ())),
                format_size(size),
                used or "-",
                stack.state,
                users or "-",
            )
        )
    if arguments.format != "json":
        print("\n".join(aligned(rows)))
        print(f"in {layout.software}")
    return 0


def _verify(arguments: argparse.Namespace, layout: StoreLayout) -> int:
    from agentc.software.verify import verify_software

    chosen = _chosen(arguments.names, layout)
    if chosen is None:
        return EXIT_NOT_FOUND
    damaged = []
    for installed in chosen:
        problems = verify_software(installed, imports=arguments.imports)
        print(
            f"{installed.label} ({installed.digest}): {'damaged' if problems else 'whole'}",
            flush=True,
        )
        for problem in problems:
            print(f"  {problem}", file=sys.stderr)
        if problems:
            damaged.append(installed)
    if damaged:
        names = " ".join(installed.digest for installed in damaged)
        print(
            f"to have them built again: `agentc software rm {names}`; the next run, or"
            " `agentc software sync`, makes them again",
            file=sys.stderr,
        )
        return EXIT_STORE
    return 0


def _rm(arguments: argparse.Namespace, layout: StoreLayout) -> int:
    chosen = _chosen(arguments.names, layout)
    if chosen is None:
        return EXIT_NOT_FOUND
    return _remove(chosen)


def _gc(arguments: argparse.Namespace, layout: StoreLayout) -> int:
    from agentc.software.inventory import unused

    unused_ones = unused(_installed(layout), arguments.days)
    for installed in unused_ones:
        size = format_size(installed.size())
        print(f"{installed.label:<24} {installed.digest}  {size:>8}  {installed.state}")
    if not unused_ones:
        print("nothing to delete: everything is used, or was used lately")
        return 0
    if not arguments.delete:
        print("`agentc software gc --delete` deletes them")
        return 0
    return _remove(unused_ones)


def _remove(chosen: tuple[Installed, ...]) -> int:
    from agentc.software.inventory import SoftwareInUseError, remove_software

    code = 0
    for installed in chosen:
        size = installed.size()
        try:
            remove_software(installed)
        except SoftwareInUseError as error:
            print(f"agentc: {error}; it stays", file=sys.stderr)
            code = EXIT_STORE
        else:
            print(f"deleted {installed.label} ({installed.digest}), {format_size(size)}")
    return code


def _installed(layout: StoreLayout) -> tuple[Installed, ...]:
    from agentc.backend_api import installed_trackers, load_backends
    from agentc.software.inventory import list_installed
    from agentc.software.requirements import needed_by_backends, needed_by_tracker

    of_trackers = map(needed_by_tracker, installed_trackers().values())
    return list_installed(layout, [*needed_by_backends(load_backends()), *of_trackers])


def _chosen(names: list[str], layout: StoreLayout) -> tuple[Installed, ...] | None:
    """What the names mean (all, without names); None, said on stderr, when one means nothing."""
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.software.inventory import find_installed

    installed = _installed(layout)
    chosen: dict[Path, Installed] = {} if names else {stack.path: stack for stack in installed}
    for name in names:
        meant = find_installed(installed, name)
        if not meant:
            known = sorted({name for stack in installed for name in (*stack.names, stack.digest)})
            hint = did_you_mean(name, known) or f"there are: {', '.join(known) or 'none'}"
            print(
                f"agentc: no software stack `{name}` in {layout.software}; {hint}",
                file=sys.stderr,
            )
            return None
        chosen |= {stack.path: stack for stack in meant}
    return tuple(chosen.values())


_HASH_HELP = "put the hashes of its packages' files into a lock, without changing a version"
_EXIT_ERROR = 1


def _configure_hash(parser: argparse.ArgumentParser) -> None:
    """Arguments of the action."""
    parser.add_argument("locks", nargs="+", type=Path, metavar="LOCK", help="lock files")
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a wheel or source of a pinned version that the index does not have, such as your own"
        " build; may be given several times",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 where a hash is missing"
    )


def _hash(arguments: argparse.Namespace) -> int:
    """0 done; 1 a hash is missing or cannot be found; 5 no such file; 4 it cannot be written."""
    from agentc.runtime.software.lock_text import LockTextError, enumerate_names, read_lock_text
    from agentc.software.hashing import HashingError, with_hashes

    code = 0
    for lock in arguments.locks:
        try:
            text = lock.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            print(f"agentc: {lock} cannot be read: {error}", file=sys.stderr)
            return EXIT_NOT_FOUND
        try:
            if arguments.check:
                lacking = read_lock_text(text).unhashed
                if lacking:
                    print(f"{lock}: no hash for {enumerate_names(lacking)}")
                    code = _EXIT_ERROR
                continue
            hashed = with_hashes(text, arguments.file, directory=lock.parent)
        except (HashingError, LockTextError, OSError) as error:
            print(f"agentc: {lock}: {error}", file=sys.stderr)
            return _EXIT_ERROR
        if hashed == text:
            print(f"{lock}: has them all")
            continue
        try:
            lock.write_text(hashed, encoding="utf-8")
        except OSError as error:
            print(f"agentc: {lock} cannot be written: {error}", file=sys.stderr)
            return EXIT_STORE
        print(f"{lock}: {hashed.count('--hash=') - text.count('--hash=')} hashes added")
    return code
