"""What a reference in a spec means: `sft`, `policy`, `eto.dpo`, `eto.1.dpo`, `eto.*.evaluate`.

Used by `resolve_names`. A reference gives stage ids; several only where a list may stand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agentc.backend_api import BackendTable
from agentc.diagnostics.other_methods import advice_for_kind
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expand_repeat import Carried, Rounds, Unrolled
from agentc.front.expressions import Evaluator
from agentc.front.stage_values import StageDraft
from agentc.kinds.field import HUB_ID, Role
from agentc.schema.keys import tidied
from agentc.schema.structure import report_empty
from agentc.source.scalars import read_integer
from agentc.source.tree import Mapping as MappingNode
from agentc.source.tree import Node, Unknown, described, items_of, text_of
from agentc.syntax.nodes import RepeatDecl, Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedReference:
    """A reference that means nothing: the parts of a diagnostic. `code` is None when the trouble
    has been reported elsewhere."""

    code: str | None
    message: str = ""
    expected: str | None = None
    notes: tuple[str, ...] = ()
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class ReferenceResolver:
    """Resolves references against the declared names of a spec and its unrolled rounds."""

    spec: Spec
    rounds: Rounds
    repeats: dict[str, RepeatDecl] = field(init=False)
    outer: list[str] = field(init=False)
    """What can be named everywhere, sorted: kept, since each unknown name is held against it."""
    inner: dict[str, str] = field(init=False)
    """By the name of a stage in a repeat, the first repeat that has it."""
    carried: dict[str, str] = field(init=False)
    """By carried name, the first repeat that carries it."""

    def __post_init__(self) -> None:
        stages = self.spec.stages
        repeats = {n: found for n, found in stages.items() if isinstance(found, RepeatDecl)}
        names = {*self.spec.models, *(name for name in stages if name not in repeats)}
        names |= {f"{name}.{stage}" for name, found in repeats.items() for stage in found.stages}
        inner: dict[str, str] = {}
        carried: dict[str, str] = {}
        for repeat, declared in repeats.items():
            for name in declared.stages:
                inner.setdefault(name, repeat)
            for carry in declared.carry:
                carried.setdefault(carry.name.text, repeat)
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "carried", carried)
        object.__setattr__(self, "repeats", repeats)
        object.__setattr__(self, "outer", sorted(names))

    def resolve(self, text: str, at: Unrolled) -> Carried | RefusedReference:
        """Stage ids in order; of a carried name also `from`, a node to resolve outside."""
        parts = text.strip().split(".")
        if len(parts) == 1:
            return self._bare(parts[0], at)
        repeat = self.spec.stages.get(parts[0])
        if not isinstance(repeat, RepeatDecl):
            return self._unknown_dotted(text, parts, at)
        return self._in_repeat(repeat, parts[1:], text)

    def _bare(self, name: str, at: Unrolled) -> Carried | RefusedReference:
        if name in at.names:
            return (at.names[name],)
        if name in at.carried:
            found = at.carried[name]
            return RefusedReference(code=None) if found is None else found
        if name in self.spec.models:
            return (name,)
        outer = self.spec.stages.get(name)
        if isinstance(outer, RepeatDecl):
            return RefusedReference(
                code="AGC412",
                message=f"`{name}` is a repeat, not a stage",
                expected=f"one of its stages: {listed(f'{name}.{s}' for s in outer.stages)}",
                notes=(f"`{name}.*.STAGE` in a list means that of every round",),
            )
        if outer is not None:
            return (name,)
        return self._unknown(name, at)

    def _unknown(self, name: str, at: Unrolled) -> RefusedReference:
        visible = self._visible(at)
        repeat = self.spec.stages.get(at.repeat or at.id)
        if isinstance(repeat, RepeatDecl) and repeat.broken:
            return RefusedReference(code=None)
        if self.spec.broken & {"stages", "models"} or self._meant_for_broken_name(name):
            return RefusedReference(code=None)
        inside = f"{self.inner[name]}.{name}" if name in self.inner else None
        notes: tuple[str, ...] = ()
        if inside is not None:
            notes = (f"`{name}` is a stage of a repeat: outside of it, it is `{inside}`",)
        elif name in self.carried:
            carrier = self.carried[name]
            notes = (f"`{name}` is carried in repeat `{carrier}` and known only there",)
        for section, entries in (
            ("environments", self.spec.environments),
            ("servers", self.spec.servers),
            ("prompts", self.spec.prompts),
            ("params", self.spec.params),
        ):
            if name in entries:
                notes = (*notes, f"`{name}` is an entry of `{section}:`, not a stage")
        fix = advise_reference(name, visible) or did_you_mean(name, visible)
        return RefusedReference(
            code="AGC401",
            message=f"no stage or model `{name}`",
            expected=None if fix else f"one of {listed(visible)}",
            notes=notes,
            fix=fix if inside is None else f"write `{inside}`",
        )

    def _meant_for_broken_name(self, name: str) -> bool:
        """Whether a declaration whose own name is refused is the one that is meant."""
        refused = self.spec.misnamed
        return bool(refused) and did_you_mean(name, [tidied(each) for each in refused]) is not None

    def _unknown_dotted(self, text: str, parts: list[str], at: Unrolled) -> RefusedReference:
        repeats = [n for n, found in self.spec.stages.items() if isinstance(found, RepeatDecl)]
        if "stages" in self.spec.broken:
            return RefusedReference(code=None)
        head = parts[0]
        if head in self.spec.models or head in self.spec.stages:
            return RefusedReference(
                code="AGC401",
                message=f"`{head}` has no stages of its own, so `{text}` means nothing",
                fix=f"write `{head}`",
            )
        misplaced = advise_reference(text, self.outer)
        if misplaced is not None and _index_written(text, repeats) is None:
            return RefusedReference(
                code="AGC401", message=f"no stage or model `{text}`", fix=misplaced
            )
        near = did_you_mean(head, repeats)
        return RefusedReference(
            code="AGC401",
            message=f"no repeat `{head}`",
            expected=(f"one of {listed(repeats)}" if repeats else "a stage: the spec has no repeat")
            if not near
            else None,
            fix=_index_written(text, repeats) or near or did_you_mean(text, self._visible(at)),
        )

    def _in_repeat(
        self, repeat: RepeatDecl, parts: list[str], text: str
    ) -> tuple[str, ...] | RefusedReference:
        name, count = repeat.name.text, self.rounds.counts.get(repeat.name.text, 1)
        number = read_integer(parts[0]) if len(parts) == 2 else None
        stage = parts[-1]
        if len(parts) > 2 or (len(parts) == 2 and parts[0] != "*" and number is None):
            return RefusedReference(
                code="AGC412",
                message=f"`{text}` names no stage of `{name}`",
                expected=f"`{name}.STAGE` (last round), `{name}.1.STAGE`, or `{name}.*.STAGE`",
            )
        if stage not in repeat.stages and repeat.broken:
            return RefusedReference(code=None)
        if stage not in repeat.stages:
            whole = read_integer(stage) is not None
            return RefusedReference(
                code="AGC412" if whole else "AGC401",
                message=f"`{name}` has no stage `{stage}`",
                expected=f"one of {listed(repeat.stages)}",
                notes=(f"write `{name}.{stage}.STAGE` for a stage of that round",) * whole,
                fix=did_you_mean(stage, repeat.stages),
            )
        if len(parts) == 1:
            return (f"{name}.{count}.{stage}",)
        if number is None:
            return tuple(f"{name}.{each}.{stage}" for each in range(1, count + 1))
        if repeat.until is not None and number > 1:
            return RefusedReference(
                code="AGC792",
                message=f"`{text}` may never be: `until` may end `{name}` before round {number}",
                expected=f"`{name}.{stage}` (last round), `{name}.1.{stage}`, "
                f"or `{name}.*.{stage}` in a list",
            )
        if not 1 <= number <= count:
            return RefusedReference(
                code="AGC412",
                message=f"`{name}` has no round {number}",
                expected=f"a round from 1 to {count}",
            )
        return (f"{name}.{number}.{stage}",)

    def _visible(self, at: Unrolled) -> list[str]:
        own = at.declared.name.text
        inner = {*at.names, *at.carried}
        names = sorted(inner.union(self.outer)) if inner else self.outer
        return [name for name in names if name != own]


def _index_written(text: str, repeats: list[str]) -> str | None:
    """`eto[1].dpo` and `eto/dpo` as they are written here."""
    parts = [part for part in re.split(r"[\[\]./]+", text) if part]
    if parts[:1] and parts[0] in repeats and len(parts) > 1:
        return f"write `{'.'.join(parts)}`"
    return None


def find_cycle(edges: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The stages of one circle, each waiting for the next; () when there is none."""
    done: set[str] = set()
    for root in edges:
        if root in done:
            continue
        path: dict[str, None] = {}
        pending = [(root, iter(edges[root]))]
        path[root] = None
        while pending:
            name, inputs = pending[-1]
            following = next((each for each in inputs if each in edges and each not in done), None)
            if following is None:
                pending.pop()
                path.pop(name)
                done.add(name)
            elif following in path:
                names = list(path)
                return tuple(names[names.index(following) :])
            else:
                path[following] = None
                pending.append((following, iter(edges[following])))
    return ()


