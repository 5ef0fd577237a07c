"""Files that people give for JSONL, as exports and other tools write them: what they are is named,
with what to do, by `agentc check` and by the job alike."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agentc.kinds.models import RecordReading
from agentc_backends.data.datasets.conversations import rows_of
from agentc_backends.data.datasets.records import DatasetError, read_records
from agentc_backends.data.datasets.survey import MOST_BYTES, survey

ASK = {"role": "user", "content": "q"}
SAY = {"role": "assistant", "content": "a"}
TALK = {"messages": [ASK, SAY]}
PAIR = {"prompt": "q", "chosen": "a", "rejected": "b"}
CALL = {"type": "function", "function": {"name": "count", "arguments": "{'what': doors}"}}
RULES = RecordReading(format="messages", on_malformed="error", limit=None, seed=0)


def lines(*records: Any) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


FILES: dict[str, tuple[bytes, str, str]] = {
    "gzip": (gzip.compress(lines(TALK)), "d.jsonl is compressed by gzip", "`gunzip -c d.jsonl"),
    "zstd": (b"\x28\xb5\x2f\xfd\x00", "d.jsonl is compressed by zstd", "`zstd -d d.jsonl"),
    "Excel": (b"PK\x03\x04\x00", "a ZIP archive or an Excel table", "export it as JSONL"),
    "Parquet": (b"PAR1" + bytes(range(256)), "is a Parquet file", "from_parquet('d.jsonl')"),
    "UTF-16": (lines(TALK).decode().encode("utf-16"), "is UTF-16 text", "iconv -f UTF-16"),
    "Latin-1": (
        lines(TALK) + '{"messages": "é"}'.encode("latin1"),
        "d.jsonl:2: not UTF-8 text (byte 0xe9)",
        "iconv -f LATIN1",
    ),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS", "`git lfs pull`"),
    "CSV": (
        b"prompt,completion\nq,a\n",
        "d.jsonl:1: not JSON: the file begins with `prompt,completion`",
        "to_json(",
    ),
    "CSV with quotes": (b'"prompt","completion"\n', "the file begins with", "to_json("),
    "YAML": (b"- messages:\n", "the file begins with `- messages:`", "to JSONL"),
    "indented objects": (
        json.dumps(TALK, indent=2).encode(),
        "d.jsonl:1: not JSON (the line ends within an object)",
        "`jq -c .`",
    ),
    "cut off": (lines(TALK) + b'{"messages": [{"role": "us', "d.jsonl:2: not JSON", "`jq -c .`"),
    "another format later": (
        lines(TALK, PAIR),
        "d.jsonl:2: record 1 is not in the format `messages`",
        "move such records into a file of their own, and set `format: preference`",
    ),
    "JSON in a text": (
        lines({"messages": json.dumps([ASK, SAY])}),
        "d.jsonl:1: record 0 has a text under `messages`, which needs a list of turns",
        "not JSON inside of quotes",
    ),
    "a list a line": (
        lines([ASK, SAY], [ASK, SAY]),
        "d.jsonl:1: record 0 is a turn, not a conversation",
        '`{"messages": [{"role": "user"',
    ),
    "a turn a line": (lines({"from": "human", "value": "q"}), "is a turn, not a", '"messages"'),
    "records under a key": (
        lines({"version": 1, "data": [TALK, TALK]}),
        "record 0 has records of its own in a list under `data`",
        "`jq .data`",
    ),
    "another role": (
        lines({"messages": [ASK, {**SAY, "role": "bot"}]}),
        "has a turn from 'bot', which is no role",
        "`assistant`",
    ),
    "arguments in Python": (
        lines({"messages": [ASK, {"role": "assistant", "content": None, "tool_calls": [CALL]}]}),
        "no function's name with a JSON object of arguments",
        "in double quotes",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_something_else(name: str, tmp_path: Path) -> None:
    content, reason, fix = FILES[name]
    path = tmp_path / "d.jsonl"
    path.write_bytes(content)
    surveyed = survey(path, RULES).trouble
    with pytest.raises(DatasetError) as raised:
        rows_of(read_records(path), path.name, RULES)
    for error in (surveyed, raised.value):
        assert error is not None
        assert reason in error.reason
        assert fix in error.fix


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + lines(TALK))
    assert survey(path, RULES).rows == 1
    assert len(rows_of(read_records(path), path.name, RULES)[0]) == 1


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_longer_than_what_check_reads_is_no_error(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(lines({"messages": [{**ASK, "content": "q" * MOST_BYTES}, SAY]})[:-1] + end)
    assert survey(path, RULES).trouble is None
