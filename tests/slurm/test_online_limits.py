"""An online run over real time limits: the job stops before each, is submitted again, and publishes
the bytes of a run without limits. `agentc status` tells how far it is, return and time left."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from online_runs import SPEC, OnlineJob, calm_run
from smoke import agentc, require_software
from tests.slurm.cluster import Cluster
from tests.support.patience import PATIENCE_S, wait_for
from tests.support.run_digests import digests

from agentc.program.job import read_json, read_rows

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]

LIMITS = 3
_MARGIN_S = 20.0


def test_run_over_three_limits_ends_as_one_without(
    tmp_path: Path, cluster: Cluster, profile: Path
) -> None:
    """How long limit and run are follows from what a short one takes; a run that was through after
    fewer limits is followed by one of twice as many iterations."""
    require_software("archer.online_rl")
    short = calm_run(tmp_path / "short", "archer")
    iteration_s = short.phases_s / len(read_rows(short.job.folder / "data" / "curve.jsonl"))
    # On a node two more Snakemakes are started before the job's program.
    minutes = math.ceil((_MARGIN_S + 1.5 * short.rest_s + 15) / 60)
    part_s = 60 * minutes - _MARGIN_S - short.rest_s
    file = profile / "config.yaml"
    asked = f"mem_mb: 8000, runtime: {minutes}"
    text = file.read_text().replace("mem_mb: 1000, runtime: 5", asked)
    file.write_text(text.replace("slurm_partition: short", "slurm_partition: main"))

    count = math.ceil((LIMITS + 1) * part_s / iteration_s)
    while (cuts := _limited(short.job, tmp_path / str(count), count, profile)) < LIMITS:
        count *= 2
    print(f"{count} iterations of {iteration_s:.2f} s, {cuts} limits of {minutes} min")
    assert cluster.queue() == []


def _limited(job: OnlineJob, folder: Path, count: int, profile: Path) -> int:
    """Run so many iterations on the cluster and on this machine, and compare; how many time limits
    cut the first off."""
    words = ("-p", f"iterations={count}")
    said = folder / "said.txt"
    limited = job.again(folder / "limited", *words, "--profile", profile)
    process = limited.start(said)
    try:
        shown = wait_for(lambda: process.poll() is not None or _went_on(limited.store, words))
        print(shown)
        whole = calm_run(job.again(folder / "whole").store, "archer", *words)
        assert process.wait(timeout=3 * PATIENCE_S) == 0, said.read_text()
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
    limited = replace(limited, object=whole.job.object)
    cuts = [each["because"] for each in limited.manifest.get("earlier_attempts", ())]
    assert all("it stopped before its time limit" in each for each in cuts)
    assert digests(limited.folder) == digests(whole.job.folder)
    if len(cuts) >= LIMITS:
        assert isinstance(shown, str), "it was seen under way behind a limit"
    return len(cuts)


def _went_on(store: Path, words: tuple[str, ...]) -> str:
    """What `agentc status` says of the run when it has gone on behind a limit and got further; ""
    before that."""
    told = [read_json(path) for path in store.glob("staging/online_rl/*/status.json")]
    if not told or told[0].get("attempts", 0) < 2:
        return ""
    asked = ("status", SPEC, "--store", store, *words)
    lines: list[Any] = [json.loads(line) for line in agentc(*asked, "--json").splitlines()]
    (seen,) = [line for line in lines if line["id"] == "archer"]
    if seen["remaining"] is None:
        return ""
    found = re.search(
        r"archer +running, \d+/\d+ iterations, [\d.]+ iterations/(s|min), reward -?[\d.]+,"
        r" about .* left",
        agentc(*asked),
    )
    return found.group() if found else ""
