"""From a question to the claim that it asks about, in one wording (`Could it be something that you
can eat?` becomes `you can eat`), so that few patterns cover many questions.

Used by `facts.py`; `judges.py` uses `plain` and `asked` alone.
"""

from __future__ import annotations

import re
import unicodedata

_FILLERS = re.compile(
    r"\b(a|an|the|typically|usually|commonly|generally|often|normally|primarily|mainly|mostly|"
    r"considered|classified as|categorized as|known as|actually|really|currently|please)\b"
)
_SUBJECT = (
    r"(?:it|they|this|that|(?:this |that |your )?(?:object|item|thing|word)|you thinking of it)"
)
_THING = r"(?:something|object|item|thing|one|kind of thing|type of thing|things)"
_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"^(?:is|are|was|were) {_SUBJECT} ", ""),
        (rf"^(?:would|could|might|can|may) {_SUBJECT} be (?!\w+(?:ed|en|n)\b)", ""),
        (rf"^(?:would|could|might|may) {_SUBJECT} be ", ""),
        (rf"^(?:does|do|did|will|would) {_SUBJECT} ", "does "),
        (rf"^(?:has|have) {_SUBJECT} (?:got )?", "does have "),
        (rf"^(?:can|could) {_SUBJECT} ", "can "),
        (r"^(?:can|could) (?:you|i|we|one|people|someone|person|humans) ", "you can "),
        (r"^(?:do|would|does) (?:you|i|we|one|people|someone|person|humans) ", "you "),
        (r"^(?:belongs to|part of|in|member of) (?:category of |category )", ""),
        (rf"^(?:{_THING} )?(?:that|which|that is|which is)? ?"
         r"(?:you|people|i|we|one|someone|person|humans) (?:can|could|would be able to) ",
         "you can "),
        (rf"^(?:{_THING} )?(?:that|which)? ?(?:you|people|i|we|one|someone|humans) "
         r"(?:would |might |may )?", "you "),
        (rf"^{_THING} (?:that|which) (?:is|are|can be considered) ", ""),
        (rf"^{_THING} (?:that|which) can ", "can "),
        (rf"^{_THING} (?:that|which) (?:has|have) ", "does have "),
        (rf"^{_THING} (?:that|which) (?:does )?(\w+?)s ", r"does \1 "),
        (rf"^{_THING} (?:with) ", "does have "),
        (rf"^{_THING} (?=(?:used|worn|found|made|related|located|kept|played|eaten)\b)", ""),
        (r"^(?:type|kind|sort|piece|form) of (?=(?!clothing|clothes|furniture|art|paper|jewel)\w)",
         ""),
        (r"^you (can )?(\w+(?: \w+){0,2}) (?:it|them|this)\b", r"you \1\2"),
        (r"^(.*) (?:object|item|product|thing)$", r"\1"),
    )
)  # fmt: skip


def plain(text: str) -> str:
    """Small letters without accents, digits kept, everything else one space."""
    parts = unicodedata.normalize("NFKD", text.replace("ı", "i"))
    letters = "".join(c for c in parts if not unicodedata.combining(c)).lower()
    letters = letters.replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    return " ".join(re.sub(r"[^a-z0-9]+", " ", letters).split())


def asked(text: str) -> str:
    """The last question of a text, plain: models say first that they are going to ask."""
    parts = [part for part in re.split(r"[?\n]|[.!:](?=\s)", text) if re.search(r"\w", part)]
    return plain(parts[-1]) if parts else ""


def claim(question: str) -> str:
    """What a plain question asks about, without the words around it."""
    text = " ".join(_FILLERS.sub(" ", question).split())
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text, count=1)
    return " ".join(text.split())
