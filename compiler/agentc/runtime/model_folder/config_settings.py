"""Settings of a config.json that transformers would stop at, or fetch code for, in a later job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentc.runtime.model_folder.folder_fault import FolderFault

_DTYPES = frozenset({
    "auto", "float32", "float", "float64", "double", "float16", "half", "bfloat16",
    "float8_e4m3fn", "float8_e5m2",
})  # fmt: skip
_ROPE_TYPES = ("default", "linear", "dynamic", "yarn", "longrope", "su", "llama3", "mrope")
_ATTENTION = ("_attn_implementation", "attn_implementation", "_attn_implementation_internal")


def setting_faults(config: Mapping[str, Any], shown: str, *, known: bool) -> list[FolderFault]:
    """What is wrong with them; `known`: the type of model is one whose settings are known here."""
    return [
        FolderFault(f"{shown}: config.json has {what}", fix)
        for part in _parts(config)
        for found in (_attention(part), _dtype(part), _quantisation(part), _rope(part, known))
        if found is not None
        for what, fix in (found,)
    ]


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The whole, and what it says of the models within."""
    yield config
    for name, value in config.items():
        if name.endswith("_config") and name != "quantization_config" and isinstance(value, dict):
            yield value


def _attention(config: Mapping[str, Any]) -> tuple[str, str] | None:
    for name in _ATTENTION:
        for value in _names(config.get(name)):
            if not isinstance(value, str) or "/" in value:
                return (
                    f"`{name}: {_short(value)}`, which names code of the hub to be fetched and run",
                    "remove it: jobs choose the implementation of attention themselves",
                )
    return None


def _dtype(config: Mapping[str, Any]) -> tuple[str, str] | None:
    for name in ("dtype", "torch_dtype"):
        for value in _names(config.get(name)):
            plain = value[len("torch.") :] if str(value).startswith("torch.") else value
            if not isinstance(plain, str) or plain not in _DTYPES:
                return (
                    f"`{name}: {_short(value)}`, which is no type of weights",
                    "write the type that the weights have, such as bfloat16",
                )
    return None


def _quantisation(config: Mapping[str, Any]) -> tuple[str, str] | None:
    found = config.get("quantization_config")
    if found is None or isinstance(found, dict):
        return None
    return (
        f"`quantization_config: {_short(found)}`, which is no mapping",
        "remove it if the weights are not quantised, or copy it from where the weights are from",
    )


def _rope(config: Mapping[str, Any], known: bool) -> tuple[str, str] | None:
    for name in ("rope_scaling", "rope_parameters") if known else ():
        found = config.get(name)
        if found is None:
            continue
        kind = found.get("rope_type", found.get("type")) if isinstance(found, dict) else found
        if isinstance(found, dict) and kind in (None, *_ROPE_TYPES):
            continue
        return (
            f"`{name}` of the type {_short(kind)}, which is not known",
            f"write one of {', '.join(_ROPE_TYPES)}, or remove it",
        )
    return None


def _names(value: Any) -> list[Any]:
    """A name, or one for each model within."""
    if value is None:
        return []
    return list(value.values()) if isinstance(value, dict) else [value]


def _short(value: Any) -> str:
    return json.dumps(value)[:60]
