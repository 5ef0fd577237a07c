"""Post-conditions of models and of what only training may know: checkpoints, encoders, critics,
hidden texts of tasks, and runs of online RL.

A model directory is in Hugging Face layout, with weights that parse as safetensors, and with
nothing that would be unpickled.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.program.artifact_files import (
    CHAT_FILE,
    CRITIC_FILE,
    CURVE_FILE,
    EPISODES_FILE,
    PRIVILEGED_FILE,
    RUN_FILE,
    SCORED_FILE,
    VALUE_HEAD_FILE,
)
from agentc.runtime.contracts.row_contracts import abbreviated, episode_findings, is_finite, rows_of
from agentc.runtime.model_folder.weights import read_header

if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding
if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding
if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding


REQUIRED = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    CHAT_FILE,
)
ENCODER_REQUIRED = ("config.json", "preprocessor_config.json")
TEXT_ENCODER_REQUIRED = ("config.json", "tokenizer.json", "tokenizer_config.json")
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def check_checkpoint(artifact: Artifact) -> Iterator[Finding]:
    """A model directory: configuration, tokenizer, template, and whole safetensors weights.

    `contract.optional_files` names required files that this checkpoint may lack.
    """
    optional = set(artifact.contract.get("optional_files", ()))
    for name in REQUIRED:
        path = artifact.data / name
        if not path.is_file():
            if name not in optional:
                yield (name, None, None, "the file is missing")
        elif path.suffix == ".json":
            yield from _json_findings(path)
    if (artifact.data / SCORED_FILE).is_file():
        yield from _scored_findings(artifact.data / SCORED_FILE)
    yield from _weight_findings(artifact.data)


def check_encoder(artifact: Artifact) -> Iterator[Finding]:
    """A model of pictures: configuration, how it wants them, and whole safetensors weights."""
    yield from _encoder_findings(artifact, ENCODER_REQUIRED)


def check_text_encoder(artifact: Artifact) -> Iterator[Finding]:
    """A model of texts: configuration, tokenizer, and whole safetensors weights."""
    yield from _encoder_findings(artifact, TEXT_ENCODER_REQUIRED)


def _encoder_findings(artifact: Artifact, required: Sequence[str]) -> Iterator[Finding]:
    for name in required:
        if (artifact.data / name).is_file():
            yield from _json_findings(artifact.data / name)
        else:
            yield (name, None, None, "the file is missing")
    yield from _weight_findings(artifact.data)


def _weight_findings(data: Path) -> Iterator[Finding]:
    for path in sorted(data.rglob("*")):
        if path.suffix in PICKLED:
            name = str(path.relative_to(data))
            yield (name, None, None, "pickled files are refused; write safetensors")
    index = data / INDEX
    if index.is_file():
        try:
            placed: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            yield (INDEX, None, "weight_map", f"cannot be read: {error}")
            return
        shards: list[str] = sorted(set(placed.values()))
    elif (data / WEIGHTS).is_file():
        placed, shards = {}, [WEIGHTS]
    else:
        yield (WEIGHTS, None, None, f"the file is missing (and so is {INDEX})")
        return
    for shard in shards:
        path = data / shard
        if not path.is_file():
            yield (shard, None, None, "the file is missing; the index names it")
            continue
        try:
            tensors: set[str] = set(read_header(path))
        except ValueError as error:
            yield (shard, None, None, f"not a whole safetensors file: it {error}")
            continue
        if not tensors:
            yield (shard, None, None, "holds no tensor")
        missing = sorted(t for t, where in placed.items() if where == shard and t not in tensors)
        if missing:
            yield (shard, None, None, f"lacks tensors that the index places in it: {missing[:5]}")


def _scored_findings(path: Path) -> Iterator[Finding]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        uneven = [n for n, row in enumerate(rows) if len(row["ids"]) != len(row["log_probs"])]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield (path.name, None, "rows", f"cannot be read: {error}")
        return
    for number in uneven:
        yield (path.name, None, "rows", f"row {number} has not one log-probability a token")


def _json_findings(path: Path) -> Iterator[Finding]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        yield (path.name, None, None, f"not JSON: {error}")
        return
    if path.name == CHAT_FILE and not (
        isinstance(value, dict) and isinstance(value.get("chat_format"), str)
    ):
        yield (path.name, None, "chat_format", "expected the name of a chat format")


MEDIA = ("text/plain", "text/x-python", "text/html")
PARAMETERISATIONS = ("log_ratio", "value_head")
_WORDS = {
    "parameterisation": PARAMETERISATIONS,
    "normalisation": ("turn", "trajectory", "none"),
    "objective": ("bradley_terry", "binary_cross_entropy"),
    "reference_sees": ("privileged", "history"),
}
_HEAD_SHAPES = {"weight": 2, "bias": 1}


def check_privileged(artifact: Artifact) -> Iterator[Finding]:
    """privileged.jsonl: one text for each task, with its digest, in a file of its owner alone."""
    name = PRIVILEGED_FILE
    path = artifact.data / name
    if path.is_file() and path.stat().st_mode & 0o077:
        yield (name, None, None, f"others may read it: {path.stat().st_mode & 511:o}, not 600")
    for number, row in rows_of(artifact, name):
        if isinstance(row, str):
            yield (name, number, None, row)
            continue
        for field, message in _text_findings(row):
            yield (name, number, field, message)


def check_critic(artifact: Artifact) -> Iterator[Finding]:
    """A model directory, agentc_critic.json, and with a value head the head's weights."""
    yield from check_checkpoint(artifact)
    path = artifact.data / CRITIC_FILE
    if not path.is_file():
        yield (CRITIC_FILE, None, None, "the file is missing")
        return
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        yield (CRITIC_FILE, None, None, f"not JSON: {error}")
        return
    if not isinstance(value, dict):
        yield (CRITIC_FILE, None, None, f"expected an object, found {abbreviated(value)}")
        return
    for field, message in _critic_findings(value):
        yield (CRITIC_FILE, None, field, message)
    wanted = value.get("parameterisation") == "value_head"
    if wanted != (artifact.data / VALUE_HEAD_FILE).is_file():
        yield (VALUE_HEAD_FILE, None, None, "the file is missing" if wanted else "nobody reads it")
    elif wanted:
        for message in _head_findings(artifact):
            yield (VALUE_HEAD_FILE, None, None, message)


