"""What an editor shows about a spec, by the real yaml-language-server and the schema that
`agentc dev schema` prints. The server comes from npm, once, into .agentc/."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.editor.language_server import LanguageServer
from tests.support.patience import PATIENCE_S

from agentc.backend_api import EnvironmentBackend, StageBackend, load_backends
from agentc.kinds import KINDS, kind_named
from agentc.schema import language
from agentc.templates.library import shipped_templates

VERSION = "1.25.0"
Offer = dict[str, str]
HEAD = "# yaml-language-server: $schema=agentc.schema.json\nagentc: 1\nname: demo\n"
SFT = "stages:\n  sft:\n    kind: sft\n    "

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    command = installed(repository)
    folder = tmp_path_factory.mktemp("project")
    schema = subprocess.run(
        [sys.executable, "-c", "from agentc.cli import main; main(['dev', 'schema'])"],
        capture_output=True,
        check=True,
    )
    (folder / "agentc.schema.json").write_bytes(schema.stdout)
    running = LanguageServer(command, folder)
    yield running
    running.close()


def installed(repository: Path) -> tuple[str, str]:
    """The command of the server; skips where it can be neither found nor fetched."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed, so there is no yaml-language-server to ask")
    cache = repository / ".agentc" / f"yaml-language-server-{VERSION}"
    program = cache / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
    if not program.is_file():
        reason = fetch(npm, cache)
        if not program.is_file():
            pytest.skip(f"npm cannot fetch yaml-language-server {VERSION}: {reason[-300:]}")
    return node, str(program)


def fetch(npm: str, cache: Path) -> str:
    """Install the server, whole or not at all: another test run may want it at the same time.
    What npm says when it cannot."""
    draft = cache.with_name(f"{cache.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    words = [npm, "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts"]
    try:
        done = subprocess.run(
            [*words, "--prefix", str(draft), f"yaml-language-server@{VERSION}"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        draft.rename(cache)
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return str(done.stderr)


@pytest.fixture
def offered(server: LanguageServer, request: pytest.FixtureRequest) -> Callable[[str], Offer]:
    """Label -> documentation of what is offered at the `|` of a spec."""
    names = (f"{request.node.name}{number}.yaml" for number in count())
    return lambda text: server.completions(next(names), HEAD + text)


@pytest.fixture
def shown(server: LanguageServer, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """What is shown about the thing at the `|` of a spec."""
    names = (f"{request.node.name}{number}.yaml" for number in count())
    return lambda text: server.hover(next(names), HEAD + text)


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS if kind.name != "model"])
def test_a_stage_completes_the_keys_of_its_kind(kind: str, offered: Callable[[str], Offer]) -> None:
    found = offered(f"stages:\n  x:\n    kind: {kind}\n    |")
    declared = kind_named(kind)
    assert declared is not None
    for part in (*declared.fields, *declared.roles):
        assert part.doc in plain(found[part.name])
    assert {"backend", "options", "placement", *declared.uses} <= set(found)
    assert "repeat" not in found
    # An input may be called as another kind's setting is (`candidates` of `rank` and `sample`).
    own = {part.name for part in (*declared.fields, *declared.roles)}
    others = {f.name for each in KINDS for f in each.fields} - own
    assert not others & set(found)


def test_inside_a_repeat_too(offered: Callable[[str], Offer]) -> None:
    loop = "stages:\n  loop:\n    repeat:\n      "
    assert {"n", "carry", "stages"} <= set(offered(f"{loop}|"))
    found = offered(f"{loop}n: 2\n      stages:\n        x:\n          kind: dpo\n          |")
    assert "beta" in found
    assert "max_turns" not in found


def test_an_entry_of_stages_becomes_a_stage_or_a_repeat(offered: Callable[[str], Offer]) -> None:
    found = offered("stages:\n  x:\n    |")
    assert found["kind"]
    assert found["repeat"]
    kinds = offered("stages:\n  x:\n    kind: |")
    assert {kind.name: kind.doc for kind in KINDS} == {k: plain(doc) for k, doc in kinds.items()}


def test_backends_and_their_own_settings(offered: Callable[[str], Offer]) -> None:
    for backend in load_backends():
        doc = plain(backend.doc)
        if isinstance(backend, StageBackend) and backend.kind != "model":
            stage = f"stages:\n  x:\n    kind: {backend.kind}\n    "
            assert plain(offered(f"{stage}backend: |")[backend.id]) == doc
            found = offered(f"{stage}backend: {backend.id}\n    options:\n      |")
            assert set(found) >= {option.name for option in backend.options}
            for option in backend.options:
                assert plain(option.doc) in plain(found[option.name]), option.name
        elif isinstance(backend, EnvironmentBackend):
            entry = "environments:\n  x:\n    backend: "
            assert plain(offered(f"{entry}|")[backend.id]) == doc
            found = offered(f"{entry}{backend.id}\n    |")
            assert set(found) >= {field.name for field in backend.fields}


def test_words_and_groups(offered: Callable[[str], Offer]) -> None:
    assert {"linear", "cosine", "constant"} <= set(offered(f"{SFT}scheduler: |"))
    assert {"rank", "alpha", "dropout"} <= set(offered(f"{SFT}lora:\n      |"))
    assert {"cpus", "gpus"} <= set(offered(f"{SFT}placement:\n      |"))
    assert {"stages", "models", "params"} <= set(offered("|"))
    assert {"lr", "decode", "seed"} <= set(offered("defaults:\n  |"))
    assert {"type", "default"} <= set(offered("params:\n  x:\n    |"))


def test_templates_and_what_they_take(offered: Callable[[str], Offer]) -> None:
    assert offered("stages:\n  x:\n    |")["use"]
    templates = {each.name: each for each in shipped_templates()}
    stages = offered("stages:\n  x:\n    use: |")
    assert set(stages) == {name for name, each in templates.items() if each.makes == "stage"}
    for name, template in templates.items():
        section = language.TEMPLATES[template.makes]
        if template.makes in ("spec", "paper", "defaults"):
            continue
        entry = f"{section}:\n  x:\n    use: {name}\n    "
        beside = offered(f"{entry}|")
        assert {"with", "append"} <= set(beside)
        taken = offered(f"{entry}with:\n      |")
        for param in template.params.values():
            assert plain(param.doc or "") in plain(taken[param.name])
    assert "max_turns" in offered("stages:\n  x:\n    use: evaluate\n    |")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sta|ges:\n  x: {kind: compare, of: [y]}\n", "What is done"),
        (f"{SFT}l|r: 1e-5\n", "Peak learning rate. Required."),
        (f"{SFT}schedu|ler: cosine\n", 'Shape of the learning rate. Default: "linear".'),
        (
            "environments:\n  x:\n    backend: textcraft\n    distr|actors: 3\n",
            "Commands of no use",
        ),
        (
            "stages:\n  x:\n    kind: rollout\n    options:\n      prompt_per_att|empt: false\n",
            "a prompt seed of its own",
        ),
    ],
)
def test_hovering_shows_what_a_key_means(
    text: str, expected: str, shown: Callable[[str], str]
) -> None:
    assert expected in plain(shown(text))


