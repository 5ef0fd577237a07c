"""What a script says of itself, read without running it."""

from __future__ import annotations

import pytest

from agentc.backend_api.script_header import ScriptError, read_script

HEADER = """\
# /// script
# dependencies = ["rich"]
# [tool.agentc]
# inputs = {episodes = "trajectories", trees = "SearchTrees", more = "any"}
# params = {most = 8, name = "x", words = ["a"]}
# output = "pairs"
# ///
"""


def test_all_that_is_said() -> None:
    header = read_script(HEADER + "import json, os.path\nfrom beside.it import this\n")
    assert header.inputs == {"episodes": "trajectories", "trees": "SearchTrees", "more": "any"}
    assert header.params == {"most": 8, "name": "x", "words": ["a"]}
    assert header.output == "pairs"
    assert header.dependencies == ("rich",)
    assert header.imports == {"json", "os", "beside"}
    assert header.merged_params({"most": 3}) == {"most": 3, "name": "x", "words": ["a"]}


def test_nothing_said_is_not_nothing_taken() -> None:
    header = read_script("print('raise SystemExit')\n")
    assert (header.inputs, header.params, header.output) == (None, None, None)
    assert read_script("# /// script\n# [tool.agentc]\n# inputs = {}\n# ///\n").inputs == {}
    assert read_script('# /// script\n# [tool.uv]\n# x = "y"\n# ///\n').inputs is None


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("x = 1\ndef f(:\n", 2, "invalid syntax"),
        ("x = 1\n# /// script\n# x = 1\n", 2, "has no end"),
        ("# /// script\n# x = 1\ny = 2\n", 1, "has no end"),
        ("# /// script\n# x = = 1\n# ///\n", 1, "is no TOML"),
        (HEADER.replace("output", "outputs"), 1, "unknown key `outputs`"),
        (HEADER.replace('"pairs"', '"pair"'), 1, "`output` of `[tool.agentc]` cannot be `pair`"),
        (HEADER.replace('"any"', "[1]"), 1, "`inputs` of `[tool.agentc]` cannot be `[1]`"),
        (HEADER.replace("{most = 8,", "{most = 2026-11-26,"), 1, "is no table of numbers"),
        ("x = " + "(" * 400 + ")" * 400, 1, ""),
    ],
)
def test_what_cannot_be_understood(text: str, line: int, said: str) -> None:
    with pytest.raises(ScriptError) as caught:
        read_script(text)
    assert said in str(caught.value)
    assert caught.value.line == line
