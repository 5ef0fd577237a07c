"""Files without a published hash are pinned at the first download; all data sets are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentc.backend_api import DataSet, DataSource, load_backends
from agentc.data_sets.acquire import PINNED, AcquireError, acquire, declared_data_sets, differences

COPY = ("-m", "agentc_backends.environments.server.job_copy")


def data_set(digest: str | None) -> DataSet:
    return DataSet(
        name="words",
        doc="Words.",
        licence="none",
        sources=(DataSource(name="words.txt", url="https://example.org/words.txt", size=10),),
        unpacked_size=10,
        program=(*COPY, "words.txt"),
        contents={"words.txt": digest},
        use="`words: {path}`",
    )


def fetched(tmp_path: Path, digest: str | None) -> Path:
    (tmp_path / "given.txt").write_text("one two")
    folder = tmp_path / "words"
    acquire(data_set(digest), folder, {"words.txt": str(tmp_path / "given.txt")}, lambda *_: None)
    return folder


def test_the_first_download_is_pinned(tmp_path: Path) -> None:
    folder = fetched(tmp_path, None)
    assert list(json.loads((folder / PINNED).read_text())) == ["words.txt"]
    assert differences(data_set(None), folder) == ()
    (folder / "words.txt").write_text("one too")
    assert "words.txt holds" in differences(data_set(None), folder)[0]


def test_a_stated_hash_counts_and_pins_nothing(tmp_path: Path) -> None:
    with pytest.raises(AcquireError, match=r"words\.txt holds"):
        fetched(tmp_path, "0" * 64)
    assert not (tmp_path / "words").exists()


PAPERS = {"alfworld", "detective", "tailwind", "webshop-1000", "webshop-full", "agent-r-lists"} | {
    "eto-webshop-lists", "eto-trajectories", "guess-my-city", "colbench-backend",
    "agentgym-alfworld",
}  # fmt: skip


def test_pages_of_papers_name_every_data_set() -> None:
    """And what `use` says can be printed, braces included."""
    declared = declared_data_sets(load_backends())
    assert set(declared) >= PAPERS
    pages = Path(__file__).parents[2] / "docs" / "reproduce"
    text = "".join(page.read_text("utf-8") for page in pages.glob("*.md"))
    for name in PAPERS:
        one, users = declared[name]
        assert f"data fetch {name}" in text, name
        assert "{path}" not in one.use.format(path="here")
        assert users
