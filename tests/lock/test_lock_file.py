"""The lock's file: what is written is read again, and what is no lock is named as such."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentc.diagnostics import Sink
from agentc.lock.document import SECTIONS, LockDocument, lock_beside, read_lock, render_lock

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff\x85"),
    min_size=1,
    max_size=20,
) | st.sampled_from(["null", "yes", "1e3", "a:", "a b", "#x", "- x", "@", "sft:rollout", "eto.1.x"])
VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NAMES | st.lists(NAMES)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TABLES = st.dictionaries(NAMES, VALUES | FLOATS, max_size=4)


def written(sections: dict[str, dict[str, object]]) -> str:
    document = LockDocument(spec="s.yaml", agentc="1", keys=1, sections=sections)  # type: ignore[arg-type]
    return render_lock(document)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(sections=st.fixed_dictionaries(dict.fromkeys(SECTIONS, TABLES)))
def test_what_is_written_is_read(tmp_path: Path, sections: dict[str, dict[str, object]]) -> None:
    text = written(sections)
    path = tmp_path / "s.lock"
    path.write_text(text, encoding="utf-8")
    sink = Sink()
    found = read_lock(path, sink)
    assert sink.sorted() == ()
    assert found is not None
    for name, section in sections.items():
        assert dict(found.section(name)) == section
        for entry in section:
            assert found.places[name, entry].source.name == str(path)
    # Any YAML library reads the same text, so other tools may use locks.
    plain = yaml.safe_load(text)
    assert {name: list(plain.get(name, {})) for name in sections} == {
        name: list(section) for name, section in sections.items()
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[1, 2]", "a lock is a mapping"),
        ("lock: 3\n", "no lock of version 2"),
        ("lock: 1\njobs: [a]\n", "expected names with values"),
        ("lock: 1\nsurprise: 1\n", "a lock has no `surprise`"),
        ("lock: 1\njobs:\n  sft: 'sft/1\n", "ends inside quotes"),
        ("lock: 1\njobs: &a\n  b: *a\n", "alias"),
        ("\0", "U+0000"),
        ("lock: 1\n" + "".join("- " * 30), ""),
    ],
)
def test_what_is_no_lock_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.lock"
    path.write_text(text)
    sink = Sink()
    assert read_lock(path, sink) is None
    (found,) = sink.sorted()
    assert found.code == "AGC741"
    assert message in found.message
    assert "agentc lock s.yaml" in (found.fix or "")


def test_the_lock_lies_beside_its_spec() -> None:
    assert lock_beside(Path("specs/eto/webshop.yaml")) == Path("specs/eto/webshop.lock")
