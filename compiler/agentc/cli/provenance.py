"""`agentc why NAME --full`: what an artifact was made from, with what, where and at what cost."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from agentc.cli.choose_run import NoRunError, choose_run
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_STORE
from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import Lineage, StoredObject
from agentc.text import counted, duration


def show_provenance(arguments: argparse.Namespace, layout: StoreLayout) -> int:
    """The exit code: 0; 4 when a manifest cannot be read; 5 when there is no such object or no
    result yet."""
    from agentc.store.objects import trace

    name, complaint = find_object(arguments, layout)
    if name is None:
        print(f"agentc: {complaint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    try:
        lineage = trace(layout, name)
    except FileNotFoundError:
        print(f"agentc: {arguments.name} ({name}) has no result yet", file=sys.stderr)
        return EXIT_NOT_FOUND
    except (OSError, ValueError) as error:
        print(f"agentc: the store is damaged: {error}", file=sys.stderr)
        return EXIT_STORE
    if arguments.format == "json":
        import json

        print(json.dumps(provenance_document(lineage), indent=2, ensure_ascii=False))
    else:
        print("\n".join(_lines(lineage)))
    return 0


def find_object(arguments: argparse.Namespace, layout: StoreLayout) -> tuple[str | None, str]:
    """The object meant, or None with the reason."""
    from agentc.diagnostics.suggest import listed
    from agentc.plan.stage_names import matching_names, nearest
    from agentc.plan.work import object_of, read_plan
    from agentc.store.objects import object_names

    given = arguments.name
    run = ""
    ids: dict[str, str] = {}
    try:
        chosen = choose_run(layout, arguments.run, arguments)
        run = chosen.label
        jobs = read_plan(chosen.folder.last_plan)["jobs"]
        ids = {job["id"]: object_of(job) for job in jobs}
    except NoRunError as error:
        # Objects of a store without runs go by their keys.
        if arguments.run or arguments.scale or arguments.params:
            return None, str(error)
    except (OSError, ValueError) as error:
        return None, f"the last plan of {run} cannot be read: {error}"
    meant = matching_names(given, ids)
    results = [name for name in meant if ":" not in name] or meant
    if len(results) == 1:
        return ids[results[0]], ""
    if results:
        return None, f"`{given}` is {len(results)} results of {run}, name one: {listed(results)}"
    found = [n for n in object_names(layout) if _names(given, n)] if len(given) >= 4 else []
    if len(found) == 1:
        return found[0], ""
    if found:
        return None, f"`{given}` fits {len(found)} objects: {listed(found)}"
    hint = f"in {run}: {nearest(given, ids)}" if ids else "nothing was run"
    return None, f"no object and no job `{given}` in the store {layout.root}; {hint}"


def _names(given: str, name: str) -> bool:
    return name.startswith(given) if "/" in given else name.split("/")[1].startswith(given)


def provenance_document(lineage: Lineage, *, hosts: bool = True) -> dict[str, Any]:
    """A lineage as JSON; with `hosts` the machines' names too."""
    from agentc.store.objects import seeds_of

    taken = (
        "id", "type", "backend", "version", "agentc", "inputs", "identity", "software", "leases",
        "hardware", "facts", "started", "wall_s", "cpu_s", "max_rss_mb", "attempts", "files",
        "origin",
    )  # fmt: skip
    return {
        "provenance": 1,
        "object": lineage.objects[0].name,
        "objects": [
            {
                "object": stored.name,
                "seeds": seeds_of(stored.manifest),
                **{name: stored.manifest.get(name) for name in taken},
                "hardware": _hardware(stored.manifest, hosts=hosts),
            }
            for stored in lineage.objects
        ],
        "missing": list(lineage.missing),
    }


def _hardware(manifest: Mapping[str, Any], *, hosts: bool) -> dict[str, Any] | None:
    found: dict[str, Any] | None = manifest.get("hardware")
    if found is None or hosts:
        return found
    return {name: value for name, value in found.items() if name != "host"}


def _lines(lineage: Lineage) -> Iterator[str]:

    ids = {stored.name: str(stored.manifest.get("id")) for stored in lineage.objects}
    for stored in lineage.objects:
        yield from _object_lines(stored, ids)
        yield ""
    for name in lineage.missing:
        yield f"not in the store any more: {name}"
    yield "software that was imported"
    for title, versions in _software(lineage).items():
        yield f"  {title}"
        yield from _wrapped(f"{name} {version}" for name, version in versions.items())
    yield "machines"
    for text, count in _machines(lineage).items():
        yield f"  {text} ({counted(count, 'job')})"
    manifests = [stored.manifest for stored in lineage.objects]
    wall, cpu = (sum(m.get(name) or 0.0 for m in manifests) for name in ("wall_s", "cpu_s"))
    servers = sum(lease.get("cpu_s") or 0.0 for m in manifests for lease in m.get("leases") or ())
    yield (
        f"in all {counted(len(manifests), 'job')}: {duration(wall)}; CPU time of programs "
        f"{duration(cpu)}, of their own servers {duration(servers)}"
    )


