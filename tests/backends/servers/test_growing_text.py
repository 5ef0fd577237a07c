"""The text of a reply while its tokens come: nothing is unsaid, nothing is left out."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentc_backends.openai_api.streaming import GrowingText
from agentc_backends.openai_api.text_model import Choice


def text_of(tokens: Sequence[int]) -> str:
    """Tokens are bytes, so that one may hold a part of a character, or of none."""
    return bytes(tokens).decode("utf-8", "replace")


def ended(tokens: list[int], stops: list[str]) -> Choice:
    """What a server makes of tokens that are drawn until a stop text has come."""
    for size in range(1, len(tokens) + 1):
        text = text_of(tokens[:size])
        cuts = [at for stop in stops if (at := text.find(stop)) >= 0]
        if cuts:
            return Choice(text=text[: min(cuts)], tokens=tuple(tokens[:size]), finish_reason="stop")
    return Choice(text=text_of(tokens), tokens=tuple(tokens), finish_reason="length")


BYTES = st.text("ab\n\u00e9\u20ac\U0001f600\ufffd", max_size=12).map(lambda text: text.encode())
BROKEN = st.binary(max_size=6)


@given(
    st.lists(BYTES | BROKEN, max_size=5),
    st.lists(st.text("ab\n\u00e9", min_size=1, max_size=3), max_size=3),
    st.integers(1, 4),
)
def test_what_was_told_and_the_rest_are_the_reply(
    parts: list[bytes], stops: list[str], width: int
) -> None:
    choice = ended(list(b"".join(parts)), stops)
    growing = GrowingText(text_of, stops)
    told = ""
    for start in range(0, len(choice.tokens), width):
        told += growing.add(choice.tokens[start : start + width])
        assert choice.text.startswith(told)
    assert told + growing.rest(choice) == choice.text


def test_text_is_told_as_soon_as_it_is_certain() -> None:
    growing = GrowingText(text_of, ["stop"])
    assert [growing.add([byte]) for byte in "a€s".encode()] == ["a", "", "", "€", ""]
    assert growing.add(b"t") == ""
    assert growing.add(b"ay") == "stay"
    assert growing.add(b"stop and more") == ""
