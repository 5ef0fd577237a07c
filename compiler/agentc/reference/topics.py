"""What `agentc explain` says of a name of the spec language: a kind of stage, one of its settings,
a section, a backend, an environment, a server, a metric, a type of artifact, a term, or another
tool's word for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentc.backend_api import (
    Backend,
    BackendTable,
    EnvironmentBackend,
    StageBackend,
    entry_fields,
)
from agentc.backend_api.honoured import honoured_fields
from agentc.backend_api.view import find_setting, unused_paths
from agentc.diagnostics.other_methods import advice_for_kind
from agentc.diagnostics.other_tools import advice_for_key
from agentc.diagnostics.synonyms import synonyms
from agentc.kinds import KINDS, Kind, kind_named
from agentc.kinds.artifacts import ARTIFACT_TYPES, ArtifactType
from agentc.kinds.field import Field
from agentc.kinds.metric_names import METRIC_DOCS
from agentc.reference.examples import (
    backend_example,
    entry_example,
    example_of,
    example_with,
    option_example,
    values_for_rounds,
)
from agentc.reference.setting_names import (
    FAMILIES,
    SECTION_FIELDS,
    SINGLE_SECTIONS,
    Topic,
    backends_called,
    in_short,
    inputs_called,
    paths_of,
    setting_tables,
    settings_called,
    settings_with_value,
)
from agentc.reference.terms import TERMS, Term
from agentc.schema import language
from agentc.text import hanging, wrapped


def topics(name: str, table: BackendTable, width: int | None = None) -> list[Topic]:
    """All that the name means, most general first; empty for an unknown one. A setting may be
    written alone (`beta`) or behind what has it (`dpo.beta`, `env.textcraft.max_depth`)."""
    advice = advice_for_kind(name)
    found = [] if advice is None else [Topic(name, tuple(wrapped(advice, width, "", "  ")))]
    found += _whole(name, table, width)
    if advice is not None:
        found += backends_called(name, table)
    parts = name.split(".")
    for count in range(1, len(parts)):
        owner, path = ".".join(parts[:count]), ".".join(parts[count:])
        found += _settings_of(owner, path, table, width)
    if not found:
        found = [*_settings_named(name, table, width)]
        if found:  # as `warmup`, which in other kinds is another setting
            for other in {*synonyms(name)} & _of_trainings(table):
                found += _settings_named(other, table, width)
    if not found:
        found = [*settings_called(name, table)]
    if not found:
        found = [
            *backends_called(name, table),
            *inputs_called(name),
            *settings_with_value(name, table),
        ]
    if not found:
        for other in synonyms(name):
            for topic in topics(other, table, width):
                said = f"`{name}` is called `{other}` here."
                found.append(Topic(topic.name, (said, "", *topic.lines)))
    hint = advice_for_key(name, _of_trainings(table))
    if hint is not None:
        found.append(Topic(name, tuple(wrapped(f"`{name}` of a training: {hint}", width))))
    return found


def _of_trainings(table: BackendTable) -> set[str]:
    """The settings that a training has in other tools too."""
    kinds = [kind for kind in KINDS if kind.forecast == "training"]
    return {field.name for kind in kinds for field in table.fields_of(kind)}


LISTS = ("kinds", "backends", "environments", "servers", "metrics", "artifacts")
"""What `agentc explain --list` lists."""


def rows(what: str, table: BackendTable) -> list[tuple[str, str]]:
    """The names of one of `LISTS`, each with what it is."""
    match what:
        case "kinds":
            return [(kind.name, kind.doc) for kind in KINDS]
        case "backends":
            return [(backend.id, backend.doc) for backend in table]
        case "environments":
            return [(_short(backend), backend.doc) for backend in table.environments()]
        case "servers":
            return [(_short(backend), backend.doc) for backend in table.servers()]
        case "metrics":
            return list(METRIC_DOCS.items())
        case _:
            return [(artifact.name, artifact.doc) for artifact in ARTIFACT_TYPES]


def names(table: BackendTable) -> list[str]:
    """Every name that is explained, but for paths of settings."""
    settings = {field.name for _, fields in setting_tables(table) for field in fields}
    return [
        *TERMS,
        *language.TOP_LEVEL,
        *(kind.name for kind in KINDS),
        *sorted(table.backends),
        *(_short(backend) for backend in table if not isinstance(backend, StageBackend)),
        *METRIC_DOCS,
        *(artifact.name for artifact in ARTIFACT_TYPES),
        *sorted(settings),
    ]


def _whole(name: str, table: BackendTable, width: int | None) -> Iterator[Topic]:
    kind = kind_named(name)
    if kind is not None:
        yield Topic(name, tuple(_kind_lines(kind, table, width)))
    for backend in table:
        short = not isinstance(backend, StageBackend) and _short(backend) == name
        if backend.id == name or short:
            yield Topic(backend.id, tuple(_backend_lines(backend, width)))
    family = name.partition("(")[0]
    if family in METRIC_DOCS:
        yield Topic(family, (f"metric: {family}", *wrapped(METRIC_DOCS[family], width, "  ", "")))
    for artifact in ARTIFACT_TYPES:
        if artifact.name == name:
            yield Topic(name, tuple(_artifact_lines(artifact, width)))
    if name in language.TOP_LEVEL:
        yield Topic(name, tuple(_section_lines(name, width)))
    if name in TERMS:
        yield Topic(name, tuple(_term_lines(name, TERMS[name], width)))


def _short(backend: Backend) -> str:
    return backend.id.partition(".")[2]


def _settings_of(owner: str, path: str, table: BackendTable, width: int | None) -> Iterator[Topic]:
    owners = [owner, *(f"{family}.{owner}" for family in FAMILIES)]
    for name, fields in setting_tables(table):
        setting = find_setting(tuple(fields), path) if name in owners else None
        if setting is not None:
            lines = _setting_lines(name, path, setting.declared, table, width)
            yield Topic(f"{name}.{path}", tuple(lines))


def _settings_named(name: str, table: BackendTable, width: int | None) -> Iterator[Topic]:
    """The settings of that name, wherever they are; each in short where there are several."""
    places = [
        (owner, path, field)
        for owner, fields in setting_tables(table)
        for path, field in paths_of(fields)
        if path.rpartition(".")[2] == name
    ]
    if len(places) == 1:
        [(owner, path, field)] = places
        yield Topic(f"{owner}.{path}", tuple(_setting_lines(owner, path, field, table, width)))
    elif places:
        rows = [(f"{owner}.{path}", *in_short(field)) for owner, path, field in places]
        more = "`agentc explain` with one of these names says more"
        yield Topic(name, (f"`{name}` is a setting of", *hanging(rows, width, "  "), more))


def _kind_lines(kind: Kind, table: BackendTable, width: int | None) -> Iterator[str]:
    yield f"kind: {kind.name}"
    yield from wrapped(kind.doc, width, "  ", "")
    made = dict.fromkeys((kind.produces.name, *(made.name for made in kind.products.values())))
    yield f"  makes: {' or '.join(made)}"
    for role in kind.roles:
        accepts = " or ".join(accepted.name for accepted in role.accepts)
        how = (", several" if role.many else "") + (", optional" if role.optional else "")
        yield from wrapped(f"input {role.name}: {accepts}{how}. {role.doc}", width, "  ", "    ")
    if kind.uses:
        yield f"  names: {', '.join(kind.uses)}"
    ids = [backend.id for backend in table.stage_backends(kind.name)]
    marked = [f"{name} (default)" if name == kind.default_backend else name for name in ids]
    yield from wrapped(f"backends: {', '.join(marked)}", width, "  ", "    ")
    if table.fields_of(kind):
        yield ""
        yield "settings"
        ordered = sorted(table.fields_of(kind), key=lambda field: not field.required)
        yield from _fields_lines(ordered, width)
        yield f"  `agentc explain {kind.name}.{ordered[0].name}` says more of one"
    example = example_of(kind)
    if example is not None:
        yield ""
        yield "example"
        yield from (f"  {line}" for line in example.splitlines())


def _fields_lines(fields: Sequence[Field], width: int | None) -> Iterator[str]:
    """Settings with the first sentence on each, its type and default."""
    names = max(len(field.name) for field in fields)
    for field in fields:
        short = f"{field.doc.split('. ')[0].rstrip('.')} ({', '.join(in_short(field))})"
        yield from wrapped(f"{field.name:<{names}}  {short}", width, "  ", " " * (names + 2))


def _setting_lines(
    owner: str, path: str, field: Field, table: BackendTable, width: int | None
) -> Iterator[str]:
    kind, default = in_short(field)
    yield f"{owner}.{path}: {kind}, {default}"
    yield from wrapped(field.doc, width, "  ", "")
    if owner in SECTION_FIELDS:
        pass
    elif field.identity == "semantic":
        yield "  It enters the key of the result: another value computes the stage again."
    else:
        yield "  It enters no key: a finished result stays as it is under another value."
    stage_kind = kind_named(owner)
    if stage_kind is not None:
        yield from _rounds_line(stage_kind, path, field)
        yield from _support(stage_kind, path, table, width)
        example = example_with(stage_kind, path, table)
        if example is not None:
            yield ""
            yield "example"
            yield from (f"  {line}" for line in example.splitlines())
            yield ""
    else:
        yield from _backend_example(owner, path, table)
    for inner in field.fields:
        yield from wrapped(f"{inner.name}: {', '.join(in_short(inner))}. {inner.doc}", width,
                           "  ", "    ")  # fmt: skip


def _rounds_line(kind: Kind, path: str, field: Field) -> Iterator[str]:
    """How a number differs from round to round."""
    values = values_for_rounds(kind, path, field)
    if values and "." not in path:
        listed = ", ".join(map(str, values))
        yield f"  A value for each round of a repeat: `{path}: {{per_round: [{listed}]}}`"


def _backend_example(owner: str, path: str, table: BackendTable) -> Iterator[str]:
    """An example of a setting of a backend's own."""
    backend = table.backends.get(owner)
    if backend is None:
        return
    if isinstance(backend, StageBackend):
        example = option_example(backend, path)
    else:
        example = entry_example(backend, path)
    if example is not None:
        yield ""
        yield "example"
        yield from (f"  {line}" for line in example.splitlines())
        yield ""


