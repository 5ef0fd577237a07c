"""What hostile code tries in a box: functions of one source, and what has to come of each.

An attempt that returns has succeeded, unless it says otherwise. `unboxed` are those that succeed
where there is no box, without harm: they show that an attempt is one.
"""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass, field

from tests.sandbox import escapes


@dataclass(frozen=True, slots=True)
class Attempt:
    """`ends` are the failures that count as held; `leaks` the kinds of box that let it through, as
    docs/design/sandbox.md says."""

    name: str
    body: str
    ends: tuple[str, ...] = ("error",)
    unboxed: bool = False
    leaks: tuple[str, ...] = ()
    only: str | None = field(default=None)
    """The machine that it is written for."""


# On (x86_64, aarch64).
_NUMBERS: dict[str, tuple[int, int | None]] = {
    **escapes.NUMBERS,
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "unshare": (272, 97),
    "setns": (308, 268),
    "setresuid": (117, 147),
    "clone": (56, 220),
    "mount": (165, 40),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "memfd_create": (319, 279),
    "execveat": (322, 281),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "tgkill": (234, 131),
    "seccomp": (317, 277),
    "personality": (135, 92),
    "chroot": (161, 51),
    "timer_create": (222, 107),
    "inotify_init1": (294, 26),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "socketpair": (53, 199),
    "truncate": (76, 45),
    "prctl": (157, 167),
    "openat2": (437, 437),
}
_COLUMN = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine, 0)

PRELUDE = f"""
import ctypes, fcntl, gc, os, signal, socket, stat, subprocess, sys, threading, time
N = { ({name: numbers[_COLUMN] for name, numbers in _NUMBERS.items()})!r}
L = ctypes.CDLL(None, use_errno=True)
L.syscall.restype = ctypes.c_long
def call(name, *words):
    number = N[name] if isinstance(name, str) else name
    result = L.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result
def number(value):
    return ctypes.c_long(value)
{escapes.PRELUDE}"""

FILES = (
    Attempt("read /etc/passwd", "return open('/etc/passwd').read()[:20]", unboxed=True),
    Attempt("read a file that all may read", "return open(FILE).read()", unboxed=True),
    Attempt("list a folder", "return os.listdir(FOLDER)", unboxed=True),
    Attempt(
        "see that a path is there",
        "return os.stat(FILE).st_size",
        unboxed=True,
        leaks=("landlock",),
    ),
    Attempt(
        "read by way of a descriptor of the folder",
        """
        folder = os.open(FOLDER, os.O_PATH)
        return os.read(os.open('secret.txt', os.O_RDONLY, dir_fd=folder), 20)
        """,
        unboxed=True,
    ),
    Attempt(
        "read by way of the working folder",
        "os.chdir(FOLDER); return open('secret.txt').read()",
        unboxed=True,
    ),
    Attempt("read by openat2", "return call('openat2', -100, FILE.encode(), OPENAT2, 24)"),
    Attempt(
        "read by a handle",
        """
        held = ctypes.create_string_buffer(136); held[0] = 128
        mount = ctypes.c_int()
        return call('name_to_handle_at', -100, FILE.encode(), held, ctypes.byref(mount), 0)
        """,
    ),
    Attempt(
        "read the environment of a process",
        "return open(f'/proc/{VICTIM}/environ').read()",
        unboxed=True,
    ),
    Attempt(
        "read the words of a process",
        "return open(f'/proc/{VICTIM}/cmdline').read()",
        unboxed=True,
    ),
    Attempt("list processes", "return os.listdir('/proc')", unboxed=True),
    Attempt("find a token in its own environment", "return os.environ['AGENTC_TOKEN']"),
    Attempt(
        "read below its own root", "return open('/proc/self/root' + FILE).read()", unboxed=True
    ),
    Attempt("read what its descriptors are", "return os.readlink('/proc/self/fd/0')", unboxed=True),
    Attempt("read where a process is", "return os.readlink(f'/proc/{VICTIM}/cwd')", unboxed=True),
    Attempt("write a file", "return open(FOLDER + '/written', 'w').write('x')", unboxed=True),
    Attempt("append to a file", "return open(FOLDER + '/open.txt', 'a').write('x')", unboxed=True),
    Attempt("truncate a file", "return call('truncate', (FOLDER + '/open.txt').encode(), 0)"),
    Attempt("remove a file", "os.unlink(FOLDER + '/open.txt')"),
    Attempt("rename a file", "os.rename(FOLDER + '/open.txt', FOLDER + '/renamed')"),
    Attempt("make a folder", "os.mkdir(FOLDER + '/made')", unboxed=True),
    Attempt("change rights", "os.chmod(FOLDER + '/open.txt', 0o4777)"),
    Attempt("write 8 MiB where it is", "open('big', 'wb').write(b'0' * (8 << 20))"),
    Attempt("leave a file in /tmp", "open('/tmp/left-' + TOKEN, 'w').close()"),
    Attempt("leave a file in /dev/shm", "open('/dev/shm/left-' + TOKEN, 'w').close()"),
    Attempt(
        "follow a link of its own",
        "os.symlink(FILE, '/tmp/link-' + TOKEN); return open('/tmp/link-' + TOKEN).read()",
    ),
    Attempt("give a file a second name", "os.link(FILE, '/tmp/link-' + TOKEN)"),
    Attempt(
        "make a device", "os.mknod('/tmp/left-' + TOKEN, 0o600 | stat.S_IFBLK, os.makedev(8, 0))"
    ),
    Attempt("write a setting of the kernel", "open('/proc/sys/kernel/core_pattern', 'w')"),
    Attempt("write a setting of a device", "open('/sys/power/state', 'w')"),
    Attempt("watch files", "return call('inotify_init1', 0)", unboxed=True),
)

