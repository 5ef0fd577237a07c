"""A model that an environment asks, served in the three ways that there are: by the job beside its
policy's server, by a shared server, and at somebody's endpoint with a key of its own."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from smoke import agentc
from tests.support.by_hand_server import served
from tests.support.patience import PATIENCE_S

from agentc_backends.environments.guessing_games.oracles import INSTRUCTIONS
from agentc_backends.software import LIGHT, TORCH

# Before it is trained, a model says its prompt's last token again: in this format no blank.
SPEC = """\
agentc: 1
name: asked
environments:
  plain: {{backend: guess_my_city, questions: 6}}
  city: {{backend: guess_my_city, questions: 3, oracle: model, simulator: {simulator}}}
servers:
  player: {player}
  host: {host}
models:
  base: {{backend: scratch, corpus: expert, hidden_size: 32, layers: 2, heads: 2, context: 1024,
          vocab_size: 384, chat_format: llama-2}}
prompts:
  react: {{instruction: Find the city., reply_format: react_inline}}
defaults: {{seed: {seed}}}
stages:
  expert: {{kind: expert, environment: plain, split: train, limit: 4, seed: 0}}
  play: {{kind: rollout, environment: city, server: player, model: base, split: train, limit: 3,
          concurrency: 3, decode: {{max_tokens: 64}}}}
"""
RULES: list[Any] = [
    {"turn": 0, "reply": "Thought: first. Action: Is your city large?"},
    {"turn": 1, "reply": "Thought: second. Action: Is it in Asia?"},
    {"reply": "Thought: last. Action: What do people eat there?"},
]
PLAYER = f"{{backend: scripted, max_model_len: 1024, rules: {json.dumps(RULES)}}}"
POLICY_KEY, HUMAN_KEY = "key-of-the-policy-0123456789", "key-of-the-human-9876543210"


class Games:
    """Runs of one spec in one store: the expert and the model are made once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "store"
        self._runs = 0

    def answers(
        self, host: str, simulator: str = "{server: host, model: base}", player: str = PLAYER
    ) -> list[list[str]]:
        """What the players heard, game by game. Each run has a seed of its own, so that it plays;
        nothing in these games depends on it."""
        self._runs += 1
        spec = self.folder / f"run-{self._runs}.yaml"
        words = {"host": host, "simulator": simulator, "player": player, "seed": self._runs}
        spec.write_text(SPEC.format(**words), encoding="utf-8")
        agentc("run", spec, "--store", self.store, "--plain")
        manifest = self.object("play")
        rows = (manifest.parent / "data" / "trajectories.jsonl").read_text().splitlines()
        heard = []
        for row in map(json.loads, rows):
            assert (row["error"], row["turns"], row["invalid"]) == (None, 3, 0)
            said = [m["content"] for m in row["messages"][row["prompt_length"] :]]
            heard.append([*said[1::2], row["last_observation"]])
        return heard

    def object(self, job: str) -> Path:
        """The manifest of a job's newest object."""
        found = (self.store / "objects").glob("*/*/artifact.json")
        made = [path for path in found if json.loads(path.read_text())["id"] == job]
        return max(made, key=lambda path: path.stat().st_mtime_ns)

    def cities(self) -> list[str]:
        """Of the last games."""
        rows = (self.object("play").parent / "data" / "trajectories.jsonl").read_text()
        return [json.loads(row)["task_id"] for row in rows.splitlines()]

    def leases(self) -> dict[str, dict[str, Any]]:
        """Of the last games, by role."""
        found = json.loads(self.object("play").read_text())["leases"]
        return {lease["role"]: lease for lease in found}


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Games:
    return Games(tmp_path_factory.mktemp("games"))


@pytest.fixture(scope="module")
def own(games: Games) -> list[list[str]]:
    """The games where each job starts the simulator beside the policy's server."""
    return games.answers("{backend: transformers}")


def post(url: str, body: dict[str, Any], key: str) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read())


@pytest.mark.slow
def test_a_second_server_of_the_job_answers(games: Games, own: list[list[str]]) -> None:
    leases = games.leases()
    assert set(leases) == {"policy", "environment", "simulator"}
    assert leases["simulator"]["ready_s"] > 0
    table = {"Observation: Invalid Question.", "Observation: Yes.", "Observation: No."}
    assert not table & {answer for game in own for answer in game}, "a model answers, no table"


@pytest.mark.slow
@pytest.mark.long
def test_a_shared_server_gives_the_same_games(games: Games, own: list[list[str]]) -> None:
    assert games.answers("{backend: transformers, scope: shared}") == own
    assert games.leases()["simulator"]["scope"] == "shared"


@pytest.mark.slow
def test_endpoints_with_two_keys_give_the_same_games(
    games: Games, own: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each server refuses the other's key, and no key is in the store."""
    monkeypatch.setenv("POLICY_KEY", POLICY_KEY)
    monkeypatch.setenv("HUMAN_KEY", HUMAN_KEY)
    model = str(games.object("base").parent / "data")
    remote = "{backend: openai, url: '%s', model: %s, api_key: {secret: %s}}"
    scripted, transformers = (
        f"agentc_backends.servers.{name}.job_serve" for name in ("scripted", "transformers")
    )
    with (
        served(games.folder, LIGHT, scripted, POLICY_KEY, "--model", model, "--served-name",
               "player", "--max-model-len", "1024", "--rules", json.dumps(RULES)) as player,
        served(games.folder, TORCH, transformers, HUMAN_KEY, "--model", model, "--served-name",
               "host") as host,
    ):  # fmt: skip
        found = games.answers(
            remote % (host, "host", "HUMAN_KEY"),
            "{server: host}",
            remote % (player, "player", "POLICY_KEY"),
        )
        asked = {
            "model": "host", "temperature": 0, "max_tokens": 64,
            "messages": [
                {"role": "system", "content": INSTRUCTIONS["guess_my_city"].replace(
                    "{secret}", games.cities()[0])},
                {"role": "user", "content": "Is your city large?"},
            ],
        }  # fmt: skip
        direct = post(f"{host}/chat/completions", asked, HUMAN_KEY)
    assert found == own
    said = " ".join(direct["choices"][0]["message"]["content"].split())
    assert found[0][0] == f"Observation: {said}"
    for path in games.store.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            assert POLICY_KEY.encode() not in content, path
            assert HUMAN_KEY.encode() not in content, path