def test_shipped_specs_have_nothing_against_them(server: LanguageServer, repository: Path) -> None:
    specs = sorted((repository / "specs").rglob("*.yaml"))
    for spec in specs:
        text = HEAD.split("\n", 1)[0] + "\n" + spec.read_text()
        assert server.diagnostics(f"{spec.parent.name}_{spec.name}", text) == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("stags:\n  x: {kind: compare, of: [y]}\n", "stags"),
        ("models:\n  x: {backend: path, pth: y}\n", "pth"),
        ("environments:\n  x: {backend: textcraft, max_deepth: 2}\n", "max_deepth"),
        (f"{SFT}model: x\n    data: y\n    warmup_ration: 0.1\n", "warmup_ration"),
        ("stages:\n  x: {kind: rollout, model: y, decode: {temprature: 1}}\n", "temprature"),
        ("stages:\n  x: {kind: rollout, model: y, options: {action_spam: 1}}\n", "action_spam"),
        ("stages:\n  x:\n    repeat:\n      n: 2\n      cary: {}\n      stages: {}\n", "cary"),
        ("stages:\n  x:\n    use: evaluate\n    with: {polcy: y}\n", "polcy"),
        ("stages:\n  x:\n    use: evaluate\n    with: {model: y}\n    atempts: 2\n", "atempts"),
    ],
)
def test_a_misspelt_key_is_marked(text: str, key: str, server: LanguageServer) -> None:
    lines = (HEAD + text).split("\n")
    found = server.diagnostics(f"wrong_{key}.yaml", HEAD + text)
    marked = {
        lines[one["range"]["start"]["line"]][
            one["range"]["start"]["character"] : one["range"]["end"]["character"]
        ]
        for one in found
        if "not allowed" in one["message"]
    }
    assert marked == {key}


def plain(text: str) -> str:
    """Without the backslashes and rules that Markdown wants."""
    return re.sub(r"\\([^\w\s])", r"\1", text)
