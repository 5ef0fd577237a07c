"""The fast tokenizer of a GGUF file: byte-level BPE with the split, normaliser and special tokens
that llama.cpp knows by the name of the pre-tokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5
"""Of `tokenizer.ggml.token_type`."""
_FILLER = re.compile(r"\[PAD\d+\]")
"""What converters call embeddings without a token."""
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_TEMPLATE = "tokenizer.chat_template"


def other_templates(settings: Mapping[str, Any]) -> list[str]:
    """The names of chat templates besides the default one, such as `tool_use`."""
    return sorted(
        name[len(_TEMPLATE) + 1 :] for name in settings if name.startswith(_TEMPLATE + ".")
    )


def build_tokenizer(settings: Mapping[str, Any], context: int) -> Any:
    """A fast tokenizer of transformers, with the file's chat template if it has one."""
    from transformers import PreTrainedTokenizerFast

    tokens, types = settings["tokenizer.ggml.tokens"], settings["tokenizer.ggml.token_type"]
    special = {
        name: tokens[number]
        for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if (number := settings.get(f"tokenizer.ggml.{key}_token_id")) is not None
    }
    control = [token for token, kind in zip(tokens, types, strict=True) if kind == _CONTROL]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=_byte_level(settings),
        model_max_length=context,
        clean_up_tokenization_spaces=False,
        additional_special_tokens=[t for t in control if t not in special.values()],
        **{f"{name}_token": token for name, token in special.items()},
    )
    fast.chat_template = settings.get(_TEMPLATE)
    return fast


def _byte_level(settings: Mapping[str, Any]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

    pre = settings["tokenizer.ggml.pre"]
    tokens, types = settings["tokenizer.ggml.tokens"], settings["tokenizer.ggml.token_type"]
    used = {
        token: number
        for number, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if kind != _UNUSED or not _FILLER.fullmatch(token)
    }
    merges = [tuple(merge.split(" ")) for merge in settings["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=used, merges=merges, ignore_merges=pre == "llama-bpe"))
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _split(pre)
    tokenizer.decoder = decoders.ByteLevel()
    for token, kind in zip(tokens, types, strict=True):
        if kind == _CONTROL:
            tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True)])
        elif kind == _USER_DEFINED:
            tokenizer.add_tokens([AddedToken(token, normalized=False, special=False)])
    # llama.cpp puts the first token before Llama 3's text where the file does not say otherwise.
    if settings.get("tokenizer.ggml.add_bos_token", pre == "llama-bpe"):
        number = settings.get("tokenizer.ggml.bos_token_id")
        if number is not None:
            first = tokens[number]
            tokenizer.post_processor = processors.TemplateProcessing(
                single=f"{first} $A",
                pair=f"{first} $A {first} $B",
                special_tokens=[(first, number)],
            )
    return tokenizer


def _split(pre: str) -> Any:
    """How text is split before BPE, by the name in the file."""
    from tokenizers import Regex, pre_tokenizers

    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if pre == "gpt-2":
        return gpt2
    if pre == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2])
    expression = {"llama-bpe": _LLAMA3, "qwen2": _QWEN2}[pre]
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(expression), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
