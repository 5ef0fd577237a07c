"""`agentc data`: a data set of somebody else's environment from begin to end, and ALFWorld's."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path

import pytest
from tests.data_sets.served_files import Files, served

from agentc.data_sets.acquire import differences
from agentc_backends.environments.alfworld.backend import GAMES
from agentc_backends.environments.alfworld.invented import invented_games
from agentc_backends.environments.alfworld.job_pack import main as pack

Agentc = Callable[..., "subprocess.CompletedProcess[str]"]
SHARED = Path(os.environ.get("AGENTC_SHARED", Path(__file__).parents[3] / "shared")) / "data"
RIDDLES = "".join(f"what comes after {n}?\n" for n in range(300))
DECLARATION = """
from dataclasses import replace
from agentc.backend_api import DataSet, DataSource
from agentc_backends.environments.textcraft.backend import BACKEND
SET = DataSet(
    name="riddles", doc="Riddles.", licence="none", unpacked_size=10_000,
    sources=(DataSource(name="riddles.zip", url="{address}/riddles.zip", size=3_000),
             DataSource(name="words.txt", url="{address}/words.txt", size=10)),
    program=("-m", "riddles.convert"), contents={{"riddles.txt": "{digest}"}},
    use="`riddles: {{path}}`",
)
RIDDLE = replace(BACKEND, id="env.riddle", data_sets=(SET,))
"""
CONVERTER = """
import gzip, sys
from pathlib import Path
fetched, out = map(Path, sys.argv[1:])
assert (fetched / "words.txt").read_text() == "one two"
text = (fetched / "inner/riddles.txt").read_text()
with gzip.open(out / "riddles.txt.gz", "wt") as stream:
    stream.write(text)
