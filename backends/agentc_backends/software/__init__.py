"""The software environments that built-in backends share, one lock file each in this folder.

A lock is a requirements file with exact pins of everything installed, direct or not; its sha256
enters the content key of every job that runs in it.
"""

from importlib import resources

from agentc.backend_api import SoftwareEnvironment


def _locked(name: str) -> SoftwareEnvironment:
    text = resources.files(__package__).joinpath(f"{name}.lock").read_text(encoding="utf-8")
    return SoftwareEnvironment(name=name, lock=text)


LIGHT = _locked("light")
"""HTTP clients and servers, small environments, builders of data and reports: no torch."""

TORCH = _locked("torch")
"""torch, transformers, TRL, PEFT: trainers, model initialisation and the embedded server."""

VLLM = _locked("vllm")
"""vLLM's CPU build; a GPU cluster overrides this lock (see docs)."""
