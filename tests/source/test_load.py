"""Loading: places are those of the file, limits hold, and nothing makes it raise."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentc.diagnostics import Sink, render_json, render_text
from agentc.diagnostics.diagnostic import Source, Span, split_lines
from agentc.schema.coerce import as_json
from agentc.source.files import ReadLimits
from agentc.source.load import load_bytes, load_file, load_text
from agentc.source.tree import Mapping, Node, Scalar, Sequence


def load(text: str, limits: ReadLimits | None = None) -> tuple[Node | None, Sink]:
    sink = Sink()
    return load_text(Source("x.yaml", text), sink, limits or ReadLimits()), sink


def codes(sink: Sink) -> list[str]:
    return [found.code for found in sink.sorted()]


def scalars(node: Node) -> list[Scalar]:
    match node:
        case Scalar():
            return [node]
        case Sequence(items=items):
            return [each for item in items for each in scalars(item)]
        case Mapping(entries=entries):
            return [each for e in entries for each in (e.key, *scalars(e.value))]
    return []


def excerpt(span: Span) -> str:
    lines = split_lines(span.source.text)
    if span.line == span.end_line:
        return lines[span.line - 1][span.column - 1 : span.end_column - 1]
    first = lines[span.line - 1][span.column - 1 :]
    middle = lines[span.line : span.end_line - 1]
    last = lines[span.end_line - 1][: span.end_column - 1] if span.end_line <= len(lines) else ""
    return "\n".join([first, *middle, last])


def test_scalars_keep_text_style_and_place() -> None:
    node, sink = load("lr: 2e-5\nname: 'no'\ntext: |\n  a\n  b\nlist: [1_000, on]\n")
    assert not codes(sink)
    assert isinstance(node, Mapping)
    entry = node.find("lr")
    assert entry is not None
    assert isinstance(entry.value, Scalar)
    assert (entry.value.text, entry.value.quoted) == ("2e-5", False)
    span = entry.value.span
    assert (span.line, span.column, span.end_line, span.end_column) == (1, 5, 1, 9)
    found = {each.text: each.quoted for each in scalars(node)}
    assert found["no"]
    assert found["a\nb\n"]
    assert not found["1_000"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(value=values, flow=st.booleans(), indent=st.integers(2, 6))
@settings(max_examples=150, deadline=None)
def test_places_round_trip(value: object, flow: bool, indent: int) -> None:
    """The text at a scalar's place, read on its own, is that scalar."""
    text = yaml.safe_dump(value, default_flow_style=flow, indent=indent, allow_unicode=True)
    node, sink = load(text)
    if node is None:
        # Such as a byte order mark in the text, or the escape of a control character.
        assert codes(sink)[0] in ("AGC102", "AGC121", "AGC122") or "? " in text
        return
    for scalar in scalars(node):
        written = excerpt(scalar.span)
        again = yaml.compose(written or "''", Loader=yaml.SafeLoader)
        if scalar.span.line == scalar.span.end_line and not written.startswith(("|", ">")):
            assert again is not None
            assert again.value == scalar.text


@given(value=values)
@settings(max_examples=100, deadline=None)
def test_quoted_values_round_trip(value: object) -> None:
    text = yaml.safe_dump(value, default_style='"', allow_unicode=True)
    node, sink = load(text)
    if {"AGC102", "AGC121", "AGC122"} & set(codes(sink)):
        return
    expected = yaml.load(text, Loader=yaml.BaseLoader)
    if node is None:  # tags (!!int "1") are refused
        assert "AGC107" in codes(sink)
        return
    assert as_json(node) == expected


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_bytes_never_raise(data: bytes) -> None:
    sink = Sink()
    _, node = load_bytes(data, "x.yaml", sink)
    assert node is not None or sink.has_errors
    render_text(sink.sorted())
    render_json(sink.sorted())


PIECES = [*"ab:-?[]{}&*!|>'\"%@`#,<~ \n\t\\.0", "{{", "}}", ": ", "- ", "\n  ", "é", "\x85"]
yaml_like = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@given(yaml_like)
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_yaml_like_text_never_raises(text: str) -> None:
    node, sink = load(text)
    assert node is not None or sink.has_errors
    lines = split_lines(text)
    for found in sink.sorted():
        if found.span is not None:
            assert 1 <= found.span.line <= len(lines) + 1
            assert found.span.column >= 1
    render_text(sink.sorted())


def test_mutated_specs_never_raise(repository: Path) -> None:
    text = (repository / "specs" / "quickstart.yaml").read_text()
    generator = random.Random(7)
    for _ in range(150):
        start = generator.randrange(len(text))
        width = generator.randrange(1, 20)
        middle = generator.choice(["", "\t", "{", "]", "'", '"', ": ", "\n", "&a", "*a", "!!x "])
        node, sink = load(text[:start] + middle + text[start + width :])
        assert node is not None or sink.has_errors


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for level in range(1, levels):
        inner = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{inner}]")
    return "\n".join(lines)


def test_an_alias_bomb_is_refused_quickly() -> None:
    start = time.process_time()
    _, sink = load(bomb(30))
    assert codes(sink) == ["AGC105"]
    assert time.process_time() - start < 5  # expanded, it would be 10 ** 30 nodes


