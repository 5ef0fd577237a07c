"""A chat template that never ends, or writes without end, ends with words; others are let be."""

from __future__ import annotations

import threading

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tests.support.patience import PATIENCE_S

from agentc_backends.data.chat import template_rendering as module
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.template_rendering import render_bounded

BOMB = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


def render(template: str) -> str:
    return ImmutableSandboxedEnvironment().from_string(template).render()


def test_a_template_that_loops_is_ended() -> None:
    with pytest.raises(FormatError, match=r"more than 0\.05 s of CPU time .* built-in chat_format"):
        render_bounded(lambda: render(BOMB), limit_s=0.05)
    # And what the thread does next is its own again.
    assert render_bounded(lambda: render("{{ 1 + 1 }}"), limit_s=0.05) == "2"


def test_one_that_waits_costs_nothing() -> None:
    """CPU time is counted: on a busy machine a template may take long."""
    pause = threading.Event()

    def slow() -> str:
        pause.wait(0.3)
        return "late"

    assert render_bounded(slow, limit_s=0.05) == "late"


def test_threads_are_bounded_by_themselves() -> None:
    found: list[str] = []

    def loop() -> None:
        with pytest.raises(FormatError):
            render_bounded(lambda: render(BOMB), limit_s=0.1)
        found.append("ended")

    threads = [threading.Thread(target=loop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        assert render_bounded(lambda: render("{{ 'x' * 3 }}")) == "xxx"
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == ["ended"] * 3


def test_a_template_that_writes_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEXT_LIMIT", 1000)
    with pytest.raises(FormatError, match="wrote 2,000 characters"):
        render_bounded(lambda: render("{{ 'x' * 2000 }}"))


def test_the_time_may_be_up_while_the_template_ends() -> None:
    """The exception then arrives where the thread waits for the watch: it neither keeps the watch
    for itself, nor takes the exception along."""
    found: list[str] = []
    rendering, go = threading.Event(), threading.Event()

    def render_at_last() -> str:
        rendering.set()
        go.wait()
        return "done"

    def end_late() -> None:
        try:
            found.append(render_bounded(render_at_last))
        except FormatError as error:
            found.append(str(error))
        found.append(render_bounded(lambda: "and another"))

    for _ in range(20):
        found.clear()
        rendering.clear()
        go.clear()
        thread = threading.Thread(target=end_late, daemon=True)
        thread.start()
        assert rendering.wait(PATIENCE_S)
        with module._WATCH.changed:
            go.set()
            threading.Event().wait(0.005)  # it comes to wait for the watch, most of the times
            (entry,) = module._WATCH.entries
            module._WATCH.entries.discard(entry)
            entry.struck = True
            module._raise_in(entry.thread, module.TemplateTimeError)
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the watch is held by nobody"
        assert found[0] == "done" or "CPU time" in found[0]
        assert found[1:] == ["and another"]
