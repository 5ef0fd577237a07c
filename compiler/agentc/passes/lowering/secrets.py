"""Which secrets an experiment needs: for `agentc check` to list, and for `agentc run` to look for
before anything starts. Only names are known here; values exist in the processes of jobs alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    ServerBackend,
    StageBackend,
    installed_trackers,
)
from agentc.diagnostics.diagnostic import Span
from agentc.diagnostics.sink import Sink
from agentc.ir.module import Body, Module, Value
from agentc.kinds import kind_named
from agentc.kinds.field import SECRET, Field, is_secret
from agentc.runtime.software.job_software import trouble_of_secret
from agentc.source.files import VARIABLE, Boundary, OutsideError


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """A setting that refers to a secret. `owner` reads like "server `teacher`"; `stages` are the
    stages whose jobs are given the value; `url` is where it is sent, if that is known."""

    name: str
    setting: str
    owner: str
    stages: frozenset[str]
    url: str | None = None
    span: Span | None = None
    of_stage: bool = False

    def described(self) -> str:
        """For people: "OPENAI_API_KEY (api_key of server `teacher`, sent to https://...)"."""
        sent = f", sent to {self.url}" if self.url else ""
        return f"{self.name} ({self.setting} of {self.owner}{sent})"


def needed_secrets(module: Module, table: BackendTable) -> tuple[SecretUse, ...]:
    """Every setting of the module that refers to a secret, in the order of the spec."""
    return (*_of_resources(module, table), *_of_stages(module, table))


def report_missing(
    uses: Collection[SecretUse],
    stages: Collection[str],
    environment: Mapping[str, str],
    sink: Sink,
) -> None:
    """Report each secret that one of the stages needs and the environment does not have, or has
    as what cannot be meant."""
    for use in uses:
        if use.stages.isdisjoint(stages):
            continue
        value = environment.get(use.name)
        # Those of stages are for programs; keys of servers go into the header of a request.
        trouble = trouble_of_secret(value, sent=not use.of_stage) if value else "is not set"
        if trouble is None:
            continue
        needing = sorted(use.stages.intersection(stages))
        sink.error(
            "AGC321",
            f"the secret {use.name} {trouble}",
            use.span,
            notes=(
                f"`{use.setting}` of {use.owner} refers to it; needed by "
                + ", ".join(f"`{stage}`" for stage in needing[:5])
                + (f" and {len(needing) - 5} more" if len(needing) > 5 else ""),
            ),
            fix=f"export {use.name}=... in this shell, then run again",
        )


def _of_resources(module: Module, table: BackendTable) -> Iterator[SecretUse]:
    sections = (("environment", module.environments), ("server", module.servers))
    for section, entries in sections:
        for entry in entries.values():
            backend = table.backends.get(entry.backend)
            if not isinstance(backend, (EnvironmentBackend, ServerBackend)):
                continue
            users = (s.id for s in module.stages.values() if s.uses.get(section) == entry.name)
            stages = frozenset(users)
            address = entry.fields.get("url")
            for setting in _secret_settings(backend.fields):
                name = _referred(entry.fields.get(setting))
                if name is None:
                    continue
                yield SecretUse(
                    name=name,
                    setting=setting,
                    owner=f"{section} `{entry.name}`",
                    stages=stages,
                    url=str(address.json) if address is not None else None,
                    span=entry.spans.get(setting),
                )


def _of_stages(module: Module, table: BackendTable) -> Iterator[SecretUse]:
    secrets: dict[Body, tuple[tuple[str, str], ...]] = {}
    for stage in module.stages.values():
        if stage.body not in secrets:
            secrets[stage.body] = tuple(_secrets_of(stage.body, table))
        for setting, name in secrets[stage.body]:
            yield SecretUse(
                name=name,
                setting=setting,
                owner=f"stage `{stage.id}`",
                stages=frozenset((stage.id,)),
                of_stage=True,
                span=stage.spans.get(setting, stage.spans.get(f"options.{setting}")),
            )


def _secrets_of(body: Body, table: BackendTable) -> Iterator[tuple[str, str]]:
    """The settings of a body that refer to secrets, with the names of these."""
    kind, backend = kind_named(body.kind), table.backends.get(body.backend)
    fields = () if kind is None else kind.fields
    options = backend.options if isinstance(backend, StageBackend) else ()
    for declared, values in ((fields, body.fields), (options, body.options)):
        for setting in _secret_settings(declared):
            name = _referred(values.get(setting))
            if name is not None:
                yield setting, name


def _secret_settings(fields: tuple[Field, ...]) -> tuple[str, ...]:
    return tuple(field.name for field in fields if is_secret(field))


def _referred(value: Value | None) -> str | None:
    """The name of the secret that a setting refers to."""
    return str(value.json[SECRET]) if value is not None and isinstance(value.json, dict) else None


# What the `track:` of an untrusted spec may not do unseen: name secrets, and files outside of its
# folder.


def secrets_of_trackers(module: Module) -> Iterator[SecretUse]:
    """Every secret that a tracker is given; no stage is."""
    known = installed_trackers() if module.track else {}
    for each in module.track:
        tracker = known[each.tracker]
        for setting in tracker.secrets:
            reference = each.settings.get(setting)
            if isinstance(reference, dict):
                yield SecretUse(
                    name=str(reference[SECRET]),
                    setting=setting,
                    owner=f"tracker `{tracker.id}`",
                    stages=frozenset(),
                    url=tracker.sent_to(each.settings),
                    span=each.span,
                )


def report_places(module: Module, boundary: Boundary, sink: Sink) -> None:
    """AGC123 for each file or folder that a tracker would write to and the spec may not name."""
    known = installed_trackers() if module.track else {}
    for each in module.track:
        for setting, written in known[each.tracker].written_to(each.settings).items():
            try:
                boundary.find(written)
            except OutsideError as outside:
                sink.error(
                    "AGC123",
                    f"`track.{each.tracker}.{setting}` names a place outside of the spec's folder:"
                    f" {outside.place}",
                    each.span,
                    fix=f"if this spec may write there: `--allow-path {Path(outside.place)}`, "
                    f"or put the directory into {VARIABLE}",
                )
