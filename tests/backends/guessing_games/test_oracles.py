"""Oracles beside the table: recorded dialogues, and a language model behind an API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentc_backends.environments.guessing_games.cities import city_table
from agentc_backends.environments.guessing_games.environment import (
    GuessingEnvironment,
    GuessingShared,
)
from agentc_backends.environments.guessing_games.games import GAMES
from agentc_backends.environments.guessing_games.oracles import (
    DialoguesError,
    RecordedOracle,
    ServerOracle,
    TableOracle,
    read_dialogues,
)
from agentc_backends.environments.guessing_games.settings import GuessingSettings
from agentc_backends.environments.server.environment import EnvironmentFailure

LIMA = "Lima, Peru"
CITIES = city_table().guessable


def test_three_layouts_of_dialogues_are_read_alike() -> None:
    archer = [{"conversation": ["Is it large? Yes, it is."], "word": "lima,peru"}]
    lines = [{"lines": ["Is it large? Yes, it is."], "word": ["Lima"]}]
    own = [{"secret": LIMA, "question": "Is it large?", "answer": "Yes, it is."}]
    for rows in (archer, lines, own):
        found = read_dialogues(json.dumps(rows).encode(), CITIES)
        assert found == ((LIMA, "Is it large?", "Yes, it is."),)
    by_line = "\n".join(json.dumps(row) for row in own * 2).encode()
    assert len(read_dialogues(by_line, CITIES)) == 2


@pytest.mark.parametrize("content", [b"{not json", b"[]", b"\x1f\x8bbroken", b"\xff\xfe", b"[1]"])
def test_a_file_without_dialogues_is_refused(content: bytes) -> None:
    with pytest.raises(DialoguesError, match="recorded dialogue"):
        read_dialogues(content, CITIES)


def test_the_nearest_question_of_the_same_secret_answers() -> None:
    recorded = RecordedOracle(
        [
            (LIMA, "What is the local food like?", "Fish, mostly."),
            (LIMA, "Is it near the sea?", "Yes, it is."),
            ("Paris, France", "What is the traditional food like?", "Bread."),
        ],
        0.5,
        TableOracle(city_table(), "invalid"),
    )
    assert recorded.answer(LIMA, "What is the food like?") == "Fish, mostly."
    assert recorded.answer(LIMA, "Is your city located in Peru?") == "Yes."
    assert recorded.answer("Cairo, Egypt", "What is the food like?") == "Invalid Question."


class _Model(BaseHTTPRequestHandler):
    """Says that it is the secret that stands in its prompt."""

    asked: list[tuple[str | None, str]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        type(self).asked.append((self.headers["Authorization"], body["messages"][1]["content"]))
        told = "Lima, of course" if "Lima" in prompt else "Yes"
        reply = json.dumps({"choices": [{"message": {"content": told}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    _Model.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_model_answers_once_and_cannot_tell_the_city(url: str) -> None:
    oracle = ServerOracle(url, "m", "key", "It is {secret}.")
    world = GuessingShared(
        GAMES["guess_my_city"], GuessingSettings(game="guess_my_city"), oracle, {"kind": "server"}
    )
    environment = GuessingEnvironment(world)
    environment.reset(LIMA)
    observation, _, done, _, _ = environment.step("Where are you\nfrom?")
    assert "lima" not in observation.lower()
    assert not done
    assert environment.step("Where are you from?")[0] == observation
    assert _Model.asked == [("Bearer key", "Where are you from?")]


NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("judge", "question", "transcript", "won"),
    [
        # As the released environment writes it: blanks, line ends and all.
        ("upstream_v1", " Is it  a\ncat? ", " Is it  a\ncat?  Yes.\n", False),
        ("upstream_v1", "Is it a  cat?", "Is it a  cat? Yes.\n", True),
        ("upstream_v1", f"Is it a{NBSP}cat?", f"Is it a{NBSP}cat? Yes.\n", False),
        ("strict_v2", f" Is it  a{NBSP}\ncat? ", "Is it a cat? Yes.\n", True),
    ],
)
def test_blanks_of_a_question(judge: Any, question: str, transcript: str, won: bool) -> None:
    game = GAMES["twenty_questions"]
    settings = GuessingSettings(
        game="twenty_questions", judge=judge, observation="transcript", splits="together"
    )
    table = TableOracle(game.load(), "invalid")
    environment = GuessingEnvironment(GuessingShared(game, settings, table, {"kind": "table"}))
    environment.reset("cat")
    observation, _, over, _, _ = environment.step(question)
    assert (observation, over) == (f"Questions:\n{transcript}", won)


def test_a_silent_server_is_a_failure_of_the_environment() -> None:
    oracle = ServerOracle("http://127.0.0.1:9/v1", "m", None, "{secret}")
    with pytest.raises(EnvironmentFailure, match="does not answer"):
        oracle.answer(LIMA, "Where?")


@pytest.mark.parametrize(
    ("reward", "misses", "wanted"), [("questions_left", 19, 1.0), ("per_question", 19, -19.0),
                                     ("questions_left", 20, 0.0), ("per_question", 20, -20.0),
                                     ("questions_left", 0, 20.0), ("per_question", 0, 0.0)]
)  # fmt: skip
def test_returns_of_whole_games(reward: str, misses: int, wanted: float) -> None:
    game = GAMES["twenty_questions"]
    settings = GuessingSettings(game="twenty_questions", reward=reward)
    table = TableOracle(game.load(), "invalid")
    environment = GuessingEnvironment(GuessingShared(game, settings, table, {"kind": "table"}))
    # Told, so that a reply that asks nothing costs a question as well.
    assert environment.reset("cat")[1] == {"step_limit": 20}
    steps = [environment.step("Is it a dog?") for _ in range(misses)]
    steps += [environment.step("Is it a cat?")] if misses < 20 else []
    assert [step[2] for step in steps] == [False] * (len(steps) - 1) + [True]
    assert sum(step[1] for step in steps) == wanted
    assert (wanted >= environment.success_threshold) == (misses < 20)
    assert environment.step("Is it a cat?")[1:3] == (0.0, True)
