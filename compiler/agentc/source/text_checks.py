"""What no spec may hold: characters that YAML forbids or that deceive the eye, and credentials."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# In ASCII what YAML forbids and what no value may hold are the same.
_ASCII = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
# They change the order in which an editor or a terminal shows what follows them.
_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
# In a value these, or the control characters, can only come from an escape in double quotes.
_IN_NO_VALUE = f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]|{_REORDERING.pattern}"


def _pattern(of_all: str, text: str) -> re.Pattern[str]:
    # The large classes take milliseconds to compile, and most specs are ASCII.
    return _ASCII if text.isascii() else re.compile(of_all)


def find_unreadable(text: str) -> re.Match[str] | None:
    """The first character that may not stand in a YAML file."""
    return _pattern(_FORBIDDEN, text).search(text)


def find_reordering(text: str) -> re.Match[str] | None:
    """The first character that changes the order in which text is shown."""
    return _REORDERING.search(text)


def forbidden_in_values(text: str) -> tuple[str, str] | None:
    """The code, and in words the character, of the first one that no value may hold: a control
    character, half a surrogate pair, or an override of the writing direction."""
    found = _pattern(_IN_NO_VALUE, text).search(text)
    if found is None:
        return None
    number = f"U+{ord(found[0]):04X}"
    if _REORDERING.match(found[0]):
        return "AGC121", f"character {number}, which changes the order in which text is shown"
    return "AGC122", f"control character {number}"


def strip_forbidden(text: str) -> str:
    """The text with a replacement character for each of those."""
    return _pattern(_IN_NO_VALUE, text).sub("\N{REPLACEMENT CHARACTER}", text)


# Finds what looks like a password, token or private key in a text, and blanks it out.
#
# It is done to the raw text, before YAML reads it: a key in a comment is published with the spec
# just the same, and what was blanked out here can be shown by no later message.

_BLANK = "x"
_LONGEST_BLOCK = 16_384


@dataclass(frozen=True, slots=True)
class Credential:
    """Where one stands, as offsets into the text, and what it seems to be ("a GitHub token")."""

    what: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Shape:
    """`hints`: texts one of which stands in whatever matches, so that most patterns are never
    tried, and not even compiled."""

    what: str
    hints: tuple[str, ...]
    pattern: str
    plausible: Callable[[str], bool]


def find_credentials(text: str) -> tuple[Credential, ...]:
    """What looks like a credential, by place, without overlaps. Linear in the text."""
    found: list[Credential] = []
    for credential in sorted(_all(text), key=lambda each: (each.start, -each.end)):
        if not found or credential.start >= found[-1].end:
            found.append(credential)
    return tuple(found)


def blanked(text: str, credentials: tuple[Credential, ...]) -> str:
    """The text with every character of them but white space replaced, so that places stay."""
    parts: list[str] = []
    done = 0
    for each in credentials:
        parts.append(text[done : each.start])
        parts.append(re.sub(r"\S", _BLANK, text[each.start : each.end]))
        done = each.end
    return "".join([*parts, text[done:]])


def _all(text: str) -> Iterator[Credential]:
    for shape in _SHAPES:
        if not any(hint in text for hint in shape.hints):
            continue
        for match in re.finditer(shape.pattern, text):
            if shape.plausible(match["value"]):
                yield Credential(shape.what, match.start("value"), match.end("value"))
    for match in _PRIVATE_KEY.finditer(text):
        # Without an end the rest may be anything: blank what a key can take.
        end = text.find("-----END", match.end(), match.end() + _LONGEST_BLOCK)
        last = text.find("-----", end + 8) + 5 if end >= 0 else match.end()
        yield Credential("a private key", match.start(), max(last, match.end()))


def _varied(value: str) -> bool:
    """Not a placeholder such as `hf_xxxxxxxx`."""
    return len(set(value)) > 8


def _has_random_run(value: str) -> bool:
    """Letters and digits in a run that no word makes: `sk-learn-pipeline-for-agents` has none."""
    runs = re.findall(r"[A-Za-z0-9]{16,}", value)
    return any(sum(char.isdigit() for char in run) >= 2 and _varied(run) for run in runs)


def _is_random(value: str) -> bool:
    """A value of no known form, under a name such as `token`: hex, or mixed without pattern."""
    if not _varied(value):
        return False
    if re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", value):
        return True
    classes = (str.isupper, str.islower, str.isdigit)
    return len(value) >= 20 and all(any(map(known, value)) for known in classes)


def _shape(what: str, start: str, body: str, plausible: Callable[[str], bool] = _varied) -> _Shape:
    # The character before may not belong to a longer word. That also keeps the search linear:
    # one run of such characters is tried once.
    whole = rf"(?<![A-Za-z0-9_-])(?P<value>(?:{start}){body})(?![A-Za-z0-9_-])"
    return _Shape(what, tuple(start.split("|")), whole, plausible)


_SHAPES: tuple[_Shape, ...] = (
    _shape("a Hugging Face token", "hf_|api_org_", r"[A-Za-z0-9]{30,80}"),
    _shape("an API key", "sk-", r"[A-Za-z0-9_-]{20,300}", _has_random_run),
    _shape("a GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_", r"[A-Za-z0-9]{36,255}"),
    _shape("a GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,255}"),
    _shape("a GitLab token", "glpat-", r"[A-Za-z0-9_-]{20,100}"),
    _shape("an AWS access key", "AKIA|ASIA", r"[A-Z0-9]{16}"),
    _shape("a Google API key", "AIza", r"[A-Za-z0-9_-]{35}"),
    _shape("a Slack token", "xoxa-|xoxb-|xoxe-|xoxp-|xoxr-|xoxs-", r"[A-Za-z0-9-]{10,250}"),
    _shape("an npm token", "npm_", r"[A-Za-z0-9]{36}"),
    _shape("a PyPI token", "pypi-", r"[A-Za-z0-9_-]{50,300}"),
    _shape("a Weights & Biases key", "wandb_v1_", r"[A-Za-z0-9_]{40,120}", _has_random_run),
    _shape(
        "a JSON Web Token",
        "eyJ",
        r"[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}",
    ),
    _Shape(
        "a password in an address",
        ("://",),
        r"://[^\s/:@{}\"']{1,100}:(?P<value>[^\s/:@{}\"']{3,200})@",
        lambda value: True,
    ),
    _Shape(
        "a credential",
        ("",),
        r"(?i:key|token|secret|password|passwd|passphrase|credential)[\"']?[ \t]*[:=][ \t]*"
        r"[\"']?(?P<value>[A-Za-z0-9+]{20,200})(?![A-Za-z0-9+/_.-])",
        _is_random,
    ),
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
