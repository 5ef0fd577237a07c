"""The environment variables that software builds see: pip, and the build scripts of packages.

A source distribution's setup.py is a stranger's code, so it gets what builds need and nothing
else of the shell; `installation.py` is the user. Jobs have a list of their own (`environment.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from agentc.runtime.software.inherited import declared_secrets, is_secret_name

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
_PREFIXES = ("LC_", "PIP_", "CUDA", "NVIDIA_", "ROCM_", "HIP_", "CMAKE_", "CCACHE_", "SKBUILD_",
             "SETUPTOOLS_SCM_PRETEND_", "SLURM_")  # fmt: skip
_OF_ENGINES = ("APPTAINER", "SINGULARITY", "DOCKER_")
_OF_THE_USER = frozenset(("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER",
                          "PIP_REQUIRE_VIRTUALENV"))  # fmt: skip
"""They would let pip see or write to other places."""


def variables_for_pip(extra: Mapping[str, str]) -> dict[str, str]:
    """What builds need of this process's variables, with `extra`. An index of one's own keeps its
    settings (`PIP_*`), and a password in its address with them: pip could not reach it else."""
    found = {name: value for name, value in os.environ.items() if _is_for_builds(name)}
    found.update(PYTHONNOUSERSITE="1", PIP_DISABLE_PIP_VERSION_CHECK="1", **extra)
    return found


def variables_for_engine(extra: Mapping[str, str]) -> dict[str, str]:
    """The same for the container engine that pulls an image, with its settings and log-ins: it
    runs no code of a package."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_OF_ENGINES)}
    return {**variables_for_pip(extra), **own}


def _is_for_builds(name: str) -> bool:
    if name in _OF_THE_USER or name in declared_secrets():
        return False
    return name in _INHERITED or (name.startswith(_PREFIXES) and not is_secret_name(name))
