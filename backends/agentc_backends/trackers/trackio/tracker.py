"""Declares trackio: Hugging Face's tracker, a SQLite file for each project, a local dashboard."""

from __future__ import annotations

from agentc.backend_api import Tracker
from agentc.kinds.field import string
from agentc_backends.software import TRACKIO

TRACKER = Tracker(
    id="trackio",
    doc="Trackio: a file on this machine and a dashboard in the browser, no account.",
    software=TRACKIO,
    program="agentc_backends.trackers.trackio.job_track",
    own_fields=(
        string("dir", "Folder of its projects; where nothing is said, trackio's own "
               "(`TRACKIO_DIR`, else beside the caches of Hugging Face).", nullable=True,
               identity="metadata"),
    ),
    variables=("TRACKIO_DIR",),
    folder="dir",
)  # fmt: skip
