"""Declares env.sorting."""

from agentc_backends.environments.declaration import environment_backend
from agentc_backends.software import LIGHT
from sorting_world.world import SortingSettings

BACKEND = environment_backend(
    SortingSettings, id="env.sorting", version=1, doc="Sorting numbers.", software=LIGHT,
    inside=True, splits=("train", "test"), capabilities=frozenset({"expert"}),
)  # fmt: skip
