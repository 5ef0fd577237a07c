"""Compares two plans job by job and finds the root cause of every difference.

Pure: `plan`, `why`, `run` and the report all show what this module finds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from agentc.kinds import kind_named
from agentc.kinds.field import Field, Json
from agentc.text import some


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """Everything that enters a job's key, as flat paths, and its inputs by job id.

    `own` maps paths such as `settings.beta`, `version`, `software` or `policy server.backend`
    to values; settings at their defaults are not among them. `inputs` maps a role to ids of the
    producing jobs. `config` is what the program is told, defaults included.
    """

    id: str
    stage: str
    kind: str
    key: str
    backend: str
    own: Mapping[str, Json]
    inputs: Mapping[str, tuple[str, ...]]
    config: Mapping[str, Json]

    @property
    def object(self) -> str:
        """The store's name of what the job makes."""
        return f"{self.kind}/{self.key}"

    def default(self, path: str) -> Json:
        """What a setting (`settings.decode.temperature`) is when nobody sets it: the kind's
        default, or, for a backend's own setting, what its program is told. None when unknown."""
        names = path.split(".")[1:]
        kind = kind_named(self.kind)
        fields: Sequence[Field] = () if kind is None else kind.fields
        found: Field | None = None
        value: Json = dict(self.config)
        for name in names:
            found = next((field for field in fields if field.name == name), None)
            fields = () if found is None else found.fields
            value = value.get(name) if isinstance(value, dict) else None
        if found is not None and isinstance(found.default, (str, int, float, bool)):
            return found.default
        return None if isinstance(value, (dict, list)) else value


def read_records(document: Mapping[str, Json]) -> dict[str, JobRecord]:
    """The jobs of a plan document by id, in plan order."""
    jobs = [job for job in _list(document.get("jobs")) if isinstance(job, dict)]
    makers: dict[str, str] = {}
    for job in jobs:
        makers.setdefault(f"{job.get('kind')}/{job.get('key')}", str(job.get("id")))
    locks = {
        name: entry.get("lock") if isinstance(entry, dict) else None
        for name, entry in _table(document.get("software")).items()
    }
    return {str(job.get("id")): _record(job, makers, locks) for job in jobs}


def _record(
    job: Mapping[str, Json], makers: Mapping[str, str], locks: Mapping[str, Json]
) -> JobRecord:
    own: dict[str, Json] = {
        "kind": job.get("kind"),
        "backend": job.get("backend"),
        "version": job.get("version"),
        "software": locks.get(str(job.get("software"))),
    }
    for part, value in _table(job.get("identity")).items():
        _flatten(part, value, own)
    for lease in _list(job.get("leases")):
        if not isinstance(lease, dict):
            continue
        server = f"{lease.get('role')} server"
        own[f"{server}.backend"] = lease.get("backend")
        own[f"{server}.version"] = lease.get("version")
        own[f"{server}.software"] = locks.get(str(lease.get("software")))
        for name, value in _table(lease.get("identity")).items():
            _flatten(f"{server}.{name}", value, own)
    return JobRecord(
        id=str(job.get("id")),
        stage=str(job.get("stage")),
        kind=str(job.get("kind")),
        key=str(job.get("key")),
        backend=str(job.get("backend")),
        own=own,
        config=_table(job.get("config")),
        inputs={
            role: tuple(makers.get(str(name), str(name)) for name in _list(names))
            for role, names in _table(job.get("inputs")).items()
        },
    )


def flat_paths(value: Json) -> dict[str, Json]:
    """The values of a mapping by dotted path; of anything else, nothing."""
    found: dict[str, Json] = {}
    for name, item in _table(value).items():
        _flatten(name, item, found)
    return found


