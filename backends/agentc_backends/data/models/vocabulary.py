"""Trains a byte-level BPE tokenizer on the rendered conversations of a corpus.

The result depends on the set of conversations only, not on their order or on the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agentc.program.artifact_files import ROWS_FILE, TRAJECTORIES_FILE
from agentc.program.job import read_rows
from agentc_backends.data.chat.formats import ChatFormat, Message
from agentc_backends.data.chat.tool_calls import in_plain_text

PAD = "<|pad|>"


def corpus_messages(directories: Sequence[Path]) -> list[Sequence[Message]]:
    """The conversations of Trajectories or SFTDataset directories, in order; replies as they were
    generated, thoughts that later turns do not see (`raw`) included."""
    found: list[Sequence[Message]] = []
    for directory in directories:
        for name in (TRAJECTORIES_FILE, ROWS_FILE):
            path = directory / name
            if path.exists():
                found += [_whole(row["messages"]) for row in read_rows(path)]
    return found


def _whole(messages: Sequence[Message]) -> Sequence[Message]:
    return [{**m, "content": m["raw"]} if "raw" in m else m for m in messages]


def corpus_texts(chat: ChatFormat, conversations: Iterable[Sequence[Message]]) -> list[str]:
    """The stretches of rendered text between control tokens, sorted: what the tokenizer will be
    asked to split; of a format that makes tokens of each text by itself, these."""
    cut = re.compile("|".join(re.escape(token) for token in chat.tokens))
    pieces: list[str] = []
    for messages in conversations:
        texts = [segment.text for segment in chat.segments(in_plain_text(messages))]
        for text in texts if chat.by_line else ["".join(texts)]:
            pieces += [piece for piece in cut.split(text) if piece]
    return sorted(pieces)


def byte_level(texts: Sequence[str], vocab_size: int, special: Sequence[str]) -> Any:
    """A byte-level BPE tokenizer (tokenizers) of at most `vocab_size` tokens: the special ones,
    then all bytes, then what the texts make worth a token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[*special],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def train_tokenizer(chat: ChatFormat, texts: Sequence[str], vocab_size: int, context: int) -> Any:
    """A fast tokenizer (transformers) with the format's control tokens, template and at most
    `vocab_size` tokens, all bytes among them."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = byte_level(texts, vocab_size, [*chat.tokens, PAD])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=chat.bos,
        eos_token=chat.eos,
        pad_token=PAD,
        additional_special_tokens=[t for t in chat.tokens if t not in (chat.bos, chat.eos)],
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = chat.template
    return fast


ROBERTA_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""RoBERTa's, with its numbers 0 to 4; 1 is the padding that its positions are counted by."""


def train_encoder_tokenizer(texts: Sequence[str], vocab_size: int, context: int) -> Any:
    """A fast tokenizer (transformers) of at most `vocab_size` tokens, all bytes among them, that
    puts a text between <s> and </s>."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = byte_level(texts, vocab_size, ROBERTA_TOKENS)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