NETWORK = (
    Attempt(
        "connect to a port",
        "return socket.create_connection(('127.0.0.1', PORT), 1).fileno()",
        unboxed=True,
    ),
    Attempt(
        "send a datagram",
        "return socket.socket(2, 2).sendto(b'x', ('127.0.0.1', DATAGRAMS))",
        unboxed=True,
    ),
    Attempt("connect to a socket's path", "socket.socket(1).connect(SOCKET)", unboxed=True),
    Attempt("connect to an abstract socket", "socket.socket(1).connect(ABSTRACT)", unboxed=True),
    Attempt("speak to the kernel", "return socket.socket(16, 3, 0).fileno()", unboxed=True),
    Attempt("ask for a name", "return socket.getaddrinfo('example.org', 80)"),
    Attempt("make a pair of sockets", "return socket.socketpair()[0].fileno()", unboxed=True),
    Attempt("listen", "socket.create_server(('127.0.0.1', 0))", unboxed=True),
)

PROCESSES = (
    Attempt(
        "start processes",
        """
        for _ in range(20):
            if os.fork() == 0:
                time.sleep(1); os._exit(0)
        """,
    ),
    Attempt(
        "start threads", "threading.Thread(target=time.sleep, args=(1,)).start()", unboxed=True
    ),
    Attempt("run a program", "return subprocess.run(['id'], capture_output=True).stdout"),
    Attempt("spawn a program", "return os.posix_spawn(sys.executable, ['x'], {})"),
    Attempt("become another program", "os.execv(sys.executable, [sys.executable, '-c', ''])"),
    Attempt("become a program by its descriptor", "return call('execveat', 0, b'', 0, 0, 0x1000)"),
    Attempt("kill anyone who judges", "os.kill(JUDGE, 9)"),
    Attempt("kill a process", "os.kill(VICTIM, 9)"),
    Attempt("kill all it may", "os.kill(-1, 9)"),
    Attempt("kill a thread", "call('tgkill', VICTIM, VICTIM, 9)"),
    Attempt(
        "queue a signal", "call('rt_sigqueueinfo', VICTIM, 9, ctypes.create_string_buffer(128))"
    ),
    Attempt(
        "kill by a descriptor",
        "call('pidfd_send_signal', call('pidfd_open', VICTIM, 0), 9, None, 0)",
    ),
    Attempt(
        "have the kernel send a signal",
        """
        fcntl.fcntl(1, 10, 9)
        fcntl.fcntl(1, fcntl.F_SETOWN, VICTIM)
        """,
    ),
    Attempt("trace a process", "return call('ptrace', 16, VICTIM, 0, 0)"),
    Attempt("read a process's memory", "return call('process_vm_readv', VICTIM, 0, 0, 0, 0, 0)"),
    Attempt(
        "ask the clock of a process", "return time.clock_gettime((~JUDGE << 3) | 2)", unboxed=True
    ),
    Attempt(
        "ask for the processors of a process", "return os.sched_getaffinity(JUDGE)", unboxed=True
    ),
    Attempt("see a process's priority", "return os.getpriority(0, JUDGE)", unboxed=True),
    Attempt("raise its priority", "return os.nice(-20)"),
    Attempt("choose its processors", "os.sched_setaffinity(0, {0})", unboxed=True),
    Attempt(
        "raise its limits",
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))",
    ),
    Attempt(
        "change the limits of a process",
        "import resource; resource.prlimit(VICTIM, resource.RLIMIT_CPU, (1, 1))",
    ),
    Attempt("outlive its parent", "return call('prctl', 1, number(0), number(0), 0, 0)"),
)

