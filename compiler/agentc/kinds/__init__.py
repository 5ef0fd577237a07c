"""Stage kinds: the verbs of the spec language, with their fields, inputs and products.

A kind owns the vocabulary that its backends share; a backend honours a part of it (see
`agentc.backend_api`) and may add options of its own under `options:`. What a kind does stands in
its declaration; `agentc.kinds.table` has kinds by that.
"""

from agentc.kinds.field import Field, Identity, Role
from agentc.kinds.kind import MODEL_KIND, REPORT_KIND, VERDICTS_KIND, Kind
from agentc.kinds.table import KINDS, kind_named

__all__ = [
    "KINDS",
    "MODEL_KIND",
    "REPORT_KIND",
    "VERDICTS_KIND",
    "Field",
    "Identity",
    "Kind",
    "Role",
    "kind_named",
]
