"""What a spec may name as data, and what enters the key of a data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main

TALK = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
SPEC = """\
agentc: 1
name: data
stages:
  general:
    kind: dataset
"""


def written(folder: Path, settings: str) -> str:
    folder.mkdir(exist_ok=True)
    if not (folder / "talk.json").exists():
        (folder / "talk.json").write_text(json.dumps([TALK]))
    path = folder / "data.yaml"
    path.write_text(SPEC + "".join(f"    {line}\n" for line in settings.split("; ")))
    return str(path)


def faults(capsys: pytest.CaptureFixture[str], spec: str) -> list[tuple[str, str]]:
    capsys.readouterr()
    main(["check", "--format", "json", spec])
    found = json.loads(capsys.readouterr().out)["diagnostics"]
    return [(one["code"], one["message"]) for one in found if one["severity"] == "error"]


def job(spec: str) -> dict[str, Any]:
    out = Path(spec).parent / "plan"
    assert main(["bundle", "--bare", spec, "-o", str(out)]) == 0
    jobs = json.loads((out / "plan.json").read_text("utf-8"))["jobs"]
    found: dict[str, Any] = next(one for one in jobs if one["id"] == "general")
    return found


PATH = "backend: path; path: talk.json"
HUB = f"backend: hf; repo: some/data; revision: {'0123456789' * 4}; file: a/b.json"


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ("backend: path; path: ../talk.json", "AGC123", "outside of the spec's folder"),
        ("backend: path; path: none.json", "AGC603", "no readable file none.json"),
        ("backend: path; path: .", "AGC603", "is a directory, and dataset.path reads one file"),
        ("backend: path; path: ..", "AGC123", "outside of the spec's folder"),
        ("backend: path", "AGC603", "needs `path`"),
        (f"{PATH}; seed: 1", "AGC602", "nothing is drawn without `limit`"),
        (f"{PATH}; repo: some/data", "AGC602", "`repo` has no effect"),
        (HUB.replace("a/b.json", "../b.json"), "AGC603", "is no path inside of a repository"),
        (HUB.replace("a/b.json", "/b.json"), "AGC603", "is no path inside of a repository"),
        (HUB.replace("0123456789" * 4, "-main"), "AGC210", "revision"),
    ],
)
def test_what_cannot_be_had_is_refused(
    settings: str, code: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talk.json").write_text("[]")
    found = faults(capsys, written(tmp_path / "spec", settings))
    assert [one for one, _ in found] == [code]
    assert said in found[0][1]


def test_the_content_of_the_file_is_the_key(tmp_path: Path) -> None:
    spec = written(tmp_path, PATH)
    before = job(spec)
    (tmp_path / "talk.json").write_text(json.dumps([TALK, TALK]))
    assert job(spec)["key"] != before["key"]
    (tmp_path / "talk.json").write_text(json.dumps([TALK]))
    assert job(spec)["key"] == before["key"]


def test_a_hub_s_token_is_a_name_and_no_part_of_the_key(tmp_path: Path) -> None:
    plain = job(written(tmp_path, HUB))
    secret = job(written(tmp_path, HUB + "; token: {secret: HF_TOKEN}"))
    assert secret["key"] == plain["key"]
    assert secret["secrets"] == {"HF_TOKEN": "HF_TOKEN"}
    assert plain["contract"] == {"network": True}


def test_a_share_of_everything_leaves_no_agent_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = "\n  mixed: {kind: mix, agent: general, general: general, share_of: total"
    spec = Path(written(tmp_path, PATH))
    spec.write_text(spec.read_text() + f"{mixed}, general_share: 1.0}}\n")
    [(code, message)] = faults(capsys, str(spec))
    assert code == "AGC603"
    assert "leaves no place for agent rows" in message
    spec.write_text(spec.read_text().replace("general_share: 1.0", "general_share: 0.5"))
    assert faults(capsys, str(spec)) == []


def checked(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, settings: str = ""
) -> list[dict[str, Any]]:
    """What `check` says of a data file with this text."""
    folder.mkdir(exist_ok=True)
    (folder / "d.jsonl").write_text(text)
    spec = written(folder, "path: d.jsonl" + (f"; {settings}" if settings else ""))
    capsys.readouterr()
    main(["check", "--format", "json", spec])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["diagnostics"]
    return [one for one in found if one["severity"] == "error"]


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


PAIR = {"prompt": "q", "chosen": "a", "rejected": "b"}


@pytest.mark.parametrize(
    ("text", "settings", "says", "fix"),
    [
        (
            lines({"prompt": "hi", "completion": "there"}),
            "",
            "d.jsonl:1: record 0 is not in the format `messages`; its fields are `prompt`, "
            "`completion`",
            "set `format: prompt_completion`",
        ),
        (lines(TALK, PAIR), "", "d.jsonl:2: record 1 is not in the", "set `format: preference`"),
        (lines(PAIR), "on_malformed: drop", "record 0 is not in the", "set `format: preference`"),
        (lines(TALK) + "{broken", "", "d.jsonl:2: not JSON", "write one object a line"),
        (lines(TALK, {**TALK, "label": False}), "", "`label`", "`ignore_fields: [label]`"),
        (
            lines({**TALK, "label": False}, TALK, {**TALK, "images": ["a.png"], "label": True}),
            "",
            "; other records have `images`",
            "`ignore_fields: [images, label]` leaves them out",
        ),
        ("[\n" + json.dumps(TALK) + ",\n" + json.dumps({}) + "\n]", "", "d.jsonl:3: record 1", ""),
        ("", "", "none of the 0 records of d.jsonl can be read", ""),
        (lines({"messages": []}), "on_malformed: drop", "none of the 1 records", ""),
        (
            lines(TALK),
            "ignore_fields: [lable]",
            "`lable`, which no record of d.jsonl has",
            "remove",
        ),
    ],
)
def test_check_reads_a_local_file(
    text: str,
    settings: str,
    says: str,
    fix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (error,) = checked(tmp_path, capsys, text, settings)
    assert error["code"] == "AGC603"
    assert says in error["message"]
    assert fix in (error["fix"] or "")
    assert "on_malformed" not in (error["fix"] or "")


def test_a_malformed_conversation_can_be_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = lines(TALK, {"messages": TALK["messages"][1:]})
    (error,) = checked(tmp_path, capsys, text)
    assert "d.jsonl:2: record 1 has assistant where user has its turn" in error["message"]
    assert "`on_malformed: drop`" in error["fix"]
    assert checked(tmp_path, capsys, text, "on_malformed: drop") == []


def test_preferences_are_pairs_for_whoever_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = f"{{kind: model, backend: hf, repo: demo/base, revision: {'0123456789' * 4}}}"
    settings = "lr: 1e-5, global_batch: 2, max_length: 64"
    for record, layout, kind, takes in (
        (PAIR, "preference", "dpo", True),
        (PAIR, "preference", "sft", True),
        (TALK, "messages", "dpo", False),
        (TALK, "messages", "sft", True),
    ):
        (tmp_path / "d.jsonl").write_text(lines(record))
        spec = Path(written(tmp_path, f"path: d.jsonl; format: {layout}"))
        more = f", beta: 0.1, {settings}" if kind == "dpo" else f", {settings}"
        tuned = f"  tuned: {{kind: {kind}, model: base, data: general{more}}}\n"
        spec.write_text(spec.read_text() + f"  base: {base}\n{tuned}")
        assert [code for code, _ in faults(capsys, str(spec))] == ([] if takes else ["AGC501"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("reward: 1.0", "a pair has a reward for each side"),
        ("prompt_length: 3", "a pair has a reward for each side"),
    ],
)
def test_settings_that_mean_nothing_for_pairs_are_refused(
    settings: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (error,) = checked(tmp_path, capsys, lines(PAIR), f"format: preference; {settings}")
    assert (error["code"], said in error["message"]) == ("AGC602", True)


def test_rows_of_a_local_file_are_counted_for_the_estimate(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text(lines(*[TALK] * 7))
    counted = job(written(tmp_path, "path: d.jsonl"))
    assert counted["expected"] == {"rows": 7, "characters": 2}


def test_a_long_file_is_read_in_part_and_counted(tmp_path: Path) -> None:
    from agentc.kinds.models import RecordReading
    from agentc_backends.data.datasets.survey import MOST_RECORDS, survey

    rules = RecordReading(format="messages", on_malformed="error", limit=None, seed=0)
    path = tmp_path / "long.jsonl"
    path.write_text(lines(*[TALK] * MOST_RECORDS) + "{broken\n" * 9)
    assert survey(path, rules).rows == MOST_RECORDS + 9
    wide = {"messages": [{"role": "user", "content": "q" * 10_000}, TALK["messages"][1]]}
    path.write_text(lines(*[wide] * 1000))
    assert survey(path, rules).rows == 1000
    path.write_text(json.dumps([wide] * 1000))
    assert survey(path, rules).rows == pytest.approx(1000, rel=0.01)


MARKED = {"messages": [{"role": "user", "content": "q"},
                       {"role": "assistant", "content": "bad", "loss": False},
                       {"role": "user", "content": "again"},
                       {"role": "assistant", "content": "good", "loss": True}]}  # fmt: skip
TRAINED = """\
agentc: 1
name: data
models:
  base: {backend: scratch, corpus: general}
stages:
  general: {kind: dataset, path: talk.json}
  sft: {kind: sft, model: base, data: general, lr: 1e-4, max_length: 64, global_batch: 1LOSS}
"""


@pytest.mark.parametrize(
    ("talk", "loss", "expected"),
    [
        (MARKED, "", ["AGC693"]),
        (MARKED, ", loss_on: marked", []),
        (MARKED, ", loss_on: all_replies", []),
        (TALK, "", []),
    ],
)
def test_marked_replies_are_trained_only_where_the_spec_says_so(
    talk: dict[str, Any],
    loss: str,
    expected: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "talk.json").write_text(json.dumps([talk]))
    spec = tmp_path / "data.yaml"
    spec.write_text(TRAINED.replace("LOSS", loss))
    found = faults(capsys, str(spec))
    assert [code for code, _ in found] == expected
    if expected:
        assert "1 reply of `general` is marked as not trained" in found[0][1]