def _object_lines(stored: StoredObject, ids: Mapping[str, str]) -> Iterator[str]:
    from agentc.store.objects import seeds_of, tokens_of

    manifest = stored.manifest
    yield f"{manifest.get('id')}  {manifest.get('type')}  {stored.name}"
    started = manifest.get("started")
    when = "?" if started is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(started))
    release = f", agentc {manifest['agentc']}" if manifest.get("agentc") else ""
    yield (
        f"  made {when} by {manifest.get('backend')} version {manifest.get('version')}{release}"
        f" in {duration(manifest.get('wall_s'))}"
        f" (CPU {duration(manifest.get('cpu_s') or 0.0)}, {manifest.get('max_rss_mb') or 0:.0f} MB)"
    )
    for role, names in (manifest.get("inputs") or {}).items():
        for name in names:
            yield f"  {role}: {ids.get(name, 'missing')}  {name}"
    settings = _flat((manifest.get("identity") or {}).get("settings") or {})
    for title, pairs in (
        ("settings", settings),
        ("seeds", seeds_of(manifest)),
        ("tokens", tokens_of(manifest)),
    ):
        if pairs:
            yield f"  {title}: " + ", ".join(f"{name} {value}" for name, value in pairs.items())
    for lease in manifest.get("leases") or ():
        where = " in the job's process" if lease.get("inside") else " server"
        made = f"{lease.get('backend')} version {lease.get('version')}"
        yield f"  {lease.get('role')}{where}: {made}"


def _software(lineage: Lineage) -> dict[str, dict[str, str]]:
    """Versions by software stack; each stack once, with all that any job imported of it."""
    from agentc.store.objects import versions_of

    found: dict[str, dict[str, str]] = {}
    for stored in lineage.objects:
        software = stored.manifest.get("software") or {}
        parts = [(software, software.get("name"))]
        parts += [(lease, lease.get("software")) for lease in stored.manifest.get("leases") or ()]
        for part, name in parts:
            versions, imported = versions_of(part)
            if name and versions:
                lock = str(part.get("lock") or "")[:16]
                title = f"{name}, Python {part.get('python')}, lock {lock}"
                # Programs that do not use the runtime, or an older one, do not say.
                title += "" if imported else " (not recorded; all that is installed)"
                found.setdefault(title, {}).update(versions)
    return {title: dict(sorted(found[title].items())) for title in sorted(found)}


def _machines(lineage: Lineage) -> dict[str, int]:
    found: dict[str, int] = {}
    for stored in lineage.objects:
        hardware = stored.manifest.get("hardware") or {}
        if hardware:
            text = machine_text(hardware)
            found[text] = found.get(text, 0) + 1
    return found


def machine_text(hardware: Mapping[str, Any]) -> str:
    """One line: `vm: Intel Xeon, 2 CPUs, 24 GB, no GPU, Linux 6.1`."""
    parts = [str(hardware.get("cpu") or hardware.get("machine") or "unknown processor")]
    parts.append(f"{hardware.get('cpus', '?')} of {hardware.get('cores', '?')} CPUs")
    memory = hardware.get("memory_mb")
    if memory:
        parts.append(f"{memory / 1024:.0f} GiB")
    gpus = hardware.get("gpus") or []
    counts = {name: gpus.count(name) for name in gpus}
    parts += [f"{count} x {name}" for name, count in counts.items()] or ["no GPU"]
    if hardware.get("gpu_driver"):
        parts.append(f"driver {hardware['gpu_driver']}")
    parts.append(str(hardware.get("system", "")))
    return f"{hardware.get('host', '?')}: " + ", ".join(parts)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            text = " ".join(str(value).split())
            found[prefix + name] = text if len(text) <= 60 else f"{text[:57]}..."
    return found


def _wrapped(words: Iterator[str] | Any, width: int = 96) -> Iterator[str]:
    line = ""
    for word in words:
        if line and len(line) + len(word) > width:
            yield f"    {line}"
            line = ""
        line += f"{', ' if line else ''}{word}"
    if line:
        yield f"    {line}"
