"""evaluate_params: the value of each param, from `-p` or from its default.

Requires: a structured spec.
Ensures: a scope with every declared param; one whose value is missing or wrong has been reported
and stands there as MISSING, so that what depends on it is not reported again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.span import Source, Span
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expressions import MISSING, Evaluator
from agentc.kinds.field import Json
from agentc.plan.canonical import canonical_text
from agentc.schema import language
from agentc.schema.coerce import Coercion, Failed, as_json
from agentc.schema.describe import describe
from agentc.schema.param_rules import param_rules
from agentc.source.characters import forbidden_in_values, strip_forbidden
from agentc.source.credentials import blanked, find_credentials
from agentc.source.load import load_text
from agentc.source.scalars import is_expression
from agentc.source.tree import Mapping as Table
from agentc.source.tree import Node, Scalar, Sequence, described, shortened
from agentc.syntax.nodes import ParamDecl, Spec


def evaluate_params(
    spec: Spec,
    given: Mapping[str, str],
    evaluator: Evaluator,
    sink: Sink,
    swept: Mapping[str, Node] = {},
) -> dict[str, Json]:
    """Values by name, in declared order. A default may use the params declared above it; `swept`
    are values of one cell of the matrix, which come before defaults."""
    given = {name: _checked_text(name, text, sink) for name, text in given.items()}
    scope: dict[str, Json] = {}
    for name, declared in spec.params.items():
        evaluator.later = _unseen(name, spec, scope) if _computed(declared) else None
        if name in language.RESERVED_NAMES:
            sink.error(
                "AGC309",
                f"no param can be called `{name}`",
                declared.name.span,
                notes=("expressions use this word themselves",),
            )
        scope[name] = _value(declared, given.get(name), swept.get(name), scope, evaluator, sink)
    evaluator.later = None
    for name in given:
        if name not in spec.params:
            sink.error(
                "AGC306",
                f"the spec has no param `{name}`",
                expected=f"one of {listed(spec.params)}" if spec.params else None,
                fix=did_you_mean(name, spec.params),
            )
    return scope


def chosen_params(
    spec: Spec, given: Mapping[str, str], values: Mapping[str, Json]
) -> dict[str, Json]:
    """The params given with `-p` whose values are not what they would be without it: their default
    by the params above them. A param that is swept is chosen whatever it is given, since its axis
    goes. Reports nothing."""
    chosen: dict[str, Json] = {}
    axes = set()
    if isinstance(spec.matrix, Table):
        axes = {entry.key.text for entry in spec.matrix.entries}
    for name, declared in spec.params.items():
        if name not in given or name not in values:
            continue
        usual: Json = MISSING
        if "default" in declared.settings and name not in axes:
            usual = _value(declared, None, None, values, Evaluator(Sink()), Sink())
        if usual is MISSING or canonical_text(usual) != canonical_text(values[name]):
            chosen[name] = values[name]
    return chosen


def _unseen(name: str, spec: Spec, scope: Mapping[str, Json]) -> Callable[[str], str | None]:
    """Why the default of a param cannot use the params that have no value yet."""
    rule = "a default sees only the params above it"

    def why(other: str) -> str | None:
        if other == name:
            return f"the default of `{name}` uses `{name}` itself"
        if other not in spec.params or other in scope:
            return None
        return f"`{other}` stands below `{name}`: {rule}"

    return why


def _computed(declared: ParamDecl) -> bool:
    default = declared.settings.get("default")
    return default is not None and not (
        isinstance(default.value, Scalar) and not is_expression(default.value.text)
    )


def _checked_text(name: str, text: str, sink: Sink) -> str:
    """The text of `-p name=text`, without what could not stand in a file either: it is recorded
    with the run."""
    whole = f"{name}={text}"
    credentials = find_credentials(whole)
    for found in credentials:
        sink.error(
            "AGC120",
            f"the value of `-p {shortened(name)}` looks like {found.what}",
            notes=("it is not shown here, but the shell's history and the process list have it",),
            fix="put it into an environment variable; settings that take a secret take its name",
        )
    forbidden = forbidden_in_values(text)
    if forbidden is not None:
        code, character = forbidden
        sink.error(code, f"the value of `-p {shortened(name)}` holds the {character}")
    start = len(name) + 1
    return strip_forbidden(blanked(whole, credentials)[start:])


def _value(
    declared: ParamDecl,
    given: str | None,
    swept: Node | None,
    scope: Mapping[str, Json],
    evaluator: Evaluator,
    sink: Sink,
) -> Json:
    name = declared.name.text
    rules = param_rules(declared, sink)
    if rules is None:
        return MISSING
    default = declared.settings.get("default")
    node: Node
    if given is not None:
        found = _from_command_line(name, given, rules, sink)
        if found is None:
            return MISSING
        node = found
    elif swept is not None:
        node = swept
    elif default is None:
        sink.error(
            "AGC305",
            f"param `{name}` has no value",
            declared.name.span,
            expected=describe(rules),
            fix=f"give one with `-p {name}=...`, or declare a `default`",
        )
        return MISSING
    else:
        node = evaluator.evaluate(default.value, scope)
    trial = Sink()
    value = Coercion(trial).value(node, rules, name)
    for found_wrong in trial.sorted():
        sink.error(
            "AGC307",
            f"param `{name}` cannot be {described(node)}",
            found_wrong.span,
            expected=found_wrong.expected,
            notes=found_wrong.notes,
            fix=found_wrong.fix,
        )
    return MISSING if isinstance(value, Failed) else value


def _from_command_line(name: str, text: str, rules: Mapping[str, Json], sink: Sink) -> Node | None:
    """The text of `-p name=text`: as it is where text is wanted, else read like a spec's value.
    A list may be written `1,2` or `[1, 2]`."""
    written = f"{name}={text}"
    source = Source("-p", written)
    start = len(name) + 2
    span = Span(source, 1, start, 1, len(written) + 1)
    if rules.get("type") != "array":
        return Scalar(text, rules.get("type") == "string", span)
    if not text.startswith("["):
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return Sequence(tuple(Scalar(part, False, span) for part in parts), span)
    trial = Sink()
    node = load_text(Source("-p", text), trial)
    if node is None:
        sink.error("AGC307", f"param `{name}` cannot be `{text}`", span, expected=describe(rules))
        return None
    value = as_json(node)
    items = value if isinstance(value, list) else [value]
    if not all(item is None or isinstance(item, (bool, int, float, str)) for item in items):
        sink.error("AGC307", f"param `{name}` cannot be `{text}`", span, expected=describe(rules))
        return None
    return node
