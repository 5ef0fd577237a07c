"""The conformance kit: what the compiler promises about settings, checked for one backend.

`agentc dev conformance ID` runs it from the command line; `checks_of` gives the same checks to a
test suite of any distribution (docs/backends_guide.md).
"""

from agentc.conformance.bench import Bench, LoweringOutcome
from agentc.conformance.check import Check, Fault, Skipped
from agentc.conformance.checks import checks_of
from agentc.conformance.subject import BackendUnderTest

__all__ = ["BackendUnderTest", "Bench", "Check", "Fault", "LoweringOutcome", "Skipped", "checks_of"]
