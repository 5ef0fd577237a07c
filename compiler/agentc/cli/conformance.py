"""`agentc dev conformance ID...`: hold installed backends to what the compiler promises."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.exit_codes import EXIT_USAGE, CommandError

if TYPE_CHECKING:
    from agentc.backend_api import Backend, BackendTable
    from agentc.conformance import BackendUnderTest, Check

HELP = "hold a backend to the conformance kit (for authors of backends)"

_EPILOG = """\
A backend conforms when every setting that it reads changes what its job receives, every other is
refused by name, lowering is pure, its programs exist, and its lock pins exactly; see
docs/backends_guide.md. Exit codes: 0 it conforms, 1 it does not, 5 there is no such backend.

  agentc dev conformance acme.pair
  agentc dev conformance world.py
  agentc dev conformance acme.sft --set lr=1e-3 --try tokenizer=other.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "ids",
        metavar="ID",
        nargs="+",
        help="of installed backends, `acme.pair`; or "
        "`world.py`, a file or package of a trusted folder",
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[],
        help="a setting that the backend needs to lower at all (YAML)",
    )  # fmt: skip
    parser.add_argument(
        "--try", metavar="NAME=VALUE", action="append", default=[], dest="tried",
        help="a second valid value of a setting, where the kit cannot guess one (YAML)",
    )  # fmt: skip
    parser.add_argument(
        "--run", action="store_true",
        help="start the programs too: jobs as far as reading their config, servers of environments "
        "for episodes",
    )  # fmt: skip
    parser.add_argument("--store", metavar="DIR", help="whose software stacks --run uses")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every setting")


def execute(arguments: argparse.Namespace) -> int:
    """0 all conform; 1 one does not; 2 a value is no YAML; 5 an unknown id."""
    from agentc.backend_api import BackendTable, load_backends
    from agentc.backend_api.table import BackendsBeside
    from agentc.diagnostics.suggest import did_you_mean

    table = load_backends()
    ids: list[str] = []
    for name in arguments.ids:
        if name in table.backends or not _is_path(name):
            ids.append(name)
        else:
            loaded = _loaded(Path(name), table)
            ids += [backend.id for backend in loaded]
            own = {backend.id: backend for backend in loaded}
            table = BackendTable(BackendsBeside(own, table.backends), table.broken)
    given, tried = _values(arguments.set), _values(arguments.tried)
    if given is None or tried is None:
        return EXIT_USAGE
    code = 0
    for name in ids:
        if name in table.backends:
            tries = {path: [value] for path, value in tried.items()}
            conforms = _examine(name, table, given, tries, arguments)
            code = max(code, 0 if conforms else 1)
            continue
        complaints = [complaint for complaint in table.broken if name in complaint.split()]
        for complaint in complaints:
            print(f"agentc: {complaint}", file=sys.stderr)
        if not complaints:
            hint = did_you_mean(name, table.backends) or "`agentc dev schema` has what is installed"
            print(f"agentc: no installed backend is called {name}; {hint}", file=sys.stderr)
        code = max(code, 1 if complaints else 5)
    return code


class LocalFileError(CommandError):
    """A file whose backends cannot be examined, for the reason that the message says."""

    exit_code = EXIT_USAGE


def _is_path(name: str) -> bool:
    return name.endswith(".py") or "/" in name


def _loaded(path: Path, table: BackendTable) -> Sequence[Backend]:
    """The backends of a file or package that is not installed. Raises LocalFileError."""
    from agentc.front.local_backends import LocalCodeError, load_local, refusal_to_load
    from agentc.source.files import allowed_code

    place = path.resolve()
    trusted = any(place.is_relative_to(folder.resolve()) for folder in allowed_code())
    if place.exists() and not trusted:
        refusal = refusal_to_load(place)
        if refusal is not None:
            why = f" ({refusal})" if refusal else ""
            raise LocalFileError(
                f"{path} is code that would run inside agentc; if you trust it: "
                f"`agentc trust {shlex.quote(str(path.parent))}`{why}"
            )
    try:
        return load_local(place, table.backends).backends
    except LocalCodeError as error:
        raise LocalFileError(f"{path} gives no backends: {error}") from None


def _examine(
    name: str,
    table: BackendTable,
    given: dict[str, Any],
    tried: dict[str, list[Any]],
    arguments: argparse.Namespace,
) -> bool:
    import tempfile

    from agentc.conformance import BackendUnderTest, Bench, checks_of
    from agentc.conformance.programs import built_pythons
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.paths import store_root

    pythons = built_pythons(StoreLayout(store_root(arguments.store))) if arguments.run else {}
    with tempfile.TemporaryDirectory(prefix="agentc-conformance-") as folder:
        subject = BackendUnderTest(
            backend=table.backends[name],
            bench=Bench(table=table, directory=Path(folder)),
            given=given,
            tried=tried,
            pythons=pythons,
        )
        return _show(subject, checks_of(subject, run_programs=arguments.run), arguments.verbose)


def _show(subject: BackendUnderTest, checks: Sequence[Check], verbose: bool) -> bool:
    backend = subject.backend
    print(f"{backend.id}, version {backend.version}: {backend.doc}")
    passed, flipped, failed = 0, 0, 0
    for check, result, message in _results(checks):
        setting = check.name.startswith("setting ")
        passed += result == "passed"
        flipped += result == "passed" and setting
        failed += result == "FAILED"
        if result != "passed" or verbose or not setting:
            line = f"  {result:<8} {check.name}: {check.promise}"
            print(line if message is None else f"{line}\n           {message}")
    if flipped and not verbose:
        print(f"  passed   {flipped} settings: each is honoured, or refused by name")
    print(f"  {'it conforms' if not failed else f'{failed} of {len(checks)} checks failed'}")
    return failed == 0


def _results(checks: Iterable[Check]) -> Iterable[tuple[Check, str, str | None]]:
    from agentc.conformance import Fault, Skipped

    for check in checks:
        try:
            check.run()
        except Fault as fault:
            yield check, "FAILED", str(fault)
        except Skipped as reason:
            yield check, "skipped", str(reason)
        else:
            yield check, "passed", None


def _values(words: Sequence[str]) -> dict[str, Any] | None:
    import yaml

    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            equals = ""
        if not equals:
            print(f"agentc: {word!r} is not NAME=VALUE with a value in YAML", file=sys.stderr)
            return None
        found[name] = value
    return found
