"""`agentc serve NAME [SETTING=VALUE...]`: one environment's server, started by hand."""

from __future__ import annotations

import argparse
import ipaddress
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    Param,
    add_allow_path_argument,
    compile_typed,
    print_diagnostics,
    show_diagnostics,
)
from agentc.exit_codes import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_SPEC, EXIT_USAGE

if TYPE_CHECKING:
    from agentc.serving.entry import EnvironmentEntry


HELP = "serve an environment by hand, until Ctrl-C"

_EPILOG = """\
Settings are those of an entry under `environments:`, with values in YAML, and checked alike. The
software stack is built on first use. Without $AGENTC_TOKEN in the shell a token is drawn.
An environment that calls a model (`simulator`) is served from a spec, where that model is an
external endpoint (`backend: openai`).

  agentc serve textcraft max_depth=2
  agentc serve --spec specs/quickstart.yaml practice --port 8000
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_entry_arguments(parser)
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s, loopback")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument(
        "--no-token", action="store_true", help="let anybody in; on a loopback address only"
    )
    parser.add_argument("--store", metavar="DIR", help="whose software stacks are used")
    parser.set_defaults(locked=False)


def add_entry_arguments(parser: argparse.ArgumentParser) -> None:
    """Which environment is meant, and its settings."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME",
        help="a backend such as textcraft; with --spec an entry of its `environments:`",
    )  # fmt: skip
    parser.add_argument(
        "settings", nargs="*", metavar="SETTING=VALUE", help="of the entry, in YAML"
    )
    parser.add_argument("--spec", type=Path, metavar="SPEC", help="an environment of a spec")
    parser.add_argument(
        "-p", "--param", dest="params", action=Param, default={}, metavar="NAME=VALUE",
        help="value of one of the spec's params",
    )  # fmt: skip
    parser.add_argument("--scale", metavar="NAME", help="one of the spec's `scales:`")
    add_allow_path_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 stopped; 1 errors in settings or spec; 2 wrong command line; 3 the server cannot start, or
    ended by itself; 5 no such entry."""
    complaint = _wrong_with(arguments)
    if complaint is not None:
        print(f"agentc: {complaint}", file=sys.stderr)
        return EXIT_USAGE
    found = entry_of(arguments)
    return found if isinstance(found, int) else _host(found, arguments)


def entry_of(arguments: argparse.Namespace) -> EnvironmentEntry | int:
    """The entry that a command line names, its faults shown; an exit code where there is none."""
    return _from_spec(arguments) if arguments.spec is not None else _typed(arguments)


def wrong_entry(arguments: argparse.Namespace) -> str | None:
    """What is wrong with how a command line names an environment."""
    if arguments.spec is None and arguments.name is None:
        return "name a backend, such as textcraft, or a spec with --spec"
    if arguments.spec is not None and arguments.settings:
        return "with --spec the settings are the spec's; write them there, or use -p and --scale"
    if arguments.spec is None and (arguments.params or arguments.scale):
        return "-p and --scale are for --spec; settings are given as SETTING=VALUE"
    wrong = next((word for word in arguments.settings if "=" not in word[1:]), None)
    if wrong is not None:
        return f"a setting is SETTING=VALUE, not `{wrong}`"
    return None


def _wrong_with(arguments: argparse.Namespace) -> str | None:
    complaint = wrong_entry(arguments)
    if complaint is not None:
        return complaint
    if not 0 <= arguments.port <= 65535:
        return f"--port {arguments.port} is no port: 1 to 65535, or 0 for a free one"
    if arguments.no_token and not _is_loopback(arguments.host):
        return f"--no-token would let everybody who reaches {arguments.host} in; leave it out"
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _typed(arguments: argparse.Namespace) -> EnvironmentEntry | int:
    from agentc.backend_api import load_backends
    from agentc.diagnostics import Sink
    from agentc.serving.entry import as_typed, typed_entry
    from agentc.source.files import allowed_paths

    sink = Sink()
    pairs = [word.partition("=") for word in arguments.settings]
    settings = [(name, value) for name, _, value in pairs]
    entry = typed_entry(
        arguments.name,
        settings,
        load_backends(),
        sink,
        directory=Path.cwd(),
        allowed=allowed_paths(arguments.allow_paths),
    )
    show_diagnostics(as_typed(sink.sorted(), settings))
    return EXIT_SPEC if entry is None else entry


def _from_spec(arguments: argparse.Namespace) -> EnvironmentEntry | int:
    from agentc.backend_api import load_backends
    from agentc.diagnostics import Sink
    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.passes import PassContext
    from agentc.serving.entry import module_entry
    from agentc.source.files import allowed_paths, folder_of

    table = load_backends()
    compiled = compile_typed(arguments, table)
    print_diagnostics(compiled, arguments)
    if compiled.plan is None or compiled.module is None:
        return EXIT_SPEC
    names = list(compiled.module.environments)
    name = arguments.name or (names[0] if len(names) == 1 else None)
    if name not in names:
        has = f"it has {listed(names)}" if names else "it has none"
        if name is None:
            print(f"agentc: say which environment of the spec: {has}", file=sys.stderr)
            return EXIT_USAGE
        hint = did_you_mean(name, names) or has
        print(f"agentc: the spec has no environment `{name}`; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    context = PassContext(
        table=table,
        sink=Sink(),
        directory=folder_of(arguments.spec),
        references=compiled.references,
        allowed=allowed_paths(arguments.allow_paths),
    )
    entry = module_entry(compiled.module, name, context)
    show_diagnostics(context.sink.sorted())
    return EXIT_SPEC if entry is None else entry


def _host(entry: EnvironmentEntry, arguments: argparse.Namespace) -> int:
    from tempfile import TemporaryDirectory

    from agentc.runtime.machine.process import StoppedError
    from agentc.runtime.servers.server_process import LeaseError
    from agentc.runtime.software.job_software import SoftwareError
    from agentc.serving.hosting import PORT_TAKEN, Address, episode_lines, hosted
    from agentc.store.paths import open_store

    name = entry.backend.id
    if not entry.backend.available or entry.lease.port == "none":
        where = entry.lease.url or "nowhere yet"
        print(f"agentc: {name} starts no server: it is at {where}", file=sys.stderr)
        return EXIT_FAILED
    token = "" if arguments.no_token else os.environ.get("AGENTC_TOKEN") or secrets.token_hex(16)
    address = Address(arguments.host, arguments.port, token)

    def report(line: str) -> None:
        print(f"{entry.software.name}: {line}", file=sys.stderr, flush=True)

    try:
        with (
            TemporaryDirectory(prefix="agentc-serve-") as folder,
            hosted(entry, address, open_store(arguments.store), Path(folder), report) as server,
        ):
            print(f"{name} is at {server.url}, ready in {server.ready_s:.1f} s; Ctrl-C ends it")
            print(f"token: {token or 'none is asked for'}")
            print("an episode, from another shell (its number is what /create answers):")
            print("\n".join(f"  {line}" for line in episode_lines(server.url, token)), flush=True)
            print(f"agentc: {server.wait()}", file=sys.stderr)
            return EXIT_FAILED
    except StoppedError:
        print(f"{name}: stopped", flush=True)
        return 0
    except (LeaseError, SoftwareError, OSError) as error:
        taken = arguments.port and any(sign in str(error).lower() for sign in PORT_TAKEN)
        message = f"port {arguments.port} is taken; name another one" if taken else str(error)
        print(f"agentc: {message}", file=sys.stderr)
        return EXIT_FAILED
