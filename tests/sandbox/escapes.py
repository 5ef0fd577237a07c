"""Further attempts, by what they would reach: descriptors and memory of other processes, channels,
signals, files and devices of the host, and system calls that no program in a sandbox needs.

Each is one expression or a few lines, with what `attempts.py` gives to its functions.
"""

from __future__ import annotations

NUMBERS: dict[str, tuple[int, int | None]] = {
    # On (x86_64, aarch64); None where it has none.
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "shutdown": (48, 210),
    "getsockopt": (55, 209),
    "setsockopt": (54, 208),
    "getpeername": (52, 205),
    "accept": (43, 202),
    "listen": (50, 201),
    "sendfile": (40, 71),
    "splice": (275, 76),
    "tee": (276, 77),
    "vmsplice": (278, 75),
    "copy_file_range": (326, 285),
    "pipe2": (293, 59),
    "eventfd2": (290, 19),
    "signalfd4": (289, 74),
    "timerfd_create": (283, 85),
    "epoll_create1": (291, 20),
    "fanotify_init": (300, 262),
    "memfd_secret": (447, 447),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "remap_file_pages": (216, 234),
    "mlockall": (151, 230),
    "shmat": (30, 196),
    "tkill": (200, 130),
    "rt_tgsigqueueinfo": (297, 240),
    "setitimer": (38, 103),
    "alarm": (37, None),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "move_mount": (429, 429),
    "mount_setattr": (442, 442),
    "umount2": (166, 39),
    "quotactl": (179, 60),
    "swapon": (167, 224),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "acct": (163, 89),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "iopl": (172, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "capset": (126, 91),
    "setgroups": (116, 159),
    "setresgid": (119, 149),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "mq_open": (240, 180),
    "fork": (57, None),
    "vfork": (58, None),
    "clone3": (435, 435),
    "membarrier": (324, 283),
    "utimensat": (280, 88),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "fallocate": (285, 47),
    "ftruncate": (77, 46),
    "flock": (73, 32),
    "renameat2": (316, 276),
    "fchmodat": (268, 53),
    "readlinkat": (267, 78),
    "chroot": (161, 51),
    "wait4": (61, 260),
    "waitid": (247, 95),
    "getpgid": (121, 155),
    "getdents": (78, None),
    "sched_getparam": (143, 121),
    "get_robust_list": (274, 100),
}

PRELUDE = """
def opened(who):
    # Of the descriptors of a process, those that can be opened and are no device.
    found = []
    for number in range(64):
        for mode in (os.O_RDONLY, os.O_WRONLY):
            try:
                held = os.open(f'/proc/{who}/fd/{number}', mode | os.O_NONBLOCK)
            except OSError:
                continue
            if not stat.S_ISCHR(os.fstat(held).st_mode):
                found.append(number)
            os.close(held)
    assert found
    return found
def buffer(size=128):
    return ctypes.create_string_buffer(size)
def vector(size=64):
    held = buffer(size)
    words = (ctypes.c_ulong * 2)(ctypes.addressof(held), size)
    words.held = held
    return words
"""

DESCRIPTORS = {
    "open its own descriptors by /proc": "return opened('self')",
    "open its thread's descriptors by /proc": "return opened('thread-self')",
    "open its parent's descriptors by /proc": "return opened(os.getppid())",
    "open the judge's descriptors by /proc": "return opened(JUDGE)",
    "open a process's descriptors by /proc": "return opened(VICTIM)",
    "open its own descriptors by /dev/fd": "return os.open('/dev/fd/3', os.O_RDONLY)",
    "open its standard input again": "return open('/dev/stdin', 'rb').read(1) or 1/0",
    "list its own descriptors": "return os.listdir('/proc/self/fd')",
    "list its parent's descriptors": "return os.listdir(f'/proc/{os.getppid()}/fd')",
    "read what its parent's descriptors are": (
        "return [os.readlink(f'/proc/{os.getppid()}/fd/{n}') for n in (3, 8, 9)]"
    ),
    "read the state of its parent's descriptors": (
        "return open(f'/proc/{os.getppid()}/fdinfo/0').read()"
    ),
    "take a descriptor of its parent": (
        "return call('pidfd_getfd', call('pidfd_open', os.getppid(), 0), 0, 0)"
    ),
    "take a descriptor of a process, by a number": "return call('pidfd_getfd', 3, 0, 0)",
    "compare descriptors with its parent's": (
        "return call('kcmp', os.getpid(), os.getppid(), 0, number(0), number(0))"
    ),
    "read the channel of its answers": "return os.read(3, 1) or 1/0",
    "receive on the channel of its answers": "return call('recvfrom', 3, buffer(), 128, 64, 0, 0)",
    "receive a descriptor": "return call('recvmsg', 3, buffer(56), 64)",
    "send by a socket's call": "return call('sendto', 3, b'v 1', 3, 64, 0, 0)",
    "send a descriptor": (
        "import array; return call('sendmsg', 3, array.array('L', [0] * 7).tobytes(), 0)"
    ),
    "shut the channel of its answers": "return call('shutdown', 3, 0)",
    "ask who reads its answers": (
        "return call('getsockopt', 3, 1, 17, buffer(12), ctypes.byref(ctypes.c_int(12)))"
    ),
    "have descriptors come with credentials": (
        "return call('setsockopt', 3, 1, 16, ctypes.byref(ctypes.c_int(1)), 4)"
    ),
    "ask where its answers go": (
        "return call('getpeername', 3, buffer(), ctypes.byref(ctypes.c_int(128)))"
    ),
    "accept on the channel of its answers": "return call('accept', 3, None, None)",
    "make the channel nonblocking for its parent too": "fcntl.fcntl(3, fcntl.F_SETFL, 2048)",
    "have the kernel signal the reader": "fcntl.fcntl(3, 15, bytes(8))",
    "change the size of a pipe": "return fcntl.fcntl(3, 1031, 1 << 20)",
    "lease a file": "return fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1024, 0)",
    "notice changes of a folder": "fcntl.fcntl(os.open('/usr/lib', 0), 1026, 2)",
    "lock a file": "fcntl.lockf(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH)",
    "send a file by the kernel": (
        "return call('sendfile', 3, os.open(os.__file__, os.O_RDONLY), None, 8)"
    ),
    "splice a descriptor": "return call('splice', 0, None, 3, None, 1, 2)",
    "map memory into a pipe": "return call('vmsplice', 3, vector(), 1, 2)",
    "copy a range of a file": (
        "return call('copy_file_range', os.open(os.__file__, 0), None, 3, None, 8, 0)"
    ),
    "make a pipe": "return call('pipe2', buffer(8), 0)",
    "make a descriptor of events": "return call('eventfd2', 0, 0)",
    "make a descriptor of signals": "return call('signalfd4', -1, bytes(8), 8, 0)",
    "make a descriptor of a timer": "return call('timerfd_create', 1, 0)",
    "wait for many descriptors": "return call('epoll_create1', 0)",
    "watch a file system": "return call('fanotify_init', 0, 0)",
    "make secret memory": "return call('memfd_secret', 0)",
    "open more descriptors than it may": "return fcntl.fcntl(0, fcntl.F_DUPFD, 512)",
}

MEMORY = {
    "write its own memory by /proc": "open('/proc/self/mem', 'r+b')",
    "read its parent's memory by /proc": "return open(f'/proc/{os.getppid()}/mem', 'rb').fileno()",
    "read the judge's memory by /proc": "return open(f'/proc/{JUDGE}/mem', 'rb').fileno()",
    "read a process's memory by /proc": "return open(f'/proc/{VICTIM}/mem', 'rb').fileno()",
    "read where its parent's memory is": "return open(f'/proc/{os.getppid()}/maps').read(9)",
    "read its parent's environment": "return open(f'/proc/{os.getppid()}/environ').read(9)",
    "read its parent's first values": "return open(f'/proc/{os.getppid()}/auxv', 'rb').read(9)",
    "read where its own memory is": "return open('/proc/self/maps').read(9)",
    "list the files that it has mapped": "return os.listdir('/proc/self/map_files')",
    "read its parent's memory": (
        "return call('process_vm_readv', os.getppid(), vector(), number(1), vector(), number(1), 0)"
    ),
    "write its parent's memory": (
        "return call('process_vm_writev', os.getppid(), vector(), number(1), vector(), number(1), "
        "0)"
    ),
    "read its own memory by the same call": (
        "words = vector(); return call('process_vm_readv', os.getpid(), words, number(1), words, "
        "number(1), number(0))"
    ),
    "be traced by its parent": "return call('ptrace', 0, 0, 0, 0)",
    "seize its parent": "return call('ptrace', 0x4206, os.getppid(), 0, 0)",
    "advise about another one's memory": "return call('process_madvise', 3, vector(), 1, 4, 0)",
    "free another one's memory": "return call('process_mrelease', 3, 0)",
    "move its parent's pages": (
        "return call('move_pages', os.getppid(), number(0), None, None, None, 0)"
    ),
    "move pages between nodes": "return call('migrate_pages', 0, number(1), bytes(8), bytes(8))",
    "map pages of a file elsewhere": "return call('remap_file_pages', number(0), 4096, 0, 0, 0)",
    "lock memory": "return call('mlockall', 1)",
    "attach shared memory": "return call('shmat', 0, None, 0)",
    "map page 0": (
        "L.mmap.restype = ctypes.c_long; "
        "assert L.mmap(number(0), number(4096), 3, 0x32, -1, number(0)) == 0"
    ),
    "become dumpable": "return call('prctl', 4, number(1), number(0), 0, 0)",
    "let anybody trace it": "return call('prctl', 0x59616D61, number(-1), number(0), 0, 0)",
    "change where its memory is": "return call('prctl', 35, number(1), number(0), 0, 0)",
    "adopt orphans": "return call('prctl', 36, number(1), number(0), 0, 0)",
    "ask for its parent's list of locks": (
        "return call('get_robust_list', os.getppid(), buffer(8), buffer(8))"
    ),
}

SIGNALS = {
    "kill its parent": "os.kill(os.getppid(), 9)",
    "stop its parent": "os.kill(os.getppid(), 19)",
    "see whether the judge is there": "os.kill(JUDGE, 0)",
    "kill its group": "os.killpg(0, 9)",
    "kill the judge's group": "os.killpg(JUDGE, 9)",
    "stop itself": "os.kill(os.getpid(), 19)",
    "kill a thread by its number": "call('tkill', VICTIM, 9)",
    "queue a signal for a thread": "call('rt_tgsigqueueinfo', VICTIM, VICTIM, 9, buffer())",
    "kill its parent by a descriptor": (
        "held = os.open(f'/proc/{os.getppid()}', os.O_PATH); "
        "call('pidfd_send_signal', held, 9, None, 0)"
    ),
    "set an interval timer": "signal.setitimer(signal.ITIMER_REAL, 60)",
    "set an alarm": "assert signal.alarm(60) < 1 << 31",
    "leave its session": "os.setsid()",
    "leave its group": "os.setpgid(0, 0)",
    "ask for the judge's group": "return os.getpgid(JUDGE)",
    "wait for a child": "return os.waitpid(-1, os.WNOHANG)",
    "wait by a descriptor": "return call('waitid', 3, 3, buffer(), 5, None)",
    "be scheduled first": "return call('sched_setscheduler', 0, 1, ctypes.byref(ctypes.c_int(50)))",
    "be scheduled by a deadline": "return call('sched_setattr', 0, bytes(48), 0)",
    "write before others": "return call('ioprio_set', 1, 0, 1 << 13)",
    "fork by the old call": "return call('fork') or os._exit(0)",
    "fork in one's memory": "return call('vfork') or os._exit(0)",
    "fork by the new call": "return call('clone3', bytes(88), number(88))",
    "make a thread by hand": ("return call('clone', 0x50F00, None, None, None, 0)"),
    "become its interpreter again": "os.execv('/proc/self/exe', ['x', '-c', ''])",
    "start a shell": "return os.system('true') and 1/0",
}

PLACES = {
    "read a secret file of root": "return open('/etc/shadow').read(1)",
    "list root's home": "return os.listdir('/root')",
    "climb out of a folder that it may read": "return open('/usr/lib/../../etc/passwd').read(1)",
    "climb out by a descriptor": (
        "held = os.open('/usr/lib', os.O_PATH); "
        "return os.open('../../etc/passwd', os.O_RDONLY, dir_fd=held)"
    ),
    "read by its working folder's link": (
        "return open('/proc/self/cwd' + '/..' * 9 + '/etc/passwd').read(1)"
    ),
    "read by process 1's root": "return open('/proc/1/root/etc/passwd').read(1)",
    "read by its parent's root": "return open(f'/proc/{os.getppid()}/root/etc/passwd').read(1)",
    "read by the judge's working folder": "return os.listdir(f'/proc/{JUDGE}/cwd')",
    "read by its thread's root": "return open('/proc/thread-self/root/etc/passwd').read(1)",
    "write its interpreter": "return open(os.path.realpath(sys.executable), 'r+b')",
    "write by its interpreter's link": "return open('/proc/self/exe', 'r+b')",
    "make a file without a name": "return os.open('/tmp', os.O_TMPFILE | os.O_RDWR)",
    "make a file at the root": "return os.open('/left-' + TOKEN, os.O_CREAT | os.O_WRONLY)",
    "make a file in /var/tmp": "return os.open('/var/tmp/l-' + TOKEN, os.O_CREAT | os.O_WRONLY)",
    "make a file among devices": "return os.open('/dev/left-' + TOKEN, os.O_CREAT | os.O_WRONLY)",
    "list mounts": "return open('/proc/self/mounts').read(1)",
    "list connections": "return open('/proc/net/tcp').read(1)",
    "read its control group": "return open('/proc/self/cgroup').read(1)",
    "read its own status": "return open('/proc/self/status').read(1)",
    "read names of the kernel": "return open('/proc/kallsyms').read(1)",
    "read the kernel's memory": "return os.open('/proc/kcore', os.O_RDONLY)",
    "press a system key": "open('/proc/sysrq-trigger', 'w')",
    "make a control group": "os.mkdir('/sys/fs/cgroup/left-' + TOKEN)",
    "list /sys": "return os.listdir('/sys')",
    "list the host's devices": "assert len(os.listdir('/dev')) > 4",
    "open a pseudoterminal": "return os.open('/dev/ptmx', os.O_RDWR)",
    "open a virtual machine": "return os.open('/dev/kvm', os.O_RDWR)",
    "open a network device": "return os.open('/dev/net/tun', os.O_RDWR)",
    "open a file system of its own": "return os.open('/dev/fuse', os.O_RDWR)",
    "open page faults as a device": "return os.open('/dev/userfaultfd', os.O_RDWR)",
    "open memory as a device": "return os.open('/dev/mem', os.O_RDONLY)",
    "open the kernel's log": "return os.open('/dev/kmsg', os.O_RDONLY)",
    "open another harmless device": "return os.open('/dev/zero', os.O_RDONLY)",
    "open a disk": "return os.open('/dev/vda', os.O_RDONLY)",
    "change a file's times": "os.utime(FILE)",
    "change a file's owner": "os.chown(FILE, os.getuid(), -1)",
    "set an attribute": "os.setxattr(FILE, 'user.x', b'1')",
    "change rights by a descriptor": "os.fchmod(os.open(os.__file__, os.O_RDONLY), 0o777)",
    "allocate room": "return call('fallocate', os.open(os.__file__, 0), 0, number(0), number(9))",
    "cut a file by a descriptor": "os.ftruncate(os.open(os.__file__, os.O_RDONLY), 0)",
    "lock a file for all": "fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_EX)",
    "exchange two files": (
        "return call('renameat2', -100, FILE.encode(), -100, (FOLDER + '/open.txt').encode(), 2)"
    ),
    "read where a link leads": "return os.readlink('/proc/self/exe')",
    "enter a folder by a descriptor": "os.fchdir(os.open('/usr/lib', os.O_PATH))",
    "open a namespace and enter it": (
        "return call('setns', os.open('/proc/self/ns/net', os.O_RDONLY), 0)"
    ),
}

SOCKETS = {
    "make a socket of the machine": "return socket.socket(1, 1).fileno()",
    "make a socket of version 6": "return socket.socket(10, 1).fileno()",
    "make a raw socket": "return socket.socket(2, 3, 1).fileno()",
    "make a socket of packets": "return socket.socket(17, 3, 3).fileno()",
    "make a socket of ciphers": "return socket.socket(38, 5).fileno()",
    "make a socket of virtual machines": "return socket.socket(40, 1).fileno()",
    "listen at an abstract name": "socket.socket(1).bind('\\0left-' + TOKEN)",
    "listen at a path": "socket.socket(1).bind(FOLDER + '/left')",
    "connect to the bus": "socket.socket(1).connect('/run/dbus/system_bus_socket')",
    "connect to containers": "socket.socket(1).connect('/var/run/docker.sock')",
}

CALLS = {
    "enter a ring": "call('io_uring_enter', 0, 1, 0, 0, None, 0)",
    "register with a ring": "call('io_uring_register', 0, 0, None, 0)",
    "make a queue of reads": "call('io_setup', 1, buffer(8))",
    "make rules for files": "call('landlock_create_ruleset', b'\\1' + bytes(7), number(8), 0)",
    "take rules for files": "call('landlock_restrict_self', 0, 0)",
    "open a file system": "call('fsopen', b'tmpfs', 0)",
    "open a mounted file system": "call('fspick', -100, b'/', 0)",
    "move a mount": "call('move_mount', -100, b'/tmp', -100, b'/', 0)",
    "change a mount": "call('mount_setattr', -100, b'/', 0, bytes(32), number(32))",
    "unmount": "call('umount2', b'/proc', 2)",
    "set a quota": "call('quotactl', 0, None, 0, None)",
    "swap": "call('swapon', b'/dev/vda', 0)",
    "have control-alt-delete ignored": "call('reboot', -18751827, 672274793, 0, None)",
    "rename the host": "call('sethostname', b'x', 1)",
    "load a module": "call('init_module', b'', number(0), b'')",
    "load a module by a descriptor": "call('finit_module', 0, b'', 0)",
    "unload a module": "call('delete_module', b'none', 0)",
    "load a kernel": "call('kexec_load', number(0), number(0), None, number(0))",
    "count processes in a file": "call('acct', None)",
    "read the kernel's messages": "call('syslog', 10, None, 0)",
    "set the time": "call('settimeofday', bytes(16), None)",
    "set a clock": "call('clock_settime', 0, bytes(16))",
    "slew the clock": "call('adjtimex', bytes(208))",
    "hang up its terminal": "call('vhangup')",
    "add a key": "call('add_key', b'user', b'x', b'x', number(1), -3)",
    "request a key": "call('request_key', b'user', b'x', None, -3)",
    "take capabilities": "call('capset', bytes(8), bytes(24))",
    "change its groups": "call('setgroups', 0, None)",
    "change its group": "call('setresgid', 0, 0, 0)",
    "open a queue of messages": "call('mq_open', b'left', 0o102, 0o600, None)",
    "have all processors wait": "call('membarrier', 1, 0)",
    "use a number that there is not": "call(4095)",
}

OF_X86 = {
    "reach the ports of the machine": "call('iopl', 3)",
    "write a table of segments": "call('modify_ldt', 1, bytes(16), number(16))",
    "list by the old call": "call('getdents', os.open('/proc', 0), buffer(), 128)",
}

UNBOXED = frozenset({
    "open its own descriptors by /proc", "open its thread's descriptors by /proc",
    "open its parent's descriptors by /proc", "open a process's descriptors by /proc",
    "list its own descriptors", "list its parent's descriptors",
    "read the state of its parent's descriptors", "take a descriptor of its parent",
    "compare descriptors with its parent's", "make a pipe", "make a descriptor of events",
    "make a descriptor of signals", "make a descriptor of a timer", "wait for many descriptors",
    "open more descriptors than it may", "write its own memory by /proc",
    "read its parent's memory by /proc", "read where its parent's memory is",
    "read its parent's environment", "read its own memory by the same call", "become dumpable",
    "see whether the judge is there", "set an interval timer", "set an alarm",
    "ask for the judge's group", "climb out of a folder that it may read",
    "climb out by a descriptor", "read by its working folder's link", "list mounts",
    "read its own status", "list /sys", "list the host's devices", "open another harmless device",
    "read where a link leads", "enter a folder by a descriptor", "make a socket of the machine",
    "listen at an abstract name", "make rules for files", "list by the old call",
    "lock a file", "adopt orphans", "make a file without a name",
})  # fmt: skip
"""Those that succeed where there is no box, without harm."""
