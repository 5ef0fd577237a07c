"""Model folders that are no whole models: each is refused by name, with what to do, by the rules
that `agentc check` and the jobs share."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_folder import (
    CONFIG,
    llama_shapes,
    tokenizer_text,
    write_model_folder,
    write_safetensors,
)

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.runtime.model_folder.folder import Needs, read_model_folder
from agentc.runtime.model_folder.lora_targets import modules_of, target_faults
from agentc_backends.data.models.checkpoint import CheckpointError, check_directory

Spoil = Callable[[Path], object]
SPEC = """
agentc: 1
name: folders
stages:
  base: {kind: model, path: model}
"""


def config(**changes: Any) -> Spoil:
    """Writes a config.json with changes; a value of None takes a setting out."""
    written = {name: value for name, value in {**CONFIG, **changes}.items() if value is not None}
    return lambda folder: (folder / "config.json").write_text(json.dumps(written))


def text(name: str, content: str) -> Spoil:
    return lambda folder: (folder / name).write_text(content)


def without(*names: str) -> Spoil:
    return lambda folder: [(folder / name).unlink() for name in names]


def renamed(name: str, to: str) -> Spoil:
    return lambda folder: (folder / name).rename(folder / to)


def only(**files: str) -> Spoil:
    """Nothing but these files; `_` in a name stands for a dot."""

    def spoil(folder: Path) -> None:
        for path in folder.iterdir():
            path.unlink()
        for name, content in files.items():
            (folder / name.replace("__", ".")).write_text(content)

    return spoil


def cut(size: int) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "model.safetensors"
        os.truncate(path, path.stat().st_size - size)

    return spoil


def header(value: object) -> Spoil:
    written = value if isinstance(value, str) else json.dumps(value)
    content = struct.pack("<Q", len(written)) + written.encode()
    return lambda folder: (folder / "model.safetensors").write_bytes(content)


def sharded(*, shards: int = 2, index: Callable[[dict[str, str]], object] | None = None) -> Spoil:
    """Two shards with an index, of which some are there."""

    def spoil(folder: Path) -> None:
        shapes = llama_shapes()
        (folder / "model.safetensors").unlink()
        placed = {}
        for number in (1, 2):
            name = f"model-0000{number}-of-00002.safetensors"
            own = dict(list(shapes.items())[number - 1 :: 2])
            placed |= dict.fromkeys(own, name)
            if number <= shards:
                write_safetensors(folder / name, own)
        found = {"weight_map": placed} if index is None else index(placed)
        if found is not None:
            (folder / "model.safetensors.index.json").write_text(json.dumps(found))

    return spoil


def copied_into_both(folder: Path) -> None:
    sharded()(folder)
    shapes = llama_shapes()
    write_safetensors(folder / "model-00002-of-00002.safetensors", shapes)


def weights(shapes: dict[str, tuple[int, ...]]) -> Spoil:
    return lambda folder: write_safetensors(folder / "model.safetensors", shapes)


def inside(folder: Path) -> None:
    write_model_folder(folder / "checkpoint-100")
    only_files = [path for path in folder.iterdir() if path.is_file()]
    for path in only_files:
        path.unlink()


def several(*steps: Spoil) -> Spoil:
    return lambda folder: [step(folder) for step in steps]


def linked(name: str, to: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(to)

    return spoil


def named(change: Callable[[str], str], **more: tuple[int, ...]) -> Spoil:
    """Weights whose names are changed, with more tensors in the first layer's attention."""
    block = "base_model.model.model.layers.0.self_attn.q_proj."
    inside = {block + name.replace("__", "."): shape for name, shape in more.items()}
    return weights({change(name): shape for name, shape in llama_shapes().items()} | inside)


