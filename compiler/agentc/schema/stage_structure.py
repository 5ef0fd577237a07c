"""Structuring of models, stages and repeats. `structure.py` reads the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agentc.backend_api import BackendTable, StageBackend
from agentc.diagnostics.other_methods import advice_for_kind
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed, nearest_first
from agentc.kinds import KINDS, MODEL_KIND, Kind, kind_named
from agentc.kinds.field import Field, group
from agentc.schema import language
from agentc.schema.aliases import aliases_of, without_aliases, without_standard_names
from agentc.schema.hub_models import advise_model, reports_hub_model
from agentc.schema.keys import Place, as_mapping, checked_name, misspelt_use, read_keys
from agentc.source.tree import Entry, Mapping, Node, Scalar, Sequence, Unknown, described
from agentc.syntax.nodes import CarryDecl, RepeatDecl, StageDecl


def read_model(name: Scalar, node: Node, sink: Sink, table: BackendTable) -> StageDecl:
    """A model: a stage of kind `model` that needs no `kind:`."""
    kind = kind_named(MODEL_KIND)
    assert kind is not None
    place = Place(f"models.{name.text}", f"model `{name.text}`")
    expected = (
        "a repository of the hub or a folder, or a mapping with `repo`, `path` or another `backend`"
    )
    mapping = as_mapping(node, place, sink, expected, advise_model(name, node))
    if mapping is None or reports_hub_model(name, mapping, sink, table):
        return StageDecl(name=name, kind=None, span=name.span)
    return _read(name, kind, mapping, language.MODEL_KEYS, place, sink, table)


def read_stage_or_repeat(
    name: Scalar, node: Node, sink: Sink, table: BackendTable
) -> StageDecl | RepeatDecl:
    """An entry of `stages:`."""
    place = Place(f"stages.{name.text}", f"stage `{name.text}`")
    mapping = as_mapping(node, place, sink, "a mapping with `kind`, or with `repeat`")
    if mapping is None:
        return StageDecl(name=name, kind=None, span=name.span)
    if mapping.find("repeat") is not None or _misspelt_repeat(mapping):
        return _repeat(name, mapping, sink, table)
    return _stage(name, mapping, place, sink, table)


def _stage(
    name: Scalar, mapping: Mapping, place: Place, sink: Sink, table: BackendTable
) -> StageDecl:
    entry = mapping.find("kind") or _misspelt_kind(mapping)
    broken = StageDecl(name=name, kind=None, span=name.span)
    if entry is None and (mapping.partial or misspelt_use(mapping, place, sink)):
        return broken
    if entry is None:
        sink.error(
            "AGC202",
            f"{place.what} needs `kind`",
            name.span,
            expected=f"one of {listed([kind.name for kind in KINDS])}; or `repeat`, or `use`",
            fix=_kind_as_key(mapping),
        )
        return broken
    node = entry.value
    kind = kind_named(node.text) if isinstance(node, Scalar) else None
    if kind is None:
        names = [kind.name for kind in KINDS]
        written = node.text if isinstance(node, Scalar) else ""
        sink.error(
            "AGC209",
            f"`kind` of {place.what} cannot be {described(node)}",
            node.span,
            expected=f"one of {listed(nearest_first(written, names))}",
            fix=advice_for_kind(written) or did_you_mean(written, names),
        )
        return broken
    place = Place(place.path, f"{place.what} of kind {kind.name}")
    return _read(name, kind, mapping, language.STAGE_KEYS, place, sink, table)


def _kind_as_key(mapping: Mapping) -> str | None:
    """Help for `compare: [a, b]`, a kind in the place of the key."""
    own = {name for kind in KINDS for name in (*kind.uses, *(r.name for r in kind.roles))}
    for entry in mapping.entries:
        if entry.key.text not in own and kind_named(entry.key.text) is not None:
            return f"write `kind: {entry.key.text}`, and what it takes in keys of their own"
    return None


def _misspelt_kind(mapping: Mapping) -> Entry | None:
    """Without its kind nothing of a stage can be checked, so look for it under other names."""
    for entry in mapping.entries:
        value = entry.value
        if (
            isinstance(value, Scalar)
            and kind_named(value.text) is not None
            and did_you_mean(entry.key.text, ["kind"]) is not None
        ):
            return entry  # read_keys reports the key
    return None


def _misspelt_repeat(mapping: Mapping) -> bool:
    """Whether a mapping without `kind` holds what can only be a misspelt `repeat`."""
    if mapping.find("kind") is not None:
        return False
    return any(
        isinstance(entry.value, Mapping) and did_you_mean(entry.key.text, ["repeat"]) is not None
        for entry in mapping.entries
    )


def _read(
    name: Scalar,
    kind: Kind,
    mapping: Mapping,
    common: dict[str, str],
    place: Place,
    sink: Sink,
    table: BackendTable,
) -> StageDecl:
    roles = [role.name for role in kind.roles]
    fields = [field.name for field in kind.fields]
    naming = [] if kind.named is None else [kind.named.name]
    plain = dict.fromkeys([*common, *roles, *naming, *kind.uses], "")
    allowed = {**plain, **{field.name: field for field in kind.fields}}
    needed = [role.name for role in kind.roles if not role.optional]
    mapping = without_aliases(mapping, aliases_of(kind), place, sink)
    mapping = without_standard_names(mapping, (*kind.fields, _options(kind, table)), place, sink)
    keys = read_keys(mapping, allowed, place, sink, table, required=needed)
    if mapping.partial:
        return StageDecl(name=name, kind=None, span=name.span)
    named = _named(keys.get(naming[0]), kind, place, sink) if naming else {}
    deciding = keys.get(kind.product_setting)
    made = deciding.value if deciding is not None else None
    if kind.products and isinstance(made, Scalar) and "{{" in made.text:
        sink.error(
            "AGC203",
            f"`{kind.product_setting}` of {place.what} cannot be an expression",
            made.span,
            expected=f"one of {listed(_choices(kind, kind.product_setting))}",
            notes=("what a stage makes has to be known before anything is computed",),
        )
        return StageDecl(name=name, kind=None, span=name.span)
    kind = kind.of_stage(named, made.text if isinstance(made, Scalar) else None)
    _require_roles(kind, keys, name, place, sink)
    options, placement = keys.get("options"), keys.get("placement")
    return StageDecl(
        name=name,
        kind=kind,
        span=name.span,
        backend=_value(keys, "backend"),
        doc=_value(keys, "doc"),
        roles={**_chosen(keys, roles), **named},
        uses=_chosen(keys, kind.uses),
        fields=_chosen(keys, fields),
        options={**_beside_options(mapping, allowed, kind, table), **_inner(options, place, sink)},
        placement=_inner(
            placement, place, sink, [field.name for field in language.PLACEMENT_FIELDS]
        ),
        keys={key: entry.key.span for key, entry in [*keys.items(), *named.items()]},
    )


def _options(kind: Kind, table: BackendTable) -> Field:
    """The options of the backends of a kind, as one group."""
    backends = table.stage_backends(kind.name)
    options = (field for backend in backends for field in backend.options)
    return group("options", "", tuple({field.name: field for field in options}.values()))


def _chosen(keys: dict[str, Entry], names: Iterable[str]) -> dict[str, Entry]:
    """The keys of these names that are given."""
    return {name: keys[name] for name in names if name in keys}


def _require_roles(
    kind: Kind, keys: Collection[str], name: Scalar, place: Place, sink: Sink
) -> None:
    """Report the inputs that a stage of this kind has to have and does not."""
    for role in kind.roles:
        if not role.optional and role.name not in keys:
            accepts = " or ".join(accepted.name for accepted in role.accepts)
            sink.error(
                "AGC202",
                f"{place.what} needs `{role.name}`",
                name.span,
                expected=f"the name of a stage that makes {accepts}",
                notes=(role.doc,),
            )


def _beside_options(
    mapping: Mapping, allowed: Collection[str], kind: Kind, table: BackendTable
) -> dict[str, Entry]:
    """Options of the backend that were written as keys of the stage. `read_keys` has reported them,
    and nothing that follows should be: what they were to set is not known, but it is set."""
    unknown = [entry for entry in mapping.entries if entry.key.text not in allowed]
    if not unknown:
        return {}
    written = mapping.find("backend")
    named = written.value if written is not None else None
    chosen = table.find(named.text, kind.name) if isinstance(named, Scalar) else None
    backends = table.stage_backends(kind.name) if chosen is None else (chosen,)
    names = {
        option.name
        for backend in backends
        if isinstance(backend, StageBackend)
        for option in backend.options
    }
    return {
        entry.key.text: Entry(entry.key, Unknown(entry.value.span))
        for entry in unknown
        if entry.key.text in names
    }


def _choices(kind: Kind, name: str) -> list[str]:
    choices = next((field.schema.get("enum") for field in kind.fields if field.name == name), None)
    return [str(choice) for choice in choices] if isinstance(choices, list) else []


def _named(entry: Entry | None, kind: Kind, place: Place, sink: Sink) -> dict[str, Entry]:
    """The inputs that a stage gives names of its own, which no setting of it has."""
    taken = {*language.STAGE_KEYS, *kind.uses, *(field.name for field in kind.fields)}
    entries: dict[str, Entry] = {}
    for name, node in _inner(entry, place, sink).items():
        if name in taken:
            sink.error(
                "AGC206",
                f"`{name}` cannot be the name of an input, for it is a key of {place.what}",
                node.key.span,
                fix=f"call it `{name}_read`, say",
            )
        elif checked_name(node.key, "an input", sink):
            entries[name] = node
    return entries


def _inner(
    entry: Entry | None, place: Place, sink: Sink, allowed: list[str] | None = None
) -> dict[str, Entry]:
    if entry is None:
        return {}
    inner = Place(f"{place.path}.{entry.key.text}", f"`{entry.key.text}` of {place.what}")
    items = entry.value.items if isinstance(entry.value, Sequence) else ()
    first = items[0].text if items and isinstance(items[0], Scalar) else ""
    fix = f"give each a name: `{{NAME: {first}}}`" if first and allowed is None else None
    mapping = as_mapping(entry.value, inner, sink, "a mapping", fix)
    if mapping is None:
        return {}
    if allowed is None:
        return {each.key.text: each for each in mapping.entries}
    return read_keys(mapping, allowed, inner, sink)


def _repeat(name: Scalar, mapping: Mapping, sink: Sink, table: BackendTable) -> RepeatDecl:
    place = Place(f"stages.{name.text}", f"repeat `{name.text}`")
    nothing = RepeatDecl(name=name, rounds=None, carry=(), stages={}, span=name.span, broken=True)
    if _repeat_beside(mapping, place, sink):
        return nothing
    outer = read_keys(mapping, language.REPEAT_KEYS, place, sink, outline=True)
    entry = outer.get("repeat")
    expected = "a mapping with `n`, `carry` and `stages`"
    inner = (
        None if entry is None else as_mapping(entry.value, place, sink, expected, _rounds(entry))
    )
    if inner is None:
        return nothing
    needed = ("n", "stages")
    keys = read_keys(inner, language.REPEAT_INNER_KEYS, place, sink, required=needed, outline=True)
    for key in needed:
        if key not in keys and not inner.partial:
            sink.error(
                "AGC202",
                f"{place.what} needs `{key}`",
                name.span,
                notes=(language.REPEAT_INNER_KEYS[key],),
            )
    stages: dict[str, StageDecl] = {}
    entry = keys.get("stages")
    body = None
    if entry is not None:
        body = as_mapping(
            entry.value,
            Place(place.path, f"`stages` of {place.what}"),
            sink,
            "a mapping of names to stages",
        )
    for item in () if body is None else body.entries:
        declared = _inner_stage(name, item, sink, table)
        if declared is not None:
            stages[item.key.text] = declared
    if body is not None and not body.entries and not body.partial:
        assert entry is not None
        sink.error(
            "AGC211",
            f"`stages` of {place.what} is empty",
            entry.key.span,
            expected="a mapping of names to stages",
        )
    carry, whole = _carry(keys.get("carry"), place, sink)
    return RepeatDecl(
        name=name,
        rounds=_value(keys, "n"),
        carry=carry,
        stages=stages,
        span=name.span,
        until=_value(keys, "until"),
        broken=inner.partial or not whole or not stages or (body is not None and body.partial),
    )


def _rounds(entry: Entry) -> str | None:
    """Help for a number of rounds in the place of what they are."""
    count = entry.value.text if isinstance(entry.value, Scalar) else ""
    if not count.isdigit():
        return None
    return (
        f"write `repeat: {{n: {count}, stages: {{...}}}}`, with the stages of a round in it, and "
        "`carry: {NAME: {from: STAGE, next: STAGE}}` for what a round hands to the next one"
    )


def _repeat_beside(mapping: Mapping, place: Place, sink: Sink) -> bool:
    """Whether what belongs into `repeat` stands beside it (reported)."""
    entry = mapping.find("repeat")
    beside = [e.key for e in mapping.entries if e.key.text in language.REPEAT_INNER_KEYS]
    if entry is None or not beside or not isinstance(entry.value, Scalar) or entry.value.text:
        return False
    sink.error(
        "AGC203",
        f"`repeat` of {place.what} is empty",
        entry.key.span,
        notes=(f"{listed(key.text for key in beside)} is beside it, not in it",),
        fix="indent what belongs to it further than `repeat:` itself",
    )
    return True


def _inner_stage(repeat: Scalar, entry: Entry, sink: Sink, table: BackendTable) -> StageDecl | None:
    name, node = entry.key, entry.value
    place = Place(f"stages.{repeat.text}.{name.text}", f"stage `{name.text}`")
    checked_name(name, f"a stage of repeat `{repeat.text}`", sink)
    mapping = as_mapping(node, place, sink, "a mapping with `kind`")
    if mapping is None:
        return StageDecl(name=name, kind=None, span=name.span)
    nested = mapping.find("repeat")
    if nested is not None:
        sink.error(
            "AGC410",
            f"a repeat cannot be inside repeat `{repeat.text}`",
            nested.key.span,
            fix="write the inner rounds as a repeat of their own, or as stages",
        )
        return StageDecl(name=name, kind=None, span=name.span)
    return _stage(name, mapping, place, sink, table)


def _carry(entry: Entry | None, place: Place, sink: Sink) -> tuple[tuple[CarryDecl, ...], bool]:
    """What is carried, and whether all of it could be read."""
    if entry is None:
        return (), True
    example = "a mapping such as `policy: {from: sft, next: dpo}`"
    mapping = as_mapping(entry.value, Place(place.path, f"`carry` of {place.what}"), sink, example)
    carried: list[CarryDecl] = []
    count = -1 if mapping is None or mapping.partial else len(mapping.entries)
    for item in () if mapping is None else mapping.entries:
        checked_name(item.key, "a carried stage", sink)
        what = Place(f"{place.path}.carry", f"carried `{item.key.text}` of {place.what}")
        inner = as_mapping(item.value, what, sink, example)
        if inner is None:
            continue
        keys = read_keys(inner, language.CARRY_KEYS, what, sink, required=language.CARRY_KEYS)
        for key in language.CARRY_KEYS:
            if key not in keys:
                sink.error(
                    "AGC202",
                    f"{what.what} needs `{key}`",
                    item.key.span,
                    notes=(language.CARRY_KEYS[key],),
                )
        whole = not any(isinstance(entry.value, Unknown) for entry in keys.values())
        if whole and len(keys) == len(language.CARRY_KEYS):
            carried.append(
                CarryDecl(name=item.key, start=keys["from"].value, next=keys["next"].value)
            )
    return tuple(carried), len(carried) == count


def _value(keys: dict[str, Entry], key: str) -> Node | None:
    entry = keys.get(key)
    return None if entry is None else entry.value
