"""Job of dataset.hf: conversations from a file of a data set repository at a pinned commit.

Reads the hub's usual environment (HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN). The local cache
comes first: a file of a commit in it cannot be out of date, so the hub is not asked.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath

from agentc.kinds.models import RecordReading
from agentc.program.job import Job, load_job
from agentc_backends.data.datasets.job_path import write_conversations
from agentc_backends.data.datasets.records import DatasetError


def main() -> int:
    """Exit 0 with rows.jsonl written; 1 with a message when the file cannot be had or used."""
    job = load_job()
    # This job may use the network; the libraries read these at import.
    os.environ.setdefault("HF_HUB_OFFLINE", "0")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        import_dataset(job)
    except DatasetError as error:
        print(f"dataset.hf: {error}", file=sys.stderr)
        return 1
    return 0


def import_dataset(job: Job) -> None:
    """Write the rows into `job.out`. Raises DatasetError."""
    repo: str = job.config["repo"]
    revision: str = job.config["revision"]
    file: str = job.config["file"]
    rules = job.config.read_as(RecordReading)
    job.config.assert_all_read()
    source = download(repo, revision, file)
    write_conversations(source, PurePosixPath(file).name, rules, job)
    job.facts(repo=repo, revision=revision, file=file)


def download(repo: str, revision: str, file: str) -> Path:
    """The file in the local cache, downloaded where it is not there yet. Raises DatasetError."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(hf_hub_download(repo, file, revision=revision, repo_type="dataset"))
    except GatedRepoError:
        raise DatasetError(
            f"{repo} is gated: accept its terms on the hub and set `token: {{secret: HF_TOKEN}}`"
        ) from None
    except RepositoryNotFoundError:
        raise DatasetError(
            f"the hub has no data set {repo}, or it is private and the stage has no `token`"
        ) from None
    except RevisionNotFoundError:
        raise DatasetError(f"{repo} has no commit {revision}") from None
    except LocalEntryNotFoundError:
        raise DatasetError(
            f"{file} of {repo} at {revision} is not in the local cache and the hub cannot be "
            "reached; download it once with a network, or use dataset.path"
        ) from None
    except EntryNotFoundError:
        raise DatasetError(f"{repo} has no file {file} at {revision}") from None
    except HFValidationError as error:
        raise DatasetError(f"{repo} is no name of a repository: {error}") from None
    except HfHubHTTPError as error:
        raise DatasetError(f"the hub answered: {error}") from None


if __name__ == "__main__":
    raise SystemExit(main())
