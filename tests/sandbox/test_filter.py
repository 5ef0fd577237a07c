"""What a nursery's children may call: its own filter and theirs together are a box's."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from agentc.program.seccomp import MACHINES, child_filter_program, filter_program

_MACHINES = sorted(MACHINES)
_VALUES = (0, 1, 2, 3, 8, 17, 22, 38, 1030, 0x01200011, 0x01200012, 1 << 32, (1 << 32) + 1)


def decided(program: bytes, number: int, audit: int, arguments: tuple[int, ...]) -> int:
    """What a filter says of a call, as the kernel runs it."""
    seen = struct.pack("=IIQ6Q", number, audit, 0, *arguments)
    place, held = 0, 0
    while True:
        code, then, otherwise, value = struct.unpack_from("=HBBI", program, 8 * place)
        place += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            (held,) = struct.unpack_from("=I", seen, value)
        else:
            place += then if (held == value if code == 0x15 else held >= value) else otherwise


def strictest(*results: int) -> int:
    """Of what several filters say the kernel takes the least, read as a signed number."""
    return min(results, key=lambda each: each - (1 << 32) if each >= 1 << 31 else each)


def calls() -> Iterator[tuple[int, tuple[int, ...]]]:
    for number in (*range(600), 0x40000000, 0x40000038):
        yield number, (0,) * 6
        for place in range(3):
            for value in _VALUES:
                yield number, (*(0,) * place, value, *(0,) * (5 - place))


@pytest.mark.parametrize("machine", _MACHINES)
def test_children_may_what_a_box_may_and_no_more(machine: str) -> None:
    alone = filter_program(machine)
    parent, child = filter_program(machine, nursery=True), child_filter_program(machine)
    of_machine = MACHINES[machine].audit
    more = 0
    for audit in (of_machine, of_machine ^ 1):
        for number, arguments in calls():
            wanted = decided(alone, number, audit, arguments)
            inherited = decided(parent, number, audit, arguments)
            told = strictest(inherited, decided(child, number, audit, arguments))
            assert told == wanted, (number, arguments)
            more += inherited != wanted
    assert more, "a nursery may something that is taken from its children"


@pytest.mark.parametrize("machine", _MACHINES)
def test_the_filter_of_children_is_short(machine: str) -> None:
    """The kernel checks and translates it again for each answer."""
    assert len(child_filter_program(machine)) < len(filter_program(machine)) / 5
