"""resolve_software: the section `software:`, names of environments with locks of the spec's own.

Part of `resolve_names`; the locks are read when stages are lowered (`passes/lowering/software.py`).
"""

from __future__ import annotations

from agentc.diagnostics import existing_python
from agentc.diagnostics.sink import Sink
from agentc.ir.module import OwnLock
from agentc.schema.keys import Place, as_mapping
from agentc.source.tree import Mapping, Scalar, described
from agentc.syntax.nodes import Spec


def resolve_software(spec: Spec, sink: Sink) -> dict[str, OwnLock]:
    """Names of software environments with the files of their locks. Expressions are not for here:
    cells of a sweep share their environments."""
    if spec.software is None:
        return {}
    example = "a mapping such as `{vllm: locks/vllm-cuda.txt}`"
    mapping = as_mapping(spec.software, Place("software", "`software`"), sink, example)
    found = {}
    for entry in () if mapping is None else mapping.entries:
        value = entry.value
        if isinstance(value, Scalar) and value.text and "{{" not in value.text:
            found[entry.key.text] = OwnLock(value.text, entry.key.span, value.span)
        else:
            sink.error(
                "AGC208",
                f"the lock of `{entry.key.text}` cannot be {described(value)}",
                value.span,
                expected="the path of a file, as plain text",
                notes=(existing_python.NOTE,) if isinstance(value, Mapping) else (),
                fix=existing_python.FIX if isinstance(value, Mapping) else None,
            )
    return found
