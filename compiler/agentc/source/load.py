"""Reads a YAML file into a positioned tree, within limits, and never raises for bad input.

PyYAML's events are used rather than its loader: nothing is constructed, tags have no effect, and
size, depth and alias expansion are bounded while reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NoReturn

import yaml

from agentc.diagnostics.diagnostic import Source, Span, split_lines
from agentc.diagnostics.sink import Sink
from agentc.source.files import (
    SPEC_LIMITS,
    ReadLimits,
    UnreadableError,
    is_directory,
    read_named,
    specs_in,
)
from agentc.source.text_checks import (
    Credential,
    blanked,
    find_credentials,
    find_reordering,
    find_unreadable,
    forbidden_in_values,
    strip_forbidden,
)
from agentc.source.tree import Entry, Mapping, Node, Scalar, Sequence, shortened
from agentc.source.yaml_error import report_yaml_error

_FAST_PARSER = getattr(yaml, "CSafeLoader", None)


def load_file(
    path: Path, sink: Sink, limits: ReadLimits = SPEC_LIMITS, *, shown: str | None = None
) -> tuple[Source, Node | None]:
    """The file's text and its tree; None for the tree when it could not be read (then the sink
    says why). `shown` is what people are told for the path."""
    name = strip_forbidden(str(path) if shown is None else shown)
    nothing = Source(name, "")
    try:
        data = read_named(path, limits.file_bytes + 1)
    except UnreadableError as error:
        shown = shortened(name, 200) or "''"
        if is_directory(path):
            specs = specs_in(path)
            known = f"specs in it: {', '.join(shortened(each) for each in specs)}"
            sink.error(
                "AGC101",
                f"`{shown}` is a folder",
                None,
                expected="the path of a spec, a YAML file",
                notes=(known if specs else "there is no spec in it",),
                fix="; ".join(_folder_fixes(path, specs)) or None,
            )
            return nothing, None
        sink.error("AGC101", f"cannot read {shown}: {error}", None)
        return nothing, None
    return load_bytes(data, name, sink, limits)


def _folder_fixes(path: Path, specs: list[str]) -> Iterator[str]:
    if specs:
        yield f"name one of them: `{path / specs[0]}`"
    if path == Path():  # an empty word is the current folder too
        yield "is a variable of the shell unset?"


def load_bytes(
    data: bytes,
    name: str,
    sink: Sink,
    limits: ReadLimits = SPEC_LIMITS,
) -> tuple[Source, Node | None]:
    """`load_file` for bytes at hand."""
    if len(data) > limits.file_bytes:
        sink.error(
            "AGC105",
            f"{name} is larger than {limits.file_bytes // 1024} KiB",
            fix="a spec holds settings; keep data in files of its own",
        )
        return Source(name, ""), None
    text = _decoded(data, name, sink)
    if text is None:
        return Source(name, ""), None
    credentials = find_credentials(text)
    source = Source(name, blanked(text, credentials))
    _report_credentials(credentials, source, sink)
    return source, load_text(source, sink, limits)


def load_text(source: Source, sink: Sink, limits: ReadLimits = SPEC_LIMITS) -> Node | None:
    """The tree of a text, or None (then the sink says why)."""
    bad = find_unreadable(source.text)
    if bad is not None:
        sink.error(
            "AGC102",
            f"character U+{ord(bad[0]):04X} may not be in a YAML file",
            _span_at(source, bad.start(), 1),
        )
        return None
    turning = find_reordering(source.text)
    if turning is not None:
        sink.error(
            "AGC121",
            f"character U+{ord(turning[0]):04X} changes the order in which text is shown",
            _span_at(source, turning.start(), 1),
            fix="remove it; languages that are written from right to left do not need it",
        )
        return None
    try:
        return _Reader(source, sink, limits).read(_events(source.text))
    except yaml.YAMLError as error:
        report_yaml_error(error, source, sink)
        return None
    except _StopError:
        return None


def _decoded(data: bytes, name: str, sink: Sink) -> str | None:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        sink.error("AGC102", f"{name} is UTF-16", fix="save the file as UTF-8")
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        sink.error(
            "AGC102",
            f"{name} is not valid UTF-8: byte 0x{data[error.start]:02x} in line {line}",
            fix="save the file as UTF-8",
        )
        return None


def _report_credentials(credentials: tuple[Credential, ...], source: Source, sink: Sink) -> None:
    for found in credentials:
        sink.error(
            "AGC120",
            f"this looks like {found.what}, and a spec is no place for one",
            _span_at(source, found.start, found.end - found.start),
            notes=("it is not shown here; as it has been in a file, replace it where it is from",),
            fix="put it into an environment variable, and write `{secret: NAME_OF_THE_VARIABLE}`",
        )


def _span_at(source: Source, offset: int, length: int) -> Span:
    """A place by offset; one that goes on over the line's end is cut there."""
    before = split_lines(source.text[:offset])
    line, column = len(before), len(before[-1]) + 1
    here = split_lines(source.text[offset : offset + length])[0]
    return Span(source, line, column, line, column + max(len(here), 1))


