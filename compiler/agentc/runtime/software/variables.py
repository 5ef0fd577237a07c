"""The environment variables that jobs and builds of software see, and those of the caches.

Jobs inherit a short list, those of the site's network, and those that AGENTC_JOB_VARIABLES names;
builds (uv, and build scripts of packages, which are third-party code) what builds need. No variable
that holds a secret reaches either, but for an index's password. Snakemake's own caches lie in the
run's scratch folder; jobs get back what the user's shell had (`restore`).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

JOB_VARIABLES = "AGENTC_JOB_VARIABLES"
"""Further variables for jobs: names, and prefixes such as `VLLM_*`, joined by commas."""
_ALWAYS = frozenset((
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
    "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "AGENTC_SPEC_DIR", "AGENTC_ALLOW_LAUNCH",
    "JAVA_HOME",
    # what compiles kernels and graphs while a program runs
    "CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
    # folders that `apptainer exec` shows to a container
    "APPTAINER_BIND", "APPTAINER_BINDPATH", "SINGULARITY_BIND", "SINGULARITY_BINDPATH",
))  # fmt: skip
_MACHINE = ("CUDA_", "NVIDIA_", "ROCR_", "HIP_", "SLURM_", "GLOO_")
SITE_PREFIXES = ("FI_", "UCX_", "NCCL_", "TORCH_NCCL_", "OMPI_")
"""Variables by which a site says how its nodes reach each other: always for jobs, and recorded."""
_NETWORK = frozenset((
    "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_XET", "HF_HUB_ETAG_TIMEOUT",
    "HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ENABLE_HF_TRANSFER",
))  # fmt: skip
"""Of jobs that may use the network: where the hub is, and how it is reached."""
_NETWORK_PREFIXES = ("HF_XET_",)
_CACHES = {
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "VLLM_CACHE_ROOT": "vllm",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}
"""Caches of compiled code, by the variable that places them: on this machine's own disk."""
_OF_AGENTC = frozenset((
    "PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "PYTHONHASHSEED",
    "PYTHONUTF8", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_DYNAMIC",
    "OMP_WAIT_POLICY", "MKL_DYNAMIC", "MKL_CBWR", "TOKENIZERS_PARALLELISM",
    "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK", "VIRTUAL_ENV",
))  # fmt: skip
"""What agentc sets itself: results depend on it, or programs would find other code."""
_WORD = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\*?$")
_SECRET = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|KEY|CREDENTIALS?|AUTH|JWT)(_|$)")
_DECLARED: set[str] = set()


class JobVariablesError(Exception):
    """AGENTC_JOB_VARIABLES has a word that cannot be used; the message names it."""


def declare_secrets(names: Iterable[str]) -> None:
    """Say that these variables hold secrets, of jobs of other processes too: nothing that this one
    starts inherits them."""
    _DECLARED.update(names)


def declared_secrets() -> set[str]:
    """Names of all secrets that this process knows of."""
    return _DECLARED


def is_secret_name(name: str) -> bool:
    """Whether a variable says by its name that it holds a secret, as SLURM_JWT does."""
    return _SECRET.search(name) is not None


def read_job_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The words of AGENTC_JOB_VARIABLES. Raises JobVariablesError naming the first wrong one."""
    words = [word.strip() for word in environ.get(JOB_VARIABLES, "").split(",")]
    for word in filter(None, words):
        fault = _fault_of(word)
        if fault is not None:
            raise JobVariablesError(
                f"{JOB_VARIABLES}: {fault}; expected names of variables, or prefixes such as "
                "`VLLM_*`, joined by "
                "commas"
            )
    return tuple(filter(None, words))


def inherited_variables(environ: Mapping[str, str], *, network: bool) -> dict[str, str]:
    """The variables of this process that a job gets; `network`: it may use the network. Raises
    JobVariablesError."""
    words = read_job_variables(environ)
    found = {
        name: value
        for name, value in environ.items()
        if name not in _DECLARED
        and (
            name in _ALWAYS
            or (network and name in _NETWORK)
            or (
                not is_secret_name(name)
                and (
                    name.startswith(_MACHINE + SITE_PREFIXES)
                    or (network and name.startswith(_NETWORK_PREFIXES))
                    or name in _CACHES
                    or _is_named(name, words)
                )
            )
        )
    }
    lacking = [name for name in _CACHES if name not in found]
    folder = _private_folder() if lacking else None
    if folder is not None:
        found.update({name: str(folder / _CACHES[name]) for name in lacking})
    return found


def site_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Of a job's variables those that its manifest records: the site's own choice. Raises
    JobVariablesError."""
    words = read_job_variables(environ)
    return {
        name: value
        for name, value in sorted(environ.items())
        if name not in _DECLARED
        and not is_secret_name(name)
        and (name.startswith(SITE_PREFIXES) or _is_named(name, words))
    }


def _is_named(name: str, words: Iterable[str]) -> bool:
    if name in _OF_AGENTC:
        return False
    return any(name.startswith(word[:-1]) if word.endswith("*") else name == word for word in words)


def _fault_of(word: str) -> str | None:
    if not _WORD.match(word):
        return f"`{word}` is neither a name nor a prefix"
    if word in _OF_AGENTC:
        return f"agentc sets `{word}` itself"
    if not word.endswith("*") and (is_secret_name(word) or word in _DECLARED):
        return f"`{word}` holds a secret: a spec hands it to the jobs that need it (`secret:`)"
    return None


