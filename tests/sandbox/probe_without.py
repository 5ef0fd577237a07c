"""A process from which the kernel withholds something, and that asks for a box then.

`python -m tests.sandbox.probe_without namespaces landlock users seccomp`, any. A filter refuses
the system calls, as engines of containers do, for everything that this process starts.
"""

from __future__ import annotations

import ctypes
import errno
import json
import struct
import sys

from tests.sandbox.attempts import number_of

from agentc.runtime.sandbox.probe import NoBoxError, choose_box, probe

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NEW_NAMESPACES = 0x7E020000
_LANDLOCK_CREATE = 444
_SET_SECCOMP = 22


def main(withheld: list[str]) -> None:
    """Prints one JSON object."""
    steps = [_step(_LOAD, 0)]
    if "namespaces" in withheld:
        steps += _refused(number_of("unshare"), errno.EPERM)
        # Flags are its first argument.
        steps += [_step(_EQUAL, number_of("clone"), 0, 4), _step(_LOAD, 16)]
        steps += [_step(_ANY_BIT, _NEW_NAMESPACES, 0, 1), _step(_RETURN, _FAIL | errno.EPERM)]
        steps += [_step(_LOAD, 0)]
        steps += _refused(435, errno.ENOSYS)
    if "landlock" in withheld:
        steps += _refused(_LANDLOCK_CREATE, errno.EOPNOTSUPP)
    if "users" in withheld:
        steps += _refused(number_of("setresuid"), errno.EPERM)
    if "seccomp" in withheld:
        steps += [_step(_EQUAL, number_of("prctl"), 0, 4), _step(_LOAD, 16)]
        steps += [_step(_EQUAL, _SET_SECCOMP, 0, 1), _step(_RETURN, _FAIL | errno.EINVAL)]
        steps += [_step(_LOAD, 0)]
    _install(b"".join([*steps, _step(_RETURN, _ALLOW)]))
    try:
        chosen, refused = choose_box().kind, ""
    except NoBoxError as error:
        chosen, refused = "", str(error)
    print(
        json.dumps(
            {
                "chosen": chosen,
                "refused": refused,
                "reasons": {each.kind: each.reason for each in probe()},
            }
        )
    )


def _refused(number: int, error: int) -> list[bytes]:
    return [_step(_EQUAL, number, 0, 1), _step(_RETURN, _FAIL | error)]


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)


def _install(program: bytes) -> None:
    held = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(held))
    pointer = ctypes.create_string_buffer(described)
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    assert library.prctl(38, 1, 0, 0, 0) == 0
    assert library.prctl(_SET_SECCOMP, 2, ctypes.addressof(pointer), 0, 0) == 0


if __name__ == "__main__":
    main(sys.argv[1:])
