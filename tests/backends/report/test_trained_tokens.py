"""The token mask of a training: texts of tokens, what was masked, hostile vocabularies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.backends.report.test_report import HOSTILE, collected, rendered

from agentc_backends.results.report.trained_tokens import spans, token_texts, trained_rows


def tokenizer(folder: Path, vocabulary: Any, **more: Any) -> Path:
    path = folder / "tokenizer.json"
    document = {"model": {"vocab": vocabulary}, "added_tokens": [], **more}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_texts_of_both_kinds_of_vocabulary(tmp_path: Path) -> None:
    added = [{"id": 3, "content": "<end>"}]
    byte_level = {"\u0120craft": 0, "\u010a": 1, "\u00c3": 2, "<end>": 3}
    path = tokenizer(tmp_path, byte_level, decoder={"type": "ByteLevel"}, added_tokens=added)
    assert token_texts(path) == {0: b" craft", 1: b"\n", 2: b"\xc3", 3: b"<end>"}
    pieces = [["<unk>", 0.0], ["\u2581craft", -1.0], ["<0x0A>", -2.0], ["<end>", -3.0]]
    path = tokenizer(tmp_path, pieces, decoder={"type": "Sequence"}, added_tokens=added)
    assert token_texts(path) == {0: b"<unk>", 1: b" craft", 2: b"\n", 3: b"<end>"}
    path.write_text('{"model": {}}', encoding="utf-8")
    assert token_texts(path) == token_texts(tmp_path / "none") == {}


def test_masked_tokens_are_together_and_letters_are_whole() -> None:
    pieces = {0: b"go", 1: b" up", 2: "é".encode()[:1], 3: "é".encode()[1:]}
    found = spans([0, 1, 0, 2, 3, 1, 1], [None, None, -0.05, -1.0, -1.0, None, -9.0], pieces)
    assert [(span["text"], span["level"]) for span in found] == [
        ("go up", None), ("go", 0), ("é", 2), (" up", None), (" up", 4),
    ]  # fmt: skip
    assert found[2]["hint"] == "log-probability -2.000"


@pytest.mark.parametrize("trains", [True, False])
def test_the_page_marks_the_tokens_in_the_loss(
    trains: bool, example_store: Any, experiment: Any
) -> None:
    folder = example_store.inputs["sft"][0]
    tokenizer(folder, {HOSTILE: 0, "x": 1})
    scored = {"dtype": "float32", "rows": [{"ids": [0, 1, 0], "log_probs": [None, -0.2, None]}]}
    (folder / "agentc_log_probs.json").write_text(json.dumps(scored), encoding="utf-8")
    if not trains:
        # A model of a folder brings the rows of another training along.
        (folder.parent / "logs" / "steps.jsonl").unlink()
    rows = trained_rows(collected(example_store, experiment))
    page = rendered(example_store, experiment)
    marks = [attributes["class"] for tag, attributes in page.tags if tag == "mark"]
    if not trains:
        assert (rows, marks) == ([], [])
        return
    assert [(row["name"], len(row["rows"])) for row in rows] == [("sft", 1)]
    assert marks == ["l1"]
    assert page.text.count(HOSTILE) == 2
