"""Declares MLflow, TensorBoard, Trackio (Hugging Face's tracker) and W&B."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import Tracker, TrackerRefusal
from agentc.kinds.field import Json, choice, secret, string
from agentc_backends.software import MLFLOW, TENSORBOARD, TRACKIO, WANDB

MLFLOW_TRACKER = Tracker(
    id="mlflow",
    doc="MLflow: a SQLite database, a folder of files, or a tracking server.",
    software=MLFLOW,
    program="agentc_backends.trackers.job_mlflow",
    declared_fields=(
        string("uri", "Where runs are kept: `https://...` of a server, `sqlite:///FILE`, or "
               "`file:FOLDER`; by default, `tracking/mlflow/mlflow.db` of the store.",
               nullable=True, identity="metadata"),
        secret("token", "What a server is shown, as `{secret: MLFLOW_TRACKING_TOKEN}`."),
    ),
    address="uri",
    secrets={"token": "MLFLOW_TRACKING_TOKEN"},
)  # fmt: skip


TENSORBOARD_TRACKER = Tracker(
    id="tensorboard",
    doc="TensorBoard: event files in a folder, which other viewers read, too.",
    software=TENSORBOARD,
    program="agentc_backends.trackers.job_tensorboard",
    declared_fields=(
        string("dir", "What `tensorboard --logdir` is given; by default, "
               "`tracking/tensorboard` of the store.", nullable=True, identity="metadata"),
    ),
    folder="dir",
)  # fmt: skip


TRACKIO_TRACKER = Tracker(
    id="trackio",
    doc="Trackio: a file on this machine and a dashboard in the browser, no account.",
    software=TRACKIO,
    program="agentc_backends.trackers.job_trackio",
    declared_fields=(
        string("dir", "Folder of its projects; by default, trackio's own "
               "(`TRACKIO_DIR`, else beside the caches of Hugging Face).", nullable=True,
               identity="metadata"),
    ),
    variables=("TRACKIO_DIR",),
    folder="dir",
)  # fmt: skip


def _refuse(settings: Mapping[str, Json]) -> TrackerRefusal | None:
    if settings.get("mode") == "online" and not settings.get("api_key"):
        return TrackerRefusal(
            setting="mode",
            message="W&B is asked to send a run to its service, and has no key for it",
            fix="add `api_key: {secret: WANDB_API_KEY}`, or leave `mode: offline` and send it "
            "later by `wandb sync`",
        )
    return None


WANDB_TRACKER = Tracker(
    id="wandb",
    doc="Weights & Biases: files that `wandb sync` sends later, or its service at once.",
    software=WANDB,
    program="agentc_backends.trackers.job_wandb",
    declared_fields=(
        choice("mode", "`offline` writes files and uses no network; `online` sends what is written "
               "while the run continues.", ("offline", "online"), "offline", identity="metadata"),
        string("entity", "The user or team that the project belongs to.", nullable=True,
               identity="metadata"),
        string("url", "The address of a self-hosted server.", nullable=True, identity="metadata"),
        secret("api_key", "The key of the service, as `{secret: WANDB_API_KEY}`."),
        string("dir", "Folder of its files; by default, `tracking/wandb` of the store.",
               nullable=True, identity="metadata"),
    ),
    folder="dir",
    address="url",
    service="https://api.wandb.ai",
    secrets={"api_key": "WANDB_API_KEY"},
    refuse=_refuse,
)  # fmt: skip
