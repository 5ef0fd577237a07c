"""What a user's Python script says of itself before it runs: that it is Python, which modules it
imports, and, where it has one, the table `[tool.agentc]` of its inline metadata (PEP 723):

```
# /// script
# [tool.agentc]
# inputs = {episodes = "trajectories"}
# params = {min_turns = 3}
# output = "trajectories"
# ///
```
`params` are defaults, by which the types of given ones are known. Nothing of a script is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import tomllib

from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.kinds.field import Json
from agentc.kinds.script import NAMED_INPUT, PRODUCTS

_OPENING, _CLOSING = "# /// script", "# ///"
_KEYS = ("inputs", "params", "output")
ANY = "any"
INPUT_WORDS = (ANY, *PRODUCTS, *(each.name for each in NAMED_INPUT.accepts))
"""What a script may say that it takes: a word of `output`, or an artifact type by its own name."""


class ScriptError(Exception):
    """Why a script cannot be used; `line` is where in it, 0 for the whole."""

    def __init__(self, message: str, line: int = 0, fix: str | None = None) -> None:
        super().__init__(message)
        self.line, self.fix = line, fix


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptHeader:
    """What a script declares; None: nothing is said. `inputs` maps names to `INPUT_WORDS`;
    `imports` are first words of the modules that it imports, `dependencies` the packages that its
    metadata asks for."""

    inputs: Mapping[str, str] | None = None
    params: Mapping[str, Json] | None = None
    output: str | None = None
    imports: frozenset[str] = field(default_factory=frozenset)
    dependencies: tuple[str, ...] = ()

    def merged_params(self, given: Mapping[str, Json]) -> dict[str, Json]:
        """The params that it gets: its defaults, and what is given instead or besides."""
        return {**(self.params or {}), **given}


def read_script(text: str) -> ScriptHeader:
    """What a script says of itself. Raises ScriptError where it is no Python, or where what it
    says cannot be understood."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ScriptError(str(error.msg), error.lineno or 0) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ScriptError(str(error) or "nested too deeply to be read") from None
    imports = frozenset(_imported(tree))
    found = _metadata(text)
    if found is None:
        return ScriptHeader(imports=imports)
    line, document = found
    needs = document.get("dependencies")
    dependencies = tuple(map(str, needs)) if isinstance(needs, list) else ()
    tool = document.get("tool")
    table = tool.get("agentc") if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        return ScriptHeader(imports=imports, dependencies=dependencies)
    for key in table:
        if key not in _KEYS:
            fix = did_you_mean(key, _KEYS) or "`[tool.agentc]` takes inputs, params and output"
            raise ScriptError(f"unknown key `{key}` in `[tool.agentc]`", line, fix)
    inputs, params, output = (table.get(key) for key in _KEYS)
    return ScriptHeader(
        inputs=None if inputs is None else _words(inputs, "inputs", line, INPUT_WORDS),
        params=None if params is None else _params(params, line),
        output=_words({"": output}, "output", line, tuple(PRODUCTS))[""] if output else None,
        imports=imports,
        dependencies=dependencies,
    )


def type_of(value: Json) -> str:
    """The type of a param in a word; whole numbers are taken where others are meant."""
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return "null"


def _words(table: Json, key: str, line: int, allowed: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(table, dict):
        fix = 'write `inputs = {episodes = "trajectories"}`'
        raise ScriptError(f"`{key}` of `[tool.agentc]` is no table", line, fix)
    for word in table.values():
        if word not in allowed:
            fix = did_you_mean(str(word), allowed) or f"one of {listed(allowed, 30)}"
            raise ScriptError(f"`{key}` of `[tool.agentc]` cannot be `{word}`", line, fix)
    return {name: str(word) for name, word in table.items()}


def _params(table: Json, line: int) -> dict[str, Json]:
    if isinstance(table, dict) and all(map(_is_json, table.values())):
        return table
    raise ScriptError(
        "`params` of `[tool.agentc]` is no table of numbers, texts, truths and lists",
        line,
        "write `params = {min_turns = 3}`, with the default of each",
    )


def _is_json(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    return isinstance(value, (bool, int, float, str))


def _metadata(text: str) -> tuple[int, Mapping[str, Json]] | None:
    """The line where the block begins, and what is in it; None where there is none."""
    lines = text.splitlines()
    begins = next((n for n, line in enumerate(lines) if line.rstrip() == _OPENING), None)
    if begins is None:
        return None
    content: list[str] = []
    for line in lines[begins + 1 :]:
        if line.rstrip() == _CLOSING:
            break
        if not line.startswith("#"):
            raise ScriptError(f"the block `{_OPENING}` has no end `{_CLOSING}`", begins + 1)
        content.append(line[2:] if line.startswith("# ") else line[1:])
    else:
        raise ScriptError(f"the block `{_OPENING}` has no end `{_CLOSING}`", begins + 1)
    try:
        document = tomllib.loads("\n".join(content))
    except tomllib.TOMLDecodeError as error:
        raise ScriptError(f"its inline metadata is no TOML: {error}", begins + 1) from None
    return begins + 1, document


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
