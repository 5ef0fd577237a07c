"""Whether what a run needs first answers from here: SLURM's queue, and the package index where
software stacks have to be built."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from agentc.placement.profile import SLURM, Profile
from agentc.preflight.finding import PreflightFinding, named, problem
from agentc.runtime.software.job_software import SoftwareError
from agentc.runtime.software.lock_text import LockTextError, read_lock_text, requirements
from agentc.runtime.software.pip_settings import has_uv_configuration, is_true, pip_settings
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import Needed

_PYPI = "https://pypi.org/simple"
_TIMEOUT_S = 10.0
_CONNECT_S = 5.0
_QUEUE = ("squeue", "--me", "--noheader", "--format=%i")


def check_queue(profile: Profile | None) -> Iterator[PreflightFinding]:
    """A problem where SLURM does not answer: nothing could be submitted."""
    if profile is None or profile.executor != SLURM:
        return
    failure = _queue_failure() and _queue_failure()  # a busy controller may miss one query
    if failure is None:
        yield PreflightFinding(check="queue", verdict="ok", message="squeue answers", online=True)
    else:
        yield problem(
            "queue",
            f"`{profile.name}` submits jobs to SLURM, which does not answer: {failure}",
            "run agentc on a login node of the cluster, or without --profile on this machine",
        )


def _queue_failure() -> str | None:
    if shutil.which(_QUEUE[0]) is None:
        return f"there is no `{_QUEUE[0]}` on this machine"
    try:
        done = subprocess.run(
            _QUEUE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"squeue gave no answer within {_TIMEOUT_S:g} s"
    except OSError as error:
        return f"squeue cannot be started: {error.strerror or error}"
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines()
    reason = lines[-1] if lines else f"exit status {done.returncode}"
    return f"squeue: {reason.removeprefix('squeue: ')}"


def check_package_index(
    needed: Sequence[Needed], layout: StoreLayout
) -> Iterator[PreflightFinding]:
    """A problem where software stacks are missing and the host of the package index cannot be
    reached; a warning where there are folders of wheels, too, which may have all of it."""
    missing = [each for each in needed if not each.ready(layout) and _installs(each.lock)]
    try:
        settings = pip_settings(os.environ) if missing else {}
    except SoftwareError as error:
        yield PreflightFinding(check="software", verdict="problem", message=str(error))
        return
    if not missing or is_true(settings.get("no-index", "0")):
        return
    if "index-url" not in settings and has_uv_configuration(os.environ):
        return  # it may name another index
    index = settings.get("index-url", _PYPI)
    failure = _host_failure(index, settings.get("proxy"))
    if failure is not None:
        yield PreflightFinding(
            check="software",
            verdict="warning" if settings.get("find-links") else "problem",
            message=f"{named(each.name for each in missing)} not built yet, and the package index "
            f"{_without_password(index)} cannot be reached: {failure}",
            about=tuple(dict.fromkeys(user for each in missing for user in each.users)),
            fix="let PIP_INDEX_URL name an index that can be reached, or PIP_FIND_LINKS a folder "
            "of the wheels",
            online=True,
        )


def _installs(lock: str) -> bool:
    """Whether building the environment of a lock takes files from an index."""
    try:
        return not read_lock_text(lock).container and any(requirements(lock))
    except LockTextError:
        return False


def _host_failure(address: str, proxy: str | None) -> str | None:
    """Why no connection to the host of an address, or to the proxy that leads there, can be opened
    within a few seconds; None where one can."""
    where = urlsplit(address)
    if where.scheme not in ("http", "https") or where.hostname is None:
        return None
    if proxy is None and not urllib.request.proxy_bypass(where.hostname):
        proxy = urllib.request.getproxies().get(where.scheme)
    if proxy:
        where = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    host, port = where.hostname, where.port or (443 if where.scheme == "https" else 80)
    failures = ["no answer within " + f"{_CONNECT_S:g} s"]

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=_CONNECT_S).close()
            failures.clear()
        except OSError as error:
            failures[:] = [error.strerror or str(error)]

    # A resolver that gets no answer keeps no time limit: its thread is left behind.
    connection = threading.Thread(target=connect, daemon=True)
    connection.start()
    connection.join(_CONNECT_S)
    return failures[0] if failures else None


def _without_password(address: str) -> str:
    """An address without the password that it may have."""
    return re.sub(r"//[^/@]*@", "//", address)
