"""Faulty requests in process: none gives a 500, and none disturbs a session."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentc_backends.environments.server.application import create_app
from agentc_backends.environments.server.wire import MAX_BODY_BYTES
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.recipes import RecipeBook

POSTS = ["/create", "/reset", "/step", "/close", "/fork", "/snapshot", "/restore", "/expert"]
FIELDS = ["id", "action", "data_idx", "task_id", "seed", "snapshot", "x"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
bodies = st.one_of(
    st.binary(max_size=40),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(FIELDS), json_values | st.integers(0, 3), max_size=5).map(
        lambda value: json.dumps(value).encode()
    ),
)


class Client:
    """Calls an application in process; what a handler lets through (a 500) is raised here."""

    def __init__(self, **limits: Any) -> None:
        self._app = create_app(TextCraftEnvironment, **limits)

    def get(self, path: str) -> httpx2.Response:
        return asyncio.run(self._request("GET", path))

    def post(self, path: str, **content: Any) -> httpx2.Response:
        return asyncio.run(self._request("POST", path, **content))

    async def _request(self, method: str, path: str, **content: Any) -> httpx2.Response:
        transport = httpx2.ASGITransport(self._app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://textcraft") as client:
            return await client.request(method, path, **content)


@pytest.fixture
def client(book: RecipeBook) -> Client:
    return Client(max_sessions=50)


def post(client: Client, path: str, **body: object) -> Any:
    return client.post(path, json=body).json()


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=st.sampled_from(POSTS), body=bodies)
def test_any_body_is_answered(client: Client, path: str, body: bytes) -> None:
    session = post(client, "/create")["id"]
    post(client, "/reset", id=session, task_id="minecraft:diamond_block")
    post(client, "/step", id=session, action="get 2 diamond")
    before = post(client, "/snapshot", id=session)
    response = client.post(path, content=body)
    assert response.status_code in (200, 404, 422, 503)
    response.json()
    touched = json.loads(body).get("id") == session if response.status_code == 200 else False
    if not touched:
        assert post(client, "/snapshot", id=session) == before
        assert post(client, "/step", id=session, action="inventory")["observation"] == (
            "Inventory: [diamond] (2) "
        )
    for number in range(session, session + 3):
        post(client, "/close", id=number)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id": NaN}',
        b'{"id": 1e999}',
        b'{"id": ' + b"9" * 5000 + b"}",
        b'"text"',
        b"null",
    ],
)
def test_malformed_json_is_a_422(client: Client, body: bytes) -> None:
    response = client.post("/step", content=body)
    assert response.status_code == 422
    assert response.json()["detail"][0]["type"] in ("json_invalid", "dict_type")


@pytest.mark.parametrize("value", [True, 1.0, "0", [0], {}, 2**64, -(2**64)])
def test_an_id_must_be_an_integer(client: Client, value: object) -> None:
    response = client.post("/step", json={"id": value, "action": "inventory"})
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", "id"]


def test_lone_surrogate_is_quoted_back(client: Client) -> None:
    session = post(client, "/create")["id"]
    response = client.post("/step", content=b'{"id": %d, "action": "\\ud800"}' % session)
    assert response.json()["observation"] == "Could not execute \ud800"


def test_query_numbers(client: Client) -> None:
    assert client.get("/observation").status_code == 422
    assert client.get("/observation?id=x").status_code == 422
    assert client.get("/observation?id=" + "9" * 5000).status_code == 422
    assert client.get("/detail?id=77").json() == {"error": "The id 77 is not valid."}


def test_large_body_is_refused(client: Client) -> None:
    response = client.post("/step", content=b" " * (MAX_BODY_BYTES + 1))
    assert response.status_code == 413


def test_failed_restore_leaves_no_session(book: RecipeBook) -> None:
    client = Client(max_sessions=1)
    assert client.post("/restore", json={"snapshot": {}}).status_code == 422
    assert client.post("/create", json={}).status_code == 200
