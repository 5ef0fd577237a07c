"""check_bundle: what of a bundle is not what agentc itself makes of the spec inside.

A bundle is code (its Snakefile, its packages, the programs of its plan), and the sums in it come
from whoever made it. So the spec is compiled again, bundled beside, and compared byte by byte:
nothing of the bundle is executed, imported or followed out of it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentc.backend_api import BackendTable
from agentc.compilation import Compilation, compile_spec
from agentc.emit.bundle import SUMS, BundleError, write_bundle
from agentc.runtime.store.digests import sha256_of

RESULTS = ".agentc/store/objects/"
_RESULTS_ROW = "| `.agentc/store` |"
_MAX_PRINTED = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """`kind` is `changed`, `missing`, `added` or `unlike its sum`."""

    name: str
    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedBundle:
    """`compiled` is what the spec inside became: without a plan nothing could be compared.
    `results` says how many files of results were compared with their sums alone."""

    compiled: Compilation
    differences: tuple[Difference, ...]
    files: int
    results: int


def check_bundle(
    directory: Path, table: BackendTable, allowed: Sequence[Path] | None = None
) -> CheckedBundle:
    """Compile the spec of a bundle again and compare; `allowed` as in `compile_spec`.

    Raises BundleError where it is none, OSError when it cannot be read.
    """
    plan = _plan_of(directory)
    spec = _spec_of(directory, plan)
    experiment = plan.get("experiment")
    scale = experiment.get("scale") if isinstance(experiment, dict) else None
    compiled = compile_spec(
        spec,
        _params_of(plan),
        table,
        scale=scale if isinstance(scale, str) else None,
        allowed=allowed,
    )
    there, odd = _files_of(directory)
    sums = _read_sums(directory)
    found = [Difference(name, "changed", "it is a link, a pipe or a device") for name in odd]
    found += [
        Difference(name, "unlike its sum")
        for name, digest in sorted(sums.items())
        if name in there and sha256_of(there[name]) != digest
    ]
    found += [Difference(name, "missing") for name in sorted(set(sums) - {*there, *odd})]
    if compiled.plan is not None:
        with TemporaryDirectory(prefix="agentc-bundle-") as folder:
            fresh = Path(folder) / "bundle"
            write_bundle(fresh, compiled)
            expected = {n: p for n, p in _files_of(fresh)[0].items() if n not in odd}
            found += _compare(expected, there, sums)
    merged = {(each.name, each.kind): each for each in found}
    return CheckedBundle(
        compiled=compiled,
        differences=tuple(merged[key] for key in sorted(merged)),
        files=len(there),
        results=sum(name.startswith(RESULTS) for name in there),
    )


def _compare(
    fresh: Mapping[str, Path], there: Mapping[str, Path], sums: Mapping[str, str]
) -> Iterator[Difference]:
    for name in sorted(fresh.keys() | there.keys()):
        if name == SUMS:
            # Each sum has been compared; what is listed is compared here.
            continue
        if name not in fresh:
            if name.startswith(RESULTS) and name in sums:
                continue
            yield Difference(*_added(name))
        elif name not in there:
            yield Difference(name, "missing")
        elif _content(name, fresh[name]) != _content(name, there[name]):
            yield Difference(name, "changed", _detail(name, fresh[name], there[name]))
        elif name not in sums:
            yield Difference(SUMS, "changed", f"it does not list {name}")


def _added(name: str) -> tuple[str, str, str]:
    """What is not agentc's; folders that running makes are told as one."""
    parts = name.split("/")
    if parts[0] == ".snakemake":
        return parts[0] + "/", "added", "running makes it"
    if parts[0] == ".agentc" and len(parts) > 3:
        # A prepared software stack or link folder would be executed.
        depth = 5 if name.startswith(RESULTS) else 3
        return (
            "/".join(parts[:depth]) + "/",
            "added",
            "running makes it, and so could a third party",
        )
    return name, "added", "agentc does not put it there"


def _content(name: str, path: Path) -> bytes:
    content = path.read_bytes()
    if name != "README.md":
        return content
    # A bundle with results says how many it has.
    lines = content.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(_RESULTS_ROW.encode()))


def _detail(name: str, fresh: Path, there: Path) -> str:
    if name != "plan.json":
        return ""
    try:
        places = list(_places(json.loads(fresh.read_bytes()), json.loads(there.read_bytes()), ""))
    except (ValueError, RecursionError):
        return "it is not JSON"
    more = f" and {len(places) - _MAX_PRINTED} more" if len(places) > _MAX_PRINTED else ""
    return ", ".join(places[:_MAX_PRINTED]) + more


def _places(fresh: Any, there: Any, path: str) -> Iterator[str]:
    """Where two documents differ; jobs by their ids."""
    match fresh, there:
        case dict(), dict():
            for name in sorted(fresh.keys() | there.keys()):
                yield from _places(fresh.get(name), there.get(name), f"{path}.{name}".lstrip("."))
        case list(), list() if len(fresh) == len(there):
            for number, (one, other) in enumerate(zip(fresh, there, strict=True)):
                named = one.get("id") if isinstance(one, dict) else None
                yield from _places(one, other, f"{path}[{number if named is None else named}]")
        case _ if fresh != there or type(fresh) is not type(there):
            yield path or "everything"
        case _:
            pass


def _plan_of(directory: Path) -> dict[str, Any]:
    path = directory / "plan.json"
    if path.is_symlink() or not path.is_file():
        raise BundleError(f"{directory} is no bundle: it has no plan.json")
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{directory}/plan.json cannot be read: {error}") from None
    if not isinstance(plan, dict):
        raise BundleError(f"{directory}/plan.json is no plan")
    return plan


def _spec_of(directory: Path, plan: Mapping[str, Any]) -> Path:
    named = plan.get("spec")
    name = named.get("file") if isinstance(named, dict) else None
    if not isinstance(name, str) or not name or "/" in name or name in (".", ".."):
        raise BundleError(f"{directory}/plan.json does not name the spec beside it")
    path = directory / name
    if path.is_symlink() or not path.is_file():
        raise BundleError(f"{directory} has no spec {name}: nothing to compile again")
    return path


def _params_of(plan: Mapping[str, Any]) -> dict[str, str]:
    """What was given by `-p`, as text."""
    chosen = plan.get("chosen")
    given = chosen.items() if isinstance(chosen, dict) else ()
    return {
        str(name): value if isinstance(value, str) else json.dumps(value) for name, value in given
    }


def _read_sums(directory: Path) -> dict[str, str]:
    """File -> sha256, as SHA256SUMS lists them. Raises BundleError."""
    path = directory / SUMS
    if path.is_symlink() or not path.is_file():
        raise BundleError(f"{directory} has no {SUMS}: not written by `agentc bundle`")
    found = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        found[name] = digest
    return found


def _files_of(directory: Path) -> tuple[dict[str, Path], list[str]]:
    """Every file by its name, and the names of what is no plain file: links, pipes, devices.
    Raises OSError for a folder that cannot be listed, which could hold anything."""
    files: dict[str, Path] = {}
    odd: list[str] = []
    for top, folders, names in os.walk(directory, onerror=_raised):
        for name in [*names, *(one for one in folders if (Path(top) / one).is_symlink())]:
            path = Path(top) / name
            called = path.relative_to(directory).as_posix()
            if stat.S_ISREG(path.lstat().st_mode):
                files[called] = path
            else:
                odd.append(called)
    return files, sorted(odd)


def _raised(error: OSError) -> None:
    raise error
