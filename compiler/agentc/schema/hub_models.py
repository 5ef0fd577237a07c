"""Help for models that are written in other ways than ours."""

from __future__ import annotations

from agentc.backend_api import BackendTable
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import listed
from agentc.diagnostics.synonyms import synonyms
from agentc.kinds import MODEL_KIND
from agentc.source.tree import Mapping, Node, Scalar, text_of


def advise_model(name: Scalar, node: Node) -> str | None:
    """What to write where a model is an expression: whether it gives a repository or a folder is
    not known here."""
    if not isinstance(node, Scalar) or "{{" not in node.text:
        return None
    return (
        f'write `{name.text}: {{repo: "{node.text}"}}`, or `{{path: "{node.text}"}}` for a folder'
    )


def reports_hub_model(name: Scalar, mapping: Mapping, sink: Sink, table: BackendTable) -> bool:
    """Whether a model is written as other tools do, `{backend: huggingface, name: owner/name}`:
    one error for both words."""
    backend = mapping.find("backend")
    written = text_of(backend.value) if backend is not None else None
    if backend is None or written is None or "hf" not in synonyms(written):
        return False
    for entry in mapping.entries:
        repo = text_of(entry.value)
        if repo and entry.key.text != "repo" and "repo" in synonyms(entry.key.text):
            possible = [each.id for each in table.stage_backends(MODEL_KIND)]
            sink.error(
                "AGC601",
                f"no backend `{written}` for kind {MODEL_KIND}, and no key `{entry.key.text}`",
                backend.value.span,
                expected=f"one of {listed(possible)}",
                fix=f"write `{name.text}: {repo}`, or `{{backend: hf, repo: {repo}}}`",
            )
            return True
    return False