"""


def zipped(**members: str) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_txt", ".txt"), content)
    return stream.getvalue()


@pytest.fixture
def riddles(tmp_path: Path) -> Iterator[Files]:
    """A distribution with an environment that has a data set, and the server that has its files."""
    content = {"/riddles.zip": zipped(inner__riddles_txt=RIDDLES), "/words.txt": b"one two"}
    with served(Files(content)) as files:
        digest = hashlib.sha256(RIDDLES.encode()).hexdigest()
        package = tmp_path / "site" / "riddles"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(
            DECLARATION.format(address=files.address, digest=digest)
        )
        (package / "convert.py").write_text(CONVERTER)
        about = tmp_path / "site" / "riddles-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: riddles\nVersion: 1\n")
        (about / "entry_points.txt").write_text("[agentc.backends]\nenv.riddle = riddles:RIDDLE\n")
        yield files


@pytest.fixture
def agentc(tmp_path: Path) -> Agentc:
    """Runs a command with the distribution beside agentc, in an empty folder."""
    work = tmp_path / "work"
    work.mkdir()
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "no_proxy": "127.0.0.1"}

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("agentc")), "data", *map(str, words)],
            capture_output=True, text=True, check=False, cwd=work, env=variables, timeout=1800,
        )  # fmt: skip
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


def left(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in (tmp_path / "work").iterdir())


def test_a_data_set_is_listed_fetched_and_verified(
    riddles: Files, agentc: Agentc, tmp_path: Path
) -> None:
    listed = agentc("ls").stdout.splitlines()
    assert [line for line in listed if "riddles" in line] == [
        next(line for line in listed if line.startswith("riddles ")),
    ]
    shown = agentc("ls", "riddles").stdout
    assert f"riddles.zip: {riddles.address}/riddles.zip" in shown
    assert "for       env.riddle: `riddles: riddles`" in shown
    assert agentc("ls", "riddle").returncode == 5
    done = agentc("fetch", "riddles", "--to", "here/r")
    assert done.returncode == 0, done.stderr
    assert "checked by its hashes" in done.stdout
    folder = tmp_path / "work/here/r"
    assert gzip.decompress((folder / "riddles.txt.gz").read_bytes()).decode() == RIDDLES
    assert [each.name for each in folder.parent.iterdir()] == ["r"]
    origin = json.loads((folder / "ORIGIN.json").read_text())
    assert origin[0]["sha256"] == hashlib.sha256(riddles.content["/riddles.zip"]).hexdigest()
    assert agentc("verify", "riddles", "here/r").returncode == 0
    before = len(riddles.asked)
    assert "already" in agentc("fetch", "riddles", "--to", "here/r").stdout
    assert len(riddles.asked) == before
    (folder / "riddles.txt.gz").write_bytes(gzip.compress(b"other"))
    damaged = agentc("verify", "riddles", "here/r")
    assert (damaged.returncode, "riddles.txt.gz holds" in damaged.stderr) == (4, True)
    # What is there is not written over.
    assert agentc("fetch", "riddles", "--to", "here/r").returncode == 2


def test_other_content_is_refused_and_nothing_is_left(
    riddles: Files, agentc: Agentc, tmp_path: Path
) -> None:
    riddles.content["/riddles.zip"] = zipped(inner__riddles_txt=RIDDLES + "and after that?\n")
    done = agentc("fetch", "riddles")
    assert done.returncode == 3
    assert "riddles.txt.gz holds" in done.stderr
    assert "nothing was kept" in done.stderr
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"/riddles.zip": zipped(**{"..__evil_txt": "x"})}, "would lie elsewhere"),
        ({"/riddles.zip": zipped(inner__riddles_txt="7" * 30_000)}, "larger than"),
        ({"/riddles.zip": zipped(other_txt="x")}, "refused what came"),
        ({"/riddles.zip": b"not a zip"}, "cannot be unpacked"),
        ({"/words.txt": bytes(100)}, "larger than the 20 bytes"),
    ],
)
def test_what_is_not_right_leaves_nothing(
    riddles: Files, agentc: Agentc, tmp_path: Path, content: dict[str, bytes], says: str
) -> None:
    riddles.content |= content
    done = agentc("fetch", "riddles")
    assert (done.returncode, says in done.stderr) == (3, True), done.stderr
    assert left(tmp_path) == []


def test_a_python_that_may_not_be_executed_is_no_bug_of_agentc(
    riddles: Files, agentc: Agentc, tmp_path: Path
) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\n")
    package = tmp_path / "site" / "riddles" / "__init__.py"
    package.write_text(f"{package.read_text()}\nimport sys\nsys.executable = {str(python)!r}\n")
    done = agentc("fetch", "riddles")
    assert done.returncode == 3
    assert f"agentc: the interpreter {python} cannot be started: " in done.stderr
    assert f"may not execute {python}" in done.stderr


def test_files_folders_and_mirrors_in_place_of_the_address(
    riddles: Files, agentc: Agentc, tmp_path: Path
) -> None:
    (tmp_path / "r.zip").write_bytes(riddles.content.pop("/riddles.zip"))
    broken = agentc("fetch", "riddles", "--to", "a")
    assert (broken.returncode, "404" in broken.stderr) == (3, True)
    assert "--from" in broken.stderr
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/riddles.txt").write_text(RIDDLES)
    riddles.content["/mirror/w"] = riddles.content.pop("/words.txt")
    words = f"words.txt={riddles.address}/mirror/w"
    for name, place in (("a", tmp_path / "r.zip"), ("b", tmp_path / "inner")):
        done = agentc(
            "fetch", "riddles", "--to", name, "--from", f"riddles.zip={place}", "--from", words
        )
        assert done.returncode == 0, done.stderr
    assert left(tmp_path) == ["a", "b"]
    which = agentc("fetch", "riddles", "--to", "c", "--from", tmp_path / "r.zip")
    assert (which.returncode, "--from riddles.zip=PLACE" in which.stderr) == (2, True)
    unknown = agentc("fetch", "riddle")
    assert (unknown.returncode, "riddles" in unknown.stderr) == (5, True)


def games_zip(folder: str, games: Iterator[tuple[str, dict[str, object]]]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, game in games:
            archive.writestr(f"{folder}/{name}/game.tw-pddl", json.dumps(game))
    return stream.getvalue()


def test_games_that_are_not_alfworlds_are_refused(agentc: Agentc, tmp_path: Path) -> None:
    """Invented games, in the form of the real archive."""

    def games() -> Iterator[tuple[str, dict[str, object]]]:
        for game in invented_games("valid_seen", 12, 0):
            yield (
                f"valid_seen/{game.task_id}",
                {
                    "pddl_problem": zlib.decompress(game.packed).decode(),
                    "grammar": f'{{ "rhs": "{game.description}" }}',
                    "walkthrough": list(game.walkthrough),
                    "solvable": True,
                },
            )

    with served(Files({"/games.zip": games_zip("json_2.1.1", games())})) as files:
        done = agentc("fetch", "alfworld", "--from", f"{files.address}/games.zip")
    assert done.returncode == 3
    assert "train.jsonl is not there" in done.stderr
    assert "valid_seen.jsonl.xz holds" in done.stderr
    assert left(tmp_path) == []


def released(parts: Iterable[str]) -> Iterator[tuple[str, dict[str, object]]]:
    """ALFWorld's games as its archive has them."""
    data = SHARED / "alfworld"
    if not data.is_dir():
        pytest.skip(f"ALFWorld's games are not in {data}; set AGENTC_SHARED")
    grammar = (data / "alfred.grammar.twl2").read_text()
    for part in parts:
        for line in lzma.decompress((data / f"{part}.jsonl.xz").read_bytes()).splitlines():
            row = json.loads(line)
            kept = {key: row[key] for key in ("pddl_problem", "walkthrough")}
            text = grammar.replace("@@TASK@@", row["task_desc"])
            place = f"{part}/{row['task']}/{row['trial']}"
            yield place, {**kept, "grammar": text, "solvable": True}


def test_alfworlds_own_games_are_known_by_their_content(tmp_path: Path) -> None:
    for name, game in released(["valid_unseen"]):
        place = tmp_path / "json_2.1.1" / name
        place.mkdir(parents=True)
        (place / "game.tw-pddl").write_text(json.dumps(game))
    assert pack([str(tmp_path), str(tmp_path / "out")]) == 0
    others = [f"{part}.jsonl is not there" for part in ("train", "valid_train", "valid_seen")]
    assert list(differences(GAMES, tmp_path / "out")) == others


@pytest.mark.slow
@pytest.mark.skipif("AGENTC_FETCH_ALL" not in os.environ, reason="set AGENTC_FETCH_ALL: 2 minutes")
def test_all_of_alfworlds_games_are_fetched(agentc: Agentc, tmp_path: Path) -> None:
    content = games_zip("json_2.1.1", released(name.partition(".")[0] for name in GAMES.contents))
    (tmp_path / "games.zip").write_bytes(content)
    done = agentc("fetch", "alfworld", "--from", tmp_path / "games.zip")
    assert done.returncode == 0, done.stderr
    assert left(tmp_path) == ["alfworld"]
