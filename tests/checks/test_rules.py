"""Every cross-field rule, both ways, with the installed backends: a spec that breaks it gets its
message, and the same spec mended gets none.

`cases/<rule>-<variant>/` holds `failing.yaml`, `fixed.yaml` and `failing.expected`; the examples
of diagnostic codes count as well. `dead/` has settings that others make idle.
`UPDATE_EXPECTED=1 pytest tests/checks` rewrites the expected texts: read the difference, and ask
whether that is the message you would want.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import agentc.diagnostics
from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import compile_spec
from agentc.diagnostics import render_text
from agentc.passes.checks import RULES, Rule
from agentc.passes.checks.subject import subjects_of
from agentc.source.files import Boundary

HERE = Path(__file__).parent
CASES = sorted(path for path in (HERE / "cases").iterdir() if path.is_dir())
DEAD = sorted(path for path in (HERE / "dead").iterdir() if path.is_dir())
EXAMPLES = Path(agentc.diagnostics.__file__).parent / "examples"
BY_NAME = {rule.check.__name__: rule for rule in RULES}


@pytest.fixture(scope="module")
def table() -> BackendTable:
    """The installed backends: what people meet."""
    return load_backends()


def compare(text: str, expected: Path) -> None:
    """With UPDATE_EXPECTED=1 the text is written instead."""
    if os.environ.get("UPDATE_EXPECTED") == "1":
        expected.write_text(text)
    assert text == expected.read_text()


def names_of_broken_rules(path: Path, table: BackendTable) -> set[str]:
    """The rules that find something, whether or not they are reported."""
    module = compile_spec(path, {}, table).module
    assert module is not None
    broken: set[str] = set()
    for subject in subjects_of(module, table, Boundary(path.parent)):
        broken |= {
            rule.check.__name__
            for rule in RULES
            if subject.stage.kind in rule.kinds and list(rule.check(subject))
        }
    return broken


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_rule_both_ways(case: Path, table: BackendTable) -> None:
    rule = BY_NAME[case.name.split("-")[0]]
    failing = case / "failing.yaml"
    assert rule.check.__name__ in names_of_broken_rules(failing, table)
    found = compile_spec(failing, {}, table).diagnostics
    # One fault, one message: nothing else complains about the same spec.
    assert {each.code for each in found} == {rule.code.code}

    text = render_text(found).replace(f"{case}{os.sep}", "")
    compare(text, case / "failing.expected")

    assert render_text(compile_spec(case / "fixed.yaml", {}, table).diagnostics) == ""


@pytest.mark.parametrize("case", DEAD, ids=[case.name for case in DEAD])
def test_a_setting_that_another_makes_idle(case: Path, table: BackendTable) -> None:
    """Found by lowering, not by a rule: the backend does not read it, and says why."""
    found = compile_spec(case / "failing.yaml", {}, table).diagnostics
    assert {each.code for each in found} <= {"AGC602", "AGC603", "AGC606"}
    compare(render_text(found).replace(f"{case}{os.sep}", ""), case / "failing.expected")
    assert render_text(compile_spec(case / "fixed.yaml", {}, table).diagnostics) == ""


def test_every_rule_has_a_case(table: BackendTable) -> None:
    covered = {case.name.split("-")[0] for case in CASES}
    for rule in RULES:
        if rule.check.__name__ not in covered and (EXAMPLES / rule.code.code).is_dir():
            covered |= names_of_broken_rules(EXAMPLES / rule.code.code / "failing.yaml", table)
    assert {rule.check.__name__ for rule in RULES} - covered == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_a_rule_says_what_it_holds(rule: Rule) -> None:
    assert rule.summary.endswith(".")
    assert len(rule.summary) < 100


MEANT: dict[str, set[str]] = {
    # An untrained model buys nothing and crafts nothing: every trajectory counts as good, or none.
    "agent_r/direct_revision.yaml smoke": {"AGC692"},
    "agent_r/multi_task.yaml smoke": {"AGC692"},
    "agent_r/sciworld.yaml smoke": {"AGC692"},
    "agent_r/table3.yaml smoke": {"AGC692"},
    "agent_r/table3_sciworld.yaml smoke": {"AGC692"},
    "agent_r/table3_webshop.yaml smoke": {"AGC692"},
    "agent_r/textcraft.yaml smoke": {"AGC692"},
    "agent_r/webshop.yaml smoke": {"AGC692"},
    # The paper evaluates on the purchases that it plays.
    "archer/webshop.yaml None": {"AGC507"},
    "archer/webshop.yaml smoke": {"AGC507"},
    # The released critic has rows of 8192 tokens, the agent ten replies of 1024: declared there.
    "sweet_rl/readme.yaml None": {"AGC669"},
    # Zero-shot has an instruction and an example of its own; the control leaves out the contrast.
    "real/textcraft_eto.yaml None": {"AGC638", "AGC647"},
    "real/textcraft_eto.yaml minutes": {"AGC638", "AGC647"},
    "real/textcraft_eto.yaml hour": {"AGC638", "AGC647"},
}


def test_no_false_alarm_on_shipped_specs(repository: Path, table: BackendTable) -> None:
    codes = {rule.code.code for rule in RULES}
    specs = sorted((repository / "specs").rglob("*.yaml"))
    assert len(specs) >= 5
    for spec in specs:
        plain = compile_spec(spec, {}, table)
        for scale in (None, *plain.spec.scales):
            of_scale = plain if scale is None else compile_spec(spec, {}, table, scale=scale)
            found = of_scale.diagnostics
            meant = MEANT.get(f"{spec.parent.name}/{spec.name} {scale}", set())
            alarms = [each for each in found if each.code in codes - meant]
            assert alarms == [], (spec, scale)