def _text_findings(row: Mapping[str, Any]) -> Iterator[Any]:
    """What is wrong with a row, without a word of its text."""
    if row.get("id") != row.get("task_id"):
        yield (
            "id",
            f"expected the task's, {abbreviated(row.get('task_id'))}; "
            f"found {abbreviated(row.get('id'))}",
        )
    if not isinstance(row.get("split"), str):
        yield "split", f"expected text, found {abbreviated(row.get('split'))}"
    if row.get("media") not in MEDIA:
        yield "media", f"{abbreviated(row.get('media'))} is not one of {', '.join(MEDIA)}"
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        yield "text", "expected text that is not empty"
    elif row.get("sha256") != hashlib.sha256(text.encode("utf-8")).hexdigest():
        yield "sha256", "is not the digest of `text`"


def _critic_findings(value: Mapping[str, Any]) -> Iterator[Any]:
    for field, words in _WORDS.items():
        if value.get(field) not in words:
            yield field, f"{abbreviated(value.get(field))} is not one of {', '.join(words)}"
    template: Any | None = value.get("template")
    if template is not None and (not isinstance(template, str) or "{privileged}" not in template):
        yield "template", "expected null, or text with {privileged} in it"
    if not isinstance(value.get("reference"), str):
        yield "reference", f"expected <kind>/<key>, found {abbreviated(value.get('reference'))}"
    beta = value.get("beta")
    if not is_finite(beta) or not beta > 0:  # type: ignore[operator]
        yield "beta", f"expected a number above 0, found {abbreviated(beta)}"
    if value.get("parameterisation") == "value_head" and value.get("pooling") not in (
        "mean",
        "last",
    ):
        yield "pooling", f"{abbreviated(value.get('pooling'))} is not one of mean, last"


