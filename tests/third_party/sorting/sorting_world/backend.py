"""Declares env.sorting."""

from agentc.backend_api import EnvironmentBackend, LeaseDraft
from agentc.kinds.field import integer
from agentc_backends.software import LIGHT


def lease(options):
    program = ("-m", "sorting_world.job_serve", "--port", "0", "--ready-file", "{ready_file}")
    length = options.integer("length")
    return LeaseDraft(
        role="environment", backend="env.sorting", version=1, software=LIGHT, inside=True,
        program=(*program, "--length", str(length)), identity=options.identity(),
        identity_check="environment", expect={"name": "sorting", "length": length},
    )  # fmt: skip


BACKEND = EnvironmentBackend(
    id="env.sorting", version=1, doc="Sorting numbers.", software=LIGHT, lease=lease,
    fields=(integer("length", "How many numbers there are.", 4, minimum=2, maximum=6),),
    splits=("train", "test"), max_turns=30, capabilities=frozenset({"expert"}),
)  # fmt: skip
