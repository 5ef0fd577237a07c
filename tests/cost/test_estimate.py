"""Estimates of plans: from the prior, from like jobs, from the job's own runs."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import BackendTable
from agentc.cost import Estimate, estimate_plan, summarise
from agentc.cost.place import Place, place_of_hardware
from agentc.runtime.store.layout import StoreLayout
from agentc.text import format_count

SFT = {"rows": 184, "tokens": 29810, "steps": 36, "trained_tokens": 7940}
Document = dict[str, Any]
Finish = Callable[..., Path]
Planned = Callable[..., Document]
First = dict[str, tuple[Document, dict[str, Estimate]]]


def test_every_job_of_every_spec_has_a_band(first_estimates: First) -> None:
    assert first_estimates
    for document, found in first_estimates.values():
        assert list(found) == [job["id"] for job in document["jobs"]]
        kinds = {job["id"]: job["kind"] for job in document["jobs"]}
        for each in found.values():
            assert each.seconds.low < each.seconds.median < each.seconds.high < 1e8, each.id
            assert math.isfinite(each.tokens.high)
            assert each.basis == ("not known" if kinds[each.id] == "script" else "prior")


def test_the_table_of_specs_has_their_gpu_hours(repository: Path, first_estimates: First) -> None:
    """Or, of papers that used no GPU, the days on CPUs. `AGENTC_UPDATE=1` writes them."""
    page = repository / "specs" / "README.md"
    text, row = page.read_text(encoding="utf-8"), r"(?<=\({}\.yaml\) \| )(?:{})(?= \|)"
    said = r"[\d.,]+|[^|]*\bdays on CPUs"
    found = dict(re.findall(rf"\(([\w/]+)\.yaml\) \| ({said}) \|", text))
    assert len(found) > 20
    now = {spec: _amount(*first_estimates[spec]) for spec in found}
    if os.environ.get("AGENTC_UPDATE") == "1":
        for spec, amount in now.items():
            text = re.sub(row.format(spec, said), amount, text)
        page.write_text(text, encoding="utf-8")
    else:
        assert found == now


def _amount(document: Document, found: dict[str, Estimate]) -> str:
    whole = summarise(document, found, Place(cores=2))
    hours, days = whole.gpu_hours.median, whole.work.median / 86_400
    cpus = f"{days:,.0f} days on CPUs"
    if not hours:
        return f"none: {cpus}"
    return format_count(hours) if days < 5 or hours > 5 else f"{format_count(hours)}, and {cpus}"


def test_equal_work_on_more_cores_is_no_slower(planned: Planned, table: BackendTable) -> None:
    document = planned("quickstart")
    found = estimate_plan(document, None, table=table)
    for job in document["jobs"]:
        job["resources"]["cpus"] *= 4
    faster = estimate_plan(document, None, table=table)
    assert faster["pretrain"].seconds.median < found["pretrain"].seconds.median
    assert all(faster[name].seconds.median <= each.seconds.median for name, each in found.items())


def test_faster_gpus_take_fewer_hours(planned: Planned, table: BackendTable) -> None:
    document = planned("eto/webshop")
    hours = [
        sum(
            e.gpu_hours.median
            # The spec says which card it has; here another one is asked about.
            for e in estimate_plan(
                document, None, table=table, place=place_of_hardware(gpu)
            ).values()
        )
        for gpu in ("v100", "a100", "h100")
    ]
    assert hours == sorted(hours, reverse=True)
    assert hours[0] > 2 * hours[2]


def test_a_published_epoch_is_within_its_band(planned: Planned, table: BackendTable) -> None:
    """ETO's code trains 1824 x 3 rows of at most 4096 tokens; the tokens cannot be more."""
    sft = estimate_plan(planned("eto/webshop"), None, table=table)["sft"]
    assert 1824 * 3 * 100 < sft.tokens.median < 1824 * 3 * 4096
    assert 4 * sft.seconds.median / 3600 == pytest.approx(sft.gpu_hours.median)


