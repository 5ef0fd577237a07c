"""What a backend author needs: declarations, the tracking view, and drafts of jobs and leases.

`backend.py` files import from here, `agentc.kinds` and `agentc.kinds.artifacts`, and nothing heavy.
"""

from agentc.backend_api.declare import (
    OWN_LOOP,
    TASKSET,
    Backend,
    DataSet,
    DataSource,
    EnvironmentBackend,
    ExpectedExpert,
    ServerBackend,
    SimulatorRole,
    Software,
    StageBackend,
    WrongBuild,
    entry_fields,
    software_of,
)
from agentc.backend_api.draft import JobDraft, LeaseDraft, LowerContext, Ranks
from agentc.backend_api.memory import (
    Architecture,
    Held,
    Logits,
    MemoryQuestion,
    ServerMemory,
    TrainerMemory,
)
from agentc.backend_api.parallel import parallel_sizes
from agentc.backend_api.table import BackendTable, load_backends
from agentc.backend_api.trackers import Tracker, TrackerRefusal, installed_trackers
from agentc.backend_api.view import OptionView, Refusal, StageView

__all__ = [
    "OWN_LOOP",
    "TASKSET",
    "Architecture",
    "Backend",
    "BackendTable",
    "DataSet",
    "DataSource",
    "EnvironmentBackend",
    "ExpectedExpert",
    "Held",
    "JobDraft",
    "LeaseDraft",
    "Logits",
    "LowerContext",
    "MemoryQuestion",
    "OptionView",
    "Ranks",
    "Refusal",
    "ServerBackend",
    "ServerMemory",
    "SimulatorRole",
    "Software",
    "StageBackend",
    "StageView",
    "Tracker",
    "TrackerRefusal",
    "TrainerMemory",
    "WrongBuild",
    "entry_fields",
    "installed_trackers",
    "load_backends",
    "parallel_sizes",
    "software_of",
]
