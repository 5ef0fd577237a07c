"""Job: `python -m card_notes.job_note JOB.json`. Its journal lies beside the spec."""

import os
import sys
import time
from pathlib import Path

from agentc.program.job import load_job, write_rows


def main() -> int:
    job = load_job()
    together, seed = job.config["together"], job.config["seed"]
    job.config.assert_all_read()
    journal = Path(os.environ["AGENTC_SPEC_DIR"]) / "journal"
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")

    def note(word: str) -> None:
        with journal.open("a") as out:  # one write each: no other line comes between
            out.write(f"{word} {job.id} {'together' if together else 'alone'} {seen}\n")

    note("begin")
    while (
        together
        and sum(
            line.startswith("begin") and " together " in line
            for line in journal.read_text().splitlines()
        )
        < together
    ):
        time.sleep(0.02)
    note("end")
    row = {
        "id": f"gpus-{seed}",
        "task_id": f"gpus-{seed}",
        "messages": [
            {"role": "user", "content": f"Which GPUs, {seed}?"},
            {"role": "assistant", "content": f"GPUs {seen}."},
        ],
        "prompt_length": 1,
    }
    write_rows(job.out / "rows.jsonl", [row])
    return 0


if __name__ == "__main__":
    sys.exit(main())