def test_ppo_is_counted_by_its_epochs(planned: Planned, table: BackendTable) -> None:
    document = planned("archer/rivals")
    rules = next(job["config"] for job in document["jobs"] if job["id"] == "ppo")["learner"][
        "rules"
    ]
    usual = estimate_plan(document, None, table=table)["ppo"].seconds.median
    rules["epochs"] *= 8
    assert 2 * usual < estimate_plan(document, None, table=table)["ppo"].seconds.median < 8 * usual


def test_a_training_takes_what_it_computes(planned: Planned, table: BackendTable) -> None:
    """Six operations a weight and token; two less with adapters, two more where activations are
    computed again."""
    document = planned("eto/webshop")
    config = next(job["config"] for job in document["jobs"] if job["id"] == "sft")

    def seconds(checkpointing: bool, lora: dict[str, Any] | None) -> float:
        config["arguments"]["gradient_checkpointing"] = checkpointing
        config["lora"] = lora
        return estimate_plan(document, None, table=table)["sft"].seconds.median

    usual = seconds(False, None)
    assert seconds(True, None) / usual == pytest.approx(8 / 6, rel=0.05)
    assert seconds(False, {"r": 8}) / usual == pytest.approx(4 / 6, rel=0.05)


def test_what_settings_leave_out_is_not_counted(planned: Planned, table: BackendTable) -> None:
    """Of a policy's episodes `min_reward` keeps some; of each task there are `max_per_task` pairs
    at most."""

    def amounts(name: str, job_id: str, **settings: Any) -> tuple[float, float]:
        document = planned(name)
        for job in document["jobs"]:
            if job["id"] == "eto.1.explore":
                job["identity"]["settings"]["attempts"] = 8
            if job["id"] == job_id:
                job["identity"]["settings"] |= settings
        found = estimate_plan(document, None, table=table)[job_id]
        return found.tokens.median, found.disk.median

    every, good = (amounts("eto/baselines_webshop", "rft", min_reward=m)[0] for m in (None, 1.0))
    assert 0.4 * every < good < 0.95 * every
    free, capped = (amounts("eto/webshop", "eto.1.pairs", max_per_task=m)[1] for m in (None, 1))
    assert capped < 0.3 * free


def test_an_equal_job_of_another_seed_teaches(
    planned: Planned, table: BackendTable, finish: Finish
) -> None:
    before = planned("quickstart", seed="1")
    document = planned("quickstart", seed="2")
    prior = estimate_plan(document, None, table=table)["sft"]
    finish(before, "base", wall_s=5.0, facts={"parameters": 426624})
    finish(before, "pretrain", wall_s=68.0, attempts=2)  # known as a model, no measure of time
    finish(before, "expert", wall_s=3.0, facts={"episodes": 184, "turns": 553})
    store = finish(before, "sft", wall_s=300.0, facts=SFT)
    one = estimate_plan(document, StoreLayout(store), table=table)["sft"]
    assert prior.seconds.median < one.seconds.median < 330
    assert one.basis == "1 like job"
    for number in range(8):
        finish(before, "sft", wall_s=300.0, facts=SFT, key=f"{number:032x}", started=2.0 + number)
    many = estimate_plan(document, StoreLayout(store), table=table)["sft"]
    assert many.basis == "9 like jobs"
    assert many.seconds.median == pytest.approx(300, rel=0.2)
    assert many.seconds.spread < one.seconds.spread < prior.seconds.spread
    assert many.like == 9


def test_the_basis_names_runs_of_the_same_stage(
    planned: Planned, table: BackendTable, finish: Finish
) -> None:
    before, document = planned("quickstart", seed="1"), planned("quickstart", seed="2")
    facts = {"rows": 36, "tokens": 12304, "steps": 4}
    finish(before, "base", wall_s=5.0, facts={"parameters": 426624})
    for name in ("pretrain", "sft"):
        finish(before, name, wall_s=20.0)
    [job] = [each for each in before["jobs"] if each["id"] == "eto.1.dpo"]
    store = finish(before, "eto.1.dpo", wall_s=20.0, facts=facts, origin=job["origin"])
    found = estimate_plan(document, StoreLayout(store), table=table)
    assert [found[f"eto.{n}.dpo"].basis for n in (1, 2)] == ["1 run of this stage"] * 2
    assert found["eto.1.pairs"].basis == "prior"


