"""Declares W&B: offline files, or its service where a spec says so and names a key."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import Tracker, TrackerRefusal
from agentc.kinds.field import Json, choice, secret, string
from agentc_backends.software import WANDB


def _refuse(settings: Mapping[str, Json]) -> TrackerRefusal | None:
    if settings.get("mode") == "online" and not settings.get("api_key"):
        return TrackerRefusal(
            setting="mode",
            message="W&B is asked to send a run to its service, and has no key for it",
            fix="add `api_key: {secret: WANDB_API_KEY}`, or leave `mode: offline` and send it "
            "later by `wandb sync`",
        )
    return None


TRACKER = Tracker(
    id="wandb",
    doc="Weights & Biases: files that `wandb sync` sends later, or its service at once.",
    software=WANDB,
    program="agentc_backends.trackers.wandb.job_track",
    own_fields=(
        choice("mode", "`offline` writes files and asks no network; `online` sends what is written "
               "while the run goes on.", ("offline", "online"), "offline", identity="metadata"),
        string("entity", "The user or team that the project belongs to.", nullable=True,
               identity="metadata"),
        string("url", "The address of a server of one's own.", nullable=True, identity="metadata"),
        secret("api_key", "The key of the service, as `{secret: WANDB_API_KEY}`."),
        string("dir", "Folder of its files; where nothing is said, `tracking/wandb` of the store.",
               nullable=True, identity="metadata"),
    ),
    folder="dir",
    address="url",
    service="https://api.wandb.ai",
    secrets={"api_key": "WANDB_API_KEY"},
    refuse=_refuse,
)  # fmt: skip
