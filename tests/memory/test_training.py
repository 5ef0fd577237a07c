"""What trainings need: the sums of docs/design/memory.md, and that they only grow where they have
to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc.backend_api import BackendTable, MemoryQuestion, StageBackend, load_backends
from agentc.kinds.field import Json
from agentc.memory import MemoryNeed, architecture_named, training_need

GB = 1e9
LLAMA_2, LLAMA_3 = "meta-llama/Llama-2-7b-chat-hf", "meta-llama/Llama-3.1-8B-Instruct"
TABLE: BackendTable = load_backends()


def need(
    backend: str,
    name: str = LLAMA_2,
    gpus: int = 1,
    nodes: int = 1,
    reference: bool = False,
    **settings: Json,
) -> MemoryNeed:
    declared = TABLE.backends[backend]
    model = architecture_named(name)
    assert isinstance(declared, StageBackend)
    assert declared.memory is not None
    assert model is not None
    given: dict[str, Json] = {
        "global_batch": 64,
        "micro_batch": 1,
        "max_length": 4096,
        "processes": max(1, gpus),
        **settings,
    }
    memory = declared.memory(
        MemoryQuestion(get=given.get, model=model, gpus=gpus, nodes=nodes, reference=reference)
    )
    return training_need(memory, model, gpus=gpus, nodes=nodes)


def sizes(found: MemoryNeed) -> dict[str, float]:
    return {part.name: round(part.size / GB, 1) for part in found.parts}


def kept(found: dict[str, float]) -> list[float]:
    """What is there whatever the rows."""
    return [size for name, size in found.items() if name not in ("activations", "logits")]


def test_a_float32_training_keeps_sixteen_bytes_a_weight() -> None:
    found = sizes(need("trl.sft", dtype="float32", max_length=8))
    assert (found["weights"], found["gradients"]) == (27.0, 27.0)
    assert found["Adam"] == 53.9
    assert sum(kept(found)) == pytest.approx(107.8, abs=0.2)


def test_several_processes_without_sharing_have_buckets_besides() -> None:
    found = sizes(need("trl.sft", gpus=4, dtype="float32", max_length=8))
    assert found["DDP buckets"] == 27.0
    assert sum(kept(found)) == pytest.approx(134.8, abs=0.2)


def test_autocast_keeps_copies_of_the_weights_besides() -> None:
    half, whole = (need("trl.sft", dtype=dtype) for dtype in ("bfloat16", "float32"))
    assert sizes(half)["bfloat16 copies"] == 13.5
    assert "bfloat16 copies" not in sizes(whole)


@pytest.mark.parametrize(
    ("backend", "stage", "weights", "shared"),
    [
        ("openrlhf.sft", 2, 13.5, 6.7 + 13.5 + 3.4),
        ("openrlhf.sft", 3, 3.4, 6.7 + 13.5 + 3.4),
        ("openrlhf.sft", 1, 13.5, 6.7 + 13.5 + 13.5),
    ],
)
def test_zero_shares_out_by_stage(backend: str, stage: int, weights: float, shared: float) -> None:
    """While a loss is there: 13.5 + 3.4 + 20.2 = 37 GB with stage 2 on four GPUs."""
    found = sizes(need(backend, gpus=4, dtype="bfloat16", zero_stage=stage, micro_batch=16))
    copies = ("float32 copies", "Adam", "gradients")
    assert found["weights"] == weights
    assert sum(found[name] for name in copies) == pytest.approx(shared, abs=0.11)


def test_a_step_of_zero_makes_copies_of_its_share() -> None:
    found = sizes(need("openrlhf.sft", gpus=4, dtype="bfloat16", max_length=8))
    assert found == {
        "weights": 13.5, "float32 copies": 6.7, "Adam": 13.5, "gradients": 3.4,
        "the step's copies": 13.5
    }  # fmt: skip


def test_openrlhf_s_reference_is_there_all_the_time() -> None:
    """TRL's is gone before the training: only its log-probabilities stay."""
    assert sizes(need("openrlhf.dpo", gpus=4, dtype="bfloat16"))["reference"] == 13.5
    assert sizes(need("openrlhf.dpo", gpus=4, dtype="bfloat16", zero_stage=3))["reference"] == 3.4
    assert "reference" not in sizes(need("trl.dpo", gpus=4))


def test_the_policy_s_own_start_is_no_model_besides() -> None:
    """TRL takes it before the first step; a reference of its own is there until then, and with what
    is offloaded out of the way it is what weighs most."""
    away: dict[str, Json] = {"sharding": "full", "offload": True, "dtype": "bfloat16"}
    assert "reference" not in sizes(need("trl.dpo", gpus=4, max_length=8, **away))
    assert sizes(need("trl.dpo", gpus=4, max_length=8, reference=True, **away))["reference"] == 6.7


def test_the_host_loads_once_for_each_process() -> None:
    """27 GB each, for 108 GB; 257 GB of Llama 3.1 on eight. DPO loads two where the reference is
    another model."""
    base = 0.9
    assert need("trl.sft", gpus=4).host / GB == pytest.approx(4 * (27.0 + base), abs=0.2)
    assert need("trl.dpo", gpus=4).host == need("trl.sft", gpus=4).host
    two = need("trl.dpo", gpus=4, reference=True)
    assert two.host / GB == pytest.approx(4 * (53.9 + base), abs=0.2)
    eight = need("xtuner.sft", LLAMA_3, gpus=8, zero_stage=2, dtype="bfloat16")
    assert eight.host / GB == pytest.approx(257 + 8 * base, abs=0.2)
    assert need("trl.sft", gpus=4, nodes=2).host / GB == pytest.approx(2 * (27 + base), abs=0.2)


