"""Filters of system calls, as programs of the kernel's packet filter: the calls that a boxed
interpreter may make, the filter made of them, and one that refuses sockets of a network.

One process that computes needs few calls: memory, reading of files, clocks, its own end. Nothing
that is allowed makes a process, a thread, a socket or a file, reaches another process, or changes
a right. Links cannot be read: Landlock guards files, not where links lead. `lockdown.py` installs
the filters.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from agentc.program.lockdown import install_filter


class Machine(NamedTuple):
    """A kind of processor, as seccomp has it. `foreign_from`: numbers from here on are another
    convention of calls on the same processor."""

    column: int
    audit: int
    foreign_from: Optional[int]


MACHINES: Dict[str, Machine] = {
    "x86_64": Machine(0, 0xC000003E, 0x40000000),
    "aarch64": Machine(1, 0xC00000B7, None),
}
"""By `os.uname().machine`."""

ALLOWED: Dict[str, Tuple[Optional[int], Optional[int]]] = {
    # name: numbers on (x86_64, aarch64), None where it has none
    "read": (0, 63),
    "write": (1, 64),
    "open": (2, None),
    "close": (3, 57),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "poll": (7, None),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, None),
    "select": (23, None),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "dup": (32, 23),
    "dup2": (33, None),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "uname": (63, 160),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "gettimeofday": (96, 169),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "times": (100, 153),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getppid": (110, 173),
    "getgroups": (115, 158),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "sigaltstack": (131, 132),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "arch_prctl": (158, None),
    "gettid": (186, 178),
    "time": (201, None),
    "futex": (202, 98),
    "getdents64": (217, 61),
    "set_tid_address": (218, 96),
    "restart_syscall": (219, 128),
    "exit_group": (231, 94),
    "openat": (257, 56),
    "newfstatat": (262, 79),
    "faccessat": (269, 48),
    "pselect6": (270, 72),
    "ppoll": (271, 73),
    "set_robust_list": (273, 99),
    "dup3": (292, 24),
    "getcpu": (309, 168),
    "getrandom": (318, 278),
    "statx": (332, 291),
    "rseq": (334, 293),
    "faccessat2": (439, 439),
}

ONLY: Dict[str, Tuple[Tuple[Optional[int], Optional[int]], Dict[int, Tuple[int, ...]]]] = {
    # By argument: the values that it may have.
    # Duplicating, and reading flags. F_SETOWN and F_SETSIG would have the kernel send signals.
    "fcntl": ((72, 25), {1: (0, 1, 2, 3, 1030)}),
    # A clock of another process says that it exists and what it does; their ids are negative.
    "clock_gettime": ((228, 113), {0: tuple(range(12))}),
    "clock_getres": ((229, 114), {0: tuple(range(12))}),
    "clock_nanosleep": ((230, 115), {0: tuple(range(12))}),
    # Of itself, to be read.
    "sched_getaffinity": ((204, 123), {0: (0,)}),
    "prlimit64": ((302, 261), {0: (0,), 2: (0,)}),
}

OF_NURSERIES: Dict[str, Tuple[Tuple[Optional[int], Optional[int]], Dict[int, Tuple[int, ...]]]] = {
    # What a nursery (`nursery.py`) may besides, which runs nothing that a model wrote: fork as the
    # C library does, wait, bind a child's life to its own, limit it and lock it.
    "clone": ((56, 220), {0: (0x01200011,)}),
    "wait4": ((61, 260), {}),
    "prctl": ((157, 167), {0: (1, 22)}),
    "prlimit64": ((302, 261), {0: (0,)}),
}

ANSWERED: Dict[str, Tuple[Tuple[Optional[int], Optional[int]], int]] = {
    # With an error that libraries have another way for.
    "clone3": ((435, 435), 38),  # ENOSYS: they try clone, which is refused
    "ioctl": ((16, 29), 25),  # ENOTTY: it is no terminal
}


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
    steps = _load_call(kind)
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
    steps = _load_call(kind)
    for call, (numbers, _) in OF_NURSERIES.items():
        refused = [_Step(_RETURN, _FAIL | _EPERM)]
        allowed = _checked(call, ONLY[call][1]) if call in ONLY else refused
        steps += _guarded(numbers[kind.column], allowed)
    return _packed([*steps, _Step(_RETURN, _ALLOW)])


def local_sockets_program(machine: Optional[str] = None) -> bytes:
    """The program that allows everything but sockets other than those between processes of one
    machine (and a ring of requests, which opens sockets by itself). Raises UnknownMachineError."""
    kind = _machine(machine)
    steps = _load_call(kind)
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


def _load_call(kind: Machine) -> List[_Step]:
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


class NoNetworkError(Exception):
    """This machine cannot refuse a process the network; the message says why."""


def refusing_network() -> Callable[[], None]:
    """What a child calls before it starts its program: from then on sockets are those of this
    machine's own processes alone (AF_UNIX). Raises NoNetworkError where that cannot be had."""
    if not sys.platform.startswith("linux"):
        raise NoNetworkError("system calls are filtered only on Linux")
    try:
        program = local_sockets_program()
    except UnknownMachineError as error:
        raise NoNetworkError(str(error)) from None
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if _tried(lambda: install_filter(library, program)):
        return lambda: install_filter(library, program)
    raise NoNetworkError("the kernel takes no filter of system calls (seccomp)")


def _tried(install: Callable[[], None]) -> bool:
    """Whether a child of this process can install it."""
    child = os.fork()
    if child == 0:
        try:
            install()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
