"""check_settings: rules between settings that no single field can state.

Requires: backends chosen, edges checked.
Ensures: every rule of `agentc.passes.checks` holds of every stage, or has been reported: as an
error where the stage cannot do what is asked, as a warning where that is legal but doubtful.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from agentc.diagnostics import Diagnostic
from agentc.ir.module import Module, Stage, stage_span
from agentc.passes.checks import RULES, Finding, Rule
from agentc.passes.checks.subject import StageContext, subjects_of
from agentc.passes.infer_artifacts import without_misfits
from agentc.passes.unit import PassContext, Unit

Found: TypeAlias = tuple[Rule, Finding, StageContext]


def check_settings(unit: Unit, context: PassContext) -> Unit:
    """Report every broken rule; changes nothing."""
    module = unit.module
    if module is None:
        return unit
    by_kind: dict[str, list[Rule]] = {}
    for rule in RULES:
        for kind in rule.kinds:
            by_kind.setdefault(kind, []).append(rule)
    found = _findings(module, by_kind, context)
    fitting = without_misfits(module, context) if context.sink.has_errors else module
    if fitting is not module:
        # What follows from an input of the wrong type is not true with it and without it.
        lasting = set(map(_what, _findings(fitting, by_kind, context)))
        found = [each for each in found if _what(each) in lasting]
    wrong = {
        finding.at.id if isinstance(finding.at, Stage) else subject.stage.id
        for rule, finding, subject in found
        if (finding.severity or rule.severity) == "error"
    }
    for rule, finding, subject in found:
        doubt = (finding.severity or rule.severity) == "warning"
        if not (doubt and wrong and _reads_from(wrong, subject.stage)):
            _report(rule, finding, subject, context)
    return unit


def _findings(
    module: Module, by_kind: Mapping[str, Sequence[Rule]], context: PassContext
) -> list[Found]:
    return [
        (rule, finding, subject)
        for subject in subjects_of(module, context.table, context.boundary)
        for rule in by_kind.get(subject.stage.kind, ())
        for finding in rule.check(subject)
    ]


def _what(found: Found) -> tuple[str, str, str, str]:
    rule, finding, subject = found
    return (rule.code.code, subject.stage.id, finding.path, finding.message)


def _reads_from(wrong: set[str], stage: Stage) -> bool:
    """Whether a stage works on what one that has an error makes: a doubt about it may follow from
    that."""
    return any(each in wrong for inputs in stage.inputs.values() for each in inputs)


def _report(rule: Rule, finding: Finding, subject: StageContext, context: PassContext) -> None:
    entry = finding.at or subject.stage
    span = stage_span(entry, finding.path) if finding.path else entry.origin.span
    context.sink.add(
        Diagnostic(
            code=rule.code.code,
            severity=finding.severity or rule.severity,
            message=finding.message,
            span=span,
            expected=finding.expected,
            notes=finding.notes,
            fix=finding.fix,
            steps=entry.origin.steps,
            rests_on=finding.rests_on,
        )
    )
