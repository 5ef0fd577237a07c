"""Help for what is in a stage and belongs elsewhere: hub ids and files where a stage is named,
declarations where an entry is, algorithms where a backend is. Part of `bind_stage.py` and
`stage_references.py`."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentc.backend_api import BackendTable
from agentc.diagnostics.other_tools import advice_for_kind
from agentc.kinds.field import HUB_ID
from agentc.source.tree import Mapping, Node, text_of

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
        return (
            f"write `models: {{base: {{repo: {text}, revision: main}}}}` at the top level and "
            "`base` here"
        )
    return None


def advise_entry(use: str, node: Node, table: BackendTable) -> str | None:
    """Help for an environment, a server or a prompt that a stage declares instead of naming it."""
    if isinstance(node, Mapping):
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
