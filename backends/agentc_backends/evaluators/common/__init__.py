"""What backends of `benchmark` share. `lowering.py` makes the jobs of a stage, `evaluator.py`
starts the evaluator and holds what it said of each sample, `job_metrics.py` makes metrics of it."""
