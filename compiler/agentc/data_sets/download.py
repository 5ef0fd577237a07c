"""Downloads a file over HTTP into `<file>.part`, and goes on where an earlier attempt ended.

An attempt goes on only while the server says that the file is still the same (If-Range). urllib of
the standard library does: the compiler has no HTTP client of its own.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agentc import __version__

Report: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes that are there and, where known, all of them."""

_ATTEMPTS = 5
_TIMEOUT_S = 60.0
_CHUNK = 1 << 18
_BROKEN = (OSError, http.client.HTTPException)


class DownloadError(Exception):
    """The file could not be had; what is there of it stays for the next attempt."""


class RefusedError(Exception):
    """What the server offers is not what was asked for; nothing of it is kept."""


def download(
    url: str, target: Path, most_bytes: int, report: Report, *, pause_s: float = 1.0
) -> None:
    """The whole file at `target`. A connection that breaks is made again after a pause, each time
    a longer one. Raises DownloadError or RefusedError."""
    part = target.with_name(target.name + ".part")
    opener = urllib.request.build_opener(_SafeRedirects)
    failures = 0
    while True:
        before = _size(part)
        try:
            _attempt(opener, url, part, most_bytes, report)
            break
        except RefusedError:
            part.unlink(missing_ok=True)
            raise
        except urllib.error.HTTPError as error:
            with error:
                if error.code < 500 and error.code != 429:
                    raise DownloadError(f"{url}: {error.code} {error.reason}") from None
                problem: Exception = error
        except _BROKEN as error:
            problem = error
        # A connection that breaks now and then may break often in a large file.
        failures = 1 if _size(part) > before else failures + 1
        unreached = isinstance(problem, urllib.error.URLError)
        if failures == (2 if unreached else _ATTEMPTS):
            raise DownloadError(f"{url}: {getattr(problem, 'reason', problem)}") from None
        time.sleep(pause_s * failures)
    _marks(part).unlink(missing_ok=True)
    part.replace(target)


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in ("http", "https") or (before == "https" and after == "http"):
            raise RefusedError(f"{req.full_url} leads to {newurl}, which is less safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _attempt(
    opener: urllib.request.OpenerDirector, url: str, part: Path, most_bytes: int, report: Report
) -> None:
    """Fetch what is missing. Raises OSError or HTTPException where the connection breaks."""
    have, validator = _size(part), _validator(part, url)
    headers = {"User-Agent": f"agentc/{__version__}", "Accept-Encoding": "identity"}
    if have and validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        response = opener.open(
            urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S
        )  # fmt: skip
    except urllib.error.HTTPError as error:
        if error.code != 416:  # the file is shorter now, or all of it is there
            raise
        error.close()
        part.unlink(missing_ok=True)
        _attempt(opener, url, part, most_bytes, report)
        return
    with response:
        start = have if response.status == 206 else 0
        if start and not str(response.headers.get("Content-Range")).startswith(f"bytes {have}-"):
            raise RefusedError(f"{url} sends another part of the file than asked for")
        length = response.headers.get("Content-Length")
        total = start + int(length) if length and length.isdigit() else None
        _check_size(url, total or 0, most_bytes)
        _marks(part).write_text(json.dumps({"url": url, "validator": _validator_of(response)}))
        there = start
        with part.open("r+b" if start else "wb") as out:
            out.seek(start)
            out.truncate()
            while chunk := response.read(_CHUNK):
                there += len(chunk)
                _check_size(url, there, most_bytes)
                out.write(chunk)
                report(there, total)
        if total is not None and there < total:
            raise ConnectionError(f"the connection ended at {there} of {total} bytes")


def _check_size(url: str, size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise RefusedError(f"{url} is larger than the {most_bytes} bytes that it may have")


def _validator_of(response: Any) -> str | None:
    headers: Mapping[str, str] = response.headers
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified")


def _marks(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _validator(part: Path, url: str) -> str | None:
    try:
        marks = json.loads(_marks(part).read_text())
        return str(marks["validator"] or "") if marks["url"] == url else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
