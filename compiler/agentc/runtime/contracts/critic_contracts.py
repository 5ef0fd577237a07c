"""Post-conditions of what training alone may know, and of the models that know it: hidden texts of
tasks, and critics. Neighbours: `row_contracts`, `checkpoint_contract`; `store/modes.py` seals by
`PRIVATE`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentc.runtime.contracts.checkpoint_contract import check_checkpoint
from agentc.runtime.contracts.row_contracts import is_finite, rows_of, shown
from agentc.runtime.model_folder.safetensors import read_header

if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding

PRIVATE = frozenset(("PrivilegedInformation",))
"""Types of artifacts whose files nobody but their owner may read."""
CRITIC = "agentc_critic.json"
HEAD = "value_head.safetensors"
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
    name = "privileged.jsonl"
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
    path = artifact.data / CRITIC
    if not path.is_file():
        yield (CRITIC, None, None, "the file is missing")
        return
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        yield (CRITIC, None, None, f"not JSON: {error}")
        return
    if not isinstance(value, dict):
        yield (CRITIC, None, None, f"expected an object, found {shown(value)}")
        return
    for field, message in _critic_findings(value):
        yield (CRITIC, None, field, message)
    wanted = value.get("parameterisation") == "value_head"
    if wanted != (artifact.data / HEAD).is_file():
        yield (HEAD, None, None, "the file is missing" if wanted else "nobody reads it")
    elif wanted:
        for message in _head_findings(artifact):
            yield (HEAD, None, None, message)


def _text_findings(row: Mapping[str, Any]) -> Iterator[Any]:
    """What is wrong with a row, without a word of its text."""
    if row.get("id") != row.get("task_id"):
        yield (
            "id",
            f"expected the task's, {shown(row.get('task_id'))}; found {shown(row.get('id'))}",
        )
    if not isinstance(row.get("split"), str):
        yield "split", f"expected text, found {shown(row.get('split'))}"
    if row.get("media") not in MEDIA:
        yield "media", f"{shown(row.get('media'))} is not one of {', '.join(MEDIA)}"
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        yield "text", "expected text that is not empty"
    elif row.get("sha256") != hashlib.sha256(text.encode("utf-8")).hexdigest():
        yield "sha256", "is not the digest of `text`"


def _critic_findings(value: Mapping[str, Any]) -> Iterator[Any]:
    for field, words in _WORDS.items():
        if value.get(field) not in words:
            yield field, f"{shown(value.get(field))} is not one of {', '.join(words)}"
    template: Any | None = value.get("template")
    if template is not None and (not isinstance(template, str) or "{privileged}" not in template):
        yield "template", "expected null, or text with {privileged} in it"
    if not isinstance(value.get("reference"), str):
        yield "reference", f"expected <kind>/<key>, found {shown(value.get('reference'))}"
    beta = value.get("beta")
    if not is_finite(beta) or not beta > 0:  # type: ignore[operator]
        yield "beta", f"expected a number above 0, found {shown(beta)}"
    if value.get("parameterisation") == "value_head" and value.get("pooling") not in (
        "mean",
        "last",
    ):
        yield "pooling", f"{shown(value.get('pooling'))} is not one of mean, last"


def _head_findings(artifact: Artifact) -> Iterator[str]:
    """One row of float32 weights, as wide as the model, and one bias."""
    try:
        tensors = read_header(artifact.data / HEAD)
    except ValueError as error:
        yield f"not a whole safetensors file: it {error}"
        return
    found: dict[str, list[int]] = {name: [*tensor.shape] for name, tensor in tensors.items()}
    if {name: len(shape) for name, shape in found.items()} != _HEAD_SHAPES:
        yield f"expected weight and bias, found {shown(found)}"
    elif math.prod(found["bias"]) != 1 or found["weight"][0] != 1:
        yield f"expected one score, found the shapes {shown(found)}"
    if any(tensor.dtype != "F32" for tensor in tensors.values()):
        yield "expected float32"