# The stages that a name in a stage's input means, or a report of why it means none.


@dataclass(frozen=True, slots=True, kw_only=True)
class InputResolver:
    """Looks up names for the stages of one spec, or of one cell of its matrix."""

    spec: Spec
    references: ReferenceResolver
    evaluator: Evaluator
    sink: Sink

    def of(self, draft: StageDraft, role: Role, node: Node, at: Unrolled) -> Sequence[str]:
        """Ids in order, for a name that stands where `at` does; () where there are none: reported,
        but for a carried name that stands for nothing yet."""
        if isinstance(node, Unknown):
            draft.whole = False
            return ()
        text = text_of(node)
        if text is None:
            draft.report(
                self.sink,
                "AGC203",
                f"`{role.name}` cannot be {described(node)}",
                node.span,
                expected="the name of a stage" + (", or a list of names" if role.many else ""),
            )
            return ()
        found = self.references.resolve(text, at)
        if not isinstance(found, RefusedReference):
            return tuple(each for part in found for each in self._part(draft, role, part, at))
        draft.whole = False
        if found.code == "AGC401" and not found.fix and "models" in self.spec.empty:
            report_empty("models", self.spec.empty["models"], self.sink)
        elif found.code is not None:
            self.sink.error(
                found.code,
                found.message,
                node.span,
                expected=found.expected,
                notes=found.notes,
                fix=found.fix,
                steps=draft.unrolled.steps,
            )
        return ()

    def _part(self, draft: StageDraft, role: Role, part: str | Node, at: Unrolled) -> Iterator[str]:
        if isinstance(part, str):
            yield part
            return
        outside = Unrolled(id=at.repeat or at.id, declared=at.declared, scope=at.scope)
        for item in items_of(self.evaluator.evaluate(part, at.scope, at.steps))[0]:
            yield from self.of(draft, role, item, outside)

    def report_nothing(self, draft: StageDraft, role: str, node: Node) -> None:
        """Report an input that no stage is named for."""
        items, _ = items_of(node)
        unrolled = draft.unrolled
        written = {text_of(item) for item in items}
        names = [name for name in unrolled.carried if name in written]
        if not names:
            draft.report(
                self.sink,
                "AGC205",
                f"`{role}` cannot be empty",
                node.span,
                expected="the name of a stage, or a list of names",
            )
            return
        draft.report(
            self.sink,
            "AGC205",
            f"`{role}` is empty in round {unrolled.round}: {listed(names)} "
            f"{'carries' if len(names) == 1 else 'carry'} nothing yet",
            node.span,
            notes=("`from: []` represents no stage",),
            fix="name a stage of the round beside it, or one in `from`",
        )


