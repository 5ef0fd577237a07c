"""Runs inside the box, in a nursery before it forks: lays its memory out for its children.

It is sent there as text, as `boxed_nursery.py` is. A fork copies a table of all pages that were
written to; a page that a child writes to is copied, and one that it reads of a file is mapped anew.
That is most of a child's cost. So what children will take is brought together, and all that the
interpreter reads and writes lies in few, large pages. Nothing depends on it: where a step cannot be
had (another C library, kernel, processor or way to allocate), children cost more.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_PAGE, _HUGE = 1 << 12, 1 << 21
_POOL = 1 << (14 if sys.version_info >= (3, 10) else 12)
_POOL_HEADER, _POOL_ARENA, _POOL_SIZE = 48, 32, 36
"""Of CPython's allocator: objects of one size lie side by side in pools, behind a header. Where in
it stands which arena the pool is of, and the size."""
_ARENA = 1 << (20 if sys.version_info >= (3, 10) else 18)
_SMALL = 400
"""Bytes of an object that is in a pool for sure, whatever its type puts before it."""
_NUMBERS = 1 << 10
"""Objects of 32 bytes at most, as the numbers are that are computed here: where a pool of them
begins cannot be told."""
_MOST = 1 << 18
"""Bytes of one size at most: another allocator has no such pools."""
_NEAR = 200_000
"""Bytes between what `malloc` gives and the heap's end, when it comes from there."""
_HEAP = 1 << 26
"""Larger than the C library's heap is here."""
_READ, _WRITE, _RUN = 1, 2, 4
_PRIVATE, _NO_FILE = 0x02, 0x20
_MAY_MOVE, _FIXED = 1, 2
_COLLAPSE = 25
_LOADED, _SEALED = 1, 0x6474E552
_STACK = 1 << 14
_LINK_AT, _STACK_AT, _STACK_SIZE_AT = 8, 16, 32
"""Of the C library's `ucontext_t`."""
Range = tuple[int, int]
"""Addresses: of the first byte, and behind the last one."""


def lay_out(library: Any) -> list[Any]:
    """Returns what has to be kept, for the places that it takes. `library` is the C library."""
    if os.uname().machine == "x86_64" and os.sysconf("SC_PAGE_SIZE") == _PAGE:
        _declare(library)
        program, written = _program(library)
        _enlarge_program(library, *program)
        _gather(library, [written, *_of_objects(library, written)])
    # At last: what was done before leaves free places too.
    _fill_heap(library)
    return [*_filling()]


