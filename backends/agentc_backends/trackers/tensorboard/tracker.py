"""Declares TensorBoard: event files, a folder for each run."""

from __future__ import annotations

from agentc.backend_api import Tracker
from agentc.kinds.field import string
from agentc_backends.software import TENSORBOARD

TRACKER = Tracker(
    id="tensorboard",
    doc="TensorBoard: event files in a folder, which other viewers read, too.",
    software=TENSORBOARD,
    program="agentc_backends.trackers.tensorboard.job_track",
    own_fields=(
        string("dir", "What `tensorboard --logdir` is given; where nothing is said, "
               "`tracking/tensorboard` of the store.", nullable=True, identity="metadata"),
    ),
    folder="dir",
)  # fmt: skip