def test_a_job_that_shared_its_cpus_counts_with_its_cpu_seconds(
    planned: Planned, table: BackendTable, finish: Finish, tmp_path: Path
) -> None:
    """Unless it waited for something else than a CPU."""
    document = planned("quickstart")
    store = finish(document, "sft", wall_s=80.0, facts=SFT, cpu_s=10.0)
    leased = {"backend": "serve.transformers", "role": "policy", "software": "torch",
              "identity": {}, "ready_s": 8.0, "cpu_s": 5.0}  # fmt: skip
    finish(document, "evaluate_sft:rollout", wall_s=60.0, cpu_s=1.0, leases=[leased])
    remote = {**leased, "software": None, "cpu_s": None}
    finish(document, "eto.1.explore", wall_s=60.0, cpu_s=1.0, leases=[remote])
    here = StoreLayout(tmp_path / "here")
    found = estimate_plan(document, here, table=table, others=[StoreLayout(store)])
    times = [
        found[name].seconds.median for name in ("sft", "evaluate_sft:rollout", "eto.1.explore")
    ]
    assert times == pytest.approx([10.0, 6.0, 60.0])


def test_tasks_that_were_met_are_known(
    planned: Planned, table: BackendTable, finish: Finish
) -> None:
    before = planned("quickstart", seed="1")
    facts = {"episodes": 552, "turns": 1197, "completion_tokens": 19475, "prompt_tokens": 135629}
    for name in ("base", "pretrain", "sft"):
        finish(before, name, wall_s=9.0)
    store = finish(before, "eto.1.explore", wall_s=14.0, facts=facts)
    found = estimate_plan(planned("quickstart", seed="2"), StoreLayout(store), table=table)
    # 184 training tasks, three attempts, 281 tokens an episode; seeds change neither.
    assert found["eto.2.explore"].tokens.median == pytest.approx(155_104, rel=0.15)
    assert found["eto.2.explore"].tokens.high < 1.6 * 155_104


def test_the_same_job_elsewhere_gives_its_own_time(
    planned: Planned, table: BackendTable, finish: Finish, tmp_path: Path
) -> None:
    document = planned("quickstart")
    other = finish(document, "sft", wall_s=77.0, facts=SFT)
    here = StoreLayout(tmp_path / "here")
    found = estimate_plan(document, here, table=table, others=[StoreLayout(other)])["sft"]
    assert (found.seconds.median, found.basis, found.state) == (77.0, "its own run", "run")


def test_a_deleted_result_keeps_its_time(
    planned: Planned, table: BackendTable, tmp_path: Path
) -> None:
    document = planned("quickstart")
    job = next(j for j in document["jobs"] if j["id"] == "sft")
    runs = tmp_path / "runs" / "quickstart"
    runs.mkdir(parents=True)
    line = {"ran": [{"id": "sft", "object": f"sft/{job['key']}", "wall_s": 55.0}]}
    text = json.dumps(line) + "\n" + "torn {line\n" + json.dumps({"ran": [3]}) + "\n"
    (runs / "history.jsonl").write_text(text, encoding="utf-8")
    found = estimate_plan(document, StoreLayout(tmp_path), table=table)["sft"]
    assert found.seconds.median == 55.0


def test_finished_jobs_cost_nothing_more(
    planned: Planned, table: BackendTable, finish: Finish
) -> None:
    document = planned("quickstart")
    store = finish(document, "sft", wall_s=14.4, facts=SFT)
    found = estimate_plan(document, StoreLayout(store), table=table)
    assert (found["sft"].state, found["sft"].seconds.median) == ("cached", 14.4)
    summary = summarise(document, found, Place(cores=2))
    assert summary.spent_seconds == 14.4
    assert summary.jobs == len({e.object for e in found.values()}) - 1
    assert "sft" not in summary.path


def test_resumed_and_repeated_jobs_teach_no_time(
    planned: Planned, table: BackendTable, finish: Finish
) -> None:
    before = planned("quickstart", seed="1")
    document = planned("quickstart", seed="2")
    prior = estimate_plan(document, None, table=table)["sft"]
    store = finish(before, "sft", wall_s=9000.0, facts=SFT, attempts=3)
    found = estimate_plan(document, StoreLayout(store), table=table)["sft"]
    assert found.basis == "prior, amounts of 1 job"
    assert found.seconds.median < 2 * prior.seconds.median


