"""Keys of a Snakemake profile against the options of the installed Snakemake, which takes an
unknown key as a target to make, and reports it only after software was built."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agentc.diagnostics.suggest import did_you_mean

_EXECUTOR = "write `executor: slurm`, or `executor: cluster-generic` with its plugin"
_RESOURCES = "write `default-resources:` and `set-resources:`"
_STORAGE = "`default-storage-provider` and `default-storage-prefix` replace it"
_LOGGER = "write `logger:` with a logger plugin"
_REMOVE = "remove it"


def _plugin(name: str) -> str:
    return f"write `executor: {name}` with snakemake-executor-plugin-{name}"


_REMOVED = {
    "cluster": _EXECUTOR,
    "cluster-sync": _EXECUTOR,
    "cluster-config": _RESOURCES,
    "drmaa": "write `executor: drmaa` with its plugin, or `executor: slurm`",
    "drmaa-log-dir": "write `executor: slurm` and `slurm-logdir:`",
    "slurm": "write `executor: slurm`",
    "slurm-jobstep": "write `executor: slurm`",
    "flux": _plugin("flux"),
    "tes": _plugin("tes"),
    "tibanna": _plugin("tibanna"),
    "kubernetes": _plugin("kubernetes"),
    "google-lifesciences": _plugin("googlebatch"),
    "az-batch": _plugin("azure-batch"),
    "no-shared-fs": "write `shared-fs-usage: none`",
    "default-remote-provider": _STORAGE,
    "default-remote-prefix": _STORAGE,
    "keep-remote": "write `keep-storage-local-copies: true`",
    "log-service": _LOGGER,
    "log-handler-script": _LOGGER,
    "wms-monitor": _LOGGER,
    "wms-monitor-arg": _LOGGER,
    "preemption-default": "write `preemptible-retries:`",
    "use-conda": "write `software-deployment-method: conda`",
    "use-singularity": "write `software-deployment-method: apptainer`",
    "use-envmodules": "write `software-deployment-method: env-modules`",
    "immediate-submit": "remove it: agentc submits a job when its inputs are there",
    "overwrite-shellcmd": _REMOVE,
    "reason": _REMOVE,
    "stats": _REMOVE,
    "gui": _REMOVE,
    "keep-target-files": _REMOVE,
    "bash-completion": _REMOVE,
    "cleanup-containers": "write `container-cleanup-images`",
    "list-code-changes": "write `list-changes: code`",
    "list-version-changes": _REMOVE,
}
"""Options of Snakemake 7 that later versions removed or renamed, and what replaces each."""

_REMOVED_GROUPS = {
    "cluster-": "write `executor: cluster-generic` with its plugin and `{plugin}`",
    "az-batch-": _plugin("azure-batch"),
    "google-lifesciences-": _plugin("googlebatch"),
    "k8s-": _plugin("kubernetes"),
    "tibanna-": _plugin("tibanna"),
}
_WORDS: Mapping[str, tuple[str, ...]] = {
    "jobs": ("unlimited",),
    "cores": ("all",),
    **dict.fromkeys(("latency-wait", "retries", "restart-times", "slurm-array-limit"), ()),
    "slurm-init-seconds-before-status-checks": (),
}
"""Options that are whole numbers, and words that they take as well."""
_LEAST = {"latency-wait": 0, "retries": 0, "restart-times": 0}
_SWITCHES = ("keep-going", "slurm-requeue", "slurm-no-account", "printshellcmds")
_EXECUTORS = ("local", "slurm", "cluster-generic", "lsf", "htcondor", "flux", "drmaa", "dryrun")
_RESOURCE_NAMES = frozenset(
    {
        *("slurm_partition", "slurm_account", "qos", "constraint", "runtime", "mem_mb", "mem"),
        *("nodes", "cpus_per_task", "gpu", "gres", "slurm_extra", "mem_mb_per_cpu", "gpu_model"),
    }
)
_ACCEPTED = ("scheduler-", "report-", "storage-", "logger-", "slurm-jobstep-", "__", "?")
"""How options of other plugins begin; the last two are templates of the profile itself (yte)."""
_OPTION = re.compile(r'"--([a-z][a-z0-9-]*)"')


def key_problems(file: Path, text: str, settings: Mapping[str, Any], executor: str) -> list[str]:
    """A line for each key that no option of Snakemake or of the executor's plugin has."""
    lines = _lines_of(text)
    known = _options()
    of_plugin = _plugin_options(executor)
    problems = []
    for key in map(str, settings):
        where = f"{file}:{lines.get(key, 1)}"
        replacement = _removed(key, executor)
        if replacement is not None:
            problems.append(f"{where}: `{key}` is an option of Snakemake 7; {replacement}")
        elif not known or key in known or key.startswith(_ACCEPTED):
            continue
        elif not of_plugin and executor != "local" and key.startswith(f"{executor}-"):
            continue  # the plugin is not installed, which `require_executor` reports
        elif key not in of_plugin:
            hint = _as_resource(key) or did_you_mean(key, sorted(known | of_plugin))
            owner = _owner(key, executor)
            help_ = hint or owner or "a profile's keys are Snakemake's long options without `--`"
            problems.append(f"{where}: Snakemake has no option `{key}`; {help_}")
    return problems


