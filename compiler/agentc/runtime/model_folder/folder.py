"""read_model_folder: what a model directory holds, and what is wrong with it.

Reads the configuration, the tokenizer and the headers of the weights, never the weights themselves.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentc.runtime.model_folder.config import (
    CONFIG_FILE,
    MOST_BYTES,
    ConfigFileError,
    ConfiguredSizes,
    FolderFault,
    generation_faults,
    of_text,
    quantisation_of,
    quantised_bits,
    read_config,
    setting_faults,
    shortened,
    sizes_of,
)
from agentc.runtime.model_folder.tokenizer import TOKENIZER_FILE, TokenizerFileError, tokens_of
from agentc.runtime.model_folder.weights import (
    GGUF,
    Tensor,
    Weights,
    gguf_fault,
    read_weights,
    tensor_fault,
)

ADAPTER_FILE = "adapter_config.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_BLOCK = re.compile(r"(?:^|\.)layers\.(\d+)\.")
_MOST_FILES = 10_000
_EMBEDDINGS = (
    "embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight",
    "tok_embeddings.weight",
)  # fmt: skip
"""How the names of token embeddings end."""
_OTHER_HEADS = (
    "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM",
    "ForPreTraining", "ForMultipleChoice", "ForRewardModel",
)  # fmt: skip
_SAVE_AGAIN = "save the model again with `save_pretrained`, or give the directory that was meant"


@dataclass(frozen=True)
class Needs:
    """What a directory must hold besides config.json and weights: a fast `tokenizer`; weights of a
    `language` model, which writes text."""

    tokenizer: bool = True
    language: bool = True


LANGUAGE_MODEL = Needs()


@dataclass(frozen=True)
class ModelFolder:
    """What was read. `tensors` are those of the weights, empty where they have faults; `sizes` is
    None for a type of model that is not known."""

    faults: tuple[FolderFault, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    sizes: ConfiguredSizes | None = None
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    file_bytes: int = 0

    @property
    def quantisation(self) -> str:
        """The method that the weights are quantised by; "" for weights that are not."""
        return quantisation_of(self.config)

    @property
    def parameters(self) -> int:
        """How many weights the files hold; 0 where that is not known."""
        if not self.quantisation:
            return sum(tensor.numbers for tensor in self.tensors.values())
        # Several weights are packed into each integer, by most methods.
        packed, bits = 0, quantised_bits(self.config)
        for tensor in self.tensors.values():
            integers = tensor.dtype in ("I32", "U8", "I8", "U32") and len(tensor.shape) > 0
            packed += tensor.numbers * max(1, (tensor.bits or 0) // bits if integers else 1)
        return packed

    @property
    def tied(self) -> bool:
        """Whether the output embeddings are the input embeddings: by config.json, else by the
        weights, as the default differs between types of models."""
        written = of_text(self.config, "tie_word_embeddings")
        if isinstance(written, bool) or not self.tensors:
            return written is True
        return not any(
            name.endswith(("lm_head.weight", "embed_out.weight")) for name in self.tensors
        )


def read_model_folder(directory: Path, shown: str, needs: Needs = LANGUAGE_MODEL) -> ModelFolder:
    """What a directory holds, as a model that meets `needs`; `shown` is its name in messages.
    Raises nothing for what is there."""
    try:
        if not directory.is_dir():
            return ModelFolder((_no_directory(directory, shown),))
        return _read(directory, shown, needs)
    except PermissionError as error:
        file = Path(str(error.filename or directory))
        what = shown if file == directory else f"{shown}: {file.name}"
        fix = "make it readable for the user who runs agentc: `chmod -R u+rX` by its owner"
        return ModelFolder((FolderFault(f"{what} cannot be read: permission denied", fix),))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it has no valid path"
        return ModelFolder((FolderFault(f"{shown} cannot be read: {reason.lower()}", _CHOOSE),))


_CHOOSE = (
    "give a directory in Hugging Face layout, relative to the spec or absolute, or below one of "
    "`model_folders` in ~/.config/agentc/config.toml"
)


def _no_directory(directory: Path, shown: str) -> FolderFault:
    if not directory.exists():
        message = f"there is no readable directory {shown}"
        if _HUB_ID.fullmatch(shown):
            return FolderFault(
                message,
                "did you mean `repo`? For a repository of the Hugging Face hub write "
                f"`{{repo: {shown}}}`",
            )
        other = "" if "/" in shown else "; a repository of the hub is written `owner/name`"
        return FolderFault(message, _CHOOSE + other)
    if shown.lower().endswith(GGUF):
        return gguf_fault(f"{shown} is a file")
    if shown.lower().endswith(".safetensors"):
        fix = "give the directory that it lies in, with config.json and tokenizer.json"
        return FolderFault(f"{shown} is a file, not a model directory", fix)
    return FolderFault(f"{shown} is a file, not a model directory", _CHOOSE)


def _read(directory: Path, shown: str, needs: Needs) -> ModelFolder:
    names, fault = _file_names(directory, shown)
    if fault is not None:
        return ModelFolder((fault,))
    if ADAPTER_FILE in names:
        return ModelFolder((_adapter(directory, names, shown),))
    if CONFIG_FILE not in names:
        return ModelFolder((_no_config(directory, names, shown),))
    config, sizes, faults = _read_config(directory, shown, needs)
    weights = read_weights(directory, names, shown)
    faults += weights.faults
    tokens = None
    if needs.tokenizer:
        tokens, fault = _tokens(directory, names, shown)
        faults += [fault] if fault is not None else []
    if not faults:
        faults += _disagreements(config, sizes, weights, tokens, shown, needs)
    if not faults:
        fault = tensor_fault(weights.tensors, sizes, quantisation_of(config), shown)
        faults += [fault] if fault is not None else []
    if not faults and needs.language:
        faults += generation_faults(directory, names, config, _rows(weights), shown)
    return ModelFolder(tuple(faults), config, sizes, weights.tensors, weights.file_bytes)


def _file_names(directory: Path, shown: str) -> tuple[set[str], FolderFault | None]:
    """The files of a folder; what is wrong where it has too many or cannot be copied."""
    names: set[str] = set()
    odd: list[str] = []
    broken: list[str] = []
    with os.scandir(directory) as entries:
        for count, entry in enumerate(entries):
            if count > _MOST_FILES:
                message = f"{shown} has more than {_MOST_FILES} entries"
                return names, FolderFault(message, _CHOOSE)
            if entry.name.startswith("."):
                continue
            if _is_file(entry):
                names.add(entry.name)
            elif entry.is_symlink() and not Path(entry.path).exists():
                broken.append(entry.name)
            elif not entry.is_dir():
                odd.append(entry.name)
    if broken:
        message = f"{shown} holds {shortened(sorted(broken))}, a link that leads nowhere"
        fix = "copy the folder with `cp -rL`, which copies what links lead to"
        return names, FolderFault(message, fix)
    if odd:
        message = f"{shown} holds {shortened(sorted(odd))}, which cannot be read"
        fix = "remove it: only files and links to files can be copied"
        return names, FolderFault(message, fix)
    return names, None


def _read_config(
    directory: Path, shown: str, needs: Needs
) -> tuple[dict[str, Any], ConfiguredSizes | None, list[FolderFault]]:
    """The model's configuration, its sizes where it is a language model, and what is wrong."""
    faults: list[FolderFault] = []
    config: dict[str, Any] = {}
    sizes = None
    try:
        with (directory / CONFIG_FILE).open("rb") as file:
            config = read_config(file.read(MOST_BYTES + 1))
        faults += _type_faults(config, shown, needs)
        sizes = sizes_of(config) if needs.language else None
        faults += setting_faults(config, shown, known=sizes is not None)
    except ConfigFileError as error:
        message = f"the model's config.json cannot be understood: {error}"
        faults.append(FolderFault(message, _SAVE_AGAIN))
    return config, sizes, faults


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself
        return False


