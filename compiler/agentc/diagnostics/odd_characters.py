"""Characters that look like others or cannot be seen: what they are called and what was meant.

The table is small and ours: letters that keyboards and word processors put in by accident. All that
Unicode itself calls a form of an ASCII character follows from `unicodedata`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from agentc.diagnostics.diagnostic import Diagnostic, SourceLines, Span

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
        Odd(index, character, intended_character(character))
        for index, character in enumerate(text)
        if not character.isascii()
    )


def intended_character(character: str) -> str | None:
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
        character
        if character.isascii() or (meant := intended_character(character)) is None
        else meant
        for character in text
    )


def without_accents(text: str) -> str:
    """`plain`, and letters without their accents."""
    apart = unicodedata.normalize("NFKD", plain(text))
    return "".join(each for each in apart if not unicodedata.combining(each))


# Names the characters of a diagnostic's text that look like others or cannot be seen.
#
# `Sink.sorted` asks for it once for all diagnostics, whatever rule found them: a rule that refuses
# `kіnd` need not know that its second letter is Cyrillic.

_QUOTED = re.compile(r"`([^`]+)`|(?<=unexpected char )'(.)'")
_LONGEST = 300
_QUOTES = "\"'"
_NAMES_IT = "AGC125"


class CharacterNames:
    """Adds to diagnostics what their characters are; keeps the lines of each source."""

    def __init__(self) -> None:
        self._lines = SourceLines()

    def explained(self, found: Diagnostic) -> Diagnostic:
        """The diagnostic, with the first odd character of the text that it is about."""
        span = found.span
        if found.code == _NAMES_IT or found.severity != "error":
            return found
        if span is None or span.source.text.isascii():
            return found if found.message.isascii() else self._named(found, "")
        return self._named(found, self._text(span))

    def _text(self, span: Span) -> str:
        if span.end_line - span.line > 3:
            return ""
        lines = self._lines.of(span.source)[span.line - 1 : span.end_line]
        if not lines or sum(map(len, lines)) > 20 * _LONGEST:
            return ""
        if span.end_line == span.line:
            return lines[0][span.column - 1 : span.end_column - 1]
        last = lines[-1][: span.end_column - 1]
        return "\n".join((lines[0][span.column - 1 :], *lines[1:-1], last))

    def _named(self, found: Diagnostic, text: str) -> Diagnostic:
        quoted = next((t for t in _quoted(found.message) if odd_characters(t)), None)
        if quoted is None:
            # Messages put texts on one line, and white space of any kind becomes a space by that.
            inner = text.strip(_QUOTES)
            if not inner or f"`{' '.join(inner.split())}`" not in found.message:
                return found
            quoted = inner
        odd = next((o for o in odd_characters(quoted) if o.meant is not None), None)
        odd = odd or next(iter(odd_characters(quoted)), None)
        if odd is None or len(quoted) > _LONGEST:
            return found
        where = f"character {odd.index + 1} of `{quoted}`" if len(quoted) > 1 else "the character"
        note = f"{where} is {odd.name}{odd.manner}"
        return replace(found, notes=(note, *found.notes), fix=_fix(found, quoted, odd))


def _quoted(message: str) -> tuple[str, ...]:
    return tuple(first or second for first, second in _QUOTED.findall(message))


def _fix(found: Diagnostic, quoted: str, odd: Odd) -> str | None:
    """What to write, unless the rule has something better to say."""
    better = plain(quoted)
    if found.fix is not None and not found.fix.startswith("did you mean"):
        return found.fix
    if not better.isascii() or better == quoted or not better.strip():
        return found.fix
    if odd.meant in ('"', "'"):
        return f"use straight quotes, or none: `{better.strip(_QUOTES)}`"
    return f"write `{better.strip()}`"
