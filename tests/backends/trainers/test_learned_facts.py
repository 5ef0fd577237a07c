"""Facts by which Health judges a training: weights compared with their start, logged steps, rows
that a policy played and that are too long."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import StageBackend
from agentc.backend_api.honoured import view_of
from agentc.kinds.training import RowChoice
from agentc.program.job import JobConfig
from agentc.runtime.health import StageFacts, findings
from agentc_backends.data.chat.formats import NoRowsError, RowsError
from agentc_backends.data.chat.rows import MaskRules, RowCounts, Side, _checked, _fit
from agentc_backends.data.models.checkpoint import is_unchanged
from agentc_backends.trainers.common.rows import select_rows
from agentc_backends.trainers.common.step_log import curve_facts, max_grad_norm, step_facts
from agentc_backends.trainers.openrlhf.backend import SFT as OPENRLHF_SFT
from agentc_backends.trainers.trl.backend import SFT as TRL_SFT
from agentc_backends.trainers.xtuner.backend import SFT as XTUNER_SFT


def weights(folder: Path, files: dict[str, dict[str, tuple[str, bytes]]]) -> Path:
    folder.mkdir()
    for file, tensors in files.items():
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        data = b""
        for name, (kind, value) in tensors.items():
            offsets = [len(data), len(data) + len(value)]
            header[name] = {"dtype": kind, "shape": [len(value)], "data_offsets": offsets}
            data += value
        text = json.dumps(header).encode()
        (folder / file).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


A, B = ("U8", b"abcd"), ("U8", b"abce")


@pytest.mark.parametrize(
    ("trained", "start", "expected"),
    [
        ({"model.safetensors": {"a": A, "b": B}}, {"model.safetensors": {"a": A, "b": B}}, True),
        ({"model.safetensors": {"a": A, "b": A}}, {"model.safetensors": {"a": A, "b": B}}, False),
        # Other shards, another order, and a tied tensor that is not saved again.
        ({"one.safetensors": {"b": B}, "two.safetensors": {"a": A}},
         {"model.safetensors": {"a": A, "b": B, "tied": A}}, True),
        ({"model.safetensors": {"a": ("F16", b"abcd")}}, {"model.safetensors": {"a": A}}, None),
        ({"model.safetensors": {"a": A}}, {"model.safetensors": {"x": A}}, None),
        ({}, {"model.safetensors": {"a": A}}, None),
    ],
)  # fmt: skip
def test_weights_are_compared_with_their_start(
    tmp_path: Path, trained: Any, start: Any, expected: bool | None
) -> None:
    ours, theirs = weights(tmp_path / "ours", trained), weights(tmp_path / "theirs", start)
    assert is_unchanged(ours, theirs) is expected


@pytest.mark.parametrize("content", [b"", b"no weights", b"\xff" * 8, struct.pack("<Q", 2) + b"[]"])
def test_files_that_are_no_weights_say_nothing(tmp_path: Path, content: bytes) -> None:
    start = weights(tmp_path / "start", {"model.safetensors": {"a": A}})
    broken = weights(tmp_path / "broken", {})
    (broken / "model.safetensors").write_bytes(content)
    assert is_unchanged(broken, start) is None


def test_logged_steps_become_facts(tmp_path: Path) -> None:
    log = tmp_path / "steps.jsonl"
    lines: list[Any] = [
        {"step": n, "loss": loss, "grad_norm": norm}
        for n, (loss, norm) in enumerate([(4.0, 0.5), (2.0, 2.0), (float("nan"), 1.0), (1.0, 3.0)])
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step"', encoding="utf-8")
    assert step_facts(log, 1.0) == {
        "losses": {"steps": 4, "not_finite": 1, "least": 1.0, "most": 4.0, "last": 1.0},
        "gradients": {"steps": 4, "least": 0.5, "most": 3.0, "clipped": 2},
    }
    # 0 turns clipping off.
    assert step_facts(log, 0.0)["gradients"]["clipped"] == 0
    assert step_facts(tmp_path / "none.jsonl", None) == {}


@pytest.mark.parametrize("backend", [TRL_SFT, OPENRLHF_SFT, XTUNER_SFT], ids=lambda each: each.id)
def test_each_library_has_its_name_for_the_clipping_norm(backend: StageBackend) -> None:
    settings = {"lr": 1e-4, "global_batch": 8, "max_length": 64, "max_grad_norm": 1.5}
    view = view_of(backend, settings, {"model": ("base",), "data": ("rows",)})
    (draft,) = backend.lower(view, None)  # type: ignore[arg-type]
    assert max_grad_norm(JobConfig(draft.config)) == 1.5


def test_a_config_without_a_clipping_norm_has_none() -> None:
    assert max_grad_norm(JobConfig({})) is None


def played(number: int, source: str | None = "policy") -> dict[str, Any]:
    return {"id": str(number), **({} if source is None else {"source": source})}


def fitted(rows: list[tuple[dict[str, Any], int]], rules: MaskRules) -> RowCounts:
    counts = RowCounts()
    for row, length in rows:
        _fit(row, (Side([1] * length, [False] + [True] * (length - 1)),), rules, counts)
    return _checked(counts, rules)


ERROR = MaskRules(loss_on="all_replies", max_length=8, truncation="error")


def test_a_row_that_a_policy_played_is_dropped_where_it_is_too_long() -> None:
    counts = fitted([*((played(n), 8) for n in range(9)), (played(9), 20)], ERROR)
    assert (counts.rows, counts.dropped, counts.longest) == (9, 1, 20)


def test_more_than_the_allowed_share_names_the_setting() -> None:
    rows = [*((played(n), 8) for n in range(8)), (played(8), 20), (played(9), 9)]
    says = r"2 of 10 rows .*max_length 8 \(up to 20\).*max_dropped 0.1"
    with pytest.raises(RowsError, match=says):
        fitted(rows, ERROR)
    more = MaskRules(loss_on="all_replies", max_length=8, truncation="error", max_dropped=0.2)
    assert fitted(rows, more).dropped == 2
    none = MaskRules(loss_on="all_replies", max_length=8, truncation="error", max_dropped=0.0)
    with pytest.raises(RowsError, match="max_dropped 0 "):
        fitted([*rows[:9]], none)
    every = MaskRules(loss_on="all_replies", max_length=8, truncation="error", max_dropped=1.0)
    with pytest.raises(NoRowsError, match="`max_dropped` left out all 1"):
        fitted([rows[8]], every)


@pytest.mark.parametrize("source", ["dataset", "expert", None])
def test_rows_that_nobody_played_end_the_stage(source: str | None) -> None:
    rows = [*((played(n), 8) for n in range(99)), (played(99, source), 9)]
    with pytest.raises(RowsError, match="row 99 has 9 tokens, more than max_length 8"):
        fitted(rows, ERROR)


def test_pairs_are_played_unless_they_are_of_a_data_set() -> None:
    pair = {**played(0, None), "chosen": []}
    rows = [*((played(n), 8) for n in range(1, 12)), (pair, 9)]
    assert fitted(rows, ERROR).dropped == 1
    with pytest.raises(RowsError, match="row 0 has 9 tokens"):
        fitted([(pair | {"source": "dataset"}, 9)], ERROR)


def test_a_filter_says_what_it_left_of_the_episodes() -> None:
    expert = {"id": "e", "reward": 1.0, "source": "expert"}
    episodes = [{"id": str(n), "reward": 0.1 * n, "source": "policy"} for n in range(6)]
    _, told = select_rows([expert, *episodes], RowChoice(min_reward=1.0))
    assert told["played"] == 6
    assert told["played_kept"] == 0
    assert told["played_best"] == 0.5
    assert "played" not in select_rows([expert, *episodes], RowChoice())[1]


NAN = float("nan")


@pytest.mark.parametrize(
    ("curve", "found"),
    [
        ([{"critic": {"grad_norm": 2.0}, "actor": {"loss": 0.0, "grad_norm": 0.0}}] * 3,
         ["the gradient is zero in all of 3 iterations"]),
        ([{"actor": {"loss": NAN, "grad_norm": NAN}}, {"actor": {"loss": 0.1, "grad_norm": 1.0}}],
         ["the loss is NaN or infinite in 1 of 2 iterations",
          "the gradient is NaN or infinite in 1 of 2 iterations"]),
        ([{"actor": {"loss": NAN, "grad_norm": NAN}}] * 3,
         ["the loss is NaN or infinite in 3 of 3 iterations",
          "the gradient is NaN or infinite in 3 of 3 iterations"]),
        # CHAI trains a critic alone.
        ([{"critic": {"q1.loss": 0.3, "grad_norm": 0.0}}] * 3,
         ["the gradient is zero in all of 3 iterations"]),
        # Advantages with mean 0: such a loss is no fault. Iterations of warm-up have no actor.
        ([{"actor": {}}, *[{"actor": {"loss": 0.0, "grad_norm": 0.4}}] * 5], []),
        ([{"return": {"mean": 0.0}}], []),
    ],
)  # fmt: skip
def test_the_curve_of_a_run_of_rl_is_judged(curve: list[dict[str, Any]], found: list[str]) -> None:
    facts = json.loads(json.dumps(curve_facts(curve)))
    health = findings([StageFacts("rl", "online_rl", facts)])
    assert [each.what for each in health] == found
