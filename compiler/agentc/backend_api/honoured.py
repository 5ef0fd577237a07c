"""honoured_fields: which settings of its kind a stage backend really reads.

Found by lowering sample stages through the tracking view, so the answer cannot drift from the
code. Used by the generated support matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agentc.backend_api.declare import Software, StageBackend
from agentc.backend_api.draft import LeaseDraft
from agentc.backend_api.view import StageView, unused_paths
from agentc.diagnostics.diagnostic import Origin, Source, Span
from agentc.ir.module import ALGORITHM, Prompt
from agentc.kinds import kind_named
from agentc.kinds.field import Field, Json
from agentc.lease_roles import LeaseRole

_NOWHERE = Origin(span=Span(Source("<sample>", ""), 1, 1, 1, 1))


class SampleContext:
    """Answers lowering with plausible leases and facts; nothing of it is ever run."""

    def input_names(self, stage: StageView, role: str) -> tuple[str, ...]:
        return stage.inputs.get(role, ())

    def environment_lease(self, stage: StageView) -> LeaseDraft:
        return _lease("environment")

    def environment_leases(
        self, stage: StageView, inside_of: tuple[Software, ...] = ()
    ) -> tuple[LeaseDraft, ...]:
        return (_lease("environment"),)

    def environment_facts(self, stage: StageView) -> Mapping[str, Json]:
        return {
            "name": "sample",
            "reward_range": [0.0, 1.0],
            "success_at": 1.0,
            "max_turns": 10,
            "splits": ["train", "test", "sample"],
            "capabilities": ["fork", "privileged", "snapshot", "taskset"],
        }

    def server_lease(
        self, stage: StageView, checkpoint_role: str, role: LeaseRole = "policy"
    ) -> LeaseDraft:
        return _lease(role)

    def prompt(self, stage: StageView) -> Prompt | None:
        return Prompt(
            name="sample",
            instruction="Act.",
            acknowledgement=None,
            examples=(),
            reply_format="react",
            origin=_NOWHERE,
        )

    def experiment(self) -> Mapping[str, Json]:
        return {
            "name": "sample",
            "description": None,
            "paper": {},
            "discrepancies": [],
            "rounds": [],
        }

    def claims(self) -> tuple[Mapping[str, Json], ...]:
        return ()

    def digest_of(self, path: str) -> str | None:
        return "0" * 64

    def local_file(self, path: str) -> Path | None:
        return None

    def model_folder(self, path: str) -> tuple[str, str | None]:
        return path, self.digest_of(path)

    def is_directory(self, path: str) -> bool:
        return False

    def pinned_revision(self, repo: str, revision: str) -> str | None:
        return "0" * 40


def view_of(
    backend: StageBackend,
    values: Mapping[str, Json],
    inputs: Mapping[str, tuple[str, ...]] | None = None,
    files: Callable[[str], bytes | None] | None = None,
) -> StageView:
    """A view over a stage with these values on a backend, with its algorithm where it has some."""
    kind = kind_named(backend.kind)
    assert kind is not None, backend.kind
    table = (*kind.fields, *backend.options)
    if backend.algorithms:
        values = {ALGORITHM: backend.algorithms[0], **values}
    view = StageView(
        table=table,
        values=values,
        kind=kind.name,
        inputs=inputs or {},
        files=files,
        unused=unused_paths(table, backend.unused),
    )
    if backend.algorithms:
        view.get(ALGORITHM)  # honoured by the choice of the backend
    return view


def honoured_fields(backend: StageBackend) -> frozenset[str]:
    """Top-level names of the kind's fields and the backend's options that lowering reads, over
    a stage that sets only what is required and over one that sets everything."""
    kind = kind_named(backend.kind)
    assert kind is not None, backend.kind
    table = (*kind.fields, *backend.options)
    inputs = {role.name: ("sample",) for role in kind.roles if backend.takes(role.name)}
    names: set[str] = set()
    for values in _samples(table, backend.algorithms):
        view = view_of(backend, values, inputs, lambda path: b"sample")
        for job in backend.lower(view, SampleContext()):
            view.absorb(job.view)
        refused = {refusal.path for refusal in view.refusals}
        names |= {path.split(".")[0] for path in view.read if path not in refused}
    return frozenset(names)


def _samples(table: tuple[Field, ...], algorithms: tuple[str, ...]) -> Iterator[dict[str, Json]]:
    yield {field.name: _sample(field) for field in table if field.required}
    everything = {field.name: _sample(field) for field in table}
    yield from ({**everything, ALGORITHM: each} for each in algorithms)
    if not algorithms:
        yield everything
    for field in table:
        choices = field.schema.get("enum") if field.required else None
        for choice in choices[1:] if isinstance(choices, list) else ():
            yield {**everything, field.name: choice}


def _sample(declared: Field) -> Json:
    if declared.fields:
        return {sub.name: _sample(sub) for sub in declared.fields}
    if not declared.required and declared.default is not None:
        return declared.default  # type: ignore[return-value]
    schema = declared.schema
    choices = schema.get("enum")
    if isinstance(choices, list):
        return choices[0]
    kinds = schema.get("type")
    first = kinds[0] if isinstance(kinds, list) else kinds
    if first == "boolean":
        return True
    if first == "array":
        return ["sample"]
    if first in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 1))
        assert isinstance(low, (int, float))
        return int(max(low, 1)) if first == "integer" else float(low) + 0.5
    return "a" * 40 if "pattern" in schema else "sample"


def _lease(role: LeaseRole) -> LeaseDraft:
    return LeaseDraft(
        role=role,
        backend=f"sample.{role}",
        version=1,
        software=Software(name="sample", lock=""),
        program=("-m", "sample"),
        identity={},
    )
