"""Backends that a spec brings along (`backends:`): Python files and packages beside it, which are
imported here, so only from folders that the person who runs agentc allows for that.

They are read first, for what a spec may say depends on its backends. Their text goes into the plan,
from which jobs run it, and its digests into the keys of what they make.
"""

from __future__ import annotations

import importlib.util
import json
import keyword
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from agentc.backend_api import BackendTable
from agentc.backend_api.declare import (
    Backend,
    EnvironmentBackend,
    ServerBackend,
    StageBackend,
)
from agentc.backend_api.draft import JobDraft, LeaseDraft, LowerContext
from agentc.backend_api.table import BackendsBeside, family_of
from agentc.backend_api.view import OptionView, StageView
from agentc.diagnostics import Sink
from agentc.diagnostics.suggest import did_you_mean
from agentc.kinds.field import Json
from agentc.source.files import CODE_VARIABLE
from agentc.source.tree import Mapping as MappingNode
from agentc.source.tree import Node, Scalar, described, items_of
from agentc.source.trust import TrustError, distrust_reason

DECLARING = "backend"
"""The module of a package that declares, as in those that ship; without it, the package itself."""
_MOST_CHARACTERS = 512 * 1024


class LocalCodeError(Exception):
    """Why a file or package gives no backends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCode:
    """What a spec brings along: its backends, and the text of its files by their place behind the
    folder that Python finds them in (`dice/__init__.py`)."""

    module: str
    backends: tuple[Backend, ...]
    texts: Mapping[str, str]


def load_local(place: Path, installed: Mapping[str, Backend]) -> LocalCode:
    """Import a file or a package, and what it declares besides what is `installed`. Raises
    LocalCodeError."""
    module = place.stem if place.suffix == ".py" else place.name
    texts = dict(_texts(place))
    if not module.isidentifier() or keyword.iskeyword(module):
        raise LocalCodeError(f"`{module}` can be the name of no Python module")
    _forget(module, place)
    if importlib.util.find_spec(module) is not None:
        raise LocalCodeError(f"Python has a module `{module}` already: give it another name")
    try:
        declared = _imported(module, place)
    except Exception as error:  # somebody's module may raise anything at import
        _forget(module, place)
        raise LocalCodeError(f"it cannot be imported: {type(error).__name__}: {error}") from None
    digests: dict[str, Json] = {
        name: sha256(text.encode("utf-8")).hexdigest() for name, text in texts.items()
    }
    found: dict[str, Backend] = {}
    for each in vars(declared).values():
        if not isinstance(each, (StageBackend, EnvironmentBackend, ServerBackend)):
            continue
        known = installed.get(each.id)
        if known is each:
            continue  # it only makes use of it
        if known is not None:
            raise LocalCodeError(f"a backend `{each.id}` is installed already")
        if family_of(each) not in each.id.split("."):
            raise LocalCodeError(f"the id `{each.id}` must have `{family_of(each)}` in it")
        found[each.id] = _marked(each, digests)
    if not found:
        raise LocalCodeError(
            f"`{declared.__name__}` holds no StageBackend, EnvironmentBackend or ServerBackend"
        )
    return LocalCode(module=module, backends=tuple(found.values()), texts=texts)


def _texts(place: Path) -> Iterator[tuple[str, str]]:
    """All files of text of a package, or the one file; what is hidden or compiled is left out."""
    if place.is_file():
        files = [place]
    elif (place / "__init__.py").is_file():
        files = sorted(path for path in place.rglob("*") if path.is_file())
    else:
        raise LocalCodeError(_nowhere(place))
    room = _MOST_CHARACTERS
    for path in files:
        name = path.relative_to(place.parent)
        if any(part.startswith((".", "__pycache__")) for part in name.parts[1:]):
            continue
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            raise LocalCodeError(f"{name} is no readable text in UTF-8") from None
        room -= len(text)
        if room < 0:
            raise LocalCodeError(f"its files have more than {_MOST_CHARACTERS} characters")
        yield name.as_posix(), text


def _is_code(place: Path) -> bool:
    """Whether there is a Python file, or a package."""
    return place.is_file() or (place / "__init__.py").is_file()


def _nowhere(place: Path) -> str:
    """What is said of a path that leads to no Python; with the files beside it that have one."""
    missing = "there is no Python file, and no folder with an `__init__.py`"
    folder = place.parent
    try:
        files = sorted(each.name for each in folder.iterdir() if each.suffix == ".py")
    except OSError:
        return missing
    near = did_you_mean(place.name, files) or did_you_mean(f"{place.name}.py", files)
    return f"{missing}; {near}" if near else missing


def _imported(module: str, place: Path) -> Any:
    """The module that declares; a package is found by its place, whatever the path is."""
    file = place if place.is_file() else place / "__init__.py"
    folders = None if place.is_file() else [str(place)]
    spec = importlib.util.spec_from_file_location(module, file, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    if folders and (place / f"{DECLARING}.py").is_file():
        return importlib.import_module(f"{module}.{DECLARING}")
    return made


def _forget(module: str, place: Path) -> None:
    """What an earlier compilation has imported from there: it may have been edited since."""
    known = sys.modules.get(module)
    origin = getattr(known, "__file__", None)
    if origin is None or not Path(origin).is_relative_to(place):
        return
    for name in [n for n in sys.modules if n == module or n.startswith(f"{module}.")]:
        del sys.modules[name]


def _marked(backend: Backend, digests: Mapping[str, Json]) -> Backend:
    """The backend, whose jobs and leases have the digests of its files in their keys."""
    code: dict[str, Json] = {"code": dict(digests)}
    match backend:
        case StageBackend(lower=lower):

            def lowered(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
                return tuple(
                    replace(draft, extra_identity={**draft.extra_identity, **code})
                    for draft in lower(view, context)
                )

            return replace(backend, lower=lowered)
        case EnvironmentBackend(configured=configured):
            if configured is None:
                return replace(backend, lease=_leasing(backend.lease, code))
            chosen = configured

            def under(given: Mapping[str, Json]) -> EnvironmentBackend:
                declared = chosen(given)
                return replace(declared, lease=_leasing(declared.lease, code))

            return replace(backend, lease=_leasing(backend.lease, code), configured=under)
        case ServerBackend(lease=lease):
            return replace(backend, lease=_leasing(lease, code))


def _leasing(
    lease: Callable[[OptionView], LeaseDraft], code: Mapping[str, Json]
) -> Callable[[OptionView], LeaseDraft]:
    def leased(options: OptionView) -> LeaseDraft:
        draft = lease(options)
        return replace(draft, identity={**draft.identity, **code})

    return leased


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBackends:
    """The backends that a spec may name, its own among them; the text of its own by module, and
    `digests` of what it names by path. `whole` is false where some of its own are missing
    (reported): what it says of them cannot be understood then."""

    table: BackendTable
    code: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True


def with_local_backends(
    root: Node | None, table: BackendTable, directory: Path, allowed: Sequence[Path], sink: Sink
) -> LocalBackends:
    """Load what `backends:` names, from the folders `allowed`."""
    own: dict[str, Backend] = {}
    code: dict[str, Mapping[str, str]] = {}
    digests: dict[str, str] = {}
    named = list(_named(root))
    for item in named:
        if not isinstance(item, Scalar):
            sink.error(
                "AGC203",
                f"an item of `backends` cannot be {described(item)}",
                item.span,
                expected="the path of a Python file, or of a package's folder",
            )
            continue
        place = (directory / Path(item.text).expanduser()).resolve()
        if not _is_code(place):
            sink.error("AGC759", f"`{item.text}` gives no backends: {_nowhere(place)}", item.span)
            continue
        if not any(place.is_relative_to(folder.resolve()) for folder in allowed):
            refusal = refusal_to_load(place)
            if refusal is not None:
                sink.error(
                    "AGC758",
                    f"`{item.text}` is code that would run inside agentc",
                    item.span,
                    notes=(refusal,) if refusal else _UNTRUSTED,
                    fix=(
                        f"if you trust it: `agentc trust {_shell_word(place.parent)}`, once; or "
                        if not refusal
                        else "to run it all the same: "
                    )
                    + f"`--allow-code DIR` for one command, {CODE_VARIABLE} for a shell",
                )
                continue
        try:
            loaded = load_local(place, BackendsBeside(own, table.backends))
        except LocalCodeError as error:
            sink.error("AGC759", f"`{item.text}` gives no backends: {error}", item.span)
            continue
        own |= {backend.id: backend for backend in loaded.backends}
        code[loaded.module] = loaded.texts
        text = json.dumps(sorted(loaded.texts.items()))
        digests[item.text] = sha256(text.encode("utf-8")).hexdigest()
    whole = len(digests) == len(named)
    if own:
        table = BackendTable(BackendsBeside(own, table.backends), table.broken)
    return LocalBackends(table=table, code=code, digests=digests, whole=whole)


_UNTRUSTED = ("a check of an untrusted spec runs none of its code",)


def refusal_to_load(place: Path) -> str | None:
    """Why the code at a path may not run, "" where nobody has trusted its folder; None where it
    may."""
    try:
        return distrust_reason(place)
    except TrustError as error:
        return str(error)


def _shell_word(folder: Path) -> str:
    """A folder as it is typed."""
    return "." if folder == Path.cwd().resolve() else shlex.quote(str(folder))


def _named(root: Node | None) -> Iterator[Node]:
    entry = root.find("backends") if isinstance(root, MappingNode) else None
    if entry is not None:
        yield from items_of(entry.value)[0]
