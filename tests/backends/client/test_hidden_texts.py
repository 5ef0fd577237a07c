"""Whatever a server makes of `/privileged`, no message has a word of it."""

from __future__ import annotations

import asyncio
import json
import traceback
from typing import Any

import pytest
from answering import Answer, Serve
from tests.support.patience import PATIENCE_S

from agentc_backends import clients
from agentc_backends.clients.environment import EnvironmentClient

SECRET = 'def price(kind, n): return n * {"dog": 12}.get(kind, 1)'
QUICK = clients.RetryPolicy(attempts=2, base_s=0.01, cap_s=0.02)
TOLD = {"task_id": "t1", "text": SECRET, "media": "text/plain"}
META = {"splits": {"train": ["t1"]}, "protocol": [], "capabilities": ["privileged"]}

ANSWERS = {
    "cut": Answer(body=json.dumps({"texts": [TOLD]}).encode()[:-1]),
    "not_an_object": Answer(body=[SECRET]),
    "an_error_of_the_world": Answer(body={"error": f"cannot tell {SECRET}"}),
    "refused": Answer(403, {"error": SECRET}),
    "refused_with_a_code": Answer(422, {"error": {"message": SECRET, "code": SECRET}}),
    "refused_in_plain_text": Answer(400, SECRET.encode()),
    "broken": Answer(500, SECRET.encode()),
    "texts_of_another_kind": Answer(body={"texts": {SECRET: SECRET}}),
    "too_many": Answer(body={"texts": [TOLD, TOLD]}),
    "an_item_that_is_text": Answer(body={"texts": [SECRET]}),
    "an_item_without_text": Answer(body={"texts": [{"task_id": SECRET, "media": SECRET}]}),
    "no_chunk": Answer(body=SECRET.encode(), headers={"Transfer-Encoding": "chunked"}),
    "no_chunk_in_a_line": Answer(
        body=f"{SECRET}\r\n".encode(), headers={"Transfer-Encoding": "chunked"}
    ),
}


def asked(url: str, patience_s: float = PATIENCE_S) -> list[dict[str, str]]:
    async def ask() -> list[dict[str, str]]:
        timeouts = clients.Timeouts(read_s=patience_s)
        async with EnvironmentClient(url, "t", retry=QUICK, timeouts=timeouts) as environment:
            return await environment.hidden(["t1"])

    return asyncio.run(ask())


def test_texts_as_they_were_told(serve: Serve) -> None:
    assert asked(serve([Answer(body={"texts": [TOLD]})]).url) == [TOLD]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_no_message_has_a_word_of_them(serve: Serve, answer: Answer) -> None:
    with pytest.raises(clients.ServiceError) as raised:
        # A server that never says how a chunk goes on is waited for.
        asked(serve([answer]).url, 1.0)
    shown = "".join(traceback.format_exception(raised.value))
    assert "/privileged" in str(raised.value)
    assert "price" not in shown


def test_the_status_and_what_it_means_are_said(serve: Serve) -> None:
    with pytest.raises(clients.BadRequestError, match=r"403 .*--privileged"):
        asked(serve([ANSWERS["refused"]]).url)
    with pytest.raises(clients.InfrastructureError, match="500"):
        asked(serve([ANSWERS["broken"]]).url)


@pytest.mark.parametrize(
    ("name", "code"), [("an_error_of_the_world", 1), ("refused", 1), ("cut", 75)]
)
def test_the_job_says_a_line_without_them(serve: Serve, run_job: Any, name: str, code: int) -> None:
    server = serve(lambda number, path, body: ANSWERS[name] if body else Answer(body=META))
    lease = {"url": server.url, "token": "t", "log": "of the environment"}
    module = "agentc_backends.agents.privileged.job_privileged"
    done = run_job(module, {"split": "train", "limit": None}, leases={"environment": lease})
    assert done.code == code, done.output
    assert done.output.count("/privileged") == 1
    assert "price" not in done.output
    assert "Traceback" not in done.output