def _private_folder() -> Path | None:
    """A folder of this user's on this machine's own disk; None where it cannot be trusted, or code
    in it could not be loaded."""
    folder = Path(os.environ.get("TMPDIR") or "/tmp") / (f"agentc-cache-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = os.lstat(str(folder))
        loads = not os.statvfs(str(folder)).f_flag & os.ST_NOEXEC
    except OSError:
        return None
    own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
    return folder if own and loads and not state.st_mode & 0o022 else None


_INHERITED = frozenset((
    # the machine and the user
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "TZ", "LANG", "LANGUAGE",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
    "NETRC", "LD_LIBRARY_PATH", "LD_RUN_PATH", "PYTHONUTF8", "SOURCE_DATE_EPOCH",
    # the way out
    "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
    # compilers
    "CC", "CXX", "CPP", "FC", "F77", "F90", "AR", "AS", "LD", "NM", "RANLIB", "STRIP", "LDSHARED",
    "CFLAGS", "CXXFLAGS", "CPPFLAGS", "FFLAGS", "FCFLAGS", "LDFLAGS", "ARFLAGS", "ARCHFLAGS",
    "NVCC", "NVCC_FLAGS", "CPATH", "INCLUDE", "LIBRARY_PATH", "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH", "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "MAKE",
    "MAKEFLAGS", "MAX_JOBS", "NPY_NUM_BUILD_JOBS", "FORCE_CUDA", "TORCH_CUDA_ARCH_LIST",
    "RUSTFLAGS", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME", "CARGO_BUILD_JOBS",
    "JAVA_HOME", "GOPATH", "GOROOT", "OPENBLAS", "MKLROOT", "CONDA_PREFIX",
))  # fmt: skip
_OF_UV = frozenset((
    "UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS",
    "UV_NO_INDEX", "UV_OFFLINE", "UV_INSECURE_HOST", "UV_KEYRING_PROVIDER", "UV_CONFIG_FILE",
    "UV_CACHE_DIR", "UV_NO_CACHE", "UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "UV_SYSTEM_CERTS",
    "UV_CONCURRENT_BUILDS", "UV_CONCURRENT_DOWNLOADS", "UV_CONCURRENT_INSTALLS",
))  # fmt: skip
"""Where uv finds files, and how fast; none that changes what it installs, or into which place."""
_PREFIXES = ("LC_", "PIP_", "CUDA", "NVIDIA_", "ROCM_", "HIP_", "CMAKE_", "CCACHE_", "SKBUILD_",
             "SETUPTOOLS_SCM_PRETEND_", "SLURM_")  # fmt: skip
_LOGIN = re.compile(r"UV_INDEX_[A-Z0-9_]+_(USERNAME|PASSWORD)")
_OF_ENGINES = ("APPTAINER", "SINGULARITY", "DOCKER_")
_OF_THE_USER = frozenset(("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER",
                          "PIP_REQUIRE_VIRTUALENV"))  # fmt: skip
"""They would let pip, in a build script, see or write to other places."""


def variables_for_builds(extra: Mapping[str, str]) -> dict[str, str]:
    """What builds need of this process's variables, with `extra`. An index keeps its settings
    (`PIP_*`, `UV_*`), and its password with them: uv could not reach it else."""
    found = {name: value for name, value in os.environ.items() if _is_for_builds(name)}
    found.update(PYTHONNOUSERSITE="1", PIP_DISABLE_PIP_VERSION_CHECK="1", **extra)
    return found


_OF_INDEX = ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "NETRC")


def variables_of_index(environ: Mapping[str, str]) -> dict[str, str]:
    """What says where this machine's package index is, for jobs that take a file of a package."""
    return {
        name: value
        for name, value in environ.items()
        if name not in _OF_THE_USER
        and name not in _DECLARED
        and (name in _OF_INDEX or (name.startswith(("PIP_", "UV_")) and not is_secret_name(name)))
    }


def variables_for_engine(extra: Mapping[str, str]) -> dict[str, str]:
    """The same for the container engine that pulls an image, with its settings and log-ins: it
    runs no code of a package."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_OF_ENGINES)}
    return {**variables_for_builds(extra), **own}


def _is_for_builds(name: str) -> bool:
    if name in _OF_THE_USER or name in declared_secrets():
        return False
    if name in _INHERITED or name in _OF_UV or _LOGIN.fullmatch(name):
        return True
    return name.startswith(_PREFIXES) and not is_secret_name(name)


VARIABLE = "AGENTC_SCRATCH"
"""The folder, and the values before, as JSON."""
_CACHE, _TEMPORARY = "XDG_CACHE_HOME", "TMPDIR"
_ALIASES = ("TMP", "TEMP", "TEMPDIR")
"""What Snakemake sets for a job's shell besides TMPDIR."""


def moved_to(folder: str, environ: MutableMapping[str, str]) -> dict[str, str]:
    """The environment of a Snakemake that keeps such files in that folder."""
    before = {name: environ.get(name) for name in (_CACHE, _TEMPORARY)}
    word = json.dumps({"folder": folder, "before": before}, sort_keys=True)
    return {**environ, _CACHE: folder, _TEMPORARY: folder, VARIABLE: word}


def restore(environ: MutableMapping[str, str] | None = None) -> None:
    """Give the variables of this process the values that they had before the run, where they still
    name its scratch folder: a cluster may give each job a folder of its own."""
    environ = os.environ if environ is None else environ
    word = environ.pop(VARIABLE, "")
    if not word:
        return
    try:
        known = json.loads(word)
        folder, before = str(known["folder"]), dict(known["before"])
    except (ValueError, KeyError, TypeError):
        return
    for name in (_CACHE, _TEMPORARY, *_ALIASES):
        if environ.get(name) == folder:
            value = before.get(_TEMPORARY if name in _ALIASES else name)
            if value is None:
                del environ[name]
            else:
                environ[name] = value
