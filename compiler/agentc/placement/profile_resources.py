"""Resources that a Snakemake profile asks for, as far as Snakemake and its SLURM plugin take them
without a word and do something else: names that nothing reads, names of partitions that are Python
expressions, times and amounts that YAML or Snakemake reads as other numbers."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from agentc.diagnostics.suggest import did_you_mean
from agentc.runtime.placement import LOCAL

_TEXTS = frozenset(
    {
        *("slurm_partition", "slurm_account", "qos", "constraint", "reservation"),
        *("slurm_cluster", "cluster", "clusters", "gpu_model"),
    }
)
_COUNTS = frozenset(
    {
        *("nodes", "cpus_per_task", "cpus_per_gpu", "tasks", "tasks_per_gpu", "tasks_per_node"),
        *("gpu", "mem_mb", "mem_mib", "mem_mb_per_cpu", "disk_mb", "disk_mib", LOCAL),
    }
)
_MAY_BE_NONE = frozenset({"gpu", LOCAL, "disk_mb", "disk_mib"})
_OTHERS = frozenset({"mem", "disk", "runtime", "gres", "mpi", "slurm_extra", "tmpdir"})
_OTHERS |= {"gpu_manufacturer", "ntasks", "ntasks_per_gpu", "threads", "slurm_requeue"}
_RIGHT = {
    **dict.fromkeys(("partition", "queue", "slurm_queue", "partitions"), "slurm_partition"),
    **dict.fromkeys(("account", "project"), "slurm_account"),
    **dict.fromkeys(("time", "walltime", "time_min", "minutes", "hours", "slurm_time"), "runtime"),
    **dict.fromkeys(("memory", "mem_gb", "ram", "memory_mb", "slurm_mem"), "mem_mb"),
    **dict.fromkeys(("mem_per_cpu", "memory_per_cpu"), "mem_mb_per_cpu"),
    **dict.fromkeys(("gpus", "ngpus", "num_gpus", "gpu_count", "n_gpus"), "gpu"),
    **dict.fromkeys(("gpu_type", "slurm_gpu_model"), "gpu_model"),
    **dict.fromkeys(("cpus", "cpu", "cores", "ncpus", "slurm_cpus"), "cpus_per_task"),
    **dict.fromkeys(("node", "slurm_nodes", "n_nodes"), "nodes"),
    **dict.fromkeys(("slurm_qos", "qualityofservice"), "qos"),
    **dict.fromkeys(("slurm_constraint", "constraints", "feature", "features"), "constraint"),
    "slurm_gres": "gres",
    "slurm_reservation": "reservation",
    **dict.fromkeys(("exclude", "nodelist", "exclusive", "mail_user", "mail_type"), "slurm_extra"),
}
"""What people write, and the resource that is meant."""
_EXTRA = {
    **dict.fromkeys(("--partition", "-p"), "slurm_partition"),
    **dict.fromkeys(("--account", "-A"), "slurm_account"),
    **dict.fromkeys(("--time", "-t"), "runtime"),
    **dict.fromkeys(("--constraint", "-C"), "constraint"),
    **dict.fromkeys(("--nodes", "-N"), "nodes"),
    **dict.fromkeys(("--cpus-per-task", "-c"), "cpus_per_task"),
    "--mem": "mem_mb",
    "--mem-per-cpu": "mem_mb_per_cpu",
    "--qos": "qos",
    "--gres": "gres",
    "--gpus": "gpu",
}
"""Options of sbatch that the plugin does not take from `slurm_extra`, and what to write instead."""
_GIVEN = frozenset(dir(builtins)) | {"wildcards", "input", "attempt", "threads", "shutil"}
_CLOCK = re.compile(r"\d+-\d+(?::\d+)*|\d+(?::\d+)+")
_SPAN = re.compile(r"[\d.]+\s*(?:s|m|h|d|w)[a-z]*", re.IGNORECASE)
_SIZE = re.compile(r"[\d.]+\s*[kmgtp]i?b?", re.IGNORECASE)


def resource_problems(
    text: str, settings: Mapping[str, Any], executor: str
) -> Iterator[tuple[int, str]]:
    """Line and words for each resource of a profile for SLURM that would not do what it says."""
    if executor != "slurm":
        return
    written = _written(text)
    own = set(_names(settings.get("resources"))) | set(_names(settings.get("set-resource-scopes")))
    for name, value, line, where in _entries(settings, written):
        if name in _RIGHT and name not in own:
            yield line, _wrong_name(name, value, where)
        elif name not in _TEXTS | _COUNTS | _OTHERS | own:
            hint = did_you_mean(name, sorted(_TEXTS | _COUNTS | _OTHERS))
            yield (
                line,
                f"{where}: nothing reads the resource `{name}`"
                + (f"; {hint}" if hint else "; options of sbatch go into `slurm_extra`"),
            )
        else:
            raw = written.get((where, name), ("", 0))[0]
            said = _value_problem(name, value, raw)
            if said is not None:
                yield line, f"{where}: {said}"
    threads = settings.get("set-threads")
    for name, value in threads.items() if isinstance(threads, dict) else ():
        said = _count_problem(str(name), value)
        if said is not None:
            yield written["set-threads", str(name)][1], f"set-threads: {said}"


def _wrong_name(name: str, value: Any, where: str) -> str:
    right = _RIGHT[name]
    if right == "slurm_extra":
        return (
            f"{where}: nothing reads the resource `{name}`; write "
            f"`slurm_extra: \"'--{name.replace('_', '-')}=...'\"`"
        )
    unit = {"runtime": " (minutes, or `4h`)", "mem_mb": " (a number of MB)"}.get(right, "")
    return f"{where}: nothing reads the resource `{name}`; it is called `{right}`{unit}"


def _value_problem(name: str, value: Any, raw: str) -> str | None:
    """What is wrong with a value; `raw` is the scalar as the file has it."""
    if isinstance(value, bool) and name != LOCAL:
        return f"YAML reads `{name}: {raw or value}` as {str(value).lower()}; write `{name}: " + (
            f"'{raw or value}'`"
        )
    if name in _TEXTS:
        return _text_problem(name, value, raw)
    if name == "runtime":
        return _time_problem(value, raw)
    if name in _COUNTS:
        return _count_problem(name, value)
    return _extra_problem(value) if name == "slurm_extra" else None


def _text_problem(name: str, value: Any, raw: str) -> str | None:
    quoted = f"write `{name}: \"'{raw or value}'\"`"
    if not isinstance(value, str):
        if raw and raw != str(value):
            return f"YAML reads `{name}: {raw}` as {value}; {quoted}"
        return None
    if re.fullmatch(r"0\d+", value):
        return f"Snakemake reads `{value}` as the number {int(value)}; {quoted}"
    node = _expression(value)
    if isinstance(node, ast.Name) and node.id in _GIVEN:
        return f"Snakemake evaluates `{value}`, which is a name of Python's; {quoted}"
    if isinstance(node, (ast.BinOp, ast.UnaryOp)) and _is_arithmetic(node):
        return f"Snakemake calculates `{value}`; {quoted}"
    return None


def _time_problem(value: Any, raw: str) -> str | None:
    instead = "write minutes (`runtime: 120`), or `2h`, `3d`"
    if isinstance(value, str):
        bare = value.strip().strip("'\"")
        if _CLOCK.fullmatch(bare):
            return f"`runtime: {bare}` is no time of Snakemake's; {instead}"
        if _SPAN.fullmatch(bare) or bare.isdecimal() or _is_evaluable(value):
            return None
        return f"`runtime: {bare}` is no time; {instead}"
    if ":" in raw:
        return f"YAML reads `runtime: {raw}` as {value}, which are minutes then; {instead}"
    if not isinstance(value, (int, float)) or value < 1:
        return f"`runtime: {value}` is no time limit; {instead}"
    return None


def _count_problem(name: str, value: Any) -> str | None:
    least = 0 if name in _MAY_BE_NONE else 1
    if isinstance(value, str):
        bare = value.strip().strip("'\"")
        if bare.isdecimal() or (_is_evaluable(value) and not _SIZE.fullmatch(bare)):
            return None
        if _SIZE.fullmatch(bare) and name in ("mem_mb", "disk_mb"):
            return f"`{name}` is a number of MB; write `{name.removesuffix('_mb')}: {bare}`"
        return f"`{name}: {bare}` is no number"
    if not isinstance(value, (int, float)) or value < least:
        return f"`{name}: {value}` is less than {least}"
    return None


def _extra_problem(value: Any) -> str | None:
    for word in re.findall(r"(?:^|[\s'\"])(--?[A-Za-z][a-z-]*)", str(value)):
        if word in _EXTRA:
            return (
                f"the SLURM plugin takes no `{word}` from `slurm_extra`; write `{_EXTRA[word]}: "
                "...` as a resource"
            )
    return None


def _expression(value: str) -> ast.expr | None:
    try:
        return ast.parse(value.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _is_evaluable(value: str) -> bool:
    """Whether it is an expression all of whose names Snakemake has."""
    node = _expression(value)
    if node is None:
        return False
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    return bool(names) and all(name in _GIVEN for name in names)


def _is_arithmetic(node: ast.expr) -> bool:
    numbers = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)
    return all(isinstance(each, numbers) for each in ast.walk(node))


def _entries(
    settings: Mapping[str, Any], written: Mapping[tuple[str, str], tuple[str, int]]
) -> Iterator[tuple[str, Any, int, str]]:
    """Name, value, line and place of each resource, in whichever form it is written."""
    usual = settings.get("default-resources")
    levels: list[tuple[str, Any]] = [("default-resources", usual)]
    forced = settings.get("set-resources")
    if isinstance(forced, dict):
        levels += [(f"set-resources {rule}", names) for rule, names in forced.items()]
    else:
        words = forced if isinstance(forced, list) else str(forced or "").split()
        for word in words:
            rule, _, rest = str(word).partition(":")
            levels.append((f"set-resources {rule}", [rest]))
    for where, value in levels:
        if isinstance(value, dict):
            pairs = [(str(name), each) for name, each in value.items() if each is not None]
        else:
            words = value if isinstance(value, list) else str(value or "").split()
            pairs = [
                (name, each)
                for name, equals, each in (str(word).partition("=") for word in words)
                if equals
            ]
        section = where.split()[0]
        for name, each in pairs:
            line = written.get((where, name)) or written.get(("", section)) or ("", 1)
            yield name, each, line[1], where


def _names(value: Any) -> Iterator[str]:
    """Names of resources that the profile itself gives a meaning."""
    if isinstance(value, dict):
        yield from map(str, value)
    for word in value if isinstance(value, list) else str(value or "").split():
        yield str(word).partition("=")[0]


def _written(text: str) -> dict[tuple[str, str], tuple[str, int]]:
    """Scalars as the file has them, with their lines, by place and name."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        section = str(key.value)
        found["", section] = ("", key.start_mark.line + 1)
        if not isinstance(value, yaml.MappingNode):
            continue
        for inner, each in value.value:
            if isinstance(each, yaml.MappingNode):
                for name, scalar in each.value:
                    found[f"{section} {inner.value}", str(name.value)] = _scalar(name, scalar)
            else:
                found[section, str(inner.value)] = _scalar(inner, each)
    return found


def _scalar(key: yaml.Node, value: yaml.Node) -> tuple[str, int]:
    text = value.value if isinstance(value, yaml.ScalarNode) else ""
    return str(text), key.start_mark.line + 1
