"""What servers need of a device, and of the host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc.backend_api import MemoryQuestion, ServerBackend, load_backends
from agentc.kinds.field import Json
from agentc.memory import MemoryNeed, architecture_named, serving_need

GB = 1e9
LLAMA_2, LLAMA_3 = "meta-llama/Llama-2-7b-chat-hf", "meta-llama/Llama-3.1-8B-Instruct"
TABLE = load_backends()


def need(
    name: str, gpus: int = 1, backend: str = "serve.vllm", card: float | None = None, **said: Json
) -> MemoryNeed:
    declared = TABLE.backends[backend]
    model = architecture_named(name)
    assert isinstance(declared, ServerBackend)
    assert declared.memory is not None
    assert model is not None
    question = MemoryQuestion(get=said.get, model=model, gpus=gpus, card=card)
    return serving_need(declared.memory(question), model, gpus=gpus)


def sizes(found: MemoryNeed) -> dict[str, float]:
    return {part.name: round(part.size / GB, 1) for part in found.parts}


def test_weights_and_the_longest_conversation() -> None:
    """Half a MB a token without grouped queries, an eighth of that times context with."""
    assert sizes(need(LLAMA_2)) | {"activations": 0, "logits": 0} == {
        "weights": 13.5, "keys and values": 2.1, "activations": 0, "logits": 0
    }  # fmt: skip
    assert sizes(need(LLAMA_3))["keys and values"] == 17.2
    assert sizes(need(LLAMA_3, max_model_len=8192))["keys and values"] == 1.1


def test_whole_prompts_at_once_take_their_activations() -> None:
    """131072 tokens of three products of 14336 in 16 bits, and more."""
    found = sizes(need(LLAMA_3, enable_chunked_prefill=False))
    assert found["activations"] == pytest.approx(14, abs=1)
    assert sizes(need(LLAMA_3))["activations"] < 1


def test_devices_share_weights_and_cache() -> None:
    one, four = need(LLAMA_3), need(LLAMA_3, gpus=4, tensor_parallel=4)
    assert sizes(four)["weights"] == pytest.approx(sizes(one)["weights"] / 4, abs=0.1)
    assert four.device < one.device / 3


def test_a_server_takes_its_share_alone() -> None:
    found = need(LLAMA_2, gpu_memory_utilization=0.5)
    assert not found.fits(24 * GB)
    assert need(LLAMA_2, gpu_memory_utilization=0.9).fits(24 * GB)


def test_quantised_weights_and_offloading() -> None:
    assert sizes(need(LLAMA_2, quantization="awq"))["weights"] == 4.0
    offloaded = need(LLAMA_2, cpu_offload_gb=4.0)
    assert sizes(offloaded)["weights"] == pytest.approx(13.5 - 4.3, abs=0.1)
    assert offloaded.host > need(LLAMA_2).host


def test_on_processors_the_host_has_it_all() -> None:
    found = need(LLAMA_2, gpus=0, dtype="float32", cpu_kv_cache_gb=8)
    assert sizes(found)["keys and values"] == 8.6
    assert found.host > found.device > 35 * GB
    small = need("Qwen/Qwen2.5-0.5B", gpus=0, backend="serve.transformers", cache_mb=512)
    assert sizes(small)["weights"] == 2.0
    assert sizes(small)["keys and values"] == 0.5


@given(
    st.integers(512, 100_000),
    st.integers(1, 30_000),
    st.sampled_from([1, 2, 4, 8]),
    st.booleans(),
)
def test_longer_windows_never_need_less_and_more_devices_never_more(
    window: int, more: int, devices: int, chunked: bool
) -> None:
    said: dict[str, Json] = {"enable_chunked_prefill": chunked or None, "tensor_parallel": devices}
    now = need(LLAMA_3, gpus=devices, max_model_len=window, **said)
    assert need(LLAMA_3, gpus=devices, max_model_len=window + more, **said).device >= now.device
    twice = {**said, "tensor_parallel": 2 * devices}
    assert need(LLAMA_3, gpus=2 * devices, max_model_len=window, **twice).device <= now.device
