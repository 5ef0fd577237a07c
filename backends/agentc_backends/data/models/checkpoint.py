"""What every checkpoint directory of a run holds besides weights: the tokenizer, its template and
agentc_chat.json; and the checks of such a directory before and after a training."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.program.artifact_files import CHAT_FILE, SCORED_FILE
from agentc.runtime.model_folder.config import quantisation_of
from agentc.runtime.model_folder.folder import (
    LANGUAGE_MODEL,
    ModelFolder,
    Needs,
    read_model_folder,
)
from agentc.runtime.model_folder.lora_targets import target_faults
from agentc.runtime.model_folder.weights import GGUF, PICKLES
from agentc_backends.data.chat.formats import FormatError, format_named, line_end_tokens
from agentc_backends.data.chat.tokens import Encoder, ends_of_model, require_tokens

WEIGHT_SUFFIXES = (".safetensors", ".safetensors.index.json")
_OTHER_WEIGHTS = (*PICKLES, GGUF)


class CheckpointError(ValueError):
    """A model directory that cannot be used; the message is written for people."""


def configure_libraries() -> None:
    """Keep the libraries offline, silent and off each other's cores, unless the environment says
    otherwise. Call before they are imported: they read these variables at import."""
    for name, value in (
        ("HF_HUB_OFFLINE", "1"),
        ("HF_DATASETS_OFFLINE", "1"),
        ("HF_HUB_DISABLE_TELEMETRY", "1"),
        ("DO_NOT_TRACK", "1"),
        ("TRANSFORMERS_VERBOSITY", "error"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("TQDM_DISABLE", "1"),
        # Threads that spin while they wait made training 3.6 times slower on a busy machine.
        ("OMP_WAIT_POLICY", "PASSIVE"),
    ):
        os.environ.setdefault(name, value)
    # Deprecations inside pinned libraries are not the reader's business.
    warnings.filterwarnings("ignore", category=FutureWarning)


def check_directory(directory: Path, shown: str = "", needs: Needs = LANGUAGE_MODEL) -> ModelFolder:
    """What a model directory holds. Raises CheckpointError unless it is a whole model, by the rules
    of `agentc check`; `shown` is its name in messages."""
    folder = read_model_folder(directory, shown or directory.name, needs)
    if folder.faults:
        raise CheckpointError("; ".join(map(str, folder.faults)))
    return folder


def require_unquantised(directory: Path) -> None:
    """Raise CheckpointError for a checkpoint whose weights are quantised: they are not trained."""
    method = quantisation_of(json.loads((directory / "config.json").read_text(encoding="utf-8")))
    if method:
        raise CheckpointError(
            f"the weights of the model are quantised ({method}), and such weights cannot be "
            "trained; start from the model that was quantised"
        )


def set_chat_format(directory: Path, chat_format: str) -> None:
    """Write agentc_chat.json, with a built-in format its template in place of the shipped one, and
    the tokens that end a reply under the format into generation_config.json.

    Raises CheckpointError when the tokenizer does not know the format's control tokens, or has no
    such tokens, or when the format is `tokenizer` and it ships no template, or one that ends no
    reply.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(directory), trust_remote_code=False)
    if chat_format == "tokenizer":
        if not tokenizer.chat_template:
            raise CheckpointError(
                "the tokenizer ships no chat template; set chat_format on the model stage "
                "(chatml, llama-2, mistral, vicuna or plain)"
            )
        try:
            _add_ends(directory, _ends_of_template(directory, tokenizer))
        except FormatError as error:
            raise CheckpointError(str(error)) from None
    else:
        chat = format_named(chat_format)
        try:
            require_tokens(tokenizer, chat)
            own = int(tokenizer.convert_tokens_to_ids(chat.eos))
            # A base model stops at an end token of its own, which the format does not write.
            ends = line_end_tokens(tokenizer, chat) if chat.by_line else (own,)
        except FormatError as error:
            raise CheckpointError(str(error)) from None
        _write_template(directory, chat.template)
        _add_ends(directory, ends)
    write_chat_file(directory, chat_format)


def align_tokenizer(directory: Path) -> None:
    """Make tokenizer.json say what transformers makes of it.

    For some types of model (qwen2, llama-2) it replaces the normaliser and the pre-tokeniser of the
    file by its own. Programs that take the file at its word, such as trainers on older releases,
    would then make other tokens than servers do.
    """
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    path = directory / "tokenizer.json"
    tokenizer = AutoTokenizer.from_pretrained(str(directory), trust_remote_code=False)
    if not tokenizer.is_fast:
        return  # refused by name where it is used
    loaded = tokenizer.backend_tokenizer
    written = Tokenizer.from_file(str(path))
    if any(
        str(getattr(loaded, part)) != str(getattr(written, part))
        for part in ("normalizer", "pre_tokenizer")
    ):
        loaded.save(str(path))


