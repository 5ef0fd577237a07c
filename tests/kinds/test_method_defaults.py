"""docs/design/method_defaults.md names the source of every default that a method rests on, and no
bundled run of a rival of ArCHer takes ArCHer's values by default."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentc.backend_api import StageBackend, load_backends
from agentc.compilation import compile_spec
from agentc.kinds import KINDS
from agentc.kinds.field import Field, Json, _Required

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design" / "method_defaults.md"
OF_NO_METHOD = {
    *("model", "encoder", "text_encoder", "dataset", "script", "benchmark", "compare", "verdicts"),
    *("report", "checkpoint"),
}
ROW = re.compile(r"^\| (`[^|]+) \| (`.+?) \| [^`|]*[^|]*\|[^|]*\|$", re.MULTILINE)
RIVALS = ("archer/rivals", "compare/eto_grpo", "archer/twenty_questions", "archer/corridor")
READ_BY = {
    "ppo": ("discount", "critic.lr", "actor.lr", "decode.max_tokens"),
    "trl": ("actor.lr", "actor.updates", "decode.max_tokens"),
    "chai": ("critic.lr", "critic.updates", "critic.batch", "decode.max_tokens"),
    "filtered_bc": ("actor.lr", "actor.updates", "actor.batch", "decode.max_tokens"),
}


def leaves(fields: tuple[Field, ...], before: str = "") -> Iterator[tuple[str, Json]]:
    for field in fields:
        if field.fields:
            yield from leaves(field.fields, f"{before}{field.name}.")
        elif field.identity == "semantic" and not isinstance(field.default, _Required):
            yield f"{before}{field.name}", field.default


def in_code() -> dict[tuple[str, str], Json]:
    """(kind or backend, setting) -> its default, where there is one that says something."""
    tables = [(kind.name, kind.fields) for kind in KINDS if kind.name not in OF_NO_METHOD]
    tables += [
        (backend.id, backend.options)
        for backend in load_backends().backends.values()
        if isinstance(backend, StageBackend) and backend.kind not in OF_NO_METHOD
    ]
    return {
        (name, path): default
        for name, fields in tables
        for path, default in leaves(fields)
        if default not in (None, [], {}) and (not path.endswith("seed") or default != 0)
    }


def on_page() -> dict[tuple[str, str], Json]:
    found: dict[tuple[str, str], Json] = {}
    for names, defaults in ROW.findall(PAGE.read_text("utf-8")):
        for name in re.findall(r"`([^`]+)`", names):
            for path, value in re.findall(r"`([\w.]+): (.+?)`(?=, `|$)", defaults):
                assert (name, path) not in found, (name, path)
                found[name, path] = json.loads(value)
    return found


def test_every_default_has_a_source() -> None:
    code, page = in_code(), on_page()
    code = {place: value for place, value in code.items() if place[1] != "tie_seed"}
    page = {place: value for place, value in page.items() if place[1] != "tie_seed"}
    assert {place: code[place] for place in code.keys() - page.keys()} == {}, "name its source"
    assert {place: page[place] for place in page.keys() - code.keys()} == {}, "no such default"
    assert page == code


@pytest.mark.parametrize("name", RIVALS)
def test_no_rival_takes_archers_values_by_default(name: str) -> None:
    module = compile_spec(ROOT / "specs" / f"{name}.yaml", {}, load_backends()).module
    assert module is not None
    rivals = [stage for stage in module.stages.values() if stage.kind == "online_rl"]
    assert rivals
    for stage in rivals:
        for path in READ_BY.get((stage.backend or "").removesuffix(".online_rl"), ()):
            head, _, rest = path.partition(".")
            given = stage.fields.get(head)
            assert given is not None, (stage.id, path)
            assert not rest or (isinstance(given.json, dict) and rest in given.json), (
                stage.id,
                path,
            )