def _filling() -> Iterator[Any]:
    """Objects of each size that has pools, into all free places, until a new pool is begun: so that
    what a child makes of one size lies on one page."""
    for size in range(512, 0, -16):
        make, begun = _maker(size), 0
        for _ in range(_NUMBERS if size == 32 else _MOST // size):
            made = make()
            yield made
            begun = begun + 1 if id(made) % _POOL == _POOL_HEADER + begun * size else 0
            if begun == 3:
                break


def _maker(size: int) -> Callable[[], Any]:
    """Of objects of that size. A list of them is tracked by no collector."""
    if size == 16:
        return object
    if size == 32:
        return lambda: float("1.5")
    return lambda: bytes(size - 33)


def _fill_heap(library: Any) -> None:
    """The same for the C library's heap, the largest places first: they are never freed."""
    if not (hasattr(library, "sbrk") and hasattr(library, "malloc")):
        return
    library.malloc.restype = library.sbrk.restype = ctypes.c_size_t
    library.malloc.argtypes = [ctypes.c_size_t]
    for power in range(16, 3, -1):
        for _ in range(_MOST >> power):
            if library.sbrk(0) - library.malloc(1 << power) < _NEAR:
                break


def _declare(library: Any) -> None:
    word, number = ctypes.c_size_t, ctypes.c_int
    for call, result, arguments in (
        ("mmap", word, [word, word, number, number, number, ctypes.c_long]),
        ("mremap", word, [word, word, word, number, word]),
        ("sbrk", word, [ctypes.c_long]),
        ("mprotect", number, [word, word, number]),
        ("madvise", number, [word, word, number]),
        ("munmap", number, [word, word]),
        ("getcontext", number, [word]),
        ("makecontext", None, [word, word, number] + [word] * 5),
        ("swapcontext", number, [word, word]),
    ):
        if hasattr(library, call):
            found = getattr(library, call)
            found.argtypes, found.restype = arguments, result


def _enlarge_program(library: Any, start: int, end: int) -> None:
    """A copy of the interpreter's program in pages of 2 MiB takes its place. A fork shares them at
    once, where it would map the file's pages one fault after another. What is only read in it may
    be run as well then, which is no more than any program in a box may do."""
    start = -(-start // _HUGE) * _HUGE
    size = end // _HUGE * _HUGE - start
    copy = _large(library, size) if size > 0 else 0
    if not copy:
        return
    ctypes.memmove(copy, start, size)
    if library.mprotect(copy, size, _READ | _RUN) == 0:
        # One step: there is no moment at which the program is not there.
        library.mremap(copy, size, size, _MAY_MOVE | _FIXED, start)
    else:
        library.munmap(copy, size)


def _gather(library: Any, ranges: Sequence[Range]) -> None:
    """What Python writes to, in pages of 2 MiB that take its place piece by piece. Each piece is
    in the table page by page, but of what lies side by side in one large page a fork copies many
    entries in one step, and an end takes them back so: it is half of the cost of both."""
    ranges = [(start, end) for start, end in ranges if start < end]
    size = -(-sum(end - start for start, end in ranges) // _HUGE) * _HUGE
    copy = _large(library, size) if size and hasattr(library, "makecontext") else 0
    if not copy:
        return
    place = copy
    for start, end in ranges:
        _move(library, start, end - start, place)
        place += end - start
    library.munmap(place, copy + size - place)


def _move(library: Any, start: int, size: int, place: int) -> None:
    """Copy what is there and put the copy in its place, with nothing of Python's between the two,
    which writes to its objects all the time: as contexts of the C library, that follow each other
    on stacks of their own."""
    room = library.mmap(0, 4 * _STACK, _READ | _WRITE, _PRIVATE | _NO_FILE, -1, 0)
    back, moves, copies = (room + number * _PAGE for number in range(3))
    moved = (place, size, size, _MAY_MOVE | _FIXED, start)
    for context, stack, follows, call, arguments in (
        (moves, room + _STACK, back, library.mremap, moved),
        (copies, room + 2 * _STACK, moves, library.memmove, (place, start, size, 0, 0)),
    ):
        library.getcontext(context)
        for at, value in ((_LINK_AT, follows), (_STACK_AT, stack), (_STACK_SIZE_AT, _STACK)):
            ctypes.c_size_t.from_address(context + at).value = value
        address = ctypes.cast(call, ctypes.c_void_p).value
        library.makecontext(context, address, len(arguments), *arguments)
    library.swapcontext(back, copies)
    library.munmap(room, 4 * _STACK)


def _large(library: Any, size: int) -> int:
    """Where so many bytes of new memory are, in pages of 2 MiB; 0 where the kernel has none."""
    held = library.mmap(0, size + _HUGE, _READ | _WRITE, _PRIVATE | _NO_FILE, -1, 0)
    if held % _PAGE:  # it failed
        return 0
    found: int = -(-held // _HUGE) * _HUGE
    library.munmap(held, found - held)
    library.munmap(found + size, held + _HUGE - found)
    for page in range(found, found + size, _HUGE):
        ctypes.memset(page, 0, 1)  # of what was never written to nothing is collapsed
    if library.madvise(found, size, _COLLAPSE):
        library.munmap(found, size)
        return 0
    return found


def _of_objects(library: Any, written: Range) -> Iterator[Range]:
    """Where objects lie: the C library's heap, from the first one on that is in no pool, and each
    arena of CPython's allocator from its first pool to its last one that is known."""
    end = library.sbrk(0) // _PAGE * _PAGE if hasattr(library, "sbrk") else 0
    places = {id(each): sys.getsizeof(each) for each in gc.get_objects()}
    places = {each: size for each, size in places.items() if not written[0] <= each < written[1]}
    start = min((each for each in places if end - _HEAP < each < end), default=end)
    start = start // _PAGE * _PAGE
    yield start, end
    if not _has_pools():
        return
    pools = {each // _POOL * _POOL for each, size in places.items() if size <= _SMALL}
    arenas: dict[int, list[int]] = {}
    for pool in pools:
        if not start - _POOL < pool < end:
            arena = ctypes.c_uint.from_address(pool + _POOL_ARENA).value
            arenas.setdefault(arena, []).append(pool)
    for known in arenas.values():
        if max(known) + _POOL - min(known) <= _ARENA:
            yield min(known), max(known) + _POOL


def _has_pools() -> bool:
    """Whether objects lie in pools as they are known here."""
    for size in range(32, _SMALL, 16):
        made = _maker(size)()
        told = ctypes.c_uint.from_address(id(made) // _POOL * _POOL + _POOL_SIZE).value
        if told != size // 16 - 1:
            return False
    return True


def _program(library: Any) -> tuple[Range, Range]:
    """From where to where the program lies that runs Python, without what may be written to, and
    what may; (0, 0) where that is not known. It is read from the headers of its file, which are in
    memory."""

    class Found(ctypes.Structure):
        _fields_ = [
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_size_t),
            ("symbol", ctypes.c_char_p),
            ("address", ctypes.c_size_t),
        ]

    found = Found()
    known = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
    if not (hasattr(library, "dladdr") and known):
        return (0, 0), (0, 0)
    if not library.dladdr(ctypes.c_void_p(known), ctypes.byref(found)):
        return (0, 0), (0, 0)
    runs = [[0, 0]]
    written, sealed = (0, 0), 0
    first = None
    for kind, flags, place, length in _segments(found.base):
        first = place if first is None and kind == _LOADED else first
        start = found.base - (first or 0) + place
        if kind == _SEALED:
            sealed = -(-(start + length) // _PAGE) * _PAGE
        elif kind == _LOADED and flags & _WRITE:
            written = start // _PAGE * _PAGE, -(-(start + length) // _PAGE) * _PAGE
        elif kind == _LOADED:
            # Between two of them there may be nothing.
            if start // _PAGE != -(-runs[-1][1] // _PAGE):
                runs.append([start, start])
            runs[-1][1] = start + length
    only_read = next(((start, end) for start, end in runs if start <= known < end), (0, 0))
    return only_read, (min(max(written[0], sealed), written[1]), written[1])


def _segments(base: int) -> Iterator[tuple[int, int, int, int]]:
    """Kind, flags, address and length in memory of each, as an ELF file of 64 bits has them."""

    def read(place: int, size: int) -> int:
        return int.from_bytes(ctypes.string_at(place, size), sys.byteorder)

    table, size, number = base + read(base + 32, 8), read(base + 54, 2), read(base + 56, 2)
    for entry in range(table, table + size * number, size):
        yield read(entry, 4), read(entry + 4, 4), read(entry + 16, 8), read(entry + 40, 8)