KERNEL = (
    Attempt("make a namespace of users", "return call('unshare', 0x10000000)"),
    Attempt("clone into a namespace", "return call('clone', 0x10000011, None, None, None, 0)"),
    Attempt("enter a namespace", "return call('setns', 0, 0)"),
    Attempt("mount", "return call('mount', b'none', b'/tmp', b'tmpfs', 0, 0)"),
    Attempt("open a mount", "return call('open_tree', -100, b'/', 1)"),
    Attempt("change its root", "return call('chroot', b'/')"),
    Attempt("exchange roots", "return call('pivot_root', b'/', b'/')"),
    Attempt("become root", "os.setuid(0); return 1"),
    Attempt("change its persona", "return call('personality', 0x0040000)", unboxed=True),
    Attempt("add a filter", "return call('seccomp', 1, 0, 0)"),
    Attempt("make a ring", "return call('io_uring_setup', 8, ctypes.create_string_buffer(256))"),
    Attempt("load a program", "return call('bpf', 0, ctypes.create_string_buffer(128), 128)"),
    Attempt("use keys of the session", "return call('keyctl', 0, -3, 0)"),
    Attempt(
        "count events",
        "return call('perf_event_open', ctypes.create_string_buffer(128), 0, -1, -1, 0)",
    ),
    Attempt("serve page faults", "return call('userfaultfd', 1)"),
    Attempt("make a file in memory", "return call('memfd_create', b'x', 0)", unboxed=True),
    Attempt("share memory", "return call('shmget', 0, 4096, 0o1600)"),
    Attempt("make a queue", "return call('msgget', 0, 0o1600)"),
    Attempt("make a semaphore", "return call('semget', 0, 1, 0o1600)"),
    Attempt("set a timer", "return call('timer_create', 0, None, ctypes.byref(ctypes.c_int()))"),
    Attempt("type into a terminal", "fcntl.ioctl(0, 0x5412, b'x')"),
    Attempt("open its terminal", "open('/dev/tty')"),
    Attempt(
        "find descriptors beside its own",
        """
        found = []
        for descriptor in range(4, 1024):
            try:
                os.fstat(descriptor); found.append(descriptor)
            except OSError:
                pass
        assert found
        """,
    ),
    Attempt("read what was sent to it", "return os.pread(0, 10, 0) or 1/0"),
    Attempt("write what it may read", "return open(os.__file__, 'a').write('x')"),
)

EXITS = (
    Attempt("leave", "raise SystemExit(0)", unboxed=True),
    Attempt("interrupt", "raise KeyboardInterrupt"),
    Attempt("stop in the debugger", "breakpoint()"),
    Attempt("wait for input", "return input()"),
    Attempt("return what is too large", "return 'x' * 100_000_000"),
    Attempt("return too many members", "return [[i] for i in range(100_000)]"),
    Attempt("return a number of too many digits", "return 1 << 100_000_000"),
    Attempt("take 3 GiB at once", "return len(bytearray(3 << 30))", ends=("memory",)),
    Attempt("take memory in small pieces", "x = []\nwhile True: x.append([1] * 999)", ("memory",)),
    Attempt("double a text", "s = 'x'\nwhile True: s += s", ("memory",)),
)