def integers(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"I32"'))


ADAPTER = '{"base_model_name_or_path": "acme/base"}'
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
SHARD = "model-00002-of-00002.safetensors"
FAULTS: dict[str, tuple[Spoil, str, str]] = {
    # What is there instead of a model.
    "empty": (only(), "model is empty: it holds no config.json", "directory that was meant"),
    "no configuration": (
        without("config.json"),
        "model holds no config.json, so it is not a model directory",
        "directory that was meant",
    ),
    "one level too high": (
        inside,
        "model holds no config.json, but checkpoint-100 does",
        "did you mean `path: model/checkpoint-100`?",
    ),
    "adapter": (
        only(adapter_config__json=ADAPTER, adapter_model__safetensors=""),
        "model is a PEFT adapter for acme/base, not a whole model",
        "merge it into its base model",
    ),
    "model and adapter": (
        text("adapter_config.json", ADAPTER),
        "model holds a model and a PEFT adapter (adapter_config.json), which would be ignored",
        "remove the adapter's files",
    ),
    "pipe": (
        lambda folder: os.mkfifo(folder / "pipe"),
        "model holds pipe, which cannot be read",
        "remove it",
    ),
    # Formats of weights.
    "GGUF only": (
        only(m__gguf="GGUF"),
        "model holds m.gguf: `backend: path` takes safetensors weights, not GGUF files "
        "of llama.cpp",
        "use `backend: gguf` with the path of the .gguf file",
    ),
    "GGUF with a configuration": (
        several(renamed("model.safetensors", "m.gguf")),
        "model holds m.gguf: `backend: path` takes safetensors weights, not GGUF files "
        "of llama.cpp",
        "use `backend: gguf` with the path of the .gguf file",
    ),
    "pickle": (
        renamed("model.safetensors", "pytorch_model.bin"),
        "model has no .safetensors weights (found pytorch_model.bin, which can run code when read)",
        "save it with `save_pretrained`",
    ),
    "no weights": (
        without("model.safetensors"),
        "model has no weights: there is no model.safetensors in it",
        "copy or download the weights too",
    ),
    "other name": (
        renamed("model.safetensors", "weights.safetensors"),
        "model has no model.safetensors; transformers does not read weights.safetensors",
        "save it again with `save_pretrained`",
    ),
    # Configuration.
    "configuration cut off": (
        text("config.json", '{\n "model_type": "llama",\n'),
        "the model's config.json cannot be understood: it is no JSON (line 3)",
        "save the model again",
    ),
    "no type": (
        config(model_type=None),
        "the model's config.json cannot be understood: it has no `model_type`",
        "save the model again",
    ),
    "a size that is none": (
        config(hidden_size=-4),
        "the model's config.json cannot be understood: its `hidden_size` is -4, not a size",
        "save the model again",
    ),
    "classifier": (
        config(architectures=["LlamaForSequenceClassification"]),
        "model is a LlamaForSequenceClassification, which writes no text",
        "whose class ends with ForCausalLM",
    ),
    # Tokenizer.
    "no tokenizer": (without("tokenizer.json"), "model has no tokenizer.json", "a fast tokenizer"),
    "slow tokenizer": (
        renamed("tokenizer.json", "tokenizer.model"),
        "model has no tokenizer.json, only tokenizer.model",
        "a fast tokenizer",
    ),
    "tokenizer cut off": (
        text("tokenizer.json", "{"),
        "model: tokenizer.json is no JSON",
        "save the tokenizer again",
    ),
    "more tokens than rows": (
        text("tokenizer.json", tokenizer_text(322, 3)),
        "model: the tokenizer has 322 tokens, the embeddings 320 rows",
        "`model.resize_token_embeddings(322)`",
    ),
    "tokens added by tokenizer_config.json": (
        text("tokenizer_config.json", '{"added_tokens_decoder": {"320": {"content": "<pad>"}}}'),
        "model: the tokenizer has 321 tokens, the embeddings 320 rows",
        "`model.resize_token_embeddings(321)`",
    ),
    "other vocab_size": (
        config(vocab_size=384),
        "model: config.json has a `vocab_size` of 384, the embeddings have 320 rows",
        "`resize_token_embeddings`",
    ),
    # Files of weights.
    "truncated": (
        cut(100),
        "model: model.safetensors is truncated: it has 52556 of 52656 bytes",
        "copy or download the file again",
    ),
    "header only started": (
        cut(52_000),
        "model: model.safetensors is truncated: it ends within its header",
        "copy or download the file again",
    ),
    "too long": (
        lambda folder: os.truncate(folder / "model.safetensors", 60_000),
        "model: model.safetensors has 60000 bytes, but its header describes 52656",
        "copy or download the file again",
    ),
    "empty file": (
        text("model.safetensors", ""),
        "model: model.safetensors is empty",
        "copy or download the file again",
    ),
    "pointer of Git LFS": (
        text("model.safetensors", LFS),
        "model: model.safetensors is a pointer of Git LFS, not the weights",
        "`git lfs pull`",
    ),
    "no safetensors": (
        text("model.safetensors", "<html>not found</html>"),
        "model: model.safetensors is no safetensors file: the header claims 8029423821061908540 "
        "bytes",
        "copy or download the file again",
    ),
    "header without JSON": (
        header("{not JSON"),
        "model: model.safetensors has a header that is no JSON",
        "copy or download the file again",
    ),
    "tensor with another size": (
        header({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 12]}}),
        "model: model.safetensors has a header that does not describe the tensor a",
        "copy or download the file again",
    ),
    "no tensors": (
        header({}),
        "model: its safetensors files hold no tensor",
        "copy or download the file again",
    ),
    "missing shard": (
        sharded(shards=1),
        f"model lacks {SHARD}, which model.safetensors.index.json names",
        "copy or download what is missing again",
    ),
    "shards without an index": (
        sharded(index=lambda placed: None),
        f"model holds model-00001-of-00002.safetensors, {SHARD} without "
        "model.safetensors.index.json, which says where each tensor is",
        "copy or download the index too",
    ),
    "index of another model": (
        sharded(index=lambda placed: {"weight_map": {**placed, "model.more.weight": SHARD}}),
        f"model: {SHARD} lacks model.more.weight, which model.safetensors.index.json places there",
        "copy or download the file again",
    ),
    "index that leads elsewhere": (
        sharded(index=lambda placed: {"weight_map": {"a": "../other/model.safetensors"}}),
        "model: model.safetensors.index.json does not say which file holds which tensor",
        "save the model again",
    ),
    "two files with one tensor": (
        copied_into_both,
        f"model: model-00001-of-00002.safetensors and {SHARD} both hold model.embed_tokens.weight",
        "into an empty directory",
    ),
    "layers left out": (
        config(num_hidden_layers=3),
        "model: the weights have 1 of the 3 layers of config.json; they would be initialised at "
        "random",
        "copy or download the weights again",
    ),
    # Weights that transformers would load as something else.
    "more layers than config.json": (
        weights(llama_shapes(layers=2)),
        "model: the weights have more layers than the 1 of config.json; the others would be "
        "ignored",
        "from one place",
    ),
    "another width": (
        config(hidden_size=32),
        "model: model.embed_tokens.weight is 320 x 16, config.json describes 320 x 32",
        "from one place",
    ),
    "a tensor left out": (
        weights({n: s for n, s in llama_shapes().items() if "up_proj" not in n}),
        "model: the weights lack model.layers.0.mlp.up_proj.weight; they would be initialised at "
        "random",
        "copy or download the weights again",
    ),
    "compiled": (
        named(lambda name: f"_orig_mod.{name}"),
        "model: the names of all tensors begin with `_orig_mod.`, as `torch.compile` writes them; "
        "transformers would initialise every weight at random",
        "remove the prefix",
    ),
    "wrapped by PEFT": (
        named(lambda name: f"base_model.model.{name}"),
        "model: the names of all tensors begin with `base_model.model.`, as PEFT writes them; "
        "transformers would initialise every weight at random",
        "remove the prefix",
    ),
    "adapter not merged": (
        named(lambda name: f"base_model.model.{name}", lora_A__default__weight=(8, 16)),
        "model: the weights hold an adapter that was not merged (base_model.model.model.layers.0."
        "self_attn.q_proj.lora_A.default.weight), which would be ignored",
        "`merge_and_unload()`",
    ),
    "integers": (
        integers,
        "model: the weights are quantised (lm_head.weight is I32), and config.json has no "
        "`quantization_config`",
        "the model that was quantised",
    ),
    "encoder-decoder": (
        config(
            model_type="t5",
            architectures=["T5ForConditionalGeneration"],
            is_encoder_decoder=True,
        ),
        "model is an encoder-decoder model (T5ForConditionalGeneration), whose text does not "
        "continue its prompt",
        "ForCausalLM",
    ),
    "masked language model": (
        config(model_type="bert", architectures=["BertForMaskedLM"]),
        "model is a BertForMaskedLM, which writes no text",
        "ForCausalLM",
    ),
    # Ends of replies.
    "generation_config.json cut off": (
        text("generation_config.json", '{"eos_token_id": 2,'),
        "model: generation_config.json cannot be understood: it is no JSON (line 1)",
        "remove it",
    ),
    "generation_config.json is a list": (
        text("generation_config.json", "[2]"),
        "model: generation_config.json cannot be understood: it holds no mapping",
        "remove it",
    ),
    "end of replies as a text": (
        text("generation_config.json", '{"eos_token_id": [2, "</s>"]}'),
        'model: generation_config.json has an `eos_token_id` of "</s>", which is no token id',
        "the id that tokenizer.json gives",
    ),
    "end of replies that no token has": (
        config(eos_token_id=999),
        "model: config.json has an `eos_token_id` of 999, but the embeddings have 320 rows",
        "the id that tokenizer.json gives",
    ),
    # Files copied in part.
    "tokenizer of another model": (
        text("tokenizer.json", tokenizer_text(12, 2)),
        "model: the tokenizer has 12 tokens, the embeddings 320 rows, so it belongs to another "
        "model",
        "from where the weights are from",
    ),
    "link to the hub's cache": (
        linked("model.safetensors", "../../blobs/0123"),
        "model holds model.safetensors, a link that leads nowhere",
        "`cp -rL`",
    ),
    "link to itself": (
        linked("model.safetensors", "model.safetensors"),
        "model holds model.safetensors, a link that leads nowhere",
        "`cp -rL`",
    ),
    "no head": (
        weights(llama_shapes(head=False)),
        "model: the weights have no lm_head.weight, and config.json does not tie the embeddings; "
        "they would be initialised at random",
        "copy or download the weights again",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_broken_folder(case: str, tmp_path: Path) -> None:
    spoil, message, fix = FAULTS[case]
    folder = write_model_folder(tmp_path / "model")
    assert read_model_folder(folder, "model").faults == ()

    spoil(folder)
    (fault,) = read_model_folder(folder, "model").faults
    assert fault.message == message
    assert fix in fault.fix
    with pytest.raises(CheckpointError) as refused:
        check_directory(folder)
    assert str(refused.value) == str(fault)


@pytest.mark.parametrize(
    ("path", "message", "fix"),
    [
        ("nowhere/at/all", "there is no readable directory nowhere/at/all", "relative to the spec"),
        (
            "Qwen/Qwen2.5-0.5B-Instruct",
            "there is no readable directory Qwen/Qwen2.5-0.5B-Instruct",
            "did you mean `repo`? For a repository of the Hugging Face hub write "
            "`{repo: Qwen/Qwen2.5-0.5B-Instruct}`",
        ),
        ("m.gguf", "m.gguf is a file: `backend: path` takes safetensors", "`backend: gguf`"),
        ("m.safetensors", "m.safetensors is a file, not a model", "directory that it lies in"),
    ],
)
def test_a_path_that_is_no_directory(path: str, message: str, fix: str, tmp_path: Path) -> None:
    for name in ("m.gguf", "m.safetensors"):
        (tmp_path / name).write_bytes(b"weights")
    (fault,) = read_model_folder(tmp_path / path, path).faults
    assert fault.message.startswith(message)
    assert fix in fault.fix


TABLE = load_backends()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_weights_that_may_not_be_read(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "model")
    (folder / "model.safetensors").chmod(0)
    (fault,) = read_model_folder(folder, "model").faults
    assert fault.message == "model: model.safetensors cannot be read: permission denied"
    assert "`chmod" in fault.fix


def _file(length: int, header: object = None, data: int = 0) -> bytes:
    """A safetensors file that claims a header of that length (None: the right one)."""
    text = header if isinstance(header, bytes) else json.dumps(header or {}).encode()
    return struct.pack("<Q", length if length >= 0 else len(text)) + text + bytes(data)


def _one(**changes: object) -> dict[str, object]:
    return {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}


_SECOND = {"b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}
MALFORMED = {
    "a length of 2**62": _file(1 << 62, _one(), 8),
    "a length of -1": b"\xff" * 8 + _file(-1, _one(), 8)[8:],
    "nothing": b"",
    "seven bytes": bytes(7),
    "no header": _file(0, b"", 8),
    "a header that is no JSON": _file(-1, b"{not json", 8),
    "a header that is a list": _file(-1, [1], 8),
    "a header of bytes that are no text": _file(-1, b"{\xff\xfe}", 8),
    "two tensors that overlap": _file(-1, _one() | _SECOND, 12),
    "a gap between tensors": _file(-1, _one(data_offsets=[8, 16]), 16),
    "a tensor beyond the file": _file(-1, _one(shape=[1 << 40], data_offsets=[0, 1 << 42]), 8),
    "a negative shape": _file(-1, _one(shape=[-2]), 8),
    "a shape that is no number": _file(-1, _one(shape=["2"]), 8),
    "offsets the other way round": _file(-1, _one(data_offsets=[8, 0]), 8),
    "a shape of another size": _file(-1, _one(shape=[3]), 8),
    "an unknown type": _file(-1, _one(dtype="EVIL"), 8),
    "half of a download": _file(-1, _one(), 4),
    "more than the header says": _file(-1, _one(), 9),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_broken_weights_are_refused_before_anything_reads_them(case: str, tmp_path: Path) -> None:
    """By `check` and by the job that adopts the model, not by transformers in a later job."""
    folder = write_model_folder(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(MALFORMED[case])
    (fault,) = read_model_folder(folder, "model").faults
    assert fault.message.startswith("model: model.safetensors ")
    assert fault.fix
    with pytest.raises(CheckpointError):
        check_directory(folder)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"quantization_config": "bitsandbytes"}, '`quantization_config: "bitsandbytes"`'),
        ({"dtype": "evil"}, '`dtype: "evil"`, which is no type of weights'),
        ({"torch_dtype": "load"}, '`torch_dtype: "load"`'),
        ({"dtype": 7}, "`dtype: 7`"),
        ({"_attn_implementation": "owner/name"}, "which names code of the hub"),
        ({"attn_implementation": "owner/name@main:fn"}, "which names code of the hub"),
        ({"_attn_implementation": {"": "owner/name"}}, "which names code of the hub"),
        ({"text_config": {"_attn_implementation": "owner/name"}}, "which names code of the hub"),
        ({"rope_scaling": {"type": "x", "factor": 2}}, '`rope_scaling` of the type "x"'),
        ({"rope_parameters": {"rope_type": ["x"]}}, "`rope_parameters` of the type"),
        ({"rope_scaling": "linear"}, '`rope_scaling` of the type "linear"'),
        ({"num_hidden_layers": 10**9}, "the weights have 1 of the 1000000000 layers"),
    ],
)
def test_settings_that_a_later_job_would_stop_at(
    changes: dict[str, object], says: str, tmp_path: Path
) -> None:
    folder = write_model_folder(tmp_path / "model")
    config(**changes)(folder)
    faults = read_model_folder(folder, "model").faults
    assert says in "\n".join(map(str, faults))
    with pytest.raises(CheckpointError):
        check_directory(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "bfloat16"},
        {"torch_dtype": "torch.float16"},
        {"dtype": None, "quantization_config": None, "rope_scaling": None},
        {"_attn_implementation": "flash_attention_2"},
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        {"rope_parameters": {"rope_theta": 10000.0}},
    ],
)
def test_settings_that_models_do_have(changes: dict[str, object], tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "model")
    config(**changes)(folder)
    assert read_model_folder(folder, "model").faults == ()