def value_problems(file: Path, text: str, settings: Mapping[str, Any]) -> list[str]:
    """A line for each value of an option that cannot be meant, and each key that is there twice:
    YAML takes the last."""
    lines = _lines_of(text)
    found = [
        (line, f"`{key}` is there twice, and only the last one would count; make them one")
        for key, line in _doubles(text)
    ]
    for key, words in _WORDS.items():
        value = settings.get(key)
        if value is None or value in words:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < _LEAST.get(key, 1):
            also = "".join(f", or `{word}`" for word in words)
            least = _LEAST.get(key, 1)
            found.append(
                (lines[key], f"`{key}: {value}`: expected a whole number from {least}{also}")
            )
    for key in _SWITCHES:
        value = settings.get(key)
        if isinstance(value, str) and value.lower() not in ("true", "false"):
            found.append((lines[key], f"`{key}: {value}`: expected `true` or `false`"))
    executor = settings.get("executor")
    if executor is not None and (hint := _executor_hint(str(executor))):
        found.append((lines["executor"], f"no executor `{executor}`; {hint}"))
    return [f"{file}:{line}: {words}" for line, words in found]


def _executor_hint(name: str) -> str | None:
    """Of an executor that is not installed, which one may be meant."""
    if name in _EXECUTORS or _source(_module_of(name), "__init__.py") is not None:
        return None
    return did_you_mean(name.lower(), _EXECUTORS)


def _module_of(executor: str) -> str:
    return f"snakemake_executor_plugin_{executor.replace('-', '_')}"


def _as_resource(key: str) -> str | None:
    """Of a resource that is written as an option."""
    if key in _RESOURCE_NAMES:
        return f"it is a resource: write `default-resources: {{{key}: ...}}`"
    return None


def _doubles(text: str) -> list[tuple[str, int]]:
    """Keys that a mapping of the file has twice, with the lines of the second."""
    found: list[tuple[str, int]] = []
    nodes = [yaml.compose(text, Loader=yaml.SafeLoader)]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, yaml.MappingNode):
            continue
        seen: set[str] = set()
        for key, value in node.value:
            if str(key.value) in seen:
                found.append((str(key.value), key.start_mark.line + 1))
            seen.add(str(key.value))
            nodes.append(value)
    return found


def _removed(key: str, executor: str) -> str | None:
    if executor != "local" and key.startswith(f"{executor}-"):
        return None  # `cluster-generic-submit-cmd` is an option of today
    if key in _REMOVED:
        return _REMOVED[key]
    for prefix, replacement in _REMOVED_GROUPS.items():
        if key.startswith(prefix) and not key.startswith(("cluster-generic-", "cluster-sync-")):
            renamed = f"cluster-generic-{key.removeprefix(prefix)}-cmd"
            return replacement.format(plugin=renamed)
    return None


def _owner(key: str, executor: str) -> str | None:
    """Of options of an executor that the profile does not choose."""
    name = key.split("-")[0]
    if name == executor or importlib.util.find_spec(f"snakemake_executor_plugin_{name}") is None:
        return None
    return f"`{name}-...` are options of `executor: {name}`, and this profile has `{executor}`"


def _options() -> frozenset[str]:
    """Options of the installed Snakemake, from its text (to import it takes a second); none
    where it is not installed."""
    source = _source("snakemake", "cli.py")
    return frozenset() if source is None else frozenset(_OPTION.findall(source))


def _plugin_options(executor: str) -> frozenset[str]:
    """Options that the plugin of an executor adds: the fields of its settings."""
    source = _source(f"snakemake_executor_plugin_{executor.replace('-', '_')}", "__init__.py")
    if source is None:
        return frozenset()
    return frozenset(
        f"{executor}-{field.target.id.replace('_', '-')}"
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.ClassDef) and each.name == "ExecutorSettings"
        for field in each.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    )


def _source(package: str, name: str) -> str | None:
    found = importlib.util.find_spec(package)
    for folder in () if found is None else found.submodule_search_locations or ():
        file = Path(folder) / name
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None


def _lines_of(text: str) -> dict[str, int]:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
