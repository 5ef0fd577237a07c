"""Runs inside the box, in a nursery before it forks: lays its memory out for its children.

It is sent there as text, as `boxed_nursery.py` is. A fork shares memory; a page that a child writes
to is copied, and one that it reads of a file is mapped anew, which is half of a child's cost. So
what children will take is brought together, and the interpreter's program into few, large pages.
Nothing depends on it: where a step cannot be had (another C library, kernel, processor or way to
allocate), children cost more.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Callable, Iterator, List, Tuple

_PAGE, _HUGE = 1 << 12, 1 << 21
_POOL = 1 << (14 if sys.version_info >= (3, 10) else 12)
_POOL_HEADER = 48
"""Of CPython's allocator: objects of one size lie side by side in pools, behind a header."""
_MOST = 1 << 18
"""Bytes of one size at most: another allocator has no such pools."""
_NEAR = 200_000
"""Bytes between what `malloc` gives and the heap's end, when it comes from there."""
_READ, _WRITE, _RUN = 1, 2, 4
_PRIVATE, _NO_FILE = 0x02, 0x20
_MAY_MOVE, _FIXED = 1, 2
_COLLAPSE = 25
_LOADED = 1


def lay_out(library: Any) -> List[Any]:
    """Returns what has to be kept, for the places that it takes. `library` is the C library."""
    _fill_heap(library)
    kept = [*_filling()]
    if os.uname().machine == "x86_64" and os.sysconf("SC_PAGE_SIZE") == _PAGE:
        _enlarge_program(library)
    return kept


def _filling() -> Iterator[Any]:
    """Objects of each size that has pools, into all free places, until a new pool is begun: so that
    what a child makes of one size lies on one page."""
    for size in range(512, 0, -16):
        make, begun = _maker(size), 0
        for _ in range(_MOST // size):
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


def _enlarge_program(library: Any) -> None:
    """A copy of the interpreter's program in pages of 2 MiB takes its place. A fork shares them at
    once, where it would map the file's pages one fault after another. What is only read in it may
    be run as well then, which is no more than any program in a box may do."""
    start, end = _program(library)
    start, size = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE - -(-start // _HUGE) * _HUGE
    if size <= 0:
        return
    word, number = ctypes.c_size_t, ctypes.c_int
    for call, arguments in (
        (library.mmap, [word, word, number, number, number, ctypes.c_long]),
        (library.mremap, [word, word, word, number, word]),
        (library.mprotect, [word, word, number]),
        (library.madvise, [word, word, number]),
        (library.munmap, [word, word]),
    ):
        call.argtypes, call.restype = arguments, word if len(arguments) > 3 else number
    held = library.mmap(0, size + _HUGE, _READ | _WRITE, _PRIVATE | _NO_FILE, -1, 0)
    if held % _PAGE:  # it failed
        return
    copy = -(-held // _HUGE) * _HUGE
    for page in range(copy, copy + size, _HUGE):
        ctypes.memset(page, 0, 1)  # of what was never written to nothing is collapsed
    if library.madvise(copy, size, _COLLAPSE) == 0:
        ctypes.memmove(copy, start, size)
        if library.mprotect(copy, size, _READ | _RUN) == 0:
            # One step: there is no moment at which the program is not there.
            library.mremap(copy, size, size, _MAY_MOVE | _FIXED, start)
    library.munmap(held, size + _HUGE)


def _program(library: Any) -> Tuple[int, int]:
    """From where to where the program lies that runs Python, without what may be written to; (0, 0)
    where that is not known. It is read from the headers of its file, which are in memory."""

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
        return 0, 0
    if not library.dladdr(ctypes.c_void_p(known), ctypes.byref(found)):
        return 0, 0
    runs = [[0, 0]]
    first = None
    for kind, flags, place, length in _segments(found.base):
        if kind != _LOADED:
            continue
        first = place if first is None else first
        start = found.base - first + place
        if flags & _WRITE:
            break
        # Between two of them there may be nothing.
        if start // _PAGE != -(-runs[-1][1] // _PAGE):
            runs.append([start, start])
        runs[-1][1] = start + length
    return next(((start, end) for start, end in runs if start <= known < end), (0, 0))


def _segments(base: int) -> Iterator[Tuple[int, int, int, int]]:
    """Kind, flags, address and length in memory of each, as an ELF file of 64 bits has them."""

    def read(place: int, size: int) -> int:
        return int.from_bytes(ctypes.string_at(place, size), sys.byteorder)

    table, size, number = base + read(base + 32, 8), read(base + 54, 2), read(base + 56, 2)
    for entry in range(table, table + size * number, size):
        yield read(entry, 4), read(entry + 4, 4), read(entry + 16, 8), read(entry + 40, 8)
