"""The section `software:`: locks of the spec's own in the place of those that backends bring along,
for another build of a server, say, or a container. Part of `resolve_names` and of `lower`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from agentc.backend_api import SoftwareEnvironment
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.module import Module, OwnLock
from agentc.passes.context import PassContext
from agentc.runtime.lock_text import LockTextError, read_lock_text
from agentc.schema.keys import Place, as_mapping
from agentc.source.boundary import VARIABLE, OutsideError
from agentc.source.tree import Scalar, described
from agentc.syntax.nodes import Spec

_LARGEST = 1 << 20


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
            )
    return found


def read_locks(module: Module, context: PassContext) -> dict[str, SoftwareEnvironment]:
    """The environments that the spec gives locks for; what cannot be read is reported."""
    found = {}
    for name, own in module.software.items():
        try:
            path = context.boundary.find(own.file)
        except OutsideError as outside:
            context.sink.error(
                "AGC123",
                f"`software` names a place outside of the spec's folder: {outside.place}",
                own.span,
                fix=f"if this spec may read it: `--allow-path {Path(outside.place).parent}`, "
                f"or put the directory into {VARIABLE}",
            )
            continue
        try:
            text = _read(path)
            read_lock_text(text)
        except LockTextError as error:
            message = f"the lock {own.file} cannot be read: {error}"
            context.sink.error("AGC671", message, own.span)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            context.sink.error("AGC674", f"the lock {own.file} cannot be read: {reason}", own.span)
        else:
            found[name] = SoftwareEnvironment(name=name, lock=text)
    return found


def report_unused(module: Module, used: Collection[str], sink: Sink) -> None:
    """AGC673 for each entry whose environment no job of the experiment runs in."""
    for name, own in module.software.items():
        if name not in used:
            sink.error(
                "AGC673",
                f"no backend of this experiment uses a software environment `{name}`",
                own.name_span,
                expected=f"one of {listed(sorted(used))}",
                fix=did_you_mean(name, sorted(used)),
            )


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError("it is larger than 1 MB")
    return data.decode("utf-8")
