"""What stands in the place of `uv` for the scripts of harnesses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentc_backends.agents.verifiers.uv_command import main, missing_package

SCRIPT = """\
# /// script
# requires-python = ">=3.10"
# dependencies = [PACKAGES]
# ///
print("a harness")
"""


@pytest.mark.parametrize(
    ("packages", "wrong"),
    [
        ('"pytest"', None),
        ('"pytest>=2", "httpx2[http2]"', None),
        ("", None),
        ('"pytest==0.0.1"', "the lock has"),
        ('"pytest", "no-such-package-of-anyone"', "lacks no-such-package-of-anyone"),
    ],
)
def test_what_a_script_names_has_to_be_there(packages: str, wrong: str | None) -> None:
    found = missing_package(SCRIPT.replace("PACKAGES", packages))
    assert (found is None) if wrong is None else (found is not None and wrong in found)


def test_the_words_that_verifiers_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("PACKAGES", '"pytest"'))
    assert main(["sync", "--help"]) is None
    assert main(["sync", "--script", str(script), "-q", "--no-config"]) is None
    assert main(["python", "find", "--script", str(script), "--no-config"]) is None
    assert capsys.readouterr().out.split() == ["--script", sys.executable]
    assert main(["pip", "install", "x"]) is not None
