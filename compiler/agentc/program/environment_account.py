"""What an environment says of itself (`/meta`), compared with what the plan expects of it, and the
part of it that manifests keep. Programs that open an environment in their own process call this,
as the wrapper does for servers (`agentc.runtime.servers.probe`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Mapping

from agentc.program.job import write_json

_KEPT = {"served": "identity", "facts": "facts"}
"""By the names of manifests, what is kept of an environment's account (its /meta)."""


class OtherEnvironmentError(Exception):
    """An environment is not the one that was planned; the message says in what."""


def admit_inside(lease: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """For the program that has opened the environment of such a lease, by the lease in its job's
    file: leaves what the manifest keeps of its account. Raises OtherEnvironmentError."""
    inside = lease["inside"]
    demand_planned(inside["expect"], meta)
    write_json(Path(inside["account"]), kept_of(meta))


def demand_planned(expect: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Hold an environment's account against what its lease expects; facts are compared with the
    `identity` in it, or with the account itself. Raises OtherEnvironmentError, a line for each."""
    identity = meta.get("identity")
    known = {**meta, **(identity if isinstance(identity, dict) else {})}
    known["identity"] = identity
    differing = [
        "  %s: expected %s, found %s" % (name, shortened(value), shortened(known.get(name)))
        for name, value in sorted(expect.items())
        if known.get(name) != value
    ]
    if differing:
        raise OtherEnvironmentError("is not the one that was planned:\n" + "\n".join(differing))


def kept_of(meta: Mapping[str, Any]) -> Dict[str, Any]:
    """What manifests keep of an environment's account, by their names for it: what it is, and facts
    that decide nothing."""
    found = {name: meta.get(told) for name, told in _KEPT.items()}
    return {name: part for name, part in found.items() if part and isinstance(part, dict)}


def kept_in(record: Mapping[str, Any]) -> Dict[str, Any]:
    """The same of a record that holds it beside other things; older ones have parts that are empty,
    of a server that is no environment."""
    return {name: record[name] for name in _KEPT if record.get(name)}


def shortened(value: Any) -> str:
    """A JSON value in a message."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "(nested too deeply to be shown)"
    return text if len(text) <= 200 else text[:197] + "..."
