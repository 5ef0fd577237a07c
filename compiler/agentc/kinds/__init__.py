"""Stage kinds: the verbs of the spec language, with their fields, inputs and products.

A kind owns the vocabulary that its backends share; a backend honours a part of it (see
`agentc.backend_api`) and may add options of its own under `options:`.
"""

from agentc.kinds.field import Field, Identity, Role
from agentc.kinds.table import KINDS, Kind, kind_named

__all__ = ["KINDS", "Field", "Identity", "Kind", "Role", "kind_named"]
