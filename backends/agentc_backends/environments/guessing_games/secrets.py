"""What there is to guess: secrets with all their names, guesses and claims in questions, and
splits.

Lists and facts are in `data/`; `objects.py` and `cities.py` make secrets and answers of them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources

_OPENINGS = re.compile(
    r"^(?:(?:so|ok|okay|then|well|my (?:final )?guess is|i (?:will |would )?guess|final answer"
    r"|(?:is )?the answer(?: is)?)(?: that)? )*"
)


@dataclass(frozen=True, slots=True)
class Secret:
    """`id` is the task; `names` all it may be called, in small letters as the list spells them,
    the usual one first; `group` is what splits are stratified by."""

    id: str
    names: tuple[str, ...]
    group: str


@dataclass(frozen=True, slots=True)
class Guessable:
    """All secrets of a game. `stem` matches what may stand before a name in a guess (`is it a`),
    and `tails` names what may stand after the name of a secret (its country)."""

    secrets: tuple[Secret, ...]
    stem: re.Pattern[str]
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _named: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for secret in self.secrets:
            for name in secret.names:
                for tail in ("", *self.tails.get(secret.id, ())):
                    self._named[plain(f"{name} {tail}")] = secret.id

    def names(self, secret: str) -> tuple[str, ...]:
        """All names of a secret by its id."""
        return next(one.names for one in self.secrets if one.id == secret)

    def named(self, text: str) -> str | None:
        """The id of the secret that a text is a name of."""
        return self._named.get(plain(text))

    def guess(self, question: str) -> str | None:
        """The id of the one secret that a question guesses and does nothing else."""
        text = _OPENINGS.sub("", question_body(question), count=1)
        return self._named.get(text) or self._named.get(self.stem.sub("", text, count=1))


def lines_of(file: str) -> Iterator[str]:
    """Lines of a data file, without comments and empty ones."""
    folder = resources.files(__package__) / "data"
    for line in (folder / file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


def cells(text: str, separator: str) -> list[str]:
    """Parts of a line, stripped."""
    return [part.strip() for part in text.split(separator)]


def words_of(text: str, words: Iterable[str]) -> str | None:
    """The first of `words` that stands in a plain text as a word of its own."""
    padded = f" {text} "
    return next((word for word in words if f" {word} " in padded), None)


# From a question to the claim that it is about, in one wording (`Could it be something that you can
# eat?` becomes `you can eat`), so that few patterns cover many questions.

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


def question_body(text: str) -> str:
    """The last question of a text, plain: models say first that they are going to ask."""
    parts = [part for part in re.split(r"[?\n]|[.!:](?=\s)", text) if re.search(r"\w", part)]
    return plain(parts[-1]) if parts else ""


def claim(question: str) -> str:
    """What a plain question asks about, without the words around it."""
    text = " ".join(_FILLERS.sub(" ", question).split())
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text, count=1)
    return " ".join(text.split())


# Splits by secret, stratified by category or continent. Upstream has none: it evaluates on what it
# trains on (`together` is that).

HELD_OUT = ("train", "validation", "test")


def split_secrets(secrets: Iterable[Secret], splits: str) -> Mapping[str, tuple[str, ...]]:
    """About 70/10/20 of each group, in the order of a hash of names; or all in one."""
    everything = tuple(secrets)
    if splits == "together":
        return {"all": tuple(secret.id for secret in everything)}
    parts: dict[str, list[str]] = {name: [] for name in HELD_OUT}
    for group in sorted({secret.group for secret in everything}):
        ids = sorted((s.id for s in everything if s.group == group), key=_rank)
        first, second = (len(ids) * 70 + 50) // 100, (len(ids) * 80 + 50) // 100
        parts["train"] += ids[:first]
        parts["validation"] += ids[first:second]
        parts["test"] += ids[second:]
    return {name: tuple(sorted(ids)) for name, ids in parts.items()}


def _rank(secret: str) -> bytes:
    return hashlib.sha256(f"split/1/{secret}".encode()).digest()