def test_mmengine_writes_checkpoints_into_memory_first() -> None:
    """Twelve bytes a weight, and as many for copies of what GPUs hold, in one process; DeepSpeed
    writes files."""
    count = 6.738
    assert need("xtuner.sft").host / GB == pytest.approx(24 * count + 0.9, abs=0.1)
    assert need("xtuner.sft", zero_stage=2).host / GB == pytest.approx(4 * count + 0.9, abs=0.1)
    on_cpu = need("xtuner.sft", gpus=0, max_length=8)
    assert sizes(on_cpu) == {"weights": 27.0, "Adam": 53.9, "the checkpoint": 80.9}


def test_without_gpus_the_host_has_it_all() -> None:
    found = need("trl.sft", gpus=0, processes=2, dtype="float32", max_length=8)
    assert found.host / GB == pytest.approx(2 * (134.8 + 0.9), rel=0.01)


def test_checkpoints_lie_on_disk_with_both_moments() -> None:
    """Three of twelve bytes a weight: 243 GB; DeepSpeed's hold bfloat16 and float32 weights."""
    assert need("trl.sft").staging / GB == pytest.approx(242.6, abs=0.1)
    assert need("openrlhf.sft", dtype="bfloat16").staging / GB == pytest.approx(283.0, abs=0.1)


def test_adapters_have_the_gradients_and_moments() -> None:
    lora: dict[str, Json] = {"lora": {}, "lora.rank": 16, "dtype": "bfloat16"}
    found = need("trl.sft", **lora)
    count = architecture_named(LLAMA_2)
    assert count is not None
    assert count.adapters(16) == 39_976_960  # as PEFT counts them
    assert count.adapters(8, ("q_proj", "v_proj")) == 4_194_304
    assert sizes(found).get("Adam", 0.0) == 0.3
    assert found.device < need("trl.sft", dtype="bfloat16").device / 2


@pytest.mark.parametrize("sharding", ["optimizer", "full"])
def test_sharing_out_makes_a_paper_s_training_fit(sharding: str) -> None:
    found = need(
        "trl.sft", gpus=4, dtype="bfloat16", sharding=sharding, gradient_checkpointing=True
    )
    assert found.fits(80 * GB)
    assert sizes(found)["Adam"] == 13.5
    if sharding == "full":
        assert found.device / GB == pytest.approx(32.8, abs=0.1)


BACKENDS = st.sampled_from(["trl.sft", "trl.dpo", "openrlhf.sft", "openrlhf.dpo", "xtuner.sft"])
SETTINGS = st.fixed_dictionaries(
    {
        "max_length": st.integers(8, 8192),
        "micro_batch": st.sampled_from([1, 2, 4, 8]),
        "dtype": st.sampled_from(["float32", "bfloat16"]),
        "gradient_checkpointing": st.booleans(),
        "zero_stage": st.sampled_from([1, 2, 3]),
        "sharding": st.sampled_from(["none", "optimizer", "full"]),
    }
)
EVERY = st.sampled_from([LLAMA_2, LLAMA_3, "Qwen/Qwen2.5-0.5B"])


@given(BACKENDS, EVERY, SETTINGS, st.sampled_from([0, 1, 2, 4, 8]), st.integers(1, 4096))
def test_longer_rows_never_need_less(
    backend: str, name: str, settings: dict[str, Json], gpus: int, more: int
) -> None:
    length = settings["max_length"]
    assert isinstance(length, int)
    before = need(backend, name, gpus, **settings)
    after = need(backend, name, gpus, **{**settings, "max_length": length + more})
    assert after.device >= before.device
    assert after.host >= before.host


@given(BACKENDS, EVERY, SETTINGS, st.sampled_from([0, 1, 2, 4, 8]))
def test_more_rows_at_once_never_need_less(
    backend: str, name: str, settings: dict[str, Json], gpus: int
) -> None:
    """Up to all rows of a step, from which on no gradients wait for the next ones."""
    found = [
        need(backend, name, gpus, **{**settings, "global_batch": 512, "micro_batch": size}).device
        for size in (1, 2, 4, 8)
    ]
    assert found == sorted(found)


@given(BACKENDS, EVERY, SETTINGS)
def test_more_gpus_never_need_more_of_each(
    backend: str, name: str, settings: dict[str, Json]
) -> None:
    """From two on: a single process has nobody to talk to, and no buckets."""
    found = [need(backend, name, gpus, **settings).device for gpus in (2, 4, 8)]
    assert found == sorted(found, reverse=True)


@given(BACKENDS, EVERY, SETTINGS, st.sampled_from([0, 1, 4]))
def test_checkpointing_never_needs_more(
    backend: str, name: str, settings: dict[str, Json], gpus: int
) -> None:
    with_it, without = (
        need(backend, name, gpus, **{**settings, "gradient_checkpointing": said})
        for said in (True, False)
    )
    assert with_it.device <= without.device