def _flatten(path: str, value: Json, into: dict[str, Json]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            _flatten(f"{path}.{name}", item, into)
    else:
        into[path] = value


def _table(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


Novelty: TypeAlias = Literal["same", "changed", "new", "gone"]
_FILE = re.compile(r"(?:[^.]* server\.)?(?:facts\.)?(?:files|code)\.(?P<name>.+)")
"""Files of a spec by name, with their digests: of a script, and of backends of its own, whose
environment is a server of the job."""
_LONG = 60
_MOST_INSIDE = 5
"""Differences inside of one list that a line names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that enters a key and differs. `before` or `after` is None for one that only the
    other plan has; of a setting, `default` is then what it was or is without being set."""

    path: str
    before: Json
    after: Json
    default: Json = None

    @property
    def is_wiring(self) -> bool:
        """Whether it is an input role that only one of the plans has."""
        return self.path.startswith("input ") and None in (self.before, self.after)

    def text(self) -> str:
        """One line for people: `beta: 0.1 -> 0.5`."""
        match = _FILE.fullmatch(self.path)
        if match is not None:
            file = match["name"]
            if self.before is not None and self.after is not None:
                return f"{file} changed"
            return f"{file} is {'new' if self.before is None else 'gone'}"
        name = self.path.removeprefix("settings.").removeprefix("facts.")
        if self.path.endswith("software"):
            return f"{name}: other versions of packages"
        if isinstance(self.before, list) or isinstance(self.after, list):
            return f"{name}: {_relisted(self.before, self.after)}"
        skipped = _alike(self.before, self.after)
        unset = "default" if self.default is None else f"{_short(self.default)} (default)"
        before = unset if self.before is None else _short(self.before, skipped)
        after = unset if self.after is None else _short(self.after, skipped)
        return f"{name}: {before} -> {after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDiff:
    """How one job differs between two plans.

    `changes` are its own; `upstream` are ids of inputs whose artifacts differ; `causes` are the
    jobs, this one included, whose own changes are the cause: bit n stands for `order[n]`, since
    a chain in which every job has changed would hold half as many names as its length squared.
    `was` is its id in the earlier plan, if that was another one: equal work under a new name is
    the same work.
    """

    id: str
    novelty: Novelty
    was: str | None = None
    changes: tuple[Change, ...] = ()
    upstream: tuple[str, ...] = ()
    causes: int = 0
    order: Sequence[str] = field(default=(), repr=False, compare=False)

    @property
    def roots(self) -> tuple[str, ...]:
        """Ids of the causes, those that come last in the plan first."""
        return tuple(self.nearest_roots(self.root_count))

    @property
    def root_count(self) -> int:
        """How many causes there are."""
        return self.causes.bit_count()

    def nearest_roots(self, most: int) -> list[str]:
        """As many of `roots`, without a look at the others."""
        found: list[str] = []
        left = self.causes
        while left and len(found) < most:
            last = left.bit_length() - 1
            found.append(self.order[last])
            left ^= 1 << last
        return found


def compare_plans(
    before: Mapping[str, Json] | None, after: Mapping[str, Json]
) -> dict[str, JobDiff]:
    """Every job of `after` in its order, then the jobs that only `before` has."""
    return compare_records({} if before is None else read_records(before), read_records(after))


def compare_records(
    old: Mapping[str, JobRecord], new: Mapping[str, JobRecord]
) -> dict[str, JobDiff]:
    """The same of jobs by id, in the order of a plan."""
    moved = {record.object: record for name, record in old.items() if name not in new}
    renamed: dict[str, str] = {}
    order = tuple(new)
    found: dict[str, JobDiff] = {}
    for record in new.values():
        earlier = old.get(record.id)
        if earlier is None and record.object in moved:
            earlier = moved.pop(record.object)
            renamed[earlier.id] = record.id
        found[record.id] = _compare(earlier, record, found, renamed, order)
    for name in old:
        if name not in new and name not in renamed:
            found[name] = JobDiff(id=name, novelty="gone")
    return found


def explain_root(diffs: Mapping[str, JobDiff], name: str) -> str:
    """One line on a job that is a root cause."""
    diff = diffs[name]
    if diff.novelty == "new":
        return f"{name} is new"
    return f"{name} ({'; '.join(change.text() for change in diff.changes)})"


def change_texts(changes: Sequence[Change], most: int | None = None) -> list[str]:
    """Changes of one job, one a line; inputs that only came or only went share one."""
    wired = [change for change in changes if change.is_wiring]
    texts = [change.text() for change in changes if not change.is_wiring]
    if len(wired) == 1:
        texts += [change.text() for change in wired]
    elif wired:
        names = [("+" if c.before is None else "-") + c.path.partition(" ")[2] for c in wired]
        texts.append(f"inputs: {some(names, 5)}")
    if most is not None and len(texts) > most:
        texts = [*texts[: most - 1], f"and {len(texts) - most + 1} more changes"]
    return texts


def changed_values(before: Json, after: Json) -> tuple[Change, ...]:
    """What differs between two mappings, as flat paths: params, placement, resources."""
    old, new = flat_paths(before), flat_paths(after)
    return tuple(
        Change(path=path, before=old.get(path), after=new.get(path))
        for path in dict.fromkeys((*old, *new))
        if old.get(path) != new.get(path)
    )


def _compare(
    old: JobRecord | None,
    new: JobRecord,
    done: Mapping[str, JobDiff],
    renamed: Mapping[str, str],
    order: Sequence[str],
) -> JobDiff:
    if old is not None and old.key == new.key:
        return JobDiff(id=new.id, novelty="same", was=None if old.id == new.id else old.id)
    parents = [parent for parents in new.inputs.values() for parent in parents]
    upstream = tuple(dict.fromkeys(p for p in parents if p in done and done[p].novelty != "same"))
    causes = 0
    for parent in upstream:
        causes |= done[parent].causes
    changes = () if old is None else (*_job_changes(old, new), *_wiring(old, new, renamed))
    if old is None or changes or not causes:
        causes |= 1 << len(done)
    return JobDiff(
        id=new.id,
        novelty="new" if old is None else "changed",
        changes=changes,
        upstream=upstream,
        causes=causes,
        order=order,
    )


def _job_changes(old: JobRecord, new: JobRecord) -> list[Change]:
    changes: list[Change] = []
    for change in changed_values(dict(old.own), dict(new.own)):
        unset = old if change.before is None else new if change.after is None else None
        if unset is not None and change.path.startswith("settings."):
            change = replace(change, default=unset.default(change.path))
        changes.append(change)
    return changes


def _wiring(old: JobRecord, new: JobRecord, renamed: Mapping[str, str]) -> list[Change]:
    """Inputs that are taken from other jobs than before."""
    changes: list[Change] = []
    for role in dict.fromkeys((*old.inputs, *new.inputs)):
        before = [renamed.get(name, name) for name in old.inputs.get(role, ())]
        after = list(new.inputs.get(role, ()))
        if before != after:
            path = f"input {role}"
            changes.append(Change(path=path, before=[*before] or None, after=[*after] or None))
    return changes


def _relisted(before: Json, after: Json) -> str:
    """What came to a list and what went, where there is more than one thing."""
    old, new = _items(before), _items(after)
    if len(old) == len(new) and all(isinstance(item, dict) for item in (*old, *new)):
        # Claims and the like: what differs inside of them, not two long texts that begin alike.
        numbered = ({f"[{n}]": item for n, item in enumerate(items)} for items in (old, new))
        texts = [change.text() for change in changed_values(*numbered)]
        return some(texts, _MOST_INSIDE)
    if len(old) <= 1 and len(new) <= 1:
        return f"{_short(old[0]) if old else 'none'} -> {_short(new[0]) if new else 'none'}"
    went = [f"-{_short(item)}" for item in _missing_in(new, old)]
    came = [f"+{_short(item)}" for item in _missing_in(old, new)]
    return _short(", ".join([*went, *came])) if came or went else "in another order"


def _items(value: Json) -> list[Json]:
    """A list; of another value the list of it."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _missing_in(there: Sequence[Json], items: Sequence[Json]) -> list[Json]:
    """Those of `items` that are not there."""
    texts = {json.dumps(item) for item in there}
    return [item for item in items if json.dumps(item) not in texts]


def _alike(before: Json, after: Json) -> int:
    """How many characters two long texts have in common at their start, less some for reading."""
    if not isinstance(before, str) or not isinstance(after, str):
        return 0
    same = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    same = same or min(len(before), len(after))
    return max(0, same - 12) if max(len(before), len(after)) > _LONG else 0


def _plain(value: Json) -> str:
    """A value as a spec would hold it on one line."""
    match value:
        case None | bool():
            return json.dumps(value)
        case dict():
            return f"{{{', '.join(f'{name}: {_plain(item)}' for name, item in value.items())}}}"
        case list():
            return f"[{', '.join(map(_plain, value))}]"
        case _:
            return str(value)


def _short(value: Json, skipped: int = 0) -> str:
    text = _plain(value)
    lead = "..." if skipped else ""
    text = " ".join(text[skipped:].split())
    # A value may hold anything, also what would steer a terminal.
    text = "".join(char if char.isprintable() else "?" for char in text)
    if len(text) <= _LONG:
        return lead + text
    return f"{lead}{text[:40]}... ({skipped + len(text)} characters)"
