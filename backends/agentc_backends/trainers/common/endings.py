"""How a training can end without its weights. `program.py` tells people, or the wrapper."""

from __future__ import annotations


class TrainingOutOfTimeError(Exception):
    """Training stopped before its time limit, with a whole checkpoint saved."""


class TrainingFailedError(RuntimeError):
    """Training ended without the trained weights; the message says why, and is for people."""


class TrainingDivergedError(TrainingFailedError):
    """A number of a step, such as its loss or its gradient's norm, became infinite or none."""
