"""Several environments built at once: progress, failures beside successes, and giving up."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from wheels import addressed, write_wheel

from agentc.runtime.software.job_software import SoftwareError
from agentc.runtime.store.layout import StoreLayout
from agentc.software.build import build_all
from agentc.software.requirements import Needed


@pytest.mark.slow
def test_those_that_are_missing_are_built_side_by_side(
    layout: StoreLayout, tiny: Needed, built: Path, tmp_path: Path
) -> None:
    wheel = write_wheel(tmp_path, "other", "3", {"other.py": ""})
    more = [Needed(name=f"n{i}", lock=f"# {i}\n{addressed('other', wheel)}\n") for i in range(2)]
    before = (built / "complete.json").read_bytes()
    said: dict[str, list[str]] = {}
    build_all([tiny, *more], layout, lambda one, line: said.setdefault(one.name, []).append(line))
    assert (built / "complete.json").read_bytes() == before
    assert set(said) == {"n0", "n1"}
    for name in said:
        assert any(line.startswith("creating a virtual environment") for line in said[name])
        assert said[name][-1].startswith("software ready")
    assert all(one.ready(layout) for one in more)


@pytest.mark.slow
def test_one_that_fails_does_not_stop_another_and_is_explained(
    layout: StoreLayout, tiny: Needed
) -> None:
    bad = Needed(name="bad", lock=f"# agentc: python 3.15\na==1 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(SoftwareError, match=r"software stack bad: it needs Python 3\.15"):
        build_all([bad, tiny], layout, lambda one, line: None)
    assert tiny.ready(layout)


@pytest.mark.slow
def test_giving_up_ends_the_builders_and_leaves_nothing_usable(
    layout: StoreLayout, tiny: Needed
) -> None:
    stop = threading.Event()
    with pytest.raises(SoftwareError, match="tiny"):
        _stopped_at_the_first_line(tiny, layout, stop)
    assert not tiny.ready(layout)
    build_all([tiny], layout, lambda one, line: None)
    assert tiny.ready(layout)


def _stopped_at_the_first_line(one: Needed, layout: StoreLayout, stop: threading.Event) -> None:
    build_all([one], layout, lambda _, line: stop.set(), stop=stop)
    if not one.ready(layout):
        raise SoftwareError(f"{one.name} was given up")
