"""Job: write the report. `python -m agentc_backends.results.report.job_report JOB.json`.

Inputs: one role for each stage, named like it. Besides `data/` the job reads what lies next to it
in the store: manifests, training logs, and the objects that those were made from.
"""

from __future__ import annotations

import sys

from agentc.program.artifact_files import REPORT_PAGE
from agentc.program.job import load_job, write_json
from agentc.result_tables import TABLES_FILE, tables_text
from agentc_backends.results.report.collect import collect
from agentc_backends.results.report.evaluation_tables import sweep_tables
from agentc_backends.results.report.exports import result_tables
from agentc_backends.results.report.page import render_page


def main() -> int:
    """Exit 0 with index.html and tables.json written; of a sweep, sweep.json too, which the
    terminal shows."""
    job = load_job()
    config = job.config
    experiment = config["experiment"]
    stages = config["stages"]
    trajectories, missing = config["trajectories"], config["missing"]
    config.assert_all_read()
    inputs = {stage: job.inputs(stage) for stage in stages}
    collection = collect(inputs, experiment.get("rounds") or [])
    found = result_tables(collection, experiment)
    page = render_page(
        collection, experiment, trajectories=trajectories, missing=missing, found=found
    )
    path = job.out / REPORT_PAGE
    path.write_text(page, encoding="utf-8")
    (job.out / TABLES_FILE).write_text(tables_text(found), encoding="utf-8")
    if tables := sweep_tables(collection, experiment):
        write_json(job.out / "sweep.json", {"tables": tables})
    job.facts(jobs=len(collection.nodes), bytes=path.stat().st_size)
    job.progress(1, 1, "pages", force=True)
    print(f"{len(collection.nodes)} jobs, {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
