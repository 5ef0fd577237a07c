"""The commit of a hub repository that a model or data set is pinned to."""

from __future__ import annotations

from agentc.backend_api import LowerContext, StageView


def pinned_commit(view: StageView, context: LowerContext, repo: str, revision: str) -> str | None:
    """The commit that a revision of a repository is pinned to; refused where nothing pins it."""
    commit = context.pinned_revision(repo, revision)
    if commit is None:
        view.refuse(
            "revision",
            f"`{revision}` is a branch or a tag, and no lock pins it to a commit",
            fix="run `agentc lock` on the spec, or give the 40 hex digits of a commit",
        )
    return commit
