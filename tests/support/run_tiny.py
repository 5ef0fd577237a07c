"""`python run_tiny.py PLAN STORE [keep-going]`: what `agentc run` does after compiling."""

import sys
from pathlib import Path

from agentc.plan.work import find_work, read_plan
from agentc.run.driver import DriverOptions
from agentc.run.orchestrate import RunOptions, run_plan
from agentc.store.paths import open_store

plan, store = Path(sys.argv[1]), sys.argv[2]
work = find_work(read_plan(plan), open_store(store))
driver = DriverOptions(jobs=2, keep_going="keep-going" in sys.argv)
sys.exit(run_plan(work, plan.parent, RunOptions(driver=driver, plain=True)))