def _head_findings(artifact: Artifact) -> Iterator[str]:
    """One row of float32 weights, as wide as the model, and one bias."""
    try:
        tensors = read_header(artifact.data / VALUE_HEAD_FILE)
    except ValueError as error:
        yield f"not a whole safetensors file: it {error}"
        return
    found: dict[str, list[int]] = {name: [*tensor.shape] for name, tensor in tensors.items()}
    if {name: len(shape) for name, shape in found.items()} != _HEAD_SHAPES:
        yield f"expected weight and bias, found {abbreviated(found)}"
    elif math.prod(found["bias"]) != 1 or found["weight"][0] != 1:
        yield f"expected one score, found the shapes {abbreviated(found)}"
    if any(tensor.dtype != "F32" for tensor in tensors.values()):
        yield "expected float32"


KEPT = "checkpoints"


def check_run(artifact: Artifact) -> Iterator[Finding]:
    """All of a run."""
    yield from check_checkpoint(artifact)
    path = artifact.data / RUN_FILE
    try:
        run: Any = json.loads(path.read_text(encoding="utf-8"))
        iterations, kept = int(run["iterations"]), list(run["checkpoints"])
    except FileNotFoundError:
        yield (RUN_FILE, None, None, "the file is missing")
        return
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield (RUN_FILE, None, None, f"cannot be read: {error}")
        return
    yield from _curve_findings(artifact, iterations)
    yield from _episode_rows(artifact)
    for iteration in kept:
        folder = artifact.data / KEPT / str(iteration)
        for file, row, field, message in check_checkpoint(artifact._replace(data=folder)):
            yield (f"{KEPT}/{iteration}/{file}", row, field, message)


def _curve_findings(artifact: Artifact, iterations: int) -> Iterator[Finding]:
    try:
        lines = (artifact.data / CURVE_FILE).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line)["iteration"] for line in lines]
    except FileNotFoundError:
        yield (CURVE_FILE, None, None, "the file is missing")
        return
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield (CURVE_FILE, None, "iteration", f"cannot be read: {error}")
        return
    if rows != list(range(iterations)):
        number = next((n for n, row in enumerate(rows) if row != n), len(rows))
        yield (CURVE_FILE, number + 1, "iteration", f"expected one row for each of {iterations}")


def _episode_rows(artifact: Artifact) -> Iterator[Finding]:
    last = -1
    for number, row in rows_of(artifact, EPISODES_FILE):
        if isinstance(row, str):
            yield (EPISODES_FILE, number, None, row)
            continue
        for field, message in episode_findings(row, artifact.contract):
            yield (EPISODES_FILE, number, field, message)
        if not isinstance(row.get("attempt"), int) or row["attempt"] <= last:
            yield (EPISODES_FILE, number, "attempt", "episodes of a run must ascend")
        else:
            last = row["attempt"]
        for field, message in _turn_findings(row):
            yield (EPISODES_FILE, number, field, message)


def _turn_findings(row: Mapping[str, Any]) -> Iterator[Any]:
    earned, tokens = row.get("turn_rewards"), row.get("turn_tokens")
    turns = row.get("turns")
    if not isinstance(earned, list) or len(earned) != turns:
        yield "turn_rewards", f"expected one number for each of {abbreviated(turns)} turns"
    elif earned and not math.isclose(math.fsum(earned), row["reward"], abs_tol=1e-6):
        yield (
            "turn_rewards",
            f"sum to {math.fsum(earned)}, and the episode's reward is {abbreviated(row['reward'])}",
        )
    if not isinstance(tokens, list) or len(tokens) != turns:
        yield "turn_tokens", f"expected those of each of {abbreviated(turns)} turns"
    elif not all(isinstance(each, dict) and isinstance(each.get("reply"), list) for each in tokens):
        yield "turn_tokens", "expected {kept, added, reply, cut} of each turn"
