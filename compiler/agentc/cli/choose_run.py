"""Which run is meant: by NAME, by label, by SPEC, with `--scale` and `-p` as they were run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_allow_path_argument,
    add_param_argument,
    compile_typed,
    names_spec,
    show_diagnostics,
)
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_SPEC, CommandError
from agentc.store.paths import FULL

if TYPE_CHECKING:
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.paths import Variant
    from agentc.store.run_history import PastRun


class NoRunError(CommandError):
    """None is meant; the message (empty when the reason was shown) and the exit code say why."""

    def __init__(self, message: str, code: int = EXIT_NOT_FOUND) -> None:
        super().__init__(message)
        self.exit_code = code


def add_run_choice(parser: argparse.ArgumentParser, default: str = "the one run last") -> None:
    """NAME|SPEC, --scale and -p."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME|SPEC",
        help=f"the experiment, by name or by its spec (default: {default}); `agentc status"
        " --all-runs` lists what was run",
    )
    add_variant_arguments(parser)


def add_variant_arguments(parser: argparse.ArgumentParser) -> None:
    """--scale and -p, as the run had them."""
    parser.add_argument(
        "--scale", metavar="NAME", help=f"its scale; `{FULL}` is the spec as it is written"
    )
    add_param_argument(parser, "a param of it")
    add_allow_path_argument(parser)
    parser.set_defaults(locked=False)


def choose_run(
    layout: StoreLayout, given: str | None, arguments: argparse.Namespace, *, quiet: bool = False
) -> PastRun:
    """The run that is meant. Where a name alone leaves several variants it is the latest, and
    standard error has the others. Raises NoRunError."""
    from agentc.store.run_history import list_runs

    runs = list_runs(layout)
    scale, params = arguments.scale, arguments.params
    if given is not None and names_spec(given):
        variant = _variant_of_spec(given, arguments)
        return _of_spec(runs, variant, layout, any_variant=scale is None and not params)
    _refuse_damaged(layout, given, runs)
    if not runs:
        subject = "" if given is None else f"`{given}` was not run: "
        raise NoRunError(f"{subject}nothing was run with the store {layout.root} yet")
    exact = [run for run in runs if run.label == given] if given and "@" in given else []
    if exact:
        return exact[0]
    fitting = _fitting(runs, given, scale, params)
    others = [run for run in fitting if run.variant != fitting[0].variant]
    if others and given is not None and not quiet:
        print(
            f"agentc: {given} was run in several ways, last as {fitting[0].label}, which this is;"
            f" --scale and -p choose among {_listed(fitting)}",
            file=sys.stderr,
        )
    return fitting[0]


def _refuse_damaged(layout: StoreLayout, given: str | None, runs: Sequence[PastRun]) -> None:
    """Raises NoRunError where the record of the run is damaged, or that of every run."""
    from agentc.store.run_history import damaged_runs

    lost = {run.label: run.why for run in damaged_runs(layout)}
    if lost and (given in lost or not runs):
        why = lost.get(str(given)) or next(iter(lost.values()))
        raise NoRunError(f"the record of the run is damaged: {why}; running it again repairs it")


def _fitting(
    runs: Sequence[PastRun], given: str | None, scale: str | None, params: Mapping[str, str]
) -> list[PastRun]:
    """The runs of that name, scale and params, at least one. Raises NoRunError."""
    from agentc.diagnostics.suggest import did_you_mean, listed

    named = [run for run in runs if given in (None, run.variant.name)]
    if not named:
        names = [*dict.fromkeys(run.variant.name for run in runs), *(run.label for run in runs)]
        hint = did_you_mean(str(given), names) or f"known: {listed(dict.fromkeys(names))}"
        raise NoRunError(f"no run of `{given}`; {hint}")
    fitting = [run for run in named if _fits(run, scale, params)]
    if not fitting:
        options = " ".join(_words(scale, params))
        raise NoRunError(
            f"no run{f' of `{given}`' if given else ''} with {options}; there are {_listed(named)}"
        )
    if scale is not None and not params:
        # As `run --scale` without -p: every param has its default.
        fitting = [run for run in fitting if not run.variant.chosen] or fitting
    return fitting


def _options_of(variant: Variant, scales: Collection[str | None]) -> str:
    """What chooses a variant, beside its name, where runs have these scales."""
    full = FULL if len(scales) > 1 else None
    return " ".join(_words(variant.scale or full, variant.chosen))


def _of_spec(
    runs: Sequence[PastRun], variant: Variant, layout: StoreLayout, *, any_variant: bool
) -> PastRun:
    """The run of this variant; where `any_variant` was typed, the only one that there is."""
    found = next((run for run in runs if run.variant == variant), None)
    if found is not None:
        return found
    others = [run for run in runs if run.variant.name == variant.name]
    if any_variant and len({run.label for run in others}) == 1:
        print(
            f"agentc: the only run of {variant.name} is {others[0].label}; this is that run",
            file=sys.stderr,
        )
        return others[0]
    if not runs:
        raise NoRunError(f"nothing was run with the store {layout.root} yet")
    hint = f"of {variant.name} there are {_listed(others)}" if others else f"known: {_listed(runs)}"
    raise NoRunError(f"no run of `{variant.label}`; {hint}")


def _variant_of_spec(spec: str, arguments: argparse.Namespace) -> Variant:
    from agentc.backend_api import load_backends
    from agentc.store.paths import Variant

    arguments.spec = Path(spec)
    compiled = compile_typed(arguments, load_backends())
    module = compiled.module
    if module is None or not module.name:
        show_diagnostics(compiled.diagnostics)
        raise NoRunError("", EXIT_SPEC)
    return Variant(name=module.name, scale=module.scale, chosen=module.chosen)


def _fits(run: PastRun, scale: str | None, params: Mapping[str, str]) -> bool:
    if scale is not None and scale != (run.variant.scale or FULL):
        return False
    known = run.params
    return all(name in known and _is(known[name], text.strip()) for name, text in params.items())


def _is(value: object, text: str) -> bool:
    """Whether `-p` may have had the value as this text: a number has many, and so has a list."""
    from decimal import Decimal, InvalidOperation

    from agentc.store.paths import value_text

    if text == value_text(value):
        return True
    if isinstance(value, list):
        inner = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
        parts = [part.strip() for part in inner.split(",") if part.strip()]
        return len(parts) == len(value) and all(map(_is, value, parts))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return Decimal(text) == Decimal(repr(value))
    except InvalidOperation:
        return False


def _words(scale: str | None, params: Mapping[str, object]) -> list[str]:
    from agentc.store.paths import value_text

    words = [] if scale is None else [f"--scale {scale}"]
    return words + [f"-p {name}={value_text(value)}" for name, value in params.items()]


def _listed(runs: Sequence[PastRun]) -> str:
    most = 12
    scales = {run.variant.scale for run in runs}
    options = [_options_of(run.variant, scales) for run in runs[:most]]
    words = [
        f"`{run.label}`" + (f" ({text})" if text else "")
        for run, text in zip(runs[:most], options, strict=True)
    ]
    more = f" and {len(runs) - most} more" if len(runs) > most else ""
    return ", ".join(words) + more