def write_chat_file(directory: Path, chat_format: str) -> None:
    """Write agentc_chat.json."""
    (directory / CHAT_FILE).write_text(
        json.dumps({"chat_format": chat_format}) + "\n", encoding="utf-8"
    )


def companion_files(directory: Path) -> Iterator[Path]:
    """The files of a checkpoint that training does not change: tokenizer, template, formats."""
    own = ("config.json", "generation_config.json", SCORED_FILE)
    for path in sorted(directory.iterdir()):
        if not path.is_file() or path.name in own:
            continue
        if path.name.endswith(WEIGHT_SUFFIXES) or path.suffix in _OTHER_WEIGHTS:
            continue
        if path.suffix in (".json", ".jinja", ".model", ".txt"):
            yield path


def load_model(directory: Path, attention: str = "sdpa") -> Any:
    """The causal language model of a checkpoint in float32, safetensors only; `attention` is the
    implementation, by transformers' names."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    return AutoModelForCausalLM.from_pretrained(
        str(directory),
        dtype=torch.float32,
        attn_implementation=attention,
        use_safetensors=True,
        trust_remote_code=False,
    )


def _add_ends(directory: Path, ends: tuple[int, ...]) -> None:
    """Behind those of the file, which stay."""
    path = directory / "generation_config.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    given = values.get("eos_token_id")
    own = [] if given is None else given if isinstance(given, list) else [given]
    more = [end for end in ends if end not in own]
    if more:
        values["eos_token_id"] = [*own, *more]
        path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _ends_of_template(directory: Path, tokenizer: Any) -> tuple[int, ...]:
    """The token that ends a reply under the shipped template, where no end token of the model
    follows one: base models ship a chat template whose end-of-turn token they do not stop at.
    Raises FormatError where the template ends no reply."""
    ends = ends_of_model(directory, tokenizer)
    probe = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
    token = Encoder(tokenizer, "tokenizer", ends).end_token(probe)
    return (token,) if token not in ends else ()


def _write_template(directory: Path, template: str) -> None:
    (directory / "chat_template.jinja").write_text(template, encoding="utf-8")
    settings = directory / "tokenizer_config.json"
    if settings.exists():
        values = json.loads(settings.read_text(encoding="utf-8"))
        if values.pop("chat_template", None) is not None:
            settings.write_text(
                json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )


_ADAPTABLE = ("Linear", "Embedding", "Conv1D", "Conv1d", "Conv2d", "Conv3d")
"""Classes of modules that PEFT puts adapters on."""


def require_lora_targets(directory: Path, targets: Sequence[str]) -> None:
    """Raise CheckpointError unless each target is the name of modules of the model that PEFT can
    adapt. The model is made without weights."""
    if not targets:
        return
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(str(directory), trust_remote_code=False)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    modules = [name for name, each in model.named_modules() if type(each).__name__ in _ADAPTABLE]
    tied = model.get_input_embeddings().weight is getattr(
        model.get_output_embeddings(), "weight", None
    )
    faults = target_faults(targets, modules, tied, exact=True)
    if faults:
        raise CheckpointError("; ".join(map(str, faults)))


_PIECE = 4 << 20
_MOST_HEADER = 100 << 20


@dataclass(frozen=True, slots=True)
class _Tensor:
    path: Path
    start: int
    size: int
    kind: tuple[str, tuple[int, ...]]
    """Its type and shape."""


def is_unchanged(trained: Path, start: Path) -> bool | None:
    """Whether every tensor that both checkpoints hold is the same in both; None where that cannot
    be compared: other files than safetensors, other types or names."""
    try:
        ours, theirs = _tensors(trained), _tensors(start)
        names = sorted(ours.keys() & theirs.keys())
        if not names or any(ours[name].kind != theirs[name].kind for name in names):
            return None
        return all(_same(ours[name], theirs[name]) for name in names)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _tensors(folder: Path) -> dict[str, _Tensor]:
    return dict(entry for path in sorted(folder.glob("*.safetensors")) for entry in _header(path))


def _header(path: Path) -> Iterator[tuple[str, _Tensor]]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MOST_HEADER:
            raise ValueError(f"{path.name}: no safetensors")
        header = json.loads(file.read(length))
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            kind = (str(entry["dtype"]), tuple(entry["shape"]))
            yield name, _Tensor(path, 8 + length + start, end - start, kind)


def _same(one: _Tensor, other: _Tensor) -> bool:
    with one.path.open("rb") as first, other.path.open("rb") as second:
        first.seek(one.start)
        second.seek(other.start)
        left = one.size
        while left > 0:
            size = min(_PIECE, left)
            if first.read(size) != second.read(size):
                return False
            left -= size
    return True
