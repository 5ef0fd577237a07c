"""Tokens by pieces are those of the whole text, whatever the tokenizer does at a text's beginning,
with spaces, or with other tokens than the format's."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

pytest.importorskip("transformers")

from typing import Any

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from agentc_backends.data.chat.piece_tokens import PieceTokens

_TEXTS = ["Is it a tool?", " Yes. ", "No\n\n", "<a>", "a<", "ÄÖ  é", "", "  ", "say <|x", "|>"]
_TOKENS = ["<|x|>", "<|x|>y", "<s>", "</s>", "[A]"]


def _byte_level() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return made


def _prefixed() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return made


def _metaspace(scheme: str) -> Callable[[], Tokenizer]:
    def make() -> Tokenizer:
        made = Tokenizer(models.BPE(unk_token="<s>"))
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        return made

    return make


def _prepended() -> Tokenizer:
    """As Llama 2's: a space before whatever is normalised, and lower case besides."""
    made = Tokenizer(models.BPE(unk_token="<s>"))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁"), normalizers.Lowercase()]
    )
    return made


_KINDS = {
    "byte_level": _byte_level,
    "prefix_space": _prefixed,
    "metaspace_first": _metaspace("first"),
    "metaspace_always": _metaspace("always"),
    "metaspace_never": _metaspace("never"),
    "prepended": _prepended,
}


def tokenizer_of(made: Tokenizer, **how: bool) -> Any:
    trainer = trainers.BpeTrainer(vocab_size=180, special_tokens=["<s>"], show_progress=False)
    made.train_from_iterator([*_TEXTS, "what is a tool", "is it heavier"], trainer)
    made.add_special_tokens([AddedToken(token, normalized=False, **how) for token in _TOKENS])
    made.add_tokens([AddedToken("tool", normalized=True)])
    return PreTrainedTokenizerFast(tokenizer_object=made)


@pytest.mark.parametrize("how", [{}, {"rstrip": True}, {"lstrip": True}, {"single_word": True}])
@pytest.mark.parametrize("kind", _KINDS)
def test_pieces_are_the_whole(kind: str, how: dict[str, bool]) -> None:
    tokenizer = tokenizer_of(_KINDS[kind](), **how)
    pieces, chance = PieceTokens(tokenizer), random.Random(kind)
    talk = ""
    for _ in range(400):
        if len(talk) > 300:
            talk = ""
        talk += chance.choice([*_TEXTS, *_TOKENS])
        assert pieces.ids(talk) == tokenizer(talk, add_special_tokens=False)["input_ids"], talk


def test_what_is_known_is_not_cut_again_and_forgotten_when_it_is_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentc_backends.data.chat.piece_tokens._MOST", 3)
    tokenizer = tokenizer_of(_byte_level())
    pieces, asked = PieceTokens(tokenizer), []

    def whole(text: str) -> list[int]:
        asked.append(text)
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    monkeypatch.setattr(pieces, "_whole", whole)
    talk = "<s>one[A]two"
    first = pieces.ids(talk)
    assert asked == ["<s>one", "[A]two"]
    assert pieces.ids(talk + "[A]three")[: len(first)] == first
    assert asked == ["<s>one", "[A]two", "[A]three"]
    pieces.ids("<s>four")
    pieces.ids("<s>one")
    assert asked[3:] == ["<s>four", "<s>one"]
