"""The system calls that a boxed interpreter may make, with their numbers. `seccomp.py` makes a
filter of them; what is not here fails.

One process that computes needs few: memory, reading of files, clocks, its own end. Nothing here
makes a process, a thread, a socket or a file, reaches another process, or changes a right. Links
cannot be read: Landlock guards files, not where links lead.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple


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
