"""Rules of script stages: what can be known of a script without running it.

That its files are there, and may be read, is said by lowering; what it says of itself is read by
`agentc.backend_api.script_header`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from agentc.backend_api.script_header import (
    ANY,
    ScriptError,
    ScriptHeader,
    read_script,
    type_of,
)
from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.module import product_of
from agentc.kinds.artifacts import ARTIFACT_TYPES
from agentc.kinds.field import Json
from agentc.kinds.script import PRODUCTS
from agentc.kinds.table import kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext, quoted
from agentc.source.files import OutsideError, UnreadableError, is_file, read_named

_MOST_BYTES = 1 << 20
_TYPES = {**PRODUCTS, **{each.name: each for each in ARTIFACT_TYPES}}
_SCRIPTS = kinds_where(lambda kind: kind.named is not None and kind.has("run"))
_COMMANDS = (*_SCRIPTS, *kinds_where(lambda kind: kind.acts))
"""Scripts, and kinds whose agent may be a program."""


def script_is_python(subject: StageContext) -> Iterator[Finding]:
    """A script is Python, and what it says of itself can be understood."""
    text = _text(subject, subject.settings.text("run"))
    if text is None:
        return
    try:
        read_script(text)
    except ScriptError as error:
        where = f" line {error.line}" if error.line else ""
        yield Finding(
            message=f"{subject.settings.text('run')}{where}: {error}",
            path="run",
            expected="a Python script, which is read here and not run",
            fix=error.fix,
        )


def script_takes_inputs(subject: StageContext) -> Iterator[Finding]:
    """A script that says what it takes and makes gets that, and makes what the stage says."""
    header, name = _header(subject), subject.settings.text("run")
    if header is None:
        return
    inputs = subject.stage.inputs
    declared = header.inputs or {}
    for role, word in declared.items():
        if role not in inputs:
            yield Finding(
                message=f"{name} reads `{role}`, which the stage does not give it",
                path="inputs",
                expected=_wanted(word),
                fix=f"write `inputs: {{{role}: <a stage>}}`",
            )
            continue
        for producer in inputs[role]:
            stage = subject.module.stages.get(producer)
            made = None if stage is None else product_of(stage)
            if word != ANY and made is not None and not made.fits(_TYPES[word]):
                yield Finding(
                    message=f"{name} takes {word} as `{role}`, but `{producer}` makes {made.name}",
                    path=role,
                    expected=_wanted(word),
                )
    for role in inputs if header.inputs is not None else ():
        if role not in declared:
            yield Finding(
                message=f"{name} reads no `{role}`",
                path=role,
                expected=f"{listed(declared) or 'no input'}, as its `[tool.agentc]` says",
                fix=did_you_mean(role, declared),
            )
    output = subject.settings.text("output")
    if header.output is not None and header.output != output:
        yield Finding(
            message=f"{name} makes {header.output}, and the stage says {output}",
            path="output",
            fix=f"write `output: {header.output}`",
        )


def script_knows_params(subject: StageContext) -> Iterator[Finding]:
    """A script that declares params gets no others, and values of the types of its defaults."""
    header, name = _header(subject), subject.settings.text("run")
    given = subject.settings.get("params")
    if header is None or header.params is None or not isinstance(given, dict):
        return
    for param, value in given.items():
        if param not in header.params:
            yield Finding(
                message=f"{name} has no param `{param}`",
                path="params",
                expected=f"some of {listed(header.params)}" if header.params else "no param",
                fix=did_you_mean(param, header.params),
            )
        elif not _alike(value, header.params[param]):
            yield Finding(
                message=f"`{param}` of {name} cannot be {quoted(value)}",
                path="params",
                expected=f"{type_of(header.params[param])}, such as its default "
                f"{quoted(header.params[param])}",
            )


def script_is_whole(subject: StageContext) -> Iterator[Finding]:
    """Modules beside a script that it imports are among its sources, so that its key has them."""
    run, header = subject.settings.text("run"), _header(subject)
    if header is None or run is None:
        return
    sources = subject.settings.texts("sources")
    beside = PurePosixPath(run).parent
    known = {str(PurePosixPath(source)) for source in sources}
    for module in sorted(header.imports):
        file = str(beside / f"{module}.py")
        if file not in known and _text(subject, file) is not None:
            yield Finding(
                message=f"{run} imports {module}, and {file} is not among its sources",
                path="sources" if sources else "run",
                notes=("it would not find it, and changes of it would change no key",),
                fix=f"write `sources: [{', '.join([*sources, file])}]`",
            )


def command_has_its_files(subject: StageContext) -> Iterator[Finding]:
    """Files beside the spec that a command names are among its sources, so that it finds them."""
    sources = subject.settings.texts("sources")
    known = {str(PurePosixPath(source)) for source in sources}
    unread = any(_text(subject, source) is None for source in sources)
    if unread or subject.settings.text("run") is not None:
        return  # lowering says so; one of them may be meant
    for word in subject.settings.texts("command"):
        path = PurePosixPath(word)
        is_named = path.suffix != "" and not path.is_absolute() and ".." not in path.parts
        if not is_named or str(path) in known or _text(subject, word) is None:
            continue
        yield Finding(
            message=f"the command names {word}, which is not among its sources",
            path="command",
            notes=("the program starts in a folder that holds its sources and nothing else",),
            fix=f"write `sources: [{', '.join([*sources, str(path)])}]`",
        )


def script_has_software(subject: StageContext) -> Iterator[Finding]:
    """A script whose metadata asks for packages gets a lock that has them."""
    run, header = subject.settings.text("run"), _header(subject)
    if header is None or not header.dependencies or subject.settings.text("requirements"):
        return
    yield Finding(
        message=f"{run} requests {listed(header.dependencies)}, which agentc's light software does "
        "not promise",
        path="run",
        fix="pin them in a lock (`uv pip compile --generate-hashes`), and name it as "
        "`requirements`",
    )


def _wanted(word: str) -> str:
    return "a stage" if word == ANY else f"a stage that makes {_TYPES[word].name}"


def _alike(value: Json, default: Json) -> bool:
    if isinstance(default, int) and not isinstance(default, bool) and isinstance(value, float):
        return value.is_integer()
    return type_of(value) == type_of(default)


def _header(subject: StageContext) -> ScriptHeader | None:
    text = _text(subject, subject.settings.text("run"))
    try:
        return None if text is None else read_script(text)
    except ScriptError:
        return None


def _text(subject: StageContext, name: str | None) -> str | None:
    """The text of a file that the spec may read; None where lowering says what is wrong."""
    if name is None:
        return None
    try:
        place: Path = subject.boundary.find(name)
        return read_named(place, _MOST_BYTES).decode("utf-8") if is_file(place) else None
    except (OutsideError, UnreadableError, UnicodeDecodeError, OSError):
        return None


_DECLARED = Code(
    "AGC756",
    "a script that says otherwise",
    "A script may say in its inline metadata (`[tool.agentc]`, docs/scripts.md) what it takes and "
    "makes and which params it knows. The stage has to agree, so that a wrong wire is found before "
    "anything runs.",
)

_LACKS = Code(
    "AGC757",
    "a script that lacks what it imports",
    "A script is started where there is nothing but itself and its `sources`, in the software of "
    "its `requirements`. What else it imports is not there; and if it were found all the same, it "
    "could change and no key would.",
)

SCRIPTS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC755",
            "a script that cannot be run",
            "The file is no Python, or its inline metadata cannot be understood. Scripts are "
            "compiled while the spec is checked, and never run then.",
        ),
        kinds=_SCRIPTS,
        check=script_is_python,
    ),
    Rule(code=_DECLARED, kinds=_SCRIPTS, check=script_takes_inputs),
    Rule(code=_DECLARED, kinds=_SCRIPTS, check=script_knows_params),
    Rule(code=_LACKS, kinds=_SCRIPTS, check=script_is_whole),
    Rule(code=_LACKS, kinds=_COMMANDS, check=command_has_its_files),
    Rule(code=_LACKS, kinds=_SCRIPTS, check=script_has_software, severity="warning"),
)
