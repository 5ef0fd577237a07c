"""The ASGI application: OpenAI's routes over a `TextModel`. `process.py` runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agentc_backends.openai_api.access import TokenGate
from agentc_backends.openai_api.conversation import ToolUse, read_messages, read_tool_use
from agentc_backends.openai_api.encoding import PromptEncoder
from agentc_backends.openai_api.replies import (
    JsonReply,
    chat_reply,
    completion_entry,
    completion_reply,
    error_reply,
)
from agentc_backends.openai_api.requests import (
    TOKENIZE_FIELDS,
    ChatCall,
    CompletionCall,
    Streaming,
    read_chat,
    read_completion,
    read_object,
    read_template,
    require_reportable,
)
from agentc_backends.openai_api.streaming import (
    ChatChunks,
    CompletionChunks,
    EventStream,
    Put,
    StreamFacts,
    disconnected,
    reply_failed,
)
from agentc_backends.openai_api.text_model import (
    Choice,
    ReplyFailedError,
    Sampling,
    ServerStoppedError,
    TextModel,
    TokenListener,
    TokenScore,
)
from agentc_backends.openai_api.values import (
    ApiError,
    flag,
    refuse_unknown,
    require_model,
    text,
)

_T = TypeVar("_T")
_Produce = Callable[[Request], Awaitable[object]]


def create_app(model: TextModel, served_name: str, *, token: str | None = None) -> ASGIApp:
    """The application; with a token every route but /health demands it."""
    handlers = _Handlers(model, served_name)
    routes = [
        Route("/health", _replying(handlers.health), methods=["GET"]),
        Route("/v1/models", _replying(handlers.models), methods=["GET"]),
        Route("/v1/chat/completions", _replying(handlers.chat), methods=["POST"]),
        Route("/v1/completions", _replying(handlers.completions), methods=["POST"]),
        Route("/tokenize", _replying(handlers.tokenize), methods=["POST"]),
        Route("/reload", _replying(handlers.reload), methods=["POST"]),
    ]
    app = Starlette(routes=routes)
    return app if token is None else TokenGate(app, token)


class _Handlers:
    """One coroutine for each route; each returns the JSON of a 200 or raises ApiError."""

    def __init__(self, model: TextModel, served_name: str) -> None:
        self._model = model
        self._encoder = PromptEncoder(model)
        self._name = served_name

    async def health(self, request: Request) -> object:
        return {"status": "ok"}

    async def models(self, request: Request) -> object:
        entry = {
            "id": self._name,
            "object": "model",
            "owned_by": "agentc",
            "root": self._model.root,
            "max_model_len": self._model.max_model_len,
        }
        return {"object": "list", "data": [entry]}

    async def chat(self, request: Request) -> object:
        call = read_chat(await read_object(request), self._name)
        self._check(call.tools)
        prompt = await self._encoder.chat(call.messages, call.template, call.tools.tools)
        sampling = self._fitted(prompt, call.sampling)
        require_reportable(1, len(prompt), sampling, echo=False)
        if call.stream is not None:
            return self._chat_stream(prompt, sampling, call, call.stream)
        choices = await _unless_gone(request, self._model.generate(prompt, sampling))
        return chat_reply(
            self._name, prompt, choices, self._model.decode, call.tools, call.token_ids
        )

    async def completions(self, request: Request) -> object:
        call = read_completion(await read_object(request), self._name)
        # One by one, so that the first that does not fit spares the work of the others.
        prompts = [
            await self._encoder.prompt(prompt, call.add_special_tokens) for prompt in call.prompts
        ]
        fitted = [self._fitted(prompt, call.sampling) for prompt in prompts]
        for prompt, sampling in zip(prompts, fitted, strict=True):
            require_reportable(len(prompts), len(prompt), sampling, echo=call.echo)
        if call.stream is not None:
            return self._completion_stream(prompts, fitted, call, call.stream)
        work = asyncio.gather(
            *(
                self._complete(prompt, call, how)
                for prompt, how in zip(prompts, fitted, strict=True)
            )
        )
        results = await _unless_gone(request, work)
        entries: list[dict[str, Any]] = []
        every: list[Choice] = []
        for prompt, (choices, echoed) in zip(prompts, results, strict=True):
            for choice in choices:
                entry = completion_entry(
                    len(entries),
                    choice,
                    self._model.decode,
                    prompt=prompt,
                    echoed=echoed,
                    logprobs=call.sampling.logprobs is not None,
                    token_ids=call.token_ids,
                )
                entries.append(entry)
                every.append(choice)
        return completion_reply(self._name, entries, sum(map(len, prompts)), every)

    def _chat_stream(
        self, prompt: list[int], sampling: Sampling, call: ChatCall, stream: Streaming
    ) -> EventStream:
        async def produce(put: Put) -> None:
            facts = self._facts(put, call.sampling, stream, call.token_ids)
            chunks = ChatChunks(facts, sampling.n, prompt, call.tools)
            chunks.begin()
            chunks.end(await self._model.generate(prompt, sampling, chunks.add))

        return EventStream(produce)

    def _completion_stream(
        self,
        prompts: Sequence[list[int]],
        fitted: Sequence[Sampling],
        call: CompletionCall,
        stream: Streaming,
    ) -> EventStream:
        async def produce(put: Put) -> None:
            facts = self._facts(put, call.sampling, stream, call.token_ids)
            width = call.sampling.n
            chunks = CompletionChunks(facts, len(prompts) * width)

            async def complete(place: int) -> list[Choice]:
                prompt, first = prompts[place], place * width
                if call.echo or call.token_ids:
                    text = self._model.decode(prompt) if call.echo else ""
                    for index in range(first, first + width):
                        chunks.echo(index, prompt, text)
                hearer = chunks.hearer(first)
                choices, echoed = await self._complete(prompt, call, fitted[place], hearer)
                chunks.end(first, choices, echoed, logprobs=call.sampling.logprobs is not None)
                return choices

            found = await asyncio.gather(*map(complete, range(len(prompts))))
            chunks.count(sum(map(len, prompts)), [each for part in found for each in part])

        return EventStream(produce)

    def _facts(
        self, put: Put, sampling: Sampling, stream: Streaming, token_ids: bool
    ) -> StreamFacts:
        return StreamFacts(
            put=put,
            model=self._name,
            text_of=self._model.reply_text,
            decode=self._model.decode,
            stops=sampling.stop,
            token_ids=token_ids,
            usage=stream.usage,
        )

    async def tokenize(self, request: Request) -> object:
        body = await read_object(request)
        refuse_unknown(body, TOKENIZE_FIELDS)
        if "model" in body:
            require_model(body, self._name)
        if ("messages" in body) == ("prompt" in body):
            raise ApiError(400, "give either messages or prompt", "invalid_value", "prompt")
        if "messages" in body:
            tokens = await self._encoder.count_chat(
                read_messages(body), read_template(body), read_tool_use(body).tools
            )
        else:
            special = flag(body, "add_special_tokens", True)
            tokens = await self._encoder.count(text(body, "prompt"), special)
        return {
            "tokens": tokens,
            "count": len(tokens),
            "max_model_len": self._model.max_model_len,
        }

    async def reload(self, request: Request) -> object:
        body = await read_object(request)
        refuse_unknown(body, frozenset({"path"}))
        try:
            await self._model.reload(text(body, "path"))
        except ValueError as error:
            raise ApiError(400, str(error), "invalid_value", "path") from error
        return {"status": "ok", "root": self._model.root}

    async def _complete(
        self,
        prompt: list[int],
        call: CompletionCall,
        sampling: Sampling,
        listener: TokenListener | None = None,
    ) -> tuple[list[Choice], tuple[str, list[TokenScore]] | None]:
        echoed: tuple[str, list[TokenScore]] | None = None
        if call.echo:
            scores: list[TokenScore] = []
            if sampling.logprobs is not None:
                scores = await self._model.score(prompt, sampling.logprobs)
            echoed = (self._model.decode(prompt), scores)
        if sampling.max_tokens == 0:
            empty = Choice(text="", tokens=(), finish_reason="length")
            return [empty] * sampling.n, echoed
        return await self._model.generate(prompt, sampling, listener), echoed

    def _check(self, tools: ToolUse) -> None:
        """Refuse what replies cannot be held to, before anything is computed."""
        if tools.grammar is not None:
            try:
                self._model.check_grammar(tools.grammar)
            except ValueError as error:
                raise ApiError(400, str(error), "invalid_value", tools.cause) from error

    def _fitted(self, prompt: Sequence[int], sampling: Sampling) -> Sampling:
        """The sampling with its limit cut to the room that the prompt leaves; 400 when there is
        none. The same rule as vLLM's."""
        length = self._model.max_model_len
        room = length - len(prompt)
        if room < min(1, sampling.max_tokens):
            raise ApiError(
                400,
                f"this model's maximum context length is {length} tokens, and the prompt itself "
                f"has {len(prompt)}",
                "context_length_exceeded",
                "prompt",
            )
        return replace(sampling, max_tokens=min(sampling.max_tokens, room))


def _replying(produce: _Produce) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            reply = await produce(request)
            return reply if isinstance(reply, Response) else JsonReply(reply)
        except ApiError as error:
            return error_reply(error)
        except ReplyFailedError as error:
            return error_reply(reply_failed(error))
        except ServerStoppedError:
            return error_reply(ApiError(503, "the server is shutting down", "stopped"))

    return endpoint


async def _unless_gone(request: Request, work: Awaitable[_T]) -> _T:
    """Await work, but cancel it once the client has closed the connection."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(disconnected(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ApiError(499, "the client closed the connection", "client_closed")
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
