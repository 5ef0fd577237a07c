"""What is read of a run on a GPU, from manifests as such a run would leave them, none being here.

tests/end_to_end/test_gpu_spec.py reads a real run on the processor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from benchmarks.gpu import BEGIN, END, SPEC, main, trained_speed
from benchmarks.reduced import ROOT

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.job import Job
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.data.models.scored_rows import ScoredRow, ScoredRows, write_scored_rows

_CARD = {"gpus": ["NVIDIA H200"], "gpu_memory_mb": [143771], "gpu_driver": "580.65.06"}
_MACHINE = {"cpu": "a CPU", "cores": 16, "gpus": []}
_VLLM_SAYS = """
INFO 11-23 Model loading took 1.8700 GiB memory and 2.061431 seconds
INFO 11-23 Available KV cache memory: 120.5 GiB
"""


@cache
def holders(*params: str) -> tuple[Job, ...]:
    given = dict(each.split("=") for each in params)
    plan = compile_spec(SPEC, given, load_backends()).plan
    assert plan is not None
    return tuple(job for job in plan.jobs if job.memory is not None)


def steps(*lines: tuple[int, float | None]) -> str:
    rows = (json.dumps({"num_tokens": tokens, "tokens_per_s": speed}) for tokens, speed in lines)
    return "".join(f"{row}\n" for row in rows)


class Server:
    """Gives tokens the log-probabilities 0, -1, -2, ..."""

    async def score(self, ids: Sequence[int], affinity: str) -> list[float | None]:
        del affinity
        return [None, *(-float(place) for place in range(1, len(ids)))]


def compared(folder: Path, job: Job) -> dict[str, Any]:
    """The facts of a rollout about what its server gives and what its trainer gave: apart by 0.01
    and 0.03, or nothing to compare."""
    facts: dict[str, Any] = {}
    if job.id == "evaluate_sft:rollout":
        row = ScoredRow([5, 6, 7, 8], [None, -1.01, None, -3.03])
        write_scored_rows(folder, ScoredRows("float32", (row,)))
    told = SimpleNamespace(
        leases={"policy": {"log": "policy.log"}}, inputs=lambda role: [folder],
        facts=facts.update, warn=lambda text: None,
    )  # fmt: skip
    asyncio.run(compare_with_trainer(cast(Any, told), cast(Any, Server())))
    return facts


def write(store: Path, job: Job, gpu: bool) -> None:
    """The object of a job, as far as it is read."""
    folder = store / "objects" / job.object
    (folder / "logs").mkdir(parents=True)
    served = job.lease("policy") is not None
    software = {"imported": {"torch": "2.13.0", "vllm" if served else "trl": "1.0"}}
    peaks = {"gpu": {"max_memory_mb": 16000.0, "max_reserved_mb": 20000.0}} if gpu else {}
    manifest: Mapping[str, Any] = {
        "hardware": {**_MACHINE, **(_CARD if gpu else {})},
        "software": {**software, **({} if served else peaks)},
        "facts": {"tokens_per_s": 3210.4, **compared(folder, job)} if served else {},
        "leases": [{"role": "policy", "backend": "serve.vllm", "max_rss_mb": 800, **software}]
        if served else [],
        "program_s": 61.2,
        "max_rss_mb": 700.0,
    }  # fmt: skip
    (folder / "artifact.json").write_text(json.dumps(manifest))
    if served and gpu:
        (folder / "logs" / "policy.log").write_text(_VLLM_SAYS)
    if not served:
        (folder / "logs" / "steps.jsonl").write_text(steps((1000, None), (5000, 2000.0)))


def test_the_spec_uses_every_part_that_computes_on_gpus() -> None:
    trained = {job.draft.backend for job in holders() if job.lease("policy") is None}
    assert trained == {"trl.sft", "trl.dpo", "openrlhf.sft", "openrlhf.dpo"}
    leases = [lease for job in holders() if (lease := job.lease("policy")) is not None]
    assert {lease.software for lease in leases} == {"vllm-cuda"}
    assert all(job.resources.gpus == 1 for job in holders())
    weights = {round(job.memory.parts["weights"] / 1e9) for job in holders() if job.memory}
    assert weights == {2, 4}, "a billion weights, of two or four bytes"


@pytest.mark.parametrize(
    ("lines", "speed"),
    [
        ([(1000, None)], None),
        ([(1000, None), (3000, 1000.0), (7000, 4000.0)], 2000.0),
        # A second attempt, whose first line does not know its time.
        ([(1000, None), (3000, 1000.0), (5000, None), (9000, 4000.0)], 2000.0),
    ],
)
def test_speed_is_tokens_over_the_time_that_is_known(
    lines: list[tuple[int, float | None]], speed: float | None, tmp_path: Path
) -> None:
    (tmp_path / "steps.jsonl").write_text(steps(*lines))
    assert trained_speed(tmp_path / "steps.jsonl") == speed
    assert trained_speed(tmp_path / "none.jsonl") is None


def test_the_table_of_a_run_on_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for job in holders():
        write(tmp_path / "store", job, gpu=True)
    page = tmp_path / "results.md"
    page.write_text(f"before\n{BEGIN}\nnothing yet\n{END}\nafter\n")
    assert main(["--store", str(tmp_path / "store"), "--write", str(page)]) == 0
    written = page.read_text()
    assert written.startswith(f"before\n{BEGIN}\n1 x NVIDIA H200 (143771 MiB), driver 580.65.06;")
    assert written.endswith(f"\n{END}\nafter\n")
    assert "nothing yet" not in written
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in written.splitlines() if line.startswith("|")
    ]  # fmt: skip
    by_job = {row[0].strip("`"): row for row in rows[2:] if row[0]}
    assert list(by_job) == [job.id for job in holders()]
    sft = by_job["sft"]
    assert sft[1:6] == ["trl.sft", "61", "2000", "tensors", "16.8"]
    assert sft[6:8] == ["17.4", "+4%"]
    held = rows[rows.index(sft) + 1]
    assert held[4:6] == ["held by the allocator", "21.0"]
    served = by_job["evaluate_sft:rollout"]
    assert served[1:5] == ["serve.vllm", "61", "3210", "weights"]
    assert served[5:] == ["2.0", "2.0", "-1%", "0.0200, 0.030"]
    others = [row[8] for name, row in by_job.items() if ":rollout" in name and row is not served]
    assert others
    assert set(others) == {"not compared: the checkpoint has no scored rows"}
    left = rows[rows.index(served) + 1]
    assert left[4].startswith("left for conversations")
    assert (left[5], left[7]) == ("129", ""), "no error of a count"


def test_a_run_without_a_gpu_is_shown_and_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for job in holders():
        write(tmp_path / "store", job, gpu=False)
    page = tmp_path / "results.md"
    page.write_text(f"{BEGIN}\nnothing yet\n{END}\n")
    assert main(["--store", str(tmp_path / "store"), "--write", str(page)]) == 1
    assert "did not run on a GPU" in capsys.readouterr().err
    assert "nothing yet" in page.read_text()
    assert main(["--store", str(tmp_path / "store")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("no GPU; a CPU, 16 cores; torch 2.13.0, ")
    assert shown.count("main memory") == len(holders())


def rows_of(page: Path) -> dict[str, list[str]]:
    lines = [line.strip("|").split("|") for line in page.read_text().splitlines() if "|" in line]
    return {cells[0].strip().strip("`"): [cell.strip() for cell in cells] for cells in lines[2:]}


def test_what_is_missing_has_a_row_that_says_why(tmp_path: Path) -> None:
    """One training failed, its clients never ran: what there is gets written all the same."""
    done = [job for job in holders() if "openrlhf" not in job.id]
    for job in done:
        write(tmp_path / "store", job, gpu=True)
    failed = next(job for job in holders() if job.id == "sft_openrlhf")
    staging = tmp_path / "store" / "staging" / failed.object
    staging.mkdir(parents=True)
    status = {"state": "failed", "message": "no CUDA\n| 12 lines"}
    (staging / "status.json").write_text(json.dumps(status))
    page = tmp_path / "results.md"
    page.write_text(f"{BEGIN}\nnothing yet\n{END}\n")
    assert main(["--store", str(tmp_path / "store"), "--write", str(page)]) == 0
    rows = rows_of(page)
    assert {*rows} - {""} == {job.id for job in holders()}
    assert rows["sft_openrlhf"][1] == "openrlhf.sft"
    assert rows["sft_openrlhf"][4] == "no result: failed (no CUDA / 12 lines)"
    assert rows["evaluate_sft_openrlhf:rollout"][1:5] == ["serve.vllm", "", "", "not run"]
    assert rows["sft"][4] == "tensors"
    assert {len(cells) for cells in rows.values()} == {9}


@pytest.mark.parametrize("server", ["vllm", "transformers"])
@pytest.mark.parametrize("openrlhf", ["true", "false"])
def test_each_variant_of_the_spec_checks_without_a_warning(openrlhf: str, server: str) -> None:
    params = {"openrlhf": openrlhf, "server": server}
    assert compile_spec(SPEC, params, load_backends(), every_scale=True).diagnostics == ()


def test_a_bare_machine_leaves_openrlhf_and_vllm_out(tmp_path: Path) -> None:
    params = ("openrlhf=false", "server=transformers")
    jobs = holders(*params)
    backends = {(job.lease("policy") or job).draft.backend for job in jobs}
    assert backends == {"trl.sft", "trl.dpo", "serve.transformers"}
    assert {job.software for job in jobs} == {"torch", "light"}
    for job in jobs:
        if not (tmp_path / "store" / "objects" / job.object).exists():
            write(tmp_path / "store", job, gpu=job.lease("policy") is None)
    page = tmp_path / "results.md"
    page.write_text(f"{BEGIN}\nnothing yet\n{END}\n")
    words = [word for each in params for word in ("-p", each)]
    spec = tmp_path / "other.yaml"
    spec.write_bytes(SPEC.read_bytes())
    words += ["--spec", str(spec)]
    assert main(["--store", str(tmp_path / "store"), "--write", str(page), *words]) == 0
    rows = rows_of(page)
    assert rows["sft_openrlhf"][4] == "the same work as `sft`"
    assert rows["sft"][4] == "tensors"
    assert rows["evaluate_sft:rollout"][4] == "main memory"
    assert "Without a GPU: `evaluate_sft:rollout` (none requested), " in page.read_text()


def test_an_unfinished_run_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", str(tmp_path)]) == 1
    assert "sft is not in" in capsys.readouterr().err


def test_the_page_has_one_place_for_it() -> None:
    page = (ROOT / "notes" / "results.md").read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert page.index(BEGIN) < page.index(END)