def _events(text: str) -> Iterator[yaml.Event]:
    if _FAST_PARSER is None:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
        return
    given = 0
    try:
        for event in yaml.parse(text, Loader=_FAST_PARSER):
            given += 1
            yield event
    except yaml.YAMLError:
        # libyaml's and PyYAML's messages differ: take PyYAML's, so that a spec gets the same
        # diagnostics wherever it is checked. It reads no further than limits allow: a thousand
        # levels are an error to libyaml before the first is an event.
        yield from islice(yaml.parse(text, Loader=yaml.SafeLoader), given, None)
        raise


class _StopError(Exception):
    """Reading cannot go on; the sink has the reason."""


@dataclass(slots=True)
class _Frame:
    """A collection that is being read."""

    start: Span
    is_mapping: bool
    flow: bool
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    keys: dict[str, Scalar] = field(default_factory=dict)
    key: Scalar | None = None
    expects_key: bool = True
    size: int = 1
    meant: Scalar | None = None
    partial: bool = False


@dataclass(slots=True)
class _Reader:
    source: Source
    sink: Sink
    limits: ReadLimits
    anchors: dict[str, Node | None] = field(default_factory=dict)
    sizes: dict[Node, int] = field(default_factory=dict)
    stack: list[_Frame] = field(default_factory=list)
    root: Node | None = None
    aliases: int = 0
    lines: list[str] = field(default_factory=list)

    def read(self, events: Iterator[yaml.Event]) -> Node | None:
        documents = 0
        for event in events:
            if self.sink.is_full:
                self.sink.cut_short()
                raise _StopError
            match event:
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        self._stop(
                            "AGC108",
                            "a second YAML document starts here",
                            event,
                            fix="one spec is one document: remove the `---`",
                        )
                case yaml.ScalarEvent():
                    self._scalar(event)
                case yaml.AliasEvent():
                    self._alias(event)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._open(event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._close(event)
        if self.root is None:
            self.sink.error(
                "AGC112",
                f"{self.source.name} is empty",
                fix="a spec starts with `agentc: 1` and `name: ...`",
            )
        return self.root

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._refuse_tag(event, allowed=("!",))
        if len(event.value) > self.limits.scalar_characters:
            most = self.limits.scalar_characters // 1024
            self._stop("AGC105", f"a single value is longer than {most} KiB", event)
        # Only an escape in double quotes gives what the text itself may not hold.
        forbidden = forbidden_in_values(event.value) if event.style == '"' else None
        if forbidden is not None:
            code, character = forbidden
            self._stop(
                code,
                f"a value may not hold the {character}",
                event,
                fix="remove the escape that gives it",
            )
        quoted = event.style in ("'", '"', "|", ">") or event.tag == "!"
        self._add(Scalar(event.value, quoted, self._span(event)), 1, event.anchor)

    def _alias(self, event: yaml.AliasEvent) -> None:
        self.aliases += 1
        if self.aliases > self.limits.aliases:
            self._stop("AGC105", f"more than {self.limits.aliases} aliases", event)
        if event.anchor is None or event.anchor not in self.anchors:
            self._stop("AGC109", f"no anchor `&{event.anchor}` before this alias", event)
        node = self.anchors[event.anchor]
        if node is None:
            self._stop("AGC109", f"`*{event.anchor}` is inside what it repeats", event)
        self._add(node, self.sizes.get(node, 1), None, self._span(event))

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        self._refuse_tag(event, allowed=())
        if len(self.stack) >= self.limits.depth:
            self._stop("AGC105", f"nested more than {self.limits.depth} levels deep", event)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(
            _Frame(
                start=self._span(event),
                is_mapping=isinstance(event, yaml.MappingStartEvent),
                flow=bool(event.flow_style),
                anchor=event.anchor,
            )
        )

    def _close(self, event: yaml.MappingEndEvent | yaml.SequenceEndEvent) -> None:
        frame = self.stack.pop()
        span = self._extent(frame, event)
        node: Node
        if frame.meant is not None:
            node = frame.meant
        elif frame.is_mapping:
            node = Mapping(tuple(frame.entries), span, frame.partial)
        else:
            node = Sequence(tuple(frame.items), span)
        self.sizes[node] = frame.size
        self._add(node, frame.size, frame.anchor)

    def _add(self, node: Node, size: int, anchor: str | None, place: Span | None = None) -> None:
        if anchor is not None:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        frame = self.stack[-1]
        frame.size += size
        if frame.size > self.limits.nodes:
            self._stop(
                "AGC105",
                f"more than {self.limits.nodes} values after aliases are expanded",
                None,
                place or node.span,
            )
        if not frame.is_mapping:
            frame.items.append(node)
        elif frame.expects_key:
            frame.key = self._checked_key(node, frame)
            frame.expects_key = False
        else:
            if frame.key is not None:
                frame.entries.append(Entry(frame.key, node))
            else:
                frame.partial = True
            frame.expects_key = True

    def _checked_key(self, node: Node, frame: _Frame) -> Scalar | None:
        if isinstance(node, Mapping) and frame.flow:
            self._unquoted_expression(node, frame)
            return None
        if not isinstance(node, Scalar):
            self.sink.error("AGC113", "a key has to be text", node.span)
            return None
        if len(node.text) > self.limits.key_characters:
            most = self.limits.key_characters
            self._stop("AGC105", f"a key is longer than {most} characters", None, node.span)
        if node.text == "<<" and not node.quoted:
            self.sink.error(
                "AGC106",
                "merge keys (`<<`) are not part of the language",
                node.span,
                fix="values that several stages share go under `defaults:`",
            )
            return None
        first = frame.keys.get(node.text)
        if first is not None:  # the same node, when it is repeated by an alias
            self.sink.error(
                "AGC104",
                f"`{node.text}` is given twice",
                node.span,
                notes=(f"it is first given in line {first.span.line}",),
                fix="keep one of them",
            )
            return None
        frame.keys[node.text] = node
        return node

    def _unquoted_expression(self, node: Mapping, frame: _Frame) -> None:
        """`lr: {{ lr }}` is a mapping with a mapping as its key to YAML."""
        if not self.lines:
            self.lines = split_lines(self.source.text)
        start = frame.start
        text = self.lines[start.line - 1] if start.line <= len(self.lines) else ""
        found = re.match(r"\{\{[^{}]*\}\}", text[start.column - 1 :])
        if found is None:
            self.sink.error("AGC113", "a key has to be text", node.span)
            return
        after = text[start.column - 1 + found.end() :].lstrip()
        if after and after[0] not in "#,}]":
            return  # not YAML at all: the parser is about to say so at this line
        end = start.column + found.end()
        span = Span(self.source, start.line, start.column, start.line, end)
        self.sink.error(
            "AGC110", "an expression has to be in quotes", span, fix=f'write "{found[0]}"'
        )
        frame.meant = Scalar(found[0], True, span)

    def _extent(self, frame: _Frame, event: yaml.Event) -> Span:
        start = frame.start
        if frame.flow:
            end = self._span(event)
            return Span(self.source, start.line, start.column, end.end_line, end.end_column)
        # A block ends, for YAML, where the next token starts: take the end of its last value.
        last = frame.entries[-1].value if frame.entries else None
        last = frame.items[-1] if frame.items else last
        if last is None or (last.span.end_line, last.span.end_column) < (start.line, start.column):
            return start
        return Span(self.source, start.line, start.column, last.span.end_line, last.span.end_column)

    def _refuse_tag(
        self,
        event: yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent,
        allowed: tuple[str, ...],
    ) -> None:
        if event.tag is not None and event.tag not in allowed:
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._stop(
                "AGC107",
                f"the tag `{shown}` is not part of the language",
                event,
                fix="remove it: the type of a value follows from its place",
            )

    def _span(self, event: yaml.Event) -> Span:
        start, end = event.start_mark, event.end_mark
        assert start is not None
        assert end is not None
        return Span(self.source, start.line + 1, start.column + 1, end.line + 1, end.column + 1)

    def _stop(
        self,
        code: str,
        message: str,
        event: yaml.Event | None,
        span: Span | None = None,
        fix: str | None = None,
    ) -> NoReturn:
        place = span if event is None else self._span(event)
        self.sink.error(code, message, place, fix=fix)
        raise _StopError
