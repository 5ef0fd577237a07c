"""Models in one word: `base: Qwen/Qwen2.5-0.5B-Instruct`, or a local folder, is short for a mapping
with `repo` or `path`, and a repository without a revision is meant at `main`.
"""

from __future__ import annotations

import re
from pathlib import Path

from agentc.kinds import MODEL_KIND, kind_named
from agentc.kinds.field import HUB_ID
from agentc.source.files import is_directory
from agentc.source.scalars import is_null
from agentc.source.tree import Entry, Mapping, Node, Scalar, text_of

BRANCH = "main"
"""The revision of a repository where a spec gives none."""
_HUB_BACKENDS = ("hf", "gguf", "auto")
_LOCAL = (".", "/", "~")


def spell_out_models(root: Node, directory: Path) -> Node:
    """The tree with each model that is a text as a mapping. A folder beside the spec comes first:
    `models/llama` is a path where there is one. Expressions stay: what they give is not known."""
    models = root.find("models") if isinstance(root, Mapping) else None
    if models is None or not isinstance(models.value, Mapping):
        return root
    assert isinstance(root, Mapping)
    table = models.value
    entries = tuple(Entry(each.key, _model(each.value, directory)) for each in table.entries)
    spelled = Mapping(entries, table.span, table.partial)
    return _with(root, Entry(models.key, spelled))


def add_branches(root: Node) -> Node:
    """The tree with `revision: main` beside each `repo` of a model or stage that has no revision,
    unless `defaults:` has one."""
    if not isinstance(root, Mapping):
        return root
    defaults = root.find("defaults")
    if defaults is not None and _has(defaults.value, "revision"):
        return root
    for section in ("models", "stages"):
        found = root.find(section)
        if found is None or not isinstance(found.value, Mapping):
            continue
        kind = MODEL_KIND if section == "models" else None
        entries = tuple(Entry(e.key, _pinnable(e.value, kind)) for e in found.value.entries)
        table = Mapping(entries, found.value.span, found.value.partial)
        root = _with(root, Entry(found.key, table))
    return root


def is_hub_name(text: str) -> bool:
    """Whether a text can only be `owner/name` of a hub, or a folder of that name."""
    return "/" in text and re.match(HUB_ID, text) is not None


def _model(node: Node, directory: Path) -> Node:
    text = (text_of(node) or "").strip()
    is_text = not isinstance(node, Scalar) or node.quoted or not is_null(node.text)
    if not text or not is_text or "{{" in text:
        return node
    is_path = not _is_address(text) and (
        text.startswith(_LOCAL) or not is_hub_name(text) or is_directory(directory / text)
    )
    key = Scalar("path" if is_path else "repo", False, node.span)
    return Mapping((Entry(key, node),), node.span)


def _is_address(text: str) -> bool:
    return text.startswith(("https://", "http://"))


def _pinnable(node: Node, kind: str | None) -> Node:
    if not isinstance(node, Mapping):
        return node
    named, repo, backend = node.find("kind"), node.find("repo"), node.find("backend")
    if kind is None and named is not None:
        kind = text_of(named.value)
    declared = None if kind is None else kind_named(kind)
    if declared is None or repo is None or node.find("revision") or node.find("path"):
        return node
    if not {"repo", "revision"} <= {field.name for field in declared.fields}:
        return node
    family = text_of(backend.value) if backend is not None else "auto"
    if text_of(repo.value) is None or (family or "").rpartition(".")[2] not in _HUB_BACKENDS:
        return node
    if isinstance(repo.value, Scalar) and not repo.value.quoted and is_null(repo.value.text):
        return node
    span = repo.value.span
    branch = Entry(Scalar("revision", False, span), Scalar(BRANCH, False, span))
    return Mapping((*node.entries, branch), node.span, node.partial)


def _has(node: Node, key: str) -> bool:
    return isinstance(node, Mapping) and node.find(key) is not None


def _with(root: Mapping, entry: Entry) -> Mapping:
    """The mapping with another value of a key that it has."""
    name = entry.key.text
    entries = tuple(entry if each.key.text == name else each for each in root.entries)
    return Mapping(entries, root.span, root.partial)
