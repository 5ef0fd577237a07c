"""What fuzzing found stays mended, and short random searches find nothing new.

The targets are those of the atheris harness (`fuzz/`); Hypothesis drives them here by mutating
shipped specs and by writing specs from the tables of the language.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from fuzz.targets import Targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentc.backend_api import load_backends
from agentc.kinds import KINDS
from agentc.kinds.field import Field
from agentc.schema import language

ROOT = Path(__file__).resolve().parents[2]
CRASHERS = sorted((ROOT / "fuzz" / "crashers").glob("*/*"))
SHIPPED = sorted((ROOT / "specs").rglob("*.yaml"))
TABLE = load_backends()
TARGETS = Targets(TABLE)
PATIENCE_S = 30
SEARCH = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("file", CRASHERS, ids=[f"{f.parent.name}-{f.stem}" for f in CRASHERS])
def test_found_by_fuzzing(file: Path) -> None:
    with at_most(PATIENCE_S):
        TARGETS.named()[file.parent.name](file.read_bytes())


WORDS = st.sampled_from(
    [
        *language.TOP_LEVEL, *language.STAGE_KEYS, *(kind.name for kind in KINDS), *TABLE.backends,
        "a", "b", "p", "r.a", "r.1.a", "r.*.a", "a.b", "round", "null", "true", "no", "1", "-1",
        "1e999", "0x10", "2e-5", "1_000", "{{ p }}", "{{ round }}", "{{ p + 1 }}",
        "{{ secret('A') }}", "{{ range(3) }}", "{{ [p] }}", "é", "~", "",
    ]
)  # fmt: skip
SCALARS = st.one_of(
    WORDS,
    st.none(),
    st.booleans(),
    st.integers(-3, 10**20),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=8),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["a", "b", "c", "p", "report", "claims"])


def value_of(field: Field) -> st.SearchStrategy[Any]:
    """Mostly what the field takes, sometimes anything."""
    kinds: Any = field.schema.get("type", "string")
    types = kinds if isinstance(kinds, list) else [kinds]
    fitting: list[st.SearchStrategy[Any]] = [st.sampled_from(["{{ p }}", "{{ round * 2 }}"])]
    if field.fields:
        fitting.append(st.fixed_dictionaries({}, optional=values_of(field.fields)))
    elif "enum" in field.schema:
        fitting.append(st.sampled_from(field.schema["enum"]))  # type: ignore[arg-type]
    elif "integer" in types or "number" in types:
        fitting += [st.integers(-1, 2048), st.floats(0, 1)]
    elif "boolean" in types:
        fitting.append(st.booleans())
    elif "array" in types:
        fitting.append(st.lists(SCALARS, max_size=3))
    else:
        fitting.append(WORDS)
    fitting.append(st.fixed_dictionaries({"per_round": st.lists(SCALARS, max_size=3)}))
    return st.one_of(*fitting) | ANYTHING


def values_of(fields: tuple[Field, ...]) -> dict[str, st.SearchStrategy[Any]]:
    return {field.name: st.deferred(lambda field=field: value_of(field)) for field in fields}


def a_stage() -> st.SearchStrategy[Any]:
    def of_kind(kind: Any) -> st.SearchStrategy[Any]:
        roles = {role.name: NAMES | st.lists(NAMES, max_size=3) for role in kind.roles}
        return st.fixed_dictionaries(
            {"kind": st.just(kind.name), **roles},
            optional={
                **values_of(kind.fields),
                "backend": WORDS,
                "options": st.dictionaries(WORDS, SCALARS, max_size=2),
                "placement": st.fixed_dictionaries(
                    {}, optional=values_of(language.PLACEMENT_FIELDS)
                ),
            },
        )

    return st.sampled_from(KINDS).flatmap(of_kind)


def a_resource(backends: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    def of_backend(backend: Any) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries(
            {"backend": st.just(backend.id)}, optional=values_of(backend.fields)
        )

    return st.sampled_from(backends).flatmap(of_backend)


REPEAT = st.fixed_dictionaries(
    {
        "repeat": st.fixed_dictionaries(
            {"n": st.integers(0, 4) | SCALARS, "stages": st.dictionaries(NAMES, a_stage())},
            optional={
                "until": st.dictionaries(
                    st.sampled_from([field.name for field in language.UNTIL_FIELDS]),
                    NAMES | SCALARS,
                    max_size=4,
                ),
                "carry": st.dictionaries(
                    NAMES, st.fixed_dictionaries({"from": NAMES, "next": NAMES}), max_size=2
                ),
            },
        )
    }
)
SECTIONS: dict[str, st.SearchStrategy[Any]] = {
    "agentc": st.just(1),
    "name": st.just("demo"),
    "params": st.dictionaries(
        NAMES,
        st.fixed_dictionaries(
            {"type": st.sampled_from(language.PARAM_TYPES)}, optional={"default": ANYTHING}
        ),
        max_size=2,
    ),
    "environments": st.dictionaries(NAMES, a_resource(tuple(TABLE.environments())), max_size=2),
    "servers": st.dictionaries(NAMES, a_resource(tuple(TABLE.servers())), max_size=2),
    "models": st.dictionaries(NAMES, st.dictionaries(WORDS, SCALARS, max_size=3), max_size=2),
    "stages": st.dictionaries(NAMES, a_stage() | REPEAT | ANYTHING, max_size=4),
}
SPECS = st.fixed_dictionaries(
    SECTIONS,
    optional={key: ANYTHING for key in language.TOP_LEVEL if key not in SECTIONS},
)


@pytest.mark.slow
@SEARCH
@given(spec=SPECS)
def test_specs_written_from_the_tables(spec: Any) -> None:
    with at_most(PATIENCE_S):
        TARGETS.front_end(yaml.safe_dump(spec, allow_unicode=True, sort_keys=False).encode())


def mutated(text: str, generator: random.Random) -> str:
    """The text with a few lines removed, doubled, moved, indented, or with a part replaced."""
    lines = text.split("\n")
    for _ in range(generator.randint(1, 4)):
        place = generator.randrange(len(lines))
        line = lines[place]
        match generator.randrange(6):
            case 0:
                del lines[place]
            case 1:
                lines.insert(place, line)
            case 2:
                lines.insert(generator.randrange(len(lines)), lines.pop(place))
            case 3:
                lines[place] = "  " + line if generator.random() < 0.5 else line[2:]
            case 4:
                cut = generator.randrange(len(line) + 1)
                junk = ["'", '"', *"{}[]:\té", "&a", "*a", "- ", "{{ ", " }}"]
                lines[place] = line[:cut] + generator.choice(junk) + line[cut:]
            case 5:
                key, colon, _ = line.partition(": ")
                junk = ["-1", "null", "[]", "{}", "0", "1e9", "x", '"{{ round }}"']
                junk += ["{per_round: [1]}"]
                lines[place] = key + colon + generator.choice(junk)
        if not lines:
            lines = [""]
    return "\n".join(lines)


@pytest.mark.slow
@SEARCH
@given(file=st.sampled_from(SHIPPED), seed=st.integers(0, 2**32))
def test_mutated_shipped_specs(file: Path, seed: int) -> None:
    text = mutated(file.read_text(encoding="utf-8"), random.Random(seed))
    with at_most(PATIENCE_S):
        TARGETS.front_end(text.encode())


@SEARCH
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8")))
def test_any_bytes(data: bytes) -> None:
    TARGETS.front_end(data)
    TARGETS.expressions(b"{{ " + data + b" }}")


_PIECES = r"""
seed share name flag nothing sizes texts round 1 0 -1 2.5 'a' "b" [ ] ( ) , + - * / // % **
~ | . : if else in is not and or == < >= range len max min str int float abs secret sum join
sort first last unique replace length even __class__ mro 1e308 '\\x00' none true
"""
PIECES = st.sampled_from(_PIECES.split())


@SEARCH
@given(pieces=st.lists(PIECES, max_size=14), around=st.booleans())
def test_expressions_of_random_pieces(pieces: list[str], around: bool) -> None:
    text = "{{ " + " ".join(pieces) + " }}"
    TARGETS.expressions((f"a {text} b" if around else text).encode())
