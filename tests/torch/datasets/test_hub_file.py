"""Job of dataset.hf with the hub's real client, against a hub on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("huggingface_hub")

from tests.lock.model_hub import HEAD, OLD, Hub
from tests.torch.trl.jobs import facts, launch, make_job

ROWS = [
    {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": str(number)}]}
    for number in range(5)
]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    served = Hub()
    served.files = {"data/talk.json": json.dumps(ROWS).encode()}
    monkeypatch.setenv("HF_ENDPOINT", served.url)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub_home"))
    # The machine that tests run on may be kept off the network by this.
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield served
    served.close()


def fetch(tmp_path: Path, name: str = "job", **changes: Any) -> tuple[int, str, Path]:
    config = {
        "repo": "some/data",
        "revision": HEAD,
        "file": "data/talk.json",
        "format": "sharegpt",
        "on_malformed": "error",
        "limit": 3,
        "seed": 0,
        **changes,
    }
    job = make_job(tmp_path / name, "dataset", config, {})
    status, _, err = launch(job, "agentc_backends.data.datasets.job_hf")
    return status, err, tmp_path / name


def test_a_file_of_a_pinned_commit(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, err, folder = fetch(tmp_path)
    assert status == 0, err
    rows = [json.loads(line) for line in (folder / "data/rows.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    assert all(row["id"].startswith("talk:") for row in rows)
    assert facts(folder)["revision"] == HEAD
    # The cache is enough: of a hub that is gone nothing is asked, and offline either.
    hub.close()
    hub.requests.clear()
    status, err, first = fetch(tmp_path, "first")
    assert status == 0, err
    assert (first / "data/rows.jsonl").read_bytes() == (folder / "data/rows.jsonl").read_bytes()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status, err, again = fetch(tmp_path, "again")
    assert status == 0, err
    assert (again / "data/rows.jsonl").read_bytes() == (folder / "data/rows.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"repo": "other/data"}, "the hub has no data set other/data"),
        ({"revision": OLD}, f"some/data has no commit {OLD}"),
        ({"file": "data/none.json"}, "some/data has no file data/none.json"),
        ({"repo": "no/such/name"}, "is no name of a repository"),
        ({"format": "alpaca"}, "talk.json:1: record 0 is not in the format `alpaca`"),
    ],
)
def test_what_cannot_be_had_is_said(
    hub: Hub, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    status, err, _ = fetch(tmp_path, **changes)
    assert status == 1
    assert said in err
    assert "Traceback" not in err


def test_a_gated_data_set_needs_the_token(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_canary"
    status, err, _ = fetch(tmp_path)
    assert status == 1
    assert "is gated" in err
    monkeypatch.setenv("HF_TOKEN", hub.token)
    status, err, folder = fetch(tmp_path, "again")
    assert status == 0, err
    assert "hf_canary" not in (folder / "data/rows.jsonl").read_text()


def test_without_a_network_it_says_so(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status, err, _ = fetch(tmp_path)
    assert status == 1
    assert "is not in the local cache and the hub cannot be reached" in err
