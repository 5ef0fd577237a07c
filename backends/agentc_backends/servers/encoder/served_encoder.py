"""ServedEncoder: a CLIP as transformers loads it, and how it wants its pictures."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

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