@pytest.mark.parametrize(
    "case",
    [
        *("empty", "more tokens than rows", "missing shard"),
        *("link to itself", "link to the hub's cache"),
    ],
)
def test_check_reports_what_the_job_would(case: str, tmp_path: Path) -> None:
    spoil, message, _ = FAULTS[case]
    folder = write_model_folder(tmp_path / "model")
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    assert compile_spec(spec, {}, TABLE).diagnostics == ()

    spoil(folder)
    (found,) = compile_spec(spec, {}, TABLE).diagnostics
    assert (found.code, found.message) == ("AGC662", message)
    assert (found.span.line, found.span.column) == (5, 23)


def test_shards_and_tied_embeddings_are_whole(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "model")
    sharded()(folder)
    found = read_model_folder(folder, "model")
    assert found.faults == ()
    assert found.parameters == sum(tensor.numbers for tensor in found.tensors.values()) == 12848
    assert found.file_bytes > 4 * found.parameters

    tied = write_model_folder(tmp_path / "tied", {**CONFIG, "tie_word_embeddings": True})
    weights(llama_shapes(head=False))(tied)
    assert read_model_folder(tied, "tied").faults == ()
    assert read_model_folder(tied, "tied").tied


def test_an_encoder_of_pictures_needs_no_tokenizer(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "clip", {"model_type": "clip"}, {"text.weight": (2, 2)})
    (folder / "tokenizer.json").unlink()
    assert read_model_folder(folder, "clip", Needs(tokenizer=False, language=False)).faults == ()
    assert len(read_model_folder(folder, "clip").faults) == 1


