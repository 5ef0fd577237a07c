"""Tensors that transformers would not load as they are meant: other names or shapes than those of
config.json, unmerged adapters, integers."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.runtime.model_folder.config import ConfiguredSizes
from agentc.runtime.model_folder.folder_fault import FolderFault, shortened
from agentc.runtime.model_folder.safetensors import Tensor

_WRAPPERS = (
    ("_orig_mod.", "`torch.compile`"),
    ("_fsdp_wrapped_module.", "FSDP"),
    ("module.", "DistributedDataParallel or DeepSpeed"),
    ("base_model.model.", "PEFT"),
)
"""What training libraries write before the names of a model's tensors."""
_ADAPTERS = (".lora_A.", ".lora_B.", ".base_layer.", ".modules_to_save.")
_INTEGERS = ("BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")
_SMALL = ("F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "F6_E3M2")


def tensor_fault(
    tensors: Mapping[str, Tensor],
    sizes: ConfiguredSizes | None,
    quantisation: str,
    shown: str,
) -> FolderFault | None:
    """The first reason why these tensors are not the model of config.json; `sizes` None where its
    type is not known here."""
    adapters = sorted(n for n in tensors if any(part in "." + n for part in _ADAPTERS))
    if adapters:
        return FolderFault(
            f"{shown}: the weights hold an adapter that was not merged "
            f"({shortened(adapters)}), which would be ignored",
            "merge it with PEFT's `merge_and_unload()` before `save_pretrained`",
        )
    for prefix, library in _WRAPPERS:
        if tensors and all(name.startswith(prefix) for name in tensors):
            return FolderFault(
                f"{shown}: the names of all tensors begin with `{prefix}`, as {library} writes "
                "them; transformers "
                "would initialise every weight at random",
                "save the model that the wrapper holds, or remove the prefix from the names",
            )
    if quantisation:
        return None
    packed = sorted(
        name
        for name, tensor in tensors.items()
        if name.endswith(".weight") and tensor.dtype in _INTEGERS + _SMALL
    )
    if packed:
        return FolderFault(
            f"{shown}: the weights are quantised ({packed[0][:120]} is "
            f"{tensors[packed[0]].dtype}), and config.json has no "
            "`quantization_config`",
            "give the model that was quantised, or the config.json of the quantised one",
        )
    return None if sizes is None else _size_fault(tensors, sizes, shown)


def _size_fault(
    tensors: Mapping[str, Tensor], sizes: ConfiguredSizes, shown: str
) -> FolderFault | None:
    """Where tensors differ from those that config.json describes."""
    # A model that was saved without its head has the same names without `model.`.
    begins = "model." if any(name.startswith("model.") for name in tensors) else ""
    expected = {begins + name: shape for name, shape in _shapes(sizes).items()}
    expected["lm_head.weight"] = (sizes.vocabulary, sizes.hidden)
    differing = [n for n, s in expected.items() if n in tensors and tensors[n].shape != s]
    if differing:
        name = differing[0]
        return FolderFault(
            f"{shown}: {name} is {_product(tensors[name].shape)}, config.json describes "
            f"{_product(expected[name])}",
            "copy or download config.json and the weights from one place again",
        )
    lacking = [name for name in expected if name not in tensors and name != "lm_head.weight"]
    # Of names that are all of another kind, such as a converter's, nothing is known here.
    if lacking and not tensors.keys().isdisjoint(expected):
        return FolderFault(
            f"{shown}: the weights lack {shortened(lacking)}; they would be initialised at random",
            "copy or download the weights again",
        )
    above = f"{begins}layers.{sizes.layers}."
    if any(name.startswith(above) for name in tensors):
        return FolderFault(
            "%s: the weights have more layers than the %d of config.json; the others would be "
            "ignored" % (shown, sizes.layers),
            "copy or download config.json and the weights from one place again",
        )
    return None


def _shapes(sizes: ConfiguredSizes) -> dict[str, tuple[int, ...]]:
    """The tensors of Llama, Mistral and Qwen2 without the output embeddings."""
    hidden, inner = sizes.hidden, sizes.intermediate
    query, key = sizes.heads * sizes.head_size, sizes.kv_heads * sizes.head_size
    block: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj.weight": (query, hidden),
        "self_attn.k_proj.weight": (key, hidden),
        "self_attn.v_proj.weight": (key, hidden),
        "self_attn.o_proj.weight": (hidden, query),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
    }
    if sizes.biased:
        block["self_attn.q_proj.bias"] = (query,)
        block["self_attn.k_proj.bias"] = block["self_attn.v_proj.bias"] = (key,)
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (sizes.vocabulary, hidden)}
    # More layers than any model has would only cost time.
    for number in range(min(sizes.layers, 1000)):
        shapes.update((f"layers.{number}.{name}", each) for name, each in block.items())
    return {**shapes, "norm.weight": (hidden,)}


def _product(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "a single number"
