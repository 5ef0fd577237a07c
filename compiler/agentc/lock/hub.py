"""Asks a Hugging Face hub which commit a revision is.

HF_ENDPOINT names another hub, HF_TOKEN opens private repositories; both as the hub's own tools
read them.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request

from agentc.lock.references import is_commit
from agentc.runtime.model_folder.hub_cache import DATA_SETS

_ENDPOINT = "https://huggingface.co"
_TIMEOUT_S = 15.0
_LARGEST = 16 * 1024 * 1024
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._-]+)?")


UNPINNED_FIX = (
    "give the 40 hex digits of a commit, or try again with a network; a repository that "
    "`hf download` has put into the hub's cache on this machine needs none"
)
"""What to do about a branch or tag whose commit cannot be obtained."""


class HubError(Exception):
    """The hub answered, and the answer is no; the message is for people."""


class HubUnreachableError(Exception):
    """The hub did not answer."""


def resolve_revision(repo: str, revision: str) -> str:
    """The commit of a branch, tag or commit of a repository of models, or of data sets where its
    name starts with `datasets/`.

    Raises HubError when there is no such thing, HubUnreachableError when nobody answers.
    """
    kind, name = "models", repo
    if repo.startswith(DATA_SETS):
        kind, name = "datasets", repo.removeprefix(DATA_SETS)
    if not _REPOSITORY.fullmatch(name) or ".." in name:
        raise HubError(f"`{name}` is no name of a repository; write `owner/name`")
    base = (os.environ.get("HF_ENDPOINT") or _ENDPOINT).rstrip("/")
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "on", "yes", "true"):
        raise HubUnreachableError("HF_HUB_OFFLINE is set")
    if not base.startswith(("https://", "http://")):
        raise HubUnreachableError(f"HF_ENDPOINT is {base}, which is no address of a hub")
    quoted = urllib.parse.quote(revision, safe="")
    request = urllib.request.Request(f"{base}/api/{kind}/{name}/revision/{quoted}")
    token = os.environ.get("HF_TOKEN")
    if token and _is_private(base):
        # Not sent on to where the hub may redirect.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            text = answer.read(_LARGEST)
    except urllib.error.HTTPError as error:
        raise _refusal(error.code, repo, revision) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise HubUnreachableError(f"{base} cannot be reached: {reason}") from None
    try:
        commit = json.loads(text)["sha"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise HubUnreachableError(f"{base} gave no answer of a model hub") from None
    if not isinstance(commit, str) or not is_commit(commit):
        raise HubUnreachableError(f"{base} gave no commit for {repo}")
    return commit


def _refusal(status: int, repo: str, revision: str) -> Exception:
    if status == 404:
        return HubError(f"{repo} has no revision `{revision}`, or there is no such repository")
    if status in (401, 403):
        return HubError(
            f"the hub does not show {repo}: there is none, or it is private or gated and HF_TOKEN "
            "does not open it"
        )
    return HubUnreachableError(f"the hub answered with status {status}")


def _is_private(base: str) -> bool:
    """Whether a token may be sent there: encrypted, or to this machine."""
    parts = urllib.parse.urlsplit(base)
    return parts.scheme == "https" or parts.hostname in ("127.0.0.1", "::1", "localhost")
