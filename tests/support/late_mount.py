"""`python late_mount.py BACKING MOUNT DELAY FAULTS`: a file system (FUSE) that behaves as a node
of an NFS cluster does towards the names that other nodes make.

Each mount of one BACKING folder is a node. Names of a folder are remembered for DELAY seconds:
until then what another mount made is not there, and what another removed answers ESTALE. What this
mount changes itself makes it ask again; exclusive creation, links and renames are decided by the
backing folder at once. flock holds within one mount only. A word in the file FAULTS makes the next
rename of a folder answer EIO (`before`: not carried out; `after`: carried out).
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from mfusepy import FUSE, FuseOSError, Operations

_FIELDS = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_ino", "st_blocks")


class Late(Operations):
    """The operations; `_names` holds (time, names) of folders as this node knows them."""

    use_ns = True

    def __init__(self, backing: str, delay: float, faults: str) -> None:
        self._root = backing
        self._delay = delay
        self._faults = Path(faults)
        self._names: dict[str, tuple[float, frozenset[str]]] = {}
        self._lock = threading.Lock()

    def _real(self, path: str) -> str:
        return self._root + path

    def _known(self, folder: str) -> frozenset[str]:
        with self._lock:
            found = self._names.get(folder)
        now = time.monotonic()
        if found is not None and now - found[0] < self._delay:
            return found[1]
        try:
            names = frozenset(os.listdir(self._real(folder)))
        except OSError as error:
            raise FuseOSError(error.errno or errno.EIO) from None
        with self._lock:
            self._names[folder] = (now, names)
        return names

    def _changed(self, path: str) -> None:
        with self._lock:
            self._names.pop(os.path.dirname(path), None)
            for known in [k for k in self._names if k == path or k.startswith(path + "/")]:
                del self._names[known]

    def _do(self, path: str, call: Any, *words: Any) -> Any:
        """A change of this node."""
        try:
            result = call(*words)
        except OSError as error:
            self._changed(path)
            raise FuseOSError(error.errno or errno.EIO) from None
        self._changed(path)
        return result

    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        if path != "/" and os.path.basename(path) not in self._known(os.path.dirname(path)):
            raise FuseOSError(errno.ENOENT)
        try:
            state = os.lstat(self._real(path))
        except FileNotFoundError:
            raise FuseOSError(errno.ESTALE) from None
        found: dict[str, Any] = {name: getattr(state, name) for name in _FIELDS}
        found.update(
            st_atime=state.st_atime_ns, st_mtime=state.st_mtime_ns, st_ctime=state.st_ctime_ns
        )
        return found

    def readdir(self, path: str, fh: Any) -> Any:
        return [".", "..", *sorted(self._known(path))]

    def readlink(self, path: str) -> str:
        return os.readlink(self._real(path))

    def mkdir(self, path: str, mode: int) -> Any:
        return self._do(path, os.mkdir, self._real(path), mode) or 0

    def rmdir(self, path: str) -> Any:
        return self._do(path, os.rmdir, self._real(path)) or 0

    def unlink(self, path: str) -> Any:
        return self._do(path, os.unlink, self._real(path)) or 0

    def symlink(self, target: str, source: str) -> Any:
        return self._do(target, os.symlink, source, self._real(target)) or 0

    def link(self, target: str, source: str) -> Any:
        return self._do(target, os.link, self._real(source), self._real(target)) or 0

    def rename(self, old: str, new: str) -> Any:
        fault = ""
        if os.path.isdir(self._real(old)) and self._faults.exists():
            fault = self._faults.read_text().strip()
            self._faults.unlink()
        if fault == "before":
            raise FuseOSError(errno.EIO)
        self._changed(old)
        self._do(new, os.rename, self._real(old), self._real(new))
        if fault == "after":
            raise FuseOSError(errno.EIO)
        return 0

    def chmod(self, path: str, mode: int) -> int:
        os.chmod(self._real(path), mode)
        return 0

    def utimens(self, path: str, times: Any = None) -> int:
        os.utime(self._real(path), ns=times)
        return 0

    def truncate(self, path: str, length: int, fh: Any = None) -> int:
        os.truncate(self._real(path), length)
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        state = os.statvfs(self._real(path))
        names = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files",
                 "f_flag", "f_frsize", "f_namemax")  # fmt: skip
        return {name: getattr(state, name) for name in names}

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        flags = os.O_RDWR | os.O_CREAT | (fi.flags & os.O_EXCL)
        fi.fh = self._do(path, os.open, self._real(path), flags, mode)
        return 0

    def open(self, path: str, fi: Any) -> int:
        try:
            # Appending and truncation are the kernel's business here.
            fi.fh = os.open(self._real(path), fi.flags & (os.O_ACCMODE | os.O_TRUNC))
        except OSError as error:
            number = errno.ESTALE if error.errno == errno.ENOENT else error.errno
            raise FuseOSError(number or errno.EIO) from None
        return 0

    def read(self, path: str, size: int, offset: int, fi: Any) -> bytes:
        return os.pread(fi.fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fi: Any) -> int:
        return os.pwrite(fi.fh, data, offset)

    def fsync(self, path: str, datasync: int, fi: Any) -> int:
        os.fsync(fi.fh)
        return 0

    def release(self, path: str, fi: Any) -> int:
        os.close(fi.fh)
        return 0


if __name__ == "__main__":
    backing, mount, delay, faults = sys.argv[1:5]
    FUSE(
        Late(backing, float(delay), faults),
        mount,
        raw_fi=True,
        foreground=True,
        allow_other=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
    )