def _support(kind: Kind, path: str, table: BackendTable, width: int | None) -> Iterator[str]:
    """Which backends read a setting of a kind, and why others do not."""
    backends = table.stage_backends(kind.name)
    reasons = {
        backend.id: unused_paths((*kind.fields, *backend.options), backend.unused).get(path)
        for backend in backends
    }
    top = path.partition(".")[0]
    reading = [b.id for b in backends if reasons[b.id] is None and top in honoured_fields(b)]
    if len(backends) > 1 or not reading:
        yield from wrapped(f"read by: {', '.join(reading) or 'no backend'}", width, "  ", "    ")
    for backend in backends:
        if backend.id not in reading:
            reason = reasons[backend.id]
            yield from wrapped(f"not by {backend.id}{f': {reason}' if reason else ''}", width,
                               "  ", "    ")  # fmt: skip


def _backend_lines(backend: Backend, width: int | None) -> Iterator[str]:
    if isinstance(backend, StageBackend):
        yield f"{backend.id}: a backend of `kind: {backend.kind}`, version {backend.version}"
    else:
        what = "an environment" if isinstance(backend, EnvironmentBackend) else "a model server"
        yield f"{backend.id}: {what}, version {backend.version}"
    yield from wrapped(backend.doc, width, "  ", "")
    if isinstance(backend, EnvironmentBackend):
        yield f"  splits: {', '.join(backend.splits) or 'those of its data'}"
        low, high = backend.reward_range
        yield f"  rewards: {low:g} to {high:g}, a success from {backend.success_at:g}"
        for data in backend.data_sets:
            yield from wrapped(f"data: `agentc data fetch {data.name}`. {data.doc}", width, "  ",
                               "    ")  # fmt: skip
    if backend.capabilities:
        words = f"capabilities: {', '.join(sorted(backend.capabilities))}"
        yield from wrapped(words, width, "  ", "    ")
    own = backend.options if isinstance(backend, StageBackend) else entry_fields(backend)
    if own:
        yield ""
        yield "options" if isinstance(backend, StageBackend) else "settings"
        yield from _fields_lines(own, width)
    yield ""
    yield "example"
    if isinstance(backend, StageBackend):
        example = backend_example(backend)
    else:
        example = entry_example(backend)
    yield from (f"  {line}" for line in (example or "").splitlines())