def test_a_modest_use_of_aliases_is_allowed() -> None:
    node, sink = load("a: &x [1, 2]\nb: *x\nc: {d: *x}")
    assert not codes(sink)
    assert node is not None
    assert as_json(node) == {"a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}}


@pytest.mark.parametrize("opener", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused(opener: str) -> None:
    _, sink = load(opener * 5000)
    assert sink.has_errors


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "{b: {{c}: d}: e}, " * 2000,
        "[" + "{{a}: b}, " * 20_000 + "]",
        "a: 'x\n" * 5_000,
        "- " * 30_000,
        "a:\n" * 30_000,
        "&a " * 10_000,
        '"' + "\\x41" * 50_000,
        "%" * 100_000,
        "a: " + "x" * 400_000,
        "? " + "a" * 5000 + "\n" * 1000,
    ],
)
def test_hostile_texts_end_soon(text: str) -> None:
    start = time.process_time()
    _, sink = load(text)
    render_text(sink.sorted())
    assert time.process_time() - start < 20


def test_limits() -> None:
    _, sink = load("a: " + "x" * 100, ReadLimits(scalar_characters=50))
    assert codes(sink) == ["AGC105"]
    _, sink = load("a: &x 1\nb: [*x, *x, *x]", ReadLimits(aliases=2))
    assert codes(sink) == ["AGC105"]
    _, sink = load("[1, 2, 3, 4]", ReadLimits(nodes=3))
    assert codes(sink) == ["AGC105"]
    sink = Sink()
    load_bytes(b"a: 1\n" * 100, "x", sink, ReadLimits(file_bytes=20))
    assert codes(sink) == ["AGC105"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("a: é".encode("latin-1"), "AGC102"),
        ("a: 1".encode("utf-16"), "AGC102"),
        (b"a: \x00", "AGC102"),
        (b"a: \xed\xa0\x80", "AGC102"),
        (b"\xef\xbb\xbfa: 1", None),
        (b"", "AGC112"),
        (b"a: 1\r\nb: 2\r\n", None),
        (b"%YAML 1.1\n---\na: 1\n...\n", None),
        (b"a: 1\n...\n---\nb: 1\n", "AGC108"),
    ],
)
def test_encodings_and_documents(data: bytes, code: str | None) -> None:
    sink = Sink()
    load_bytes(data, "x.yaml", sink)
    assert codes(sink) == ([] if code is None else [code])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path, tmp_path / "a\0b"):
        sink = Sink()
        _, node = load_file(path, sink)
        assert node is None
        assert codes(sink) == ["AGC101"]


def test_the_fast_and_the_slow_parser_agree(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libyaml is used where it is there; without it the tree must be the same."""
    text = (repository / "specs" / "quickstart.yaml").read_text()
    fast, _ = load(text)
    monkeypatch.setattr("agentc.source.load._FAST_PARSER", None)
    slow, _ = load(text)
    assert fast is not None
    assert slow is not None
    pairs = list(zip(scalars(fast), scalars(slow), strict=True))
    assert len(pairs) > 100
    for one, other in pairs:
        assert (one.text, one.quoted) == (other.text, other.quoted)
        if one.text:  # an empty value's place is a point between two tokens
            start = (one.span.line, one.span.column)
            assert start == (other.span.line, other.span.column)


@pytest.mark.parametrize("name", [".", "specs"])
def test_a_folder_in_place_of_a_spec_names_the_specs_in_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "b.yaml").write_text("name: b\nagentc: 1\n")
    (folder / "a.yml").write_text("agentc: 1\n")
    (folder / "other.yaml").write_text("jobs: 3\n")
    monkeypatch.chdir(folder if name == "." else tmp_path)
    sink = Sink()
    load_file(Path(name), sink)
    (said,) = sink.sorted()
    assert said.message == f"`{name}` is a folder"
    assert said.notes == ("specs in it: a.yml, b.yaml",)
    unset = "; is a variable of the shell unset?" if name == "." else ""
    assert said.fix == f"name one of them: `{Path(name) / 'a.yml'}`{unset}"


def test_a_folder_without_specs_says_so(tmp_path: Path) -> None:
    sink = Sink()
    load_file(tmp_path, sink)
    assert sink.sorted()[0].notes == ("there is no spec in it",)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("description: ETO: exploration", 'description: "ETO: exploration"'),
        ("a: {b: Task: go, then stop., c: 1}", 'a: {b: "Task: go, then stop.", c: 1}'),
        ("a: {b: Goal: open, c: Note: stop}", 'a: {b: "Goal: open", c: "Note: stop"}'),
        ("- text: see this: it", '- text: "see this: it"'),
        ('a: "in" and out: b "c"', None),
        ('a: it\'s this: "b"', "a: 'it''s this: \"b\"'"),
        ("epochs: 3  packing: true", "epochs: 3` and `packing: true"),
        ("epochs: 3 packing: true", "epochs: 3` and `packing: true"),
    ],
)
def test_a_colon_in_a_text_without_quotes(line: str, meant: str | None) -> None:
    _, sink = load(f"{line}\nx: 1\n" if not line.startswith("-") else f"{line}\n")
    (said,) = sink.sorted()
    assert said.code == "AGC103"
    if meant is not None:
        assert f"write `{meant}`" in (said.fix or "")
