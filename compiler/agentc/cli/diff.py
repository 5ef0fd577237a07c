"""`agentc diff A B`: how two specs, or two runs, differ in their results, and why."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.cli.arguments import (
    add_allow_path_argument,
    add_format_argument,
    names_spec,
    parse_param,
    show_diagnostics,
    wants_colour,
)
from agentc.cli.parser import add_store_argument
from agentc.runtime.store.layout import StoreLayout

HELP = "compare two specs or runs, or a spec with its last run: what differs in their results"

_EPILOG = """\
A and B are specs, or runs by the name of their experiment (the last run) or with a number
(`quickstart@3`: its third run). -p and --scale after a spec are for that spec, before both
for both. A spec without a B is compared with its last run:
  agentc diff specs/quickstart.yaml
  agentc diff specs/quickstart.yaml specs/quickstart.yaml -p seed=1
  agentc diff quickstart specs/quickstart.yaml

exit codes:
  0 same results (placement and texts may differ)      1 different results
  2 a spec has errors, or a wrong command line         5 no such run
"""
_EXIT_DIFFERENT, _EXIT_TROUBLE = 1, 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    own = "[-p NAME=VALUE] [--scale NAME]"
    form = "[--format {text,json}]"
    parser.usage = f"agentc diff [-h] [--allow-path DIR] [--store DIR] {form} A {own} [B {own}]"
    parser.add_argument("first", action=_Side, metavar="A", help="a spec, or a run")
    second = parser.add_argument(
        "second", action=_Side, metavar="B", help="another one; default: the last run of A"
    )
    # Not nargs="?", which argparse reads as absent where options follow A.
    second.required = False
    parser.add_argument(
        "-p",
        "--param",
        dest="params",
        action=_SideParam,
        default=({}, {}),
        metavar="NAME=VALUE",
        help="value of a param of the spec before it",
    )
    parser.add_argument(
        "--scale",
        dest="scales",
        action=_SideScale,
        default=(None, None),
        metavar="NAME",
        help="one of the `scales:` of the spec before it",
    )
    add_allow_path_argument(parser)
    add_store_argument(parser)
    add_format_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 same, 1 different, 2 trouble with a spec, 5 no such run."""
    from agentc.plan.comparison import compare_documents, comparison_document, comparison_text
    from agentc.plan.tree import coloured
    from agentc.source.files import allowed_paths
    from agentc.store.paths import readable_store, variant_of

    layout = readable_store(arguments.store)
    allowed = allowed_paths(arguments.allow_paths)
    names = [name for name in (arguments.first, arguments.second) if name is not None]
    if len(names) == 1 and not names_spec(names[0]):
        print(
            f"agentc: {names[0]} is a run: name what to compare it with, such as "
            f"`agentc diff {names[0]} SPEC`",
            file=sys.stderr,
        )
        return _EXIT_TROUBLE
    documents, titles = [], []
    for name, params, scale in zip(names, arguments.params, arguments.scales, strict=False):
        document = _document(name, params, scale, allowed, layout)
        if document is None:
            return _EXIT_TROUBLE
        documents.append(document)
        titles.append(_title(name, params, scale))
    if len(names) == 1:
        last = _last_run(documents[0], layout)
        documents.insert(0, last)
        titles.insert(0, f"the last run ({variant_of(last).label})")
    found = compare_documents(documents[0], documents[1], (titles[0], titles[1]))
    if arguments.format == "json":
        print(json.dumps(comparison_document(found), indent=2, ensure_ascii=False))
    else:
        text = comparison_text(found)
        print(coloured(text) if wants_colour(sys.stdout) else text, end="")
    return 0 if found.same else _EXIT_DIFFERENT


def _title(name: str, params: Mapping[str, str], scale: str | None) -> str:
    """`quickstart.yaml (scale smoke, seed=1)`: two sides of one spec must not look alike."""
    parts = [f"scale {scale}"] if scale else []
    parts += [f"{param}={value}" for param, value in params.items()]
    return f"{name} ({', '.join(parts)})" if parts else name


def _document(
    name: str,
    params: Mapping[str, str],
    scale: str | None,
    allowed: Sequence[Path],
    layout: StoreLayout,
) -> Mapping[str, Any] | None:
    """The plan that is meant; None when it is a spec with errors, which were shown, or a run that
    was given params."""
    from agentc.run.past import find_past

    if not names_spec(name):
        if params or scale:
            print(f"agentc: {name} is a run, its params and scale are set", file=sys.stderr)
            return None
        return find_past(layout, name)
    from agentc.backend_api import load_backends
    from agentc.compilation import compile_spec
    from agentc.plan.render import plan_document

    compiled = compile_spec(
        Path(name), params, load_backends(), scale=scale, moving=True, allowed=allowed
    )
    show_diagnostics([d for d in compiled.diagnostics if d.severity == "error"])
    return None if compiled.plan is None else plan_document(compiled.plan)


def _last_run(document: Mapping[str, Any], layout: StoreLayout) -> Mapping[str, Any]:
    """The plan of the last run of a spec: of the same variant, else of any. Raises
    UnknownRunError."""
    from agentc.run.past import UnknownRunError, path_before, read_past

    name = document["name"]
    path = path_before(layout, document)
    if path is None:
        raise UnknownRunError(
            f"no run of `{name}` with the store {layout.root}: run it once with `agentc run`, or "
            "name a second spec"
        )
    past = read_past(path)
    if past is None:
        raise UnknownRunError(f"the plan of the last run of `{name}` ({path}) cannot be read")
    return past


class _Side(argparse.Action):
    """Remembers in `side` how many of A and B were read."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)
        namespace.side = getattr(namespace, "side", 0) + 1


class _SideParam(argparse.Action):
    """Collects `name=value` for the side that was read last, or for both."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given = parse_param(parser, str(values))
        side = getattr(namespace, "side", 0)
        first, second = getattr(namespace, self.dest)
        if side in (0, 1):
            first = {**first, **given}
        if side in (0, 2):
            second = {**second, **given}
        setattr(namespace, self.dest, (first, second))


class _SideScale(argparse.Action):
    """The scale of the side that was read last, or of both."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        side = getattr(namespace, "side", 0)
        first, second = getattr(namespace, self.dest)
        given = str(values)
        first, second = (first if side == 2 else given), (second if side == 1 else given)
        setattr(namespace, self.dest, (first, second))
