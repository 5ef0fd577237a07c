"""Files of what is private stay their owner's when an object is sealed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.runtime.store.layout import StoreLayout, seal


@pytest.mark.parametrize(
    ("root", "private", "text"),
    [(0o755, True, 0o400), (0o2775, True, 0o440), (0o700, True, 0o400), (0o755, False, 0o444)],
)
def test_modes_of_a_sealed_object(tmp_path: Path, root: int, private: bool, text: int) -> None:
    layout = StoreLayout(tmp_path / "store")
    folder = layout.root / "staging"
    (folder / "data").mkdir(parents=True)
    for name in ("data/privileged.jsonl", "artifact.json"):
        (folder / name).write_text("x")
        (folder / name).chmod(0o600)
    layout.root.chmod(root)
    seal(layout, folder, private)
    assert (folder / "data" / "privileged.jsonl").stat().st_mode & 0o777 == text
    assert (folder / "artifact.json").stat().st_mode & 0o777 == 0o400 | root & 0o044
