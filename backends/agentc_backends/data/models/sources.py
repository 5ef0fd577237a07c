"""Where external weights come from: a pinned commit of the Hugging Face hub, or a directory of this
machine. Code that a repository ships is refused."""

from __future__ import annotations

from dataclasses import replace

from agentc.backend_api import JobDraft, LowerContext, Refusal, StageView
from agentc.kinds.field import Json
from agentc_backends.data.hub_revisions import pinned_commit

_REVISIONS = (
    "`revision: main`, which the first run pins to a commit; another branch, a tag or the 40 hex "
    "digits of a commit will do too"
)


def from_hub(draft: JobDraft, context: LowerContext, example: str) -> JobDraft:
    """The draft of a job that takes a repository at a commit, `example` of its kind."""
    source, pinned = hub_source(draft.view, context, draft.backend, example)
    return replace(
        draft,
        config={**source, **draft.config},
        extra_identity=pinned,
        contract={"network": True},
        local=True,
    )


def from_directory(draft: JobDraft, context: LowerContext) -> JobDraft:
    """The draft of a job that takes a directory of this machine."""
    source, files = _directory_source(draft.view, context, draft.backend)
    return replace(draft, config={**source, **draft.config}, extra_identity=files)


def hub_source(
    view: StageView, context: LowerContext, backend: str, example: str
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Config and extra identity of a repository at a commit. Refuses a revision that may move."""
    for name, shown in (
        ("repo", f"repo: {example}"),
        ("revision", _REVISIONS),
    ):
        if not view.is_set(name):
            view.refuse(name, f"{backend} needs `{name}`", fix=f"set {shown}")
    repo, revision = view.get("repo"), view.get("revision")
    commit = None
    if isinstance(repo, str) and isinstance(revision, str):
        commit = pinned_commit(view, context, repo, revision)
    # A branch says nothing about content; what it is pinned to does.
    pinned: dict[str, Json] = {} if commit == revision else {"commit": commit}
    return {"repo": repo, "revision": commit}, pinned


def _directory_source(
    view: StageView, context: LowerContext, backend: str
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Config and extra identity of a directory, which is no object of the store, so that its
    content has to enter the key."""
    path, digest = view.get("path"), None
    place: Json = path
    if not isinstance(path, str):
        view.refuse(
            "path",
            f"{backend} needs `path`",
            fix="set path: <a model directory>; for a model of the Hugging Face hub set `repo`",
        )
    else:
        place, digest = context.model_folder(path)
        if path.lower().endswith(".gguf") and not context.is_directory(path):
            view.refuse(
                "path", f"{path} is a GGUF file", fix="use `backend: gguf`, which converts it"
            )
        elif digest is None:
            # What a directory lacks is said by the rule of model directories.
            view.refuse(
                "path",
                f"there is no directory {path} whose files can all be read",
                fix="give a directory in Hugging Face layout, relative to the spec or absolute",
            )
    return {"path": place, "digest": digest}, {"files": digest}


REMOTE_CODE = Refusal(
    path="trust_remote_code",
    reason="the trainers and servers of agentc do not run code from model repositories",
    capability="trust_remote_code",
    fix="choose a model whose architecture transformers has built in",
)
"""Of the setting `trust_remote_code: true`."""
