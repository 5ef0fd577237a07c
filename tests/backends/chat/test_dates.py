"""A chat template that asks for the date gets one that never changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.template_rendering import with_fixed_date
from agentc_backends.servers.vllm.job_serve import template_words


@pytest.mark.parametrize(
    ("template", "fixed"),
    [
        ("{{ strftime_now('%d %b %Y') }}", "{{ '26 Jul 2024' }}"),
        ('{%- set d = strftime_now( "%Y-%m-%d" ) %}', "{%- set d = '2024-07-26' %}"),
        ("{{ strftime_now(format='%B %d, %Y') }}", "{{ 'July 26, 2024' }}"),
        (
            "{% if strftime_now is defined %}{{ strftime_now('') }}{% endif %}",
            "{% if strftime_now is defined %}{{ '' }}{% endif %}",
        ),
        ("{# strftime_now #}{{ messages[0] }}", "{# strftime_now #}{{ messages[0] }}"),
    ],
)
def test_questions_with_a_constant_are_answered_in_the_text(template: str, fixed: str) -> None:
    assert with_fixed_date(template) == fixed


@pytest.mark.parametrize(
    "call", ["strftime_now(form)", "strftime_now ('%d' + '%m')", "strftime_now | attr('x')"]
)
def test_a_question_that_is_computed_is_refused_with_a_remedy(call: str) -> None:
    with pytest.raises(FormatError, match="choose a built-in chat_format"):
        with_fixed_date(f"{{{{ {call} }}}}")


def test_vllm_is_given_the_template_with_the_date(tmp_path: Path) -> None:
    model, folder = tmp_path / "model", tmp_path / "folder"
    model.mkdir()
    folder.mkdir()
    words = ["job_serve", "serve", str(model), "--port", "1"]
    assert template_words(words[:2], folder) == []
    assert template_words(words, folder) == []
    (model / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    assert template_words(words, folder) == []
    written = "{{ strftime_now('%Y') }}{{ messages }}"
    (model / "chat_template.jinja").write_text(written, encoding="utf-8")
    option, path = template_words(words, folder)
    assert option == "--chat-template"
    assert Path(path).read_text("utf-8") == "{{ '2024' }}{{ messages }}"
