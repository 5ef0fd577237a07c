"""`agentc init --profile NAME|DIR`: the bundled profile for SLURM, with what this cluster has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.parser import write_new_file
from agentc.exit_codes import EXIT_DONE, EXIT_USAGE

if TYPE_CHECKING:
    from agentc.preflight.cluster import Cluster
    from agentc.preflight.slurm_facts import Partition

_PARTITION = "  # slurm_partition: main             # default: the cluster's default partition\n"
_ACCOUNT = "  # slurm_account: my_project         # default: your default account\n"
_RESOURCES = "default-resources:\n"


def write_profile(typed: str) -> int:
    """0 with the profile written to a folder, or under a name where Snakemake looks for profiles;
    2 when it is there already."""
    from agentc import resources
    from agentc.placement.profile import profile_folders
    from agentc.preflight.cluster import read_cluster
    from agentc.preflight.slurm_facts import ask_slurm

    folder = Path(typed).expanduser() if "/" in typed else profile_folders(os.environ)[0] / typed
    cluster, silent = read_cluster(ask_slurm())
    text = (resources.profile("slurm") / "config.yaml").read_text(encoding="utf-8")
    if cluster is None:
        print(f"agentc: SLURM does not answer: {silent[0].message}", file=sys.stderr)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"agentc: cannot create {folder}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    target = folder / "config.yaml"
    if not write_new_file(target, text if cluster is None else with_cluster(text, cluster)):
        return EXIT_USAGE
    name = typed if "/" in typed else folder.name
    print(f"wrote {target}; next: agentc plan SPEC --preflight --profile {name}")
    return EXIT_DONE


def with_cluster(text: str, cluster: Cluster) -> str:
    """The text of the bundled profile, with the partitions and the accounts of a cluster in
    comments, and its defaults as the values to uncomment."""
    listed = "".join(f"# {line}\n" for line in _partition_lines(cluster))
    text = text.replace(_RESOURCES, f"#\n# Partitions of this cluster:\n{listed}{_RESOURCES}", 1)
    if cluster.default is not None:
        text = text.replace(_PARTITION, f"  # slurm_partition: {cluster.default.name}\n", 1)
    accounts = list(dict.fromkeys(each.account for each in cluster.associations or ()))
    if accounts:
        first = cluster.default_account or accounts[0]
        others = ", ".join(name for name in accounts if name != first)
        note = f"   # or {others}" if others else ""
        text = text.replace(_ACCOUNT, f"  # slurm_account: {first}{note}\n", 1)
    return text


def _partition_lines(cluster: Cluster) -> Iterator[str]:
    from agentc.text import aligned

    yield from aligned(
        [
            (f"  {each.name}{' (default)' if each.default else ''}", *_nodes_and_limit(each))
            for each in cluster.partitions.values()
        ]
    )


def _nodes_and_limit(partition: Partition) -> tuple[str, str]:
    from agentc.text import counted, format_duration

    nodes = sum(each.count for each in partition.nodes)
    kinds = {
        f"{count} x {kind or 'GPU'}"
        for each in partition.nodes
        for kind, count in each.gpus.items()
    }
    limit = partition.max_minutes
    return (
        counted(nodes, "node") + (f", {' or '.join(sorted(kinds))} each" if kinds else ""),
        "" if limit is None else f"at most {format_duration(60 * limit)}",
    )