# Help for what is in a stage and belongs elsewhere: hub ids and files where a stage is named,
# declarations where an entry is, algorithms where a backend is.

_DATA_FILE = re.compile(r".+\.(?:jsonl?|csv|tsv|parquet|arrow|txt)", re.IGNORECASE)


def advise_reference(text: str, known: Collection[str]) -> str | None:
    """Help for a text that names no stage: a file, a folder, a hub id, a list without brackets."""
    if text.replace("/", ".") in known:
        return f"write `{text.replace('/', '.')}`"
    parts = [part.strip() for part in re.split(r"[,;]| and ", text)]
    if len(parts) > 1 and all(part in known for part in parts):
        return f"write `[{', '.join(parts)}]`"
    if _DATA_FILE.fullmatch(text):
        return f"declare a stage for the file, `NAME: {{kind: dataset, path: {text}}}`, and name it"
    if text.startswith(("./", "../", "/", "~")):
        return f"declare a model of the folder, `models: {{NAME: {{path: {text}}}}}`, and name it"
    repeats = {name.split(".")[0] for name in known if "." in name}
    if "/" in text and re.match(HUB_ID, text) and text.split("/")[0] not in repeats:
        return f"write `models: {{base: {text}}}` at the top level and `base` here"
    return None


def advise_entry(use: str, node: Node, table: BackendTable) -> str | None:
    """Help for an environment, a server or a prompt that a stage declares instead of naming it."""
    if isinstance(node, MappingNode):
        return f"declare it as an entry of `{use}s:`, and write its name here"
    text = text_of(node) or ""
    if use == "prompt" and " " in text.strip():
        return "declare it as `prompts: {NAME: {instruction: ...}}`, and write the name here"
    family = {"environment": "env", "server": "serve"}.get(use)
    if family is not None and table.find(text, family) is not None:
        return f"`{text}` is a backend: declare `{use}s: {{NAME: {{backend: {text}}}}}`, name it"
    return None


def advise_backend(name: str) -> str | None:
    """Help for a method, or a server, in the place of a backend."""
    return advice_for_kind(name)