def _adapter(directory: Path, names: set[str], shown: str) -> FolderFault:
    merge = (
        "merge it into its base model with PEFT's `merge_and_unload()`, and save the result with "
        "its tokenizer by `save_pretrained`"
    )
    whole = [n for n in names if n.endswith(".safetensors") and not n.startswith("adapter_")]
    if CONFIG_FILE in names and whole:
        return FolderFault(
            f"{shown} holds a model and a PEFT adapter ({ADAPTER_FILE}), which would be ignored",
            f"remove the adapter's files, or {merge}",
        )
    base = ""
    try:
        with (directory / ADAPTER_FILE).open("rb") as file:
            found = json.loads(file.read(MOST_BYTES)).get("base_model_name_or_path")
        base = f" for {found[:200]}" if isinstance(found, str) and found else ""
    except (ValueError, AttributeError, RecursionError):
        pass  # the file says that it is an adapter, whatever is in it
    return FolderFault(f"{shown} is a PEFT adapter{base}, not a whole model", merge)


def _no_config(directory: Path, names: set[str], shown: str) -> FolderFault:
    inner = _inner_model(directory)
    if inner:
        message = f"{shown} holds no config.json, but {inner} does"
        return FolderFault(message, f"did you mean `path: {Path(shown) / inner}`?")
    files = sorted(name for name in names if name.lower().endswith(GGUF))
    if files:
        return gguf_fault(f"{shown} holds {shortened(files)}")
    if not names and not any(directory.iterdir()):
        return FolderFault(f"{shown} is empty: it holds no config.json", _SAVE_AGAIN)
    return FolderFault(f"{shown} holds no config.json, so it is not a model directory", _SAVE_AGAIN)


