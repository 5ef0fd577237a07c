"""What backends of `benchmark` share. `lowering.py` makes the jobs of a stage, `running.py` starts
the evaluator, `samples.py` holds what it said of each sample, `job_metrics.py` makes metrics of it.
"""
