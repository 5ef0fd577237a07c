"""What the model hub says to the models and data sets of a plan: do they exist at that revision,
and does the stage's token open those behind a gate?"""

from __future__ import annotations

import http.client
import os
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from agentc.kinds.artifacts import SFT_DATASET
from agentc.kinds.table import makers
from agentc.lock.hub import UNPINNED_FIX, HubError, HubUnreachableError, resolve_revision
from agentc.lock.references import is_commit
from agentc.preflight.finding import PreflightFinding
from agentc.runtime.model_folder.hub_cache import DATA_SETS, cached_commit, snapshot_folder
from agentc.runtime.software.job_software import trouble_of_secret

_ENDPOINT = "https://huggingface.co"
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file that a job will download. `secret` is the variable that holds its token, if the stage
    refers to one."""

    repo: str
    revision: str
    file: str
    data_set: bool
    stage: str
    secret: str | None

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.repo} at {self.revision[:12]}"

    def cached(self) -> bool:
        """Whether the hub's own cache of this machine has it."""
        repo = f"{DATA_SETS}{self.repo}" if self.data_set else self.repo
        return (snapshot_folder(repo, self.revision) / self.file).exists()


def files_of(jobs: Sequence[Mapping[str, Any]]) -> tuple[HubFile, ...]:
    """What jobs of a plan take from the hub, one file of each repository."""
    found: dict[tuple[str, str, str], HubFile] = {}
    for job in jobs:
        config = job["config"]
        repo, revision = config.get("repo"), config.get("revision")
        if not isinstance(repo, str) or not isinstance(revision, str):
            continue
        data_set = job["kind"] in makers(SFT_DATASET)
        file = config.get("file")
        one = HubFile(
            repo=repo,
            revision=revision,
            file=file if isinstance(file, str) else "config.json",
            data_set=data_set,
            stage=str(job["stage"]),
            secret=(job.get("secrets") or {}).get("HF_TOKEN"),
        )
        found.setdefault((repo, revision, one.file), one)
    return tuple(found.values())


def check_cached(files: Sequence[HubFile]) -> Iterator[PreflightFinding]:
    """Which are on this machine already: nobody needs to be asked."""
    there = [each for each in files if each.cached()]
    if there:
        names = ", ".join(each.label for each in there)
        yield PreflightFinding(
            check="hub", verdict="ok", message=f"in the hub's cache here: {names}"
        )


def check_hub(files: Sequence[HubFile]) -> list[PreflightFinding]:
    """Ask for each of the others, all at once."""
    asked = [each for each in files if not each.cached()]
    if not asked:
        return []
    with ThreadPoolExecutor(min(8, len(asked))) as pool:
        return list(pool.map(_ask, asked))


def _ask(one: HubFile) -> PreflightFinding:
    base = (os.environ.get("HF_ENDPOINT") or _ENDPOINT).rstrip("/")
    token = os.environ.get(one.secret) if one.secret else None
    trouble = trouble_of_secret(token, sent=True) if token else None
    if trouble is not None:
        what = f"{one.label} was not asked for: the secret {one.secret} {trouble}"
        return _finding(one, "problem", what)
    unpinned = None if is_commit(one.revision) else _commit_trouble(one)
    if unpinned is not None:
        return unpinned
    try:
        status, code = _head(base, one, token)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return _finding(one, "unknown", f"{one.label}: {base} does not answer: {error}")
    if status < 400:
        return _finding(one, "ok", f"{one.label} can be had")
    if code == "GatedRepo" or status in (401, 403):
        if token:
            what = f"{one.label} is not opened by the token in {one.secret}"
            fix = f"ask for access at {base}/{_path(one)} with the account of that token"
        else:
            what = f"{one.label} is private or gated, and `{one.stage}` is given no token"
            fix = "ask for access there, then set `token: {secret: HF_TOKEN}` in the stage"
        return _finding(one, "problem", what, fix)
    if code == "EntryNotFound":
        what = f"{one.repo} has no file {one.file} at {one.revision[:12]}"
        return _finding(one, "problem", what, "look at the repository's files at that revision")
    if status == 404:
        what = f"the hub has no {one.repo} at the revision {one.revision}"
        return _finding(one, "problem", what, f"look at {base}/{_path(one)}")
    return _finding(one, "unknown", f"{one.label}: the hub answers with status {status}")


def _commit_trouble(one: HubFile) -> PreflightFinding | None:
    """A finding where a run, which starts with the commit of a branch or tag, gets none from the
    hub."""
    repo = f"{DATA_SETS}{one.repo}" if one.data_set else one.repo
    try:
        resolve_revision(repo, one.revision)
    except HubUnreachableError as error:
        if cached_commit(repo, one.revision) is not None:
            what = f"{error}; a run uses the copy of {one.label} in the hub's cache here"
            return _finding(one, "ok", what)
        what = f"{one.label} is not pinned to a commit, and none is available: {error}"
        return _finding(one, "problem", what, UNPINNED_FIX)
    except HubError as error:
        return _finding(one, "problem", str(error), UNPINNED_FIX)
    return None


def _head(base: str, one: HubFile, token: str | None) -> tuple[int, str | None]:
    """Status and the hub's own word for an error; redirects (to where the bytes lie) are enough."""
    parts = urllib.parse.urlsplit(base)
    secure = parts.scheme == "https"
    if not secure and parts.scheme != "http":
        raise ValueError("no address of a hub")
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
    headers = {}
    if token and (secure or parts.hostname in ("127.0.0.1", "::1", "localhost")):
        headers["Authorization"] = f"Bearer {token}"
    revision, file = urllib.parse.quote(one.revision, safe=""), urllib.parse.quote(one.file)
    try:
        connection.request(
            "HEAD", f"{parts.path}/{_path(one)}/resolve/{revision}/{file}", headers=headers
        )
        answer = connection.getresponse()
        return answer.status, answer.getheader("X-Error-Code")
    finally:
        connection.close()


def _path(one: HubFile) -> str:
    repo = urllib.parse.quote(one.repo)
    return f"datasets/{repo}" if one.data_set else repo


def _finding(one: HubFile, verdict: Any, message: str, fix: str | None = None) -> PreflightFinding:
    return PreflightFinding(
        check="hub", verdict=verdict, message=message, online=True, about=(one.stage,), fix=fix
    )
