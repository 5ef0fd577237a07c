"""The encoder as transformers loads it, made by its job and served by its program: the same
numbers as a plain forward pass, and the reward of an episode."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw
from tests.backends.colbench.frontend.conftest import TASK, WANTED
from tests.support.by_hand_server import served
from tests.support.patience import PATIENCE_S
from tests.support.smoke import agentc, require_software

from agentc.runtime.browser.process import NoBrowserError
from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.similarity import black_square, cosine
from agentc_backends.environments.colbench.frontend.studio import PageStudio
from agentc_backends.environments.server.model_services import LEASES_VARIABLE, EncoderService
from agentc_backends.software import VISION

pytestmark = pytest.mark.slow
KEY = "a key of this test"
SPEC = """\
agentc: 1
name: scored
environments:
  pages: {backend: colbench_frontend, invented_tasks: 20, browsers: 1, similarity: clip,
          scorer: &clip {server: sees, model: clip}}
  guessed: {backend: colbench_frontend, invented_tasks: 20, browsers: 1, similarity: clip,
            scorer: *clip, careless: 1.0}
servers: {sees: {backend: encoder}}
prompts: {make: {instruction: Make a page., reply_format: text}}
stages:
  clip: {kind: encoder, backend: scratch, seed: 3}
  shown: {kind: expert, environment: pages, split: train, limit: 2}
  guesses: {kind: expert, environment: guessed, split: train, limit: 2}
