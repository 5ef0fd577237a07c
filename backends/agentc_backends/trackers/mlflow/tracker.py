"""Declares MLflow: a database of its own, or a tracking server."""

from __future__ import annotations

from agentc.backend_api import Tracker
from agentc.kinds.field import secret, string
from agentc_backends.software import MLFLOW

TRACKER = Tracker(
    id="mlflow",
    doc="MLflow: a SQLite database, a folder of files, or a tracking server.",
    software=MLFLOW,
    program="agentc_backends.trackers.mlflow.job_track",
    own_fields=(
        string("uri", "Where runs are kept: `https://...` of a server, `sqlite:///FILE`, or "
               "`file:FOLDER`; where nothing is said, `tracking/mlflow/mlflow.db` of the store.",
               nullable=True, identity="metadata"),
        secret("token", "What a server is shown, as `{secret: MLFLOW_TRACKING_TOKEN}`."),
    ),
    address="uri",
    secrets={"token": "MLFLOW_TRACKING_TOKEN"},
)  # fmt: skip