def _section_lines(name: str, width: int | None) -> Iterator[str]:
    yield f"{name}: a key of the top level of a spec"
    yield from wrapped(language.TOP_LEVEL[name], width, "  ", "")
    fields = SECTION_FIELDS.get(name, ())
    if fields:
        yield ""
        yield "settings" if name in SINGLE_SECTIONS else "settings of an entry"
        yield from _fields_lines(fields, width)
        yield f"  `agentc explain {name}.{fields[0].name}` says more of one"


def _term_lines(name: str, term: Term, width: int | None) -> Iterator[str]:
    yield f"{name}: a term"
    yield from wrapped(term.meaning, width, "  ", "")
    if term.see:
        yield f"  see also: {', '.join(term.see)}"
    if term.example:
        yield ""
        yield "example"
        yield from (f"  {line}" for line in term.example.splitlines())


def _artifact_lines(artifact: ArtifactType, width: int | None) -> Iterator[str]:
    yield f"{artifact.name}: an artifact, version {artifact.schema_version}"
    yield from wrapped(artifact.doc, width, "  ", "")
    if artifact.rows:
        yield f"  rows: {artifact.rows}, one JSON object a line"
    makers = [kind.name for kind in KINDS if artifact in (kind.produces, *kind.products.values())]
    readers = [kind.name for kind in KINDS if kind.reads(artifact)]
    if makers:
        yield from wrapped(f"made by kinds: {', '.join(makers)}", width, "  ", "    ")
    if readers:
        yield from wrapped(f"read by kinds: {', '.join(readers)}", width, "  ", "    ")