DEATHS = (
    Attempt("read address 0", "ctypes.string_at(0)", ("crash",)),
    Attempt("abort", "os.abort()", ("crash",)),
    Attempt("end the process", "os._exit(0)", ("crash",)),
    Attempt("close every descriptor", "os.closerange(0, 99)", ("crash",)),
    Attempt(
        "recurse without a limit",
        "sys.setrecursionlimit(10 ** 9)\ndef g(n): return g(n + 1)\nreturn g(0)",
        ("crash", "memory", "timeout"),
    ),
    Attempt(
        "call by the numbers of another convention",
        "return call(0x40000000 + 39)",
        ("crash",),
        only="x86_64",
    ),
    Attempt(
        "call as 32 bits do",
        """
        import mmap
        # mov eax, 20; int 0x80; ret: getpid of i386
        code = mmap.mmap(-1, 4096, prot=7)
        code.write(bytes.fromhex('b814000000cd80c3'))
        place = ctypes.addressof(ctypes.c_char.from_buffer(code))
        return ctypes.CFUNCTYPE(ctypes.c_int)(place)()
        """,
        ("crash",),
        only="x86_64",
    ),
)

LOOPS = (
    Attempt("run for ever", "while True: pass", ("timeout",)),
    Attempt(
        "compute in C and hear no signal",
        """
        for each in range(1, 32):
            try:
                signal.signal(each, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        return 7 ** (10 ** 8)
        """,
        ("timeout",),
    ),
    Attempt("match for ever", "import re; return re.match('(a+)+$', 'a' * 60 + 'b')", ("timeout",)),
    Attempt("print for ever", "while True: print('x' * 1_000_000)", ("timeout",)),
)

SLEEPS = (
    Attempt("sleep for ever", "time.sleep(1e6)", ("timeout",)),
    Attempt("wait for a lock", "k = threading.Lock(); k.acquire(); k.acquire()", ("timeout",)),
)


def _escapes(bodies: dict[str, str], only: str | None = None) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(name, body, unboxed=name in escapes.UNBOXED, only=only)
        for name, body in bodies.items()
    )


@dataclass(frozen=True, slots=True)
class Round:
    """Attempts that share processes, and the limits that they are played with: (seconds of the
    processor, by the clock). What computes is measured by the processor, so a busy machine ends
    nothing early; only those that sleep are ended by the clock."""

    attempts: tuple[Attempt, ...]
    seconds: float = 20.0
    wall_seconds: float = 300.0


ROUNDS = {
    "files": Round(FILES),
    "network": Round(NETWORK),
    "processes": Round(PROCESSES),
    "kernel": Round(KERNEL),
    "descriptors": Round(_escapes(escapes.DESCRIPTORS)),
    "memory": Round(_escapes(escapes.MEMORY)),
    "signals": Round(_escapes(escapes.SIGNALS)),
    "places": Round(_escapes(escapes.PLACES)),
    "sockets": Round(_escapes(escapes.SOCKETS)),
    "calls": Round(_escapes(escapes.CALLS)),
    "calls of one machine": Round(_escapes(escapes.OF_X86, only="x86_64")),
    "exits": Round(EXITS),
    "deaths": Round(DEATHS, seconds=0.5),
    "loops": Round(LOOPS, seconds=0.2),
    "sleeps": Round(SLEEPS, wall_seconds=0.3),
}


def source(attempts: tuple[Attempt, ...], facts: dict[str, object]) -> str:
    """A module with a function for each attempt, and what it has to know of the victims."""
    lines = [PRELUDE, *(f"{name} = {value!r}" for name, value in facts.items())]
    for index, attempt in enumerate(attempts):
        body = textwrap.indent(textwrap.dedent(attempt.body).strip(), "    ")
        lines.append(f"def attempt_{index}():\n{body}")
    return "\n".join(lines)


def number_of(name: str) -> int:
    """Of a system call, on this machine."""
    found = _NUMBERS[name][_COLUMN]
    assert found is not None
    return found


def here(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """Those that this machine's processor can make."""
    return tuple(each for each in attempts if each.only in (None, os.uname().machine))