@pytest.mark.parametrize(
    "manifest",
    [
        "no json",
        "[]",
        "{}",
        '{"kind": "sft", "key": "k", "id": "x", "backend": "trl.sft", "inputs": 3}',
        '{"kind": "sft", "key": "k", "id": "x", "backend": "trl.sft", "facts": {"rows": "many"}}',
        '{"kind": "sft", "key": "k", "id": "x", "backend": "trl.sft", "wall_s": -1, '
        '"program_s": "long", "hardware": {"cpus": null}, "leases": [{"role": "policy"}]}',
    ],
)
def test_a_damaged_store_is_no_obstacle(
    planned: Planned, table: BackendTable, tmp_path: Path, manifest: str
) -> None:
    folder = tmp_path / "objects" / "sft" / "k"
    folder.mkdir(parents=True)
    (folder / "artifact.json").write_text(manifest, encoding="utf-8")
    document = planned("quickstart")
    found = estimate_plan(document, StoreLayout(tmp_path), table=table)
    assert found["sft"].basis == "prior"


def test_a_policy_that_learned_is_not_like_random_weights(
    planned: Planned, table: BackendTable, finish: Finish
) -> None:
    """Random weights fill every reply to its limit; that says little about a trained policy."""
    before = planned("quickstart", seed="1")
    facts = {"episodes": 102, "turns": 529, "completion_tokens": 23088, "prompt_tokens": 167599}
    finish(before, "base", wall_s=5.0, facts={"parameters": 426624})
    store = finish(before, "evaluate_untrained:rollout", wall_s=11.0, facts=facts)
    found = estimate_plan(planned("quickstart", seed="2"), StoreLayout(store), table=table)
    raw, trained = found["evaluate_untrained:rollout"], found["evaluate_sft:rollout"]
    assert raw.tokens.median == pytest.approx(190_687, rel=0.25)
    assert trained.tokens.median < 0.7 * raw.tokens.median


def test_the_quickstart_took_what_an_empty_store_says(
    planned: Planned, table: BackendTable
) -> None:
    """Compared with a real run (quickstart_run.json: `wall_s` of its manifests, which had other
    work beside them, and the wall time of the whole on the same machine when it was idle)."""
    ran = json.loads((Path(__file__).parent / "quickstart_run.json").read_text(encoding="utf-8"))
    document = planned("quickstart")
    found = estimate_plan(document, None, table=table)
    took = {name: wall for name, wall in ran["jobs"].items() if name in found}
    assert len(took) > 20
    for name in ("expert", "expert_again", "practice", "base", "sft", "eto.1.dpo", "eto.2.dpo"):
        assert found[name].seconds.low < took[name] < found[name].seconds.high, name
    within = [found[name].seconds.low < wall < found[name].seconds.high
              for name, wall in took.items()]  # fmt: skip
    assert sum(within) >= 0.8 * len(within)
    whole = summarise(document, found, Place(cores=2))
    assert whole.wall.low < ran["idle_wall_s"] < whole.wall.high
    # A newcomer's first number: no more than twice off.
    assert 0.5 < whole.wall.median / ran["idle_wall_s"] < 2


@pytest.mark.parametrize(
    ("backend", "said", "width"),
    [
        ("trl.dpo", {}, 4),
        ("openrlhf.dpo", {}, 2),
        ("trl.dpo", {"save_dtype": "bfloat16"}, 2),
        ("openrlhf.dpo", {"save_dtype": "float32"}, 4),
    ],
)
def test_a_checkpoint_has_the_width_that_its_trainer_writes(
    planned: Planned, table: BackendTable, backend: str, said: dict[str, str], width: int
) -> None:
    """TRL computes in bfloat16 and writes float32, whatever the size; OpenRLHF writes bfloat16.
    `save_dtype` says otherwise."""
    document = planned("eto/webshop")
    for job in document["jobs"]:
        if job["kind"] == "dpo":
            job["backend"] = backend
            job["identity"]["settings"] |= said
    found = estimate_plan(document, None, table=table)
    weights = 6.74e9
    assert found["eto.1.dpo"].disk.median == pytest.approx(weights * width, rel=0.02)
