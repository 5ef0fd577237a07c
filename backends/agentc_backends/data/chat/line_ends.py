"""The tokens that end a reply where its line end does (chat format `plain`).

A checkpoint's generation_config.json names them, so that every server and trainer stops there.
Neighbours: `formats.py`; `data/models`, which writes that file.
"""

from __future__ import annotations

from typing import Any

from agentc_backends.data.chat.formats import ChatFormat, FormatError


def ends_of_format(tokenizer: Any, chat: ChatFormat) -> tuple[int, ...]:
    """The tokens that end a reply under a format besides the tokenizer's own: none for most, else
    all that hold a line end. Raises FormatError for a tokenizer in which a token goes on behind
    one, for a reply would then hold the beginning of another line."""
    if not chat.by_line:
        return ()
    texts = tokenizer.batch_decode(
        [[token] for token in range(len(tokenizer))], clean_up_tokenization_spaces=False
    )
    ends = tuple(token for token, text in enumerate(texts) if "\n" in text)
    for token in ends:
        if texts[token].partition("\n")[2].strip():
            raise FormatError(
                f"under the chat format {chat.name} a line end ends a reply, and a token of this "
                f"tokenizer goes on behind one ({texts[token]!r}); use another chat_format"
            )
    return ends