def test_quantised_weights_are_counted_unpacked(tmp_path: Path) -> None:
    settings = {"quant_method": "awq", "bits": 4}
    folder = write_model_folder(tmp_path / "awq", {**CONFIG, "quantization_config": settings})
    content = {"q.qweight": {"dtype": "I32", "shape": [8, 4], "data_offsets": [0, 128]}}
    written = json.dumps(content).encode()
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(written)) + written + bytes(128))
    found = read_model_folder(folder, "awq")
    assert (found.quantisation, found.parameters) == ("awq", 8 * 4 * 8)


@pytest.mark.parametrize(
    ("targets", "tied", "message", "fix"),
    [
        (
            ["q_proj", "v_porj"],
            False,
            "`lora.targets` names `v_porj`; the model has `q_proj`, `k_proj`, `v_proj`, `o_proj`, "
            "`gate_proj`, `up_proj`, `down_proj`",
            "did you mean `v_proj`?",
        ),
        (["all-linear"], False, "`lora.targets` names `all-linear`", "leave `targets` out"),
        (["input_layernorm"], False, "`lora.targets` names `input_layernorm`", "leave `targets`"),
        (["self_attn"], False, "`lora.targets` names `self_attn`", "leave `targets`"),
        (["lm_head"], True, "`lora.targets` names `lm_head`; the model has", "leave `lm_head` out"),
        (["lm_head"], False, "`lora.targets` names `lm_head`; the model has", "leave `lm_head`"),
        (["embed_tokens"], True, "`lora.targets` names `embed_tokens`; the model has", "leave"),
        (["embed_tokens", "down_proj"], False, "", ""),
        (["model.layers.0.self_attn.q_proj", "mlp.up_proj"], True, "", ""),
    ],
)
def test_targets_of_adapters(targets: list[str], tied: bool, message: str, fix: str) -> None:
    folder_tensors = {name: read_tensor(shape) for name, shape in llama_shapes(head=True).items()}
    modules = modules_of(folder_tensors)
    for exact in (True, False):
        faults = target_faults(targets, modules, tied, exact=exact)
        assert len(faults) == bool(message)
        for fault in faults:
            assert fault.message.startswith(message)
            assert fix in fault.fix


@pytest.mark.parametrize("block", ["model.layers.0.mlp", "model.layers.0.block_sparse_moe"])
def test_experts_of_a_mixture_are_no_targets(block: str) -> None:
    """In memory they are parameters of one module, and so is their router."""
    names = ("gate", "experts.0.gate_proj", "experts.1.w1", "shared_expert.up_proj")
    tensors = {f"{block}.{name}.weight": read_tensor((8, 8)) for name in names}
    tensors["model.layers.0.self_attn.q_proj.weight"] = read_tensor((8, 8))
    modules = modules_of(tensors)
    assert set(modules) == {"model.layers.0.self_attn.q_proj", f"{block}.shared_expert.up_proj"}
    for target in ("gate_proj", "w1", "gate"):
        assert len(target_faults([target], modules, False, exact=False)) == 1


def read_tensor(shape: tuple[int, ...]) -> Any:
    from agentc.runtime.model_folder.weights import Tensor

    return Tensor("F32", shape)
