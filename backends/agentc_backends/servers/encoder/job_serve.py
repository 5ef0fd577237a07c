"""Serves an encoder until SIGTERM: `python -m agentc_backends.servers.encoder.job_serve`.

`/v1/models` is as model servers have it; `/v1/embeddings` gives a CLIP's features of pictures."""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import io
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agentc_backends.openai_api.access import TokenGate
from agentc_backends.openai_api.process import (
    add_process_arguments,
    add_settings,
    prepare_process,
    serve,
)
from agentc_backends.openai_api.replies import JsonReply, error_reply
from agentc_backends.openai_api.requests import read_object
from agentc_backends.openai_api.values import ApiError, refuse_unknown, require_model
from agentc_backends.servers.encoder.settings import EncoderServer

MOST_PICTURES = 16
_FIELDS = frozenset({"model", "images"})


class PictureModel(Protocol):
    """What is served."""

    root: str

    def features(self, picture: bytes) -> list[float]:
        """Raises PictureError."""


def create_app(encoder: PictureModel, served_name: str, *, token: str | None = None) -> ASGIApp:
    """The application; with a token every route but /health demands it."""

    async def health(request: Request) -> object:
        return {"status": "ok"}

    async def models(request: Request) -> object:
        entry = {"id": served_name, "object": "model", "owned_by": "agentc", "root": encoder.root}
        return {"object": "list", "data": [entry]}

    async def embeddings(request: Request) -> object:
        body = await read_object(request)
        refuse_unknown(body, _FIELDS)
        require_model(body, served_name)
        found = []
        for index, picture in enumerate(_pictures(body)):
            try:
                features = await asyncio.to_thread(encoder.features, picture)
            except PictureError as error:
                raise _refused(index, str(error)) from None
            found.append({"object": "embedding", "index": index, "embedding": features})
        return {"object": "list", "model": served_name, "data": found}

    app = Starlette(
        routes=[
            Route("/health", _replying(health), methods=["GET"]),
            Route("/v1/models", _replying(models), methods=["GET"]),
            Route("/v1/embeddings", _replying(embeddings), methods=["POST"]),
        ]
    )
    return app if token is None else TokenGate(app, token)


def _pictures(body: Mapping[str, Any]) -> list[bytes]:
    images = body.get("images")
    if not isinstance(images, list) or not 0 < len(images) <= MOST_PICTURES:
        raise ApiError(
            400, f"`images` has to be a list of 1 to {MOST_PICTURES}", "invalid_value", "images"
        )
    found = []
    for index, written in enumerate(images):
        try:
            found.append(base64.b64decode(written, validate=True))
        except (TypeError, ValueError, binascii.Error):
            raise _refused(index, "it is no base64") from None
    return found


def _refused(index: int, reason: str) -> ApiError:
    return ApiError(400, f"images[{index}]: {reason}", "invalid_value", "images")


def _replying(
    produce: Callable[[Request], Awaitable[object]],
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return JsonReply(await produce(request))
        except ApiError as error:
            return error_reply(error)

    return endpoint


MOST_PIXELS = 64_000_000
"""A page is 10 million at most."""


class PictureError(ValueError):
    """What was sent is no picture that can be looked at."""


class ServedEncoder:
    """Looks at one picture at a time, so that its features do not depend on what else is asked; may
    be shared by threads."""

    def __init__(self, root: str) -> None:
        """Raises OSError and ValueError as transformers does."""
        import torch

        # By its own name: the plain one makes other pixels where torchvision is installed.
        from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

        self.root = root
        self._lock = threading.Lock()
        self._torch: Any = torch
        self._prepare: Any = CLIPImageProcessorPil.from_pretrained(root, trust_remote_code=False)
        self._model = _loaded(root)

    def features(self, picture: bytes) -> list[float]:
        """Of a picture, as the model projects them; of no certain length. Raises PictureError."""
        pixels = self._prepare(images=_opened(picture), return_tensors="pt")["pixel_values"]
        with self._lock, self._torch.inference_mode():
            found = self._features(pixels)[0]
        if not bool(self._torch.isfinite(found).all()):
            raise PictureError("its features are not finite")
        values: list[float] = found.tolist()
        return values

    def _features(self, pixels: Any) -> Any:
        if hasattr(self._model, "get_image_features"):
            return self._model.get_image_features(pixel_values=pixels).pooler_output
        return self._model(pixel_values=pixels).image_embeds


def _loaded(root: str) -> Any:
    """CLIP whole, or its half that sees, as its config.json says."""
    import torch
    from transformers import CLIPModel, CLIPVisionModelWithProjection

    written = json.loads((Path(root) / "config.json").read_bytes()).get("model_type")
    kinds: dict[str, Any] = {
        "clip": CLIPModel,
        "clip_vision_model": CLIPVisionModelWithProjection,
    }
    if written not in kinds:
        raise ValueError(f"a model of type {written!r}; expected {' or '.join(kinds)}")
    loaded, about = kinds[written].from_pretrained(
        root,
        dtype=torch.float32,
        use_safetensors=True,
        output_loading_info=True,
        trust_remote_code=False,
    )
    missing = sorted(about["missing_keys"])
    if missing:
        # transformers would draw them by chance and say so in its log alone.
        raise ValueError(f"the weights lack {len(missing)} tensors, such as {missing[0]}")
    return loaded.eval()


def _opened(picture: bytes) -> Any:
    from PIL import Image

    try:
        found = Image.open(io.BytesIO(picture))
        if found.width * found.height > MOST_PIXELS:
            raise PictureError(f"it has more than {MOST_PIXELS} pixels")
        return found.convert("RGB")
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise PictureError(f"it cannot be read: {error}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    token = prepare_process(options)
    # Before torch is imported: OpenMP reads it once.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

    try:
        encoder = ServedEncoder(options.model)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    app = create_app(encoder, options.served_name, token=token)
    serve(app, options, facts={"root": encoder.root}, on_stop=lambda: None)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="servers.encoder.job_serve", description=__doc__)
    add_process_arguments(parser)
    parser.add_argument("--model", required=True, help="directory in Hugging Face layout")
    add_settings(parser, EncoderServer)
    return parser


if __name__ == "__main__":
    sys.exit(main())