def _inner_model(directory: Path) -> str:
    """A directory below with a config.json: a checkpoint of a trainer, a snapshot of the hub's
    cache."""
    for pattern in ("*/" + CONFIG_FILE, "snapshots/*/" + CONFIG_FILE):
        inner = sorted(path.parent for path in directory.glob(pattern))[-1:]
        if inner:
            return inner[0].relative_to(directory).as_posix()
    return ""


def _type_faults(config: Mapping[str, Any], shown: str, needs: Needs) -> list[FolderFault]:
    if not isinstance(config.get("model_type"), str):
        raise ConfigFileError("it has no `model_type`")
    classes = config.get("architectures")
    if needs.language and config.get("is_encoder_decoder") is True:
        name = classes[0] if isinstance(classes, list) and classes else config["model_type"]
        message = "%s is an encoder-decoder model (%s), whose text does not continue its prompt"
        return [
            FolderFault(
                message % (shown, str(name)[:120]),
                "give a decoder, a model whose class ends with ForCausalLM",
            )
        ]
    for name in classes if needs.language and isinstance(classes, list) else ():
        if isinstance(name, str) and name.endswith(_OTHER_HEADS):
            message = f"{shown} is a {name[:120]}, which writes no text"
            return [FolderFault(message, "give a model whose class ends with ForCausalLM")]
    return []


def _tokens(directory: Path, names: set[str], shown: str) -> tuple[int | None, FolderFault | None]:
    if TOKENIZER_FILE not in names:
        slow = sorted(names & {"tokenizer.model", "vocab.json", "vocab.txt", "merges.txt"})
        only = f", only {shortened(slow)}" if slow else ""
        return None, FolderFault(
            f"{shown} has no tokenizer.json{only}",
            "write it with `AutoTokenizer.from_pretrained(...).save_pretrained(...)`, which saves "
            "a fast tokenizer",
        )
    try:
        return tokens_of(directory), None
    except TokenizerFileError as error:
        message = f"{shown}: {error}"
        return None, FolderFault(message, "save the tokenizer again with `save_pretrained`")


def _disagreements(
    config: Mapping[str, Any],
    sizes: ConfiguredSizes | None,
    weights: Weights,
    tokens: int | None,
    shown: str,
    needs: Needs,
) -> list[FolderFault]:
    """Where configuration, tokenizer and weights do not go together."""
    faults: list[FolderFault] = []
    rows, written = _rows(weights), of_text(config, "vocab_size")
    if rows is not None and sizes is not None and rows != sizes.vocabulary:
        faults.append(
            FolderFault(
                "%s: config.json has a `vocab_size` of %d, the embeddings have %d rows"
                % (shown, sizes.vocabulary, rows),
                "resize them with `resize_token_embeddings` and save the model again",
            )
        )
    have = rows if rows is not None else written if _is_count(written) else None
    if tokens is not None and have is not None and tokens > have:
        faults.append(
            FolderFault(
                f"{shown}: the tokenizer has {tokens} tokens, the embeddings {have} rows",
                "resize them with `model.resize_token_embeddings(%d)` and save the model again"
                % tokens,
            )
        )
    elif tokens is not None and rows is not None and needs.language and 2 * tokens < rows:
        faults.append(
            FolderFault(
                "%s: the tokenizer has %d tokens, the embeddings %d rows, so it belongs to another "
                "model" % (shown, tokens, rows),
                "copy or download tokenizer.json from where the weights are from",
            )
        )
    lacking = _lacking(config, sizes, weights) if needs.language else ""
    if lacking:
        message = f"{shown}: {lacking}; they would be initialised at random"
        faults.append(FolderFault(message, "copy or download the weights again"))
    return faults


def _lacking(config: Mapping[str, Any], sizes: ConfiguredSizes | None, weights: Weights) -> str:
    """Weights that config.json promises and no file has."""
    blocks = {int(found.group(1)) for name in weights.tensors if (found := _BLOCK.search(name))}
    own = {
        int(found.group(1))
        for name in weights.tensors
        if name.startswith("model.layers.") and (found := _BLOCK.search(name))
    }
    expected = of_text(config, "num_hidden_layers")
    if own == blocks and own and _is_count(expected) and len(own) < expected:
        return f"the weights have {len(own)} of the {expected} layers of config.json"
    named = "model.embed_tokens.weight" in weights.tensors
    if sizes is not None and named and not sizes.tied and "lm_head.weight" not in weights.tensors:
        return "the weights have no lm_head.weight, and config.json does not tie the embeddings"
    return ""


def _rows(weights: Weights) -> int | None:
    """Rows of the token embeddings, by the shortest name of those that may be them."""
    found = [
        name
        for name, tensor in weights.tensors.items()
        if name.endswith(_EMBEDDINGS) and len(tensor.shape) == 2
    ]
    return weights.tensors[min(found, key=lambda n: (len(n), n))].shape[0] if found else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
