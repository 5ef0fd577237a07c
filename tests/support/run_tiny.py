"""`python run_tiny.py PLAN STORE [keep-going] [profile=...] [light] [gpus]`: what `agentc run` does
after compiling; `light`: with `schedule.py` in Snakemake's place; `gpus`: those here are counted.
"""

import os
import sys
from pathlib import Path

from agentc.placement import resolve_placement
from agentc.placement.device_count import DeviceCount, count_devices
from agentc.placement.profile import find_profile
from agentc.plan.work import find_work, read_plan
from agentc.run import drive
from agentc.run.orchestrate import RunOptions, run_plan
from agentc.run.snakemake_process import DriverOptions
from agentc.store.paths import open_store

plan, store = Path(sys.argv[1]), sys.argv[2]
if "light" in sys.argv:
    scheduler = Path(__file__).with_name("schedule.py")
    drive.driver_argv = lambda directory, layout, targets, options: [
        sys.executable, str(scheduler), str(directory / "plan.json"), str(layout.root),
    ]  # fmt: skip
work = find_work(read_plan(plan), open_store(store))
named = [word.removeprefix("profile=") for word in sys.argv[3:] if word.startswith("profile=")]
profile = find_profile(named[0], os.environ) if named else None
counted = DeviceCount()
if "gpus" in sys.argv:
    settled = resolve_placement(work.document, None, [str(job["id"]) for job in work.missing])
    counted, lacking = count_devices(settled, os.environ, queued=False)
    assert not lacking, lacking
driver = DriverOptions(
    jobs=None if profile else 2, profile=profile, keep_going="keep-going" in sys.argv,
    gpus=counted.gpus, cores=counted.cores,
)  # fmt: skip
sys.exit(run_plan(work, plan.parent, RunOptions(driver=driver, plain=True)))
