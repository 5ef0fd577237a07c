"""The filter of system calls of a boxed interpreter, as a program of the kernel's packet filter.
What is allowed stands in `system_calls.py`; `lockdown.py` installs the program.
"""

from __future__ import annotations

import os
import struct
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from agentc.program.system_calls import (
    ALLOWED,
    ANSWERED,
    MACHINES,
    OF_NURSERIES,
    ONLY,
    Machine,
)

# Offsets in the kernel's description of a call (struct seccomp_data).
_NUMBER, _AUDIT, _ARGUMENTS = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM = 1
_POINTERS = {"prlimit64": (2,)}
"""Arguments of 64 bits: both halves are compared. Of others the kernel reads the lower one."""


class UnknownMachineError(Exception):
    """There is no table of system calls for this processor."""


class _Step(NamedTuple):
    """One instruction. Jumps are counted from the next one."""

    code: int
    value: int
    then: int = 0
    otherwise: int = 0


_ALLOWED = _Step(_RETURN, _ALLOW)
_SOCKET, _IO_URING_SETUP, _AF_UNIX = (41, 198), 425, 1
"""The number of `socket` on each processor, and one that all have the same."""


def filter_program(machine: Optional[str] = None, nursery: bool = False) -> bytes:
    """The program for this machine's processor; for what runs answers, or for a nursery of such.
    Raises UnknownMachineError."""
    kind = _machine(machine)
    steps = _begun(kind)
    for numbers in ALLOWED.values():
        steps += _guarded(numbers[kind.column], [_Step(_RETURN, _ALLOW)])
    for numbers, errno in ANSWERED.values():
        steps += _guarded(numbers[kind.column], [_Step(_RETURN, _FAIL | errno)])
    for call, (numbers, arguments) in ({**ONLY, **OF_NURSERIES} if nursery else ONLY).items():
        steps += _guarded(numbers[kind.column], _checked(call, arguments))
    return _packed([*steps, _Step(_RETURN, _FAIL | _EPERM)])


def child_filter_program(machine: Optional[str] = None) -> bytes:
    """The program that makes of a nursery's filter the one of what runs answers: of two filters
    the kernel takes what allows less. It is short, for the kernel checks and translates it again
    for each child. Raises UnknownMachineError."""
    kind = _machine(machine)
    steps = _begun(kind)
    for call, (numbers, _) in OF_NURSERIES.items():
        refused = [_Step(_RETURN, _FAIL | _EPERM)]
        allowed = _checked(call, ONLY[call][1]) if call in ONLY else refused
        steps += _guarded(numbers[kind.column], allowed)
    return _packed([*steps, _Step(_RETURN, _ALLOW)])


def local_sockets_program(machine: Optional[str] = None) -> bytes:
    """The program that allows everything but sockets other than those between processes of one
    machine (and a ring of requests, which opens sockets by itself). Raises UnknownMachineError."""
    kind = _machine(machine)
    steps = _begun(kind)
    steps += _guarded(_SOCKET[kind.column], [*_one_of(0, (_AF_UNIX,), wide=False), _ALLOWED])
    steps += _guarded(_IO_URING_SETUP, [_Step(_RETURN, _FAIL | _EPERM)])
    return _packed([*steps, _ALLOWED])


def _machine(name: Optional[str]) -> Machine:
    name = name or os.uname().machine
    if name not in MACHINES:
        raise UnknownMachineError(
            "system calls of a %s are not known here, only those of %s"
            % (name, " and ".join(sorted(MACHINES)))
        )
    return MACHINES[name]


def _begun(kind: Machine) -> List[_Step]:
    return [*_of_this_machine(kind), _Step(_LOAD, _NUMBER)]


def _checked(call: str, arguments: Dict[int, Tuple[int, ...]]) -> List[_Step]:
    """Allow the call with those values alone."""
    checks: List[_Step] = []
    for position, values in arguments.items():
        checks += _one_of(position, values, wide=position in _POINTERS.get(call, ()))
    return [*checks, _Step(_RETURN, _ALLOW)]


def _packed(steps: Sequence[_Step]) -> bytes:
    return b"".join(
        struct.pack("=HBBI", step.code, step.then, step.otherwise, step.value) for step in steps
    )


def _of_this_machine(kind: Machine) -> List[_Step]:
    """Numbers mean something else in another convention of calls: it ends the process."""
    steps = [
        _Step(_LOAD, _AUDIT),
        _Step(_EQUAL, kind.audit, then=1),
        _Step(_RETURN, _KILL),
    ]
    if kind.foreign_from is not None:
        steps += [
            _Step(_LOAD, _NUMBER),
            _Step(_AT_LEAST, kind.foreign_from, otherwise=1),
            _Step(_RETURN, _KILL),
        ]
    return steps


def _guarded(number: Optional[int], body: Sequence[_Step]) -> List[_Step]:
    """Steps for one call, passed over for others; they return."""
    if number is None:
        return []
    return [_Step(_EQUAL, number, otherwise=len(body)), *body]


def _one_of(position: int, values: Sequence[int], wide: bool) -> List[_Step]:
    """Refuse the call unless the argument is one of the values; go on after them if it is."""
    low = _ARGUMENTS + 8 * position
    steps = [_Step(_LOAD, low)]
    for index, value in enumerate(values):
        # A match passes over the other values, and over the refusal behind them.
        steps.append(_Step(_EQUAL, value, then=len(values) - index))
    steps.append(_Step(_RETURN, _FAIL | _EPERM))
    if wide:
        steps += [
            _Step(_LOAD, low + 4),
            _Step(_EQUAL, 0, then=1),
            _Step(_RETURN, _FAIL | _EPERM),
        ]
    return steps
