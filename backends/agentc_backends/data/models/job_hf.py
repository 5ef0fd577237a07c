"""Job of model.hf, encoder.hf and text_encoder.hf: downloads a pinned revision from the Hugging
Face hub and copies it.

Reads the hub's usual environment (HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN). The local cache
comes first: a commit in it cannot be out of date, so the hub is not asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentc.program.job import Job, load_job
from agentc.runtime.model_folder.folder import ADAPTER_FILE
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    check_directory,
    configure_libraries,
)
from agentc_backends.data.models.model_files import MODEL_FILES, copy_of_kind


def main() -> int:
    job = load_job()
    # Apart from dataset.hf the one job that may use the network.
    os.environ.setdefault("HF_HUB_OFFLINE", "0")
    configure_libraries()
    try:
        import_model(job)
    except (FormatError, CheckpointError) as error:
        print(f"{job.spec['kind']}.hf: {error}", file=sys.stderr)
        return 1
    return 0


def import_model(job: Job) -> None:
    """Write the model or encoder into `job.out`. Raises CheckpointError, FormatError."""
    repo: str = job.config["repo"]
    revision: str = job.config["revision"]
    copy = copy_of_kind(job, link=True)
    job.config.assert_all_read()
    copy(download(repo, revision), repo)
    job.facts(repo=repo, revision=revision)


def cached_snapshot(repo: str, revision: str) -> Path | None:
    """The snapshot of a commit in the local cache; None where it may be incomplete. Where the cache
    has the commit's list of files, the hub's own client has compared it."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(
            snapshot_download(
                repo,
                revision=revision,
                allow_patterns=[*MODEL_FILES, ADAPTER_FILE],
                local_files_only=True,
            )
        )
    except LocalEntryNotFoundError:
        return None
    if (folder.parents[1] / "trees" / f"{revision}.json").exists():
        return folder
    # Downloaded by an older client, or by a library that took what it needed.
    try:
        check_directory(folder, repo)
    except CheckpointError:
        return None
    return folder if (folder / "tokenizer_config.json").exists() else None


def download(repo: str, revision: str) -> Path:
    """The snapshot directory of a repository at a commit, weights in safetensors only. Raises
    CheckpointError."""
    from huggingface_hub import snapshot_download

    wanted = [*MODEL_FILES, ADAPTER_FILE]
    with _explained(repo, revision):
        return cached_snapshot(repo, revision) or Path(
            snapshot_download(repo, revision=revision, allow_patterns=wanted)
        )


def download_file(repo: str, revision: str, file: str) -> Path:
    """One file of a repository at a commit, from the local cache where it is there. Raises
    CheckpointError."""
    from huggingface_hub import hf_hub_download

    with _explained(repo, revision, file):
        return Path(hf_hub_download(repo, file, revision=revision))


@contextmanager
def _explained(repo: str, revision: str, file: str = "") -> Iterator[None]:
    """Errors of the hub's client as a CheckpointError for people."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError:
        raise CheckpointError(
            f"{repo} is gated: accept its terms on the hub and set `token: {{secret: HF_TOKEN}}`"
        ) from None
    except RepositoryNotFoundError:
        raise CheckpointError(
            f"the hub has no repository {repo}, or it is private and the model has no `token`"
        ) from None
    except RevisionNotFoundError:
        raise CheckpointError(f"{repo} has no commit {revision}") from None
    except LocalEntryNotFoundError:
        raise CheckpointError(
            f"{repo} at {revision} is not in the local cache and the hub cannot be reached; "
            "download it once with a network, or use "
            + ("`path` with a file of this machine" if file else "model.path")
        ) from None
    except EntryNotFoundError:
        raise CheckpointError(f"{repo} has no file {file} at {revision}") from None
    except HfHubHTTPError as error:
        raise CheckpointError(f"the hub answered: {error}") from None


if __name__ == "__main__":
    raise SystemExit(main())
