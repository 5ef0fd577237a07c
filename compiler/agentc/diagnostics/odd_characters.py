"""Characters that look like others or cannot be seen: what they are called and what was meant.

The table is small and ours: letters that keyboards and word processors put in by accident. All that
Unicode itself calls a form of an ASCII character follows from `unicodedata`.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

_GROUPS = {
    # Cyrillic, Greek, Armenian and Latin letters that print as these do.
    "a": "аαɑ", "b": "Ь", "c": "сϲ", "d": "ԁ", "e": "еҽ", "f": "ƒ", "g": "ɡց", "h": "һհ",
    "i": "іιı", "j": "јϳ", "k": "кκ", "l": "ӏǀ", "m": "м", "n": "ոп", "o": "оοօ", "p": "рρ",
    "q": "ԛ", "s": "ѕ", "t": "тτ", "u": "υսц", "v": "ѵν", "w": "ԝѡ", "x": "хχ", "y": "уγү",
    "A": "АΑ", "B": "ВΒ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "I": "ІΙӀ", "J": "Ј", "K": "КΚ",
    "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ", "S": "Ѕ", "T": "ТΤ", "X": "ХΧ", "Y": "УΥҮ",
    "Z": "Ζ",
    # What editors make of the signs of YAML.
    '"': "“”„‟″«»「」『』〝〞", "'": "‘’‚‛′‹›ʼ`´", "-": "‐‑‒–—―−•·∙●▪◦‣", ":": "：։∶ː﹕︰",
    ",": "，、،", "#": "＃♯", "{": "｛", "}": "｝", "[": "［【", "]": "］】", "*": "∗＊×⋅",
    ">=": "≥", "<=": "≤", "!=": "≠", "/": "÷∕⁄", "...": "…",
}  # fmt: skip
_MEANT = {odd: plain for plain, many in _GROUPS.items() for odd in many if not odd.isascii()}
_UNSEEN = frozenset("\u115f\u1160\u3164\uffa0\u180e\u2800")
# Those that Unicode calls forms of a digit but that nobody means as one: 10⁻⁶ is not 10-6.
_OTHER = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")


@dataclass(frozen=True, slots=True)
class Odd:
    """A character at `index` of a text; `meant` is ASCII, "" for one that cannot be seen, None
    for one that has no likeness."""

    index: int
    character: str
    meant: str | None

    @property
    def name(self) -> str:
        """ "U+0456 CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I"."""
        return f"U+{ord(self.character):04X} {unicodedata.name(self.character, '')}".rstrip()

    @property
    def manner(self) -> str:
        """What may mislead about it, as the end of a sentence that names it; "" for nothing."""
        if self.meant == " ":
            return ", not an ordinary space"
        if self.meant == "":
            return ", which cannot be seen"
        if self.meant is None or not self.meant.isascii():
            return ""
        return f", not `{self.meant}`"


def odd_characters(text: str) -> tuple[Odd, ...]:
    """The characters of a text outside of ASCII, in order."""
    if text.isascii():
        return ()
    return tuple(
        Odd(index, character, meant_by(character))
        for index, character in enumerate(text)
        if not character.isascii()
    )


def meant_by(character: str) -> str | None:
    """The ASCII text that a character passes for; "" for one that cannot be seen."""
    known = _MEANT.get(character)
    if known is not None:
        return known
    category = unicodedata.category(character)
    if category in ("Zs", "Zl", "Zp"):
        return " "
    if category == "Cf" or character in _UNSEEN or "\ufe00" <= character <= "\ufe0f":
        return ""
    if category == "Nd":
        return str(unicodedata.digit(character))
    if unicodedata.decomposition(character).startswith(_OTHER):
        return None
    form = unicodedata.normalize("NFKC", character)
    return form if form.isascii() else None


def plain(text: str) -> str:
    """The text with what was meant in the place of odd characters; others stay."""
    if text.isascii():
        return text
    return "".join(
        character if character.isascii() or (meant := meant_by(character)) is None else meant
        for character in text
    )


def without_accents(text: str) -> str:
    """`plain`, and letters without their accents."""
    apart = unicodedata.normalize("NFKD", plain(text))
    return "".join(each for each in apart if not unicodedata.combining(each))