"""
WHOLE = """
import sys, transformers
from transformers import CLIPConfig, CLIPModel
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
small["num_attention_heads"] = 2
transformers.set_seed(5)
text = {**small, "vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 98}
config = CLIPConfig(text_config=text, vision_config={**small, "patch_size": 32}, projection_dim=24)
CLIPModel(config).save_pretrained(sys.argv[1])
CLIPImageProcessorPil().save_pretrained(sys.argv[1])
"""
FORWARD = """
import json, sys, torch
from PIL import Image
from transformers import CLIPModel, CLIPVisionModelWithProjection
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
kind, folder, *files = sys.argv[1:]
load = CLIPModel if kind == "whole" else CLIPVisionModelWithProjection
model = load.from_pretrained(folder).eval()
prepare = CLIPImageProcessorPil.from_pretrained(folder)
pixels = prepare(images=[Image.open(each).convert("RGB") for each in files], return_tensors="pt")
with torch.no_grad():
    seen = model.vision_model(pixel_values=pixels["pixel_values"]).pooler_output
    print(json.dumps(model.visual_projection(seen).tolist()))
"""


def python(*words: str) -> str:
    """What a program prints in the software stack of encoders."""
    place = Path(os.environ["AGENTC_SOFTWARE"]) / lock_digest(VISION.text)[:16]
    argv = [str(place / "bin" / "python"), "-c", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Scored:
    """A run of the spec, in its store."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        (folder / "scored.yaml").write_text(SPEC, encoding="utf-8")
        agentc("run", folder / "scored.yaml", "--store", self.store, "--plain")

    def manifest(self, job: str) -> Path:
        found = (self.store / "objects").glob("*/*/artifact.json")
        return next(path for path in found if json.loads(path.read_text())["id"] == job)

    def rows(self, job: str) -> list[dict[str, Any]]:
        file = self.manifest(job).parent / "data" / "trajectories.jsonl"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Scored:
    require_software("serve.encoder")
    require_software("env.colbench_frontend")
    return Scored(tmp_path_factory.mktemp("scored"))


@pytest.fixture(scope="module")
def folders(scored: Scored, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What sees alone, as the job made it, and a whole CLIP, as it is published."""
    whole = tmp_path_factory.mktemp("whole") / "clip"
    python(WHOLE, str(whole))
    return {"half": scored.manifest("clip").parent / "data", "whole": whole}


@pytest.fixture(scope="module", params=["half", "whole"])
def address(
    request: pytest.FixtureRequest,
    folders: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, str]]:
    module = "agentc_backends.servers.encoder.job_serve"
    folder = tmp_path_factory.mktemp(request.param)
    words = ("--model", str(folders[request.param]), "--served-name", "clip")
    with served(folder, VISION, module, KEY, *words) as url:
        yield request.param, url


def png(
    *shapes: tuple[tuple[int, int, int, int], str], size: tuple[int, int] = (500, 300)
) -> bytes:
    picture = Image.new("RGB", size, "white")
    for place, colour in shapes:
        ImageDraw.Draw(picture).rectangle(place, fill=colour)
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


def post(url: str, body: Any, key: str = KEY) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/embeddings", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read())


def features(url: str, *pictures: bytes) -> list[list[float]]:
    images = [base64.b64encode(each).decode() for each in pictures]
    data = post(url, {"model": "clip", "images": images})["data"]
    assert [each["index"] for each in data] == [*range(len(pictures))]
    return [each["embedding"] for each in data]


def test_features_are_those_of_a_plain_forward_pass(
    address: tuple[str, str], folders: dict[str, Path], tmp_path: Path
) -> None:
    kind, url = address
    pictures = [
        png(((0, 0, 200, 100), "red")),
        png(((0, 0, 700, 90), "blue"), ((50, 400, 600, 900), "grey"), size=(720, 1400)),
        black_square(),
        png(size=(3, 2)),
    ]
    files = []
    for number, picture in enumerate(pictures):
        files.append(tmp_path / f"{number}.png")
        files[-1].write_bytes(picture)
    plain = json.loads(python(FORWARD, kind, str(folders[kind]), *map(str, files)))
    found = features(url, *pictures)
    for ours, theirs in zip(found, plain, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    for other in (1, 2, 3):
        assert cosine(found[0], found[other]) == pytest.approx(
            cosine(plain[0], plain[other]), abs=1e-5
        )
    assert cosine(found[1], features(url, pictures[1])[0]) == 1.0, "anyone who is asked beside it"
    again = io.BytesIO()
    Image.open(io.BytesIO(pictures[1])).save(again, "PNG", compress_level=0)
    assert again.getvalue() != pictures[1]
    assert features(url, again.getvalue()) == [found[1]], "the same pixels"


@pytest.mark.parametrize("address", ["whole"], indirect=True)
def test_a_page_scores_its_cosine(
    address: tuple[str, str],
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through the client that an environment has; a black page, and a black square for none."""
    kind, url = address
    lease = {"url": url.removesuffix("/v1"), "token": KEY, "model": "clip", "log": "/log"}
    (tmp_path / "leases.json").write_text(json.dumps({"scorer": lease}))
    monkeypatch.setenv(LEASES_VARIABLE, str(tmp_path / "leases.json"))
    settings = FrontendSettings(page_seconds=3.0, browsers=1, unseen="black")
    studio = PageStudio(settings, None, EncoderService())
    try:
        studio.facts()
    except NoBrowserError as error:
        pytest.skip(str(error))
    try:
        sources = {
            "wanted": WANTED,
            "red": WANTED.replace("blue", "red"),
            "black": "<html><body style='background:black'></body></html>",
        }
        pages = {name: studio.render(source) for name, source in sources.items()}
        scores = {name: studio.compared(TASK, page)[2] for name, page in pages.items()}
        missing = studio.compared(TASK, None)
    finally:
        studio.close()
    for name, page in pages.items():
        (tmp_path / f"{name}.png").write_bytes(page.png)
    (tmp_path / "square.png").write_bytes(black_square())
    names = [*sources, "square"]
    files = [str(tmp_path / f"{name}.png") for name in names]
    plain = dict(
        zip(names, json.loads(python(FORWARD, kind, str(folders[kind]), *files)), strict=True)
    )
    assert scores["wanted"] == 1.0
    for name in ("red", "black"):
        assert scores[name] == pytest.approx(cosine(plain["wanted"], plain[name]), abs=1e-5)
        assert scores[name] < 1.0
    square = cosine(plain["wanted"], plain["square"])
    assert missing[2] == pytest.approx(square, abs=1e-5)
    assert missing[2] == pytest.approx(scores["black"], abs=1e-5), "black is black"


@pytest.mark.parametrize("address", ["whole"], indirect=True)
def test_what_is_no_picture_is_refused(address: tuple[str, str]) -> None:
    url = address[1]
    whole = base64.b64encode(png()).decode()
    for body, status, said in (
        ({"model": "clip", "images": ["not base64!"]}, 400, "images[0]: it is no base64"),
        ({"model": "clip", "images": [whole, "AAAA"]}, 400, "images[1]: it cannot be read"),
        ({"model": "clip", "images": []}, 400, "`images` has to be a list"),
        ({"model": "clip", "images": [7]}, 400, "images[0]"),
        ({"model": "other", "images": [whole]}, 404, "does not exist"),
        ({"model": "clip", "images": [whole], "input": "words"}, 400, "input"),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(url, body)
        assert caught.value.code == status, body
        assert said in caught.value.read().decode()
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(url, {"model": "clip", "images": [whole]}, "another key")
    assert caught.value.code == 401


def test_rewards_of_a_run_are_cosines(scored: Scored) -> None:
    """Of the expert, whose last page is the one that is meant; and of one that leaves its
    guesses."""
    for row in scored.rows("shown"):
        assert row["reward"] == 1.0
        assert row["report"]["parts"] == {"cosine": 1.0}
    found = [row["report"] for row in scored.rows("guesses")]
    assert all(set(each["parts"]) == {"cosine"} for each in found)
    assert any(each["similarity"] < 1.0 for each in found)
    manifest = json.loads(scored.manifest("shown").read_text())
    leases = {lease["role"]: lease for lease in manifest["leases"]}
    assert set(leases) == {"environment", "scorer"}
    assert leases["scorer"]["backend"] == "serve.encoder"
    assert leases["scorer"]["ready_s"] > 0
