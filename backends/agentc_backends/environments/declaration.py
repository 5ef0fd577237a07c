"""Declares an environment by the dataclass of its settings (`server/settings.py`).

`environment_backend` suffices where the server takes the settings as a spec gives them; others read
settings by `effective` and start their server by `environment_lease`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import (
    Json,
)
from agentc.kinds.settings import fields_of
from agentc.lease_roles import LeaseRole
from agentc.program.settings import declared_in
from agentc_backends.environments.server.settings import SETTINGS, data_of, rules_of

S = TypeVar("S")


def environment_backend(
    settings: type,
    *,
    id: str,
    version: int,
    module: str | None = None,
    inside: bool = False,
    **declared: Any,
) -> EnvironmentBackend:
    """An environment whose server takes the settings as they are. `module` is its program, else
    that of their dataclass; `inside`: its calls are quick, so that jobs may open it themselves;
    `declared` are more members of `EnvironmentBackend`."""
    program = module or settings.__module__

    def lease(options: OptionView) -> LeaseDraft:
        read: Any = effective(options, settings)
        return environment_lease(backend, options, read, module=program, inside=inside)

    backend = EnvironmentBackend(
        id=id, version=version, fields=fields_of(settings), lease=lease, **declared
    )
    return backend


def effective(
    options: OptionView, settings: type[S], without: Mapping[str, str] | None = None, **apart: Any
) -> S:
    """The settings of a spec's entry. Those of `without` (name: why) and those whose `only_if` does
    not hold have no effect and keep their defaults, and so do those that are not served, which a
    declaration reads by itself. `apart` are those that are not in the spec."""
    given = apart
    accepted = {field.name for field in options.table}
    reasons = without or {}
    for each in declared_in(settings):
        if each.name not in accepted:
            continue
        reason = reasons.get(each.name) or options.without_effect(each, without=reasons)
        if reason is not None:
            options.leave(each.name, reason)
        elif each.about.served:
            value: Any = options.get(each.name)
            if isinstance(value, list):
                value = tuple(value)
            given[each.name] = float(value) if each.kind is float and value is not None else value
    return settings(**given)


def environment_lease(
    backend: EnvironmentBackend,
    options: OptionView,
    settings: Any,
    *,
    module: str | None = None,
    identity: Mapping[str, Json] | None = None,
    expect: Mapping[str, Json] | None = None,
    inside: bool = False,
    secrets: Mapping[str, str] | None = None,
    ready_timeout_s: float = 60.0,
    needs: tuple[LeaseRole, ...] = (),
) -> LeaseDraft:
    """The server that receives these settings but those without an effect. `identity` enters keys,
    else the settings as read; `expect` is what its identity must say, else the rules among them.
    `module` is its program, else `job_serve.py` beside the dataclass; `needs` are servers that it
    calls."""
    name = backend.id.removeprefix("env.")
    beside = type(settings).__module__.rpartition(".")[0]
    program = ["-m", module or f"{beside}.job_serve", "--port", "0", "--ready-file", "{ready_file}"]
    data = data_of(settings, without=options.reasons)
    return LeaseDraft(
        role="environment",
        backend=backend.id,
        version=backend.version,
        software=backend.software,
        program=(*program, *((SETTINGS, "{settings}") if data else ())),
        settings=data,
        identity=options.identity() if identity is None else identity,
        port="chosen",
        probe="/health",
        identity_check="environment",
        inside=inside,
        expect={"name": name, **({"options": rules_of(settings)} if expect is None else expect)},
        secrets=secrets or {},
        ready_timeout_s=ready_timeout_s,
        needs=needs,
    )
